//! Turns the cluster: waits until its next event is due, lets it happen, carries out what it
//! wants of the store.
//!
//! The store is asked on this thread. A slow answer delays the handling of later events, not
//! their time: they happen at the cluster time for which they were due, and the answer arrives as
//! much later as the store took. A cluster that can't keep up with its pace goes slower.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use crate::cluster::event::{Effect, Notice, StoreCall};
use crate::cluster::heap::{MILLI, Micros};
use crate::codec::naive_size;
use crate::metastorage::contract::{StoreError, Watch};
use crate::model::diff::LeaseUpdate;
use crate::placement::feed::Feed;
use crate::placement::io::{self, StoreReply, StoreRequest};
use crate::placement::record::{self, PREFIX, SizeRow};

use super::DaemonError;
use super::boot::{Booted, OpenStore};
use super::pace::{Pacer, Speed};
use super::tally::Tally;
use super::view::{LiveEvent, Settled, View};

/// What the crank can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// End.
    Stop,
}

/// The status is brought up to date this often at most.
const SHOW_EVERY: Duration = Duration::from_millis(50);

/// Real time until the store is asked again for what it refused, at full speed.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Log lines about the state of things come after so much cluster time, and not more often than
/// every second of real time.
const REPORT_EVERY: Micros = 10_000_000;

/// The crank, its cluster and its store.
pub struct Crank {
    booted: Booted,
    store: OpenStore,
    watch: Box<dyn Watch>,
    feed: Feed,
    pacer: Pacer,
    speed: Speed,
    until: Option<Micros>,
    view: Arc<View>,
    tally: Tally,
    /// When this process began to turn it.
    began: Instant,
    settled: Option<Settled>,
    latest: Option<Arc<LeaseUpdate>>,
    shown: Option<Instant>,
    reported: (Micros, Option<Instant>),
    lagging: bool,
    /// Why nothing can be stored, while that is so.
    trouble: Option<String>,
    /// What the store refused, while cluster time waits for it.
    refused: Option<StoreCall>,
    /// Messages dropped because of the sender's clock.
    dropped: u64,
    /// Whether the nodes' ids are still to be stored.
    identity_due: bool,
}

impl Crank {
    /// A crank that has not begun to turn. It ends by itself after `run_for` of cluster time.
    pub fn new(
        booted: Booted,
        store: OpenStore,
        view: Arc<View>,
        speed: Speed,
        run_for: Option<Duration>,
    ) -> Result<Self, DaemonError> {
        let from = store.store.revision()? + 1;
        let watch = store.store.watch(PREFIX, from)?;
        let mut tally = Tally::default();
        let mut feed = Feed::default();
        if let Some(update) = &booted.update {
            tally.begin(&view, update);
            view.update_status(|status| {
                status.naive_bytes = naive_size(&update.batch) as u64;
            });
        }
        if let Some(state) = &booted.state {
            feed = Feed::starting_from(state);
            view.update_status(|status| status.stored_bytes = state.record_bytes);
        }
        let begin = booted.cluster.now();
        let limit = |time: Duration| {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            begin.saturating_add(micros)
        };
        Ok(Self {
            pacer: Pacer::new(begin, speed),
            until: run_for.map(limit),
            latest: booted.update.clone(),
            reported: (begin, None),
            booted,
            store,
            watch,
            feed,
            speed,
            view,
            tally,
            began: now(),
            settled: None,
            shown: None,
            lagging: false,
            trouble: None,
            refused: None,
            dropped: 0,
            identity_due: false,
        })
    }

    /// Turns until told to stop, until the time is over, or until something fails.
    pub fn turn(&mut self, commands: &Receiver<Command>) -> Result<(), DaemonError> {
        let result = self.turn_on(commands);
        if let Err(error) = &result {
            let trouble = error.to_string();
            self.view
                .update_status(|status| status.trouble = Some(trouble));
        }
        self.show();
        result
    }

    fn turn_on(&mut self, commands: &Receiver<Command>) -> Result<(), DaemonError> {
        loop {
            let due = self.booted.cluster.next_at().unwrap_or(Micros::MAX);
            let due = self.until.map_or(due, |until| due.min(until));
            let refused = self.refused.take();
            let wait = match refused {
                Some(_) => ASK_AGAIN,
                None => self.pacer.wait(due),
            };
            match commands.recv_timeout(wait) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(call) = refused {
                self.store_call(call)?;
                continue;
            }
            if self.until == Some(due) {
                self.booted.cluster.pass(due);
                return Ok(());
            }
            for effect in self.booted.cluster.step() {
                match effect {
                    Effect::Store(call) => self.store_call(call)?,
                    Effect::Notice(notice) => self.notice(&notice)?,
                    // Of a scenario that only a simulated store can carry out, which `boot` refuses.
                    Effect::StoreCrashed(_) | Effect::Rewrite | Effect::Compact(_) => {}
                }
            }
            self.keep_up(due)?;
        }
    }

    /// Now and then: the status, a log line, a word about being late.
    fn keep_up(&mut self, due: Micros) -> Result<(), DaemonError> {
        if self.shown.is_none_or(|shown| shown.elapsed() >= SHOW_EVERY) {
            self.show();
            self.report();
            let late = (self.pacer.now()).map_or(0, |now| now.saturating_sub(due));
            let lagging = late > 2_000 * MILLI;
            if lagging && !self.lagging {
                warn!(
                    late_ms = late / MILLI,
                    "cluster time can't keep up with speed {}", self.speed
                );
            }
            self.lagging = lagging;
            self.store_identity()?;
        }
        Ok(())
    }

    fn store_call(&mut self, call: StoreCall) -> Result<(), DaemonError> {
        let id = call.call_id();
        let settings = self.booted.cluster.scenario();
        let (reads, store_us) = (call.reads, settings.network.store_us);
        let again = (self.speed == Speed::Max).then(|| call.clone());
        let compacts = matches!(call.request, StoreRequest::Compact(_));
        let mut write = None;
        let mut encoded = None;
        if let StoreRequest::Write(batch) = &call.request {
            let began = now();
            encoded = record::encode(batch).ok();
            let encode_time = began.elapsed();
            let (format, stored_bytes) = (encoded.as_ref()).map_or((batch.format, 0), |encoded| {
                (encoded.format(), encoded.bytes())
            });
            write = Some((SizeRow::of(batch, format, stored_bytes), encode_time));
        }
        let began = now();
        let reply = record::execute(&*self.store.store, reads, call.request, encoded);
        let store_time = began.elapsed();
        if let Some(failure) = self.store.sled.as_ref().and_then(|sled| sled.failure()) {
            return Err(DaemonError::StoreFailed(failure));
        }
        if let StoreReply::Unencodable(reason) = reply {
            return Err(DaemonError::Unencodable(reason));
        }
        // Compaction makes space: it works where nothing else can be written.
        if !compacts {
            self.note_trouble(&reply);
        }
        // As fast as the store acknowledges: where it does not, cluster time waits.
        if let (Some(call), StoreReply::Unavailable(_)) = (again, &reply) {
            self.refused = Some(call);
            return Ok(());
        }
        if let (Some((mut row, encode_time)), StoreReply::Written { revision, .. }) =
            (write, &reply)
        {
            row.revision = *revision;
            self.tally.record(&row, encode_time + store_time);
            debug!(
                revision,
                cause = row.cause,
                format = row.format,
                changed = row.changed,
                stored_bytes = row.stored_bytes,
                encode_us = encode_time.as_micros(),
                store_us = store_time.as_micros(),
                "stored"
            );
            self.view.update_status(|status| {
                status.stored_bytes = row.stored_bytes;
                status.naive_bytes = row.naive_bytes;
                status.encode_us = encode_time.as_micros() as u64;
                status.store_us = store_time.as_micros() as u64;
            });
            self.view.tell(|| LiveEvent::Stored(row));
        }
        // What the store took, whatever the pace, and not how late this thread is: a cluster that
        // can't keep up with its pace goes slower, it does not see its store stall.
        let took = match self.speed {
            Speed::Times(_) => store_time.as_micros() as Micros,
            Speed::Max => store_us,
        };
        let done = self.booted.cluster.complete(took, id, reply);
        self.watch(done)
    }

    /// The first renewal that changes nothing but the common expiration of all leases.
    fn note_settled(&mut self) {
        if self.settled.is_none() {
            let groups = self.booted.cluster.catalog().group_count();
            if self.tally.accepted() == groups {
                self.settled = Some(Settled {
                    elapsed_ms: (self.booted.cluster.now() - self.booted.cluster.begin()) / MILLI,
                    real_us: self.began.elapsed().as_micros() as u64,
                    snapshot_us: self.tally.snapshot_us(),
                });
            }
        }
    }

    /// Stores the nodes' ids, now or when the store takes writes again. Until then a process that
    /// goes on from the directory knows the nodes by their former ids, whose leases expire.
    fn store_identity(&mut self) -> Result<(), DaemonError> {
        if self.identity_due {
            match self.booted.identity.write(&*self.store.store) {
                Ok(()) => self.identity_due = false,
                Err(StoreError::Full(_) | StoreError::Unavailable(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Tells when the store begins to refuse and when it takes up its work again.
    fn note_trouble(&mut self, reply: &StoreReply) {
        let trouble = match reply {
            StoreReply::Unavailable(reason) => Some(reason.clone()),
            // Reads work when nothing can be written.
            StoreReply::Read(_) | StoreReply::Lost(_) => return,
            _ => None,
        };
        match (&self.trouble, &trouble) {
            (None, Some(reason)) => warn!("nothing can be stored: {reason}"),
            (Some(_), None) => info!("the store takes writes again"),
            _ => {}
        }
        if self.trouble != trouble {
            self.trouble.clone_from(&trouble);
            self.view.update_status(|status| status.trouble = trouble);
        }
    }

    fn watch(&mut self, at: Micros) -> Result<(), DaemonError> {
        while let Some(event) = self.watch.next(Duration::ZERO)? {
            let began = now();
            let seen = self.feed.follow(&*self.store.store, &event)?;
            let decode_time = began.elapsed();
            if let Some(reason) = &seen.read_again {
                warn!("{reason}: the leases were read again from the store");
            }
            self.booted.cluster.observed(at, &seen);
            if let Some(update) = seen.update {
                self.tally.stored(&self.view, &update);
                if seen.snapshot {
                    self.tally.snapshot_took(decode_time);
                }
                let quiet = (self.latest.as_ref())
                    .is_some_and(|latest| latest.batch.shares_rows(&update.batch));
                self.latest = Some(update);
                self.view.update_status(|status| {
                    status.decode_us = decode_time.as_micros() as u64;
                });
                if quiet {
                    self.note_settled();
                }
            }
        }
        Ok(())
    }

    fn notice(&mut self, notice: &Notice) -> Result<(), DaemonError> {
        self.tally.notice(&self.view, &self.booted.cluster, notice);
        match notice {
            Notice::Driver(driver, said) => match said {
                io::Notice::Stored { .. } | io::Notice::Redirected(_) => {}
                io::Notice::Halted(reason) => return Err(DaemonError::Halted(reason.clone())),
                io::Notice::Active { epoch } => info!(driver, epoch, "driver is active"),
                io::Notice::SteppedDown => warn!(driver, "driver stepped down"),
                io::Notice::TooNew(needs) => {
                    warn!(driver, %needs, "what is stored takes a newer release to read");
                }
                io::Notice::WriteLost => warn!(driver, "the batch was changed by somebody else"),
                io::Notice::WriteUnknown(reason) => warn!(driver, reason, "outcome unknown"),
                io::Notice::WriteFailed(reason) => debug!(driver, reason, "batch not stored"),
                io::Notice::ClockTooFarAhead(reason) => {
                    self.dropped += 1;
                    if self.dropped.is_power_of_two() {
                        let dropped = self.dropped;
                        warn!(driver, dropped, reason, "messages dropped");
                    }
                }
            },
            Notice::NodeUp(node) => {
                info!(node = %node.name, id = %node.id, "node up");
                self.booted.identity.follow(&self.booted.cluster);
                self.identity_due = true;
                self.store_identity()?;
            }
            Notice::NodeDown(name) => info!(node = %name, "node down"),
            Notice::Created(groups) => info!(groups, "tables created"),
            Notice::Dropped(groups) => info!(groups, "tables dropped"),
            Notice::Stopped(stopped) => debug!(stopped, "holder asked to stop prolongation"),
            Notice::DriverUp(driver) => info!(driver, "driver up"),
            Notice::DriverDown(driver) => info!(driver, "driver down"),
            Notice::Done(action) => debug!(operation = action.name(), "carried out"),
            Notice::Healed => info!("all faults have ended"),
            Notice::ReadAgain(process) => info!(%process, "watch behind a compaction: read again"),
            Notice::MessageLost(from, to) => debug!(%from, %to, "message lost"),
            Notice::CannotRead(node, revision) => {
                debug!(node, revision, "more than the node's release can read");
            }
            Notice::Answered(..) | Notice::Tracked(..) => {}
        }
        Ok(())
    }

    fn show(&mut self) {
        self.shown = Some(now());
        let (tally, cluster) = (&self.tally, &self.booted.cluster);
        let latest = self.latest.as_deref();
        self.view
            .update_status(|status| tally.show(status, cluster, latest));
        let (settled, real_us) = (self.settled, self.began.elapsed().as_micros() as u64);
        self.view.update_status(|status| {
            status.real_us = real_us;
            status.settled = settled;
        });
    }

    fn report(&mut self) {
        let (cluster_time, real_time) = self.reported;
        let at = self.booted.cluster.now();
        let recently = real_time.is_some_and(|time| time.elapsed() < Duration::from_secs(1));
        if at < cluster_time + REPORT_EVERY || recently {
            return;
        }
        self.reported = (at, Some(now()));
        let status = self.view.status();
        info!(
            elapsed_s = status.elapsed_ms / 1000,
            revision = status.revision,
            leases = status.leases,
            accepted = status.accepted,
            renewals = status.renewals,
            granted = status.granted,
            expired = status.expired,
            stored_bytes = status.stored_bytes,
            naive_bytes = status.naive_bytes,
            encode_us = status.encode_us,
            decode_us = status.decode_us,
            store_us = status.store_us,
            "running"
        );
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the daemon measures how long things take"
)]
fn now() -> Instant {
    Instant::now()
}
