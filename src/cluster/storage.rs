//! The store as a process: it serves one request after the other, syncs before it tells, stalls,
//! fills up and crashes. What it holds is the crank's business.

use rand::RngExt;

use crate::placement;
use crate::placement::feed::Seen;
use crate::placement::io::{Revision, StoreReply, StoreRequest};

use super::effect::{store_time, unknown};
use super::event::{CallId, Effect, Event, Shown, StoreCall};
use super::heap::{MILLI, Micros};
use super::member::Pause;
use super::scenario::Process;
use super::world::Cluster;

/// The store's state, but for what is stored.
#[derive(Debug, Default)]
pub(super) struct Storage {
    /// Counts its crashes.
    incarnation: u64,
    down: bool,
    /// When it has served what it was asked so far.
    busy_until: Micros,
    /// All up to this revision is synced.
    durable: Revision,
    /// History up to this revision is gone.
    pub compacted: Revision,
    /// Revision of the last change of the epoch.
    pub epoch: Revision,
    /// What waits while it stalls.
    pub pause: Pause,
    /// It takes longer by so much, until then.
    pub slow: (Micros, Micros),
    /// It takes no writes until then.
    pub full_until: Micros,
    /// Of so many batch writes the outcome gets lost.
    pub forgets: u32,
    /// So many readings come damaged.
    pub damages: u32,
}

impl Storage {
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// When it has served what it was asked so far.
    pub fn busy_until(&self) -> Micros {
        self.busy_until
    }

    /// All faults end, but for a crash.
    pub fn heal(&mut self) {
        self.slow = (0, 0);
        self.full_until = 0;
        self.forgets = 0;
        self.damages = 0;
    }
}

impl Cluster {
    /// A request arrives.
    pub(super) fn serve(&mut self, mut call: StoreCall) {
        if self.storage.down {
            return;
        }
        let writes = matches!(
            call.request,
            StoreRequest::Write(_) | StoreRequest::Beat { .. } | StoreRequest::TakeEpoch { .. }
        );
        let store_us = self.scenario.network.store_us;
        if writes && self.now < self.storage.full_until {
            let reply = StoreReply::Unavailable("no space is left".to_owned());
            self.complete(store_us, call.call_id(), reply);
            return;
        }
        let batch = matches!(call.request, StoreRequest::Write(_));
        if batch && self.storage.forgets > 0 {
            self.storage.forgets -= 1;
            call.forgotten = true;
            if self.random.random::<bool>() {
                let reply = unknown("the connection was lost");
                self.complete(store_us, call.call_id(), reply);
                return;
            }
        }
        let reads = batch || matches!(call.request, StoreRequest::Read);
        if reads && self.storage.damages > 0 {
            self.storage.damages -= 1;
            call.damage = Some(self.random.random());
        }
        self.effects.push(Effect::Store(call));
    }

    /// The store has carried out a call, which takes so many microseconds. Says when it has
    /// synced, which is when the reply leaves it and watchers see what was written.
    pub fn complete(&mut self, took: Micros, call: CallId, reply: StoreReply) -> Micros {
        let revision = match &reply {
            StoreReply::Won(revision) if call.compacts.is_none() => Some(*revision),
            StoreReply::Written { revision, .. } => Some(*revision),
            _ => None,
        };
        let done = self.occupied(took, revision);
        let incarnation = self.storage.incarnation;
        let leaves = if self.acknowledges_early() {
            self.now
        } else {
            done
        };
        let reply = match call.forgotten {
            true => unknown("the connection was lost"),
            false => reply,
        };
        let served = Event::Served {
            incarnation,
            call,
            reply,
        };
        self.heap.push(leaves, served);
        done
    }

    /// The store is at work for so many microseconds more, at the end of which it has synced a
    /// revision, if one is named. Says when.
    pub fn occupied(&mut self, took: Micros, revision: Option<Revision>) -> Micros {
        let (more, slow_until) = self.storage.slow;
        let slow = if self.now < slow_until { more } else { 0 };
        let done = (self.now + took + slow).max(self.storage.busy_until);
        self.storage.busy_until = done;
        let incarnation = self.storage.incarnation;
        if let Some(revision) = revision {
            let synced = Event::Synced {
                incarnation,
                revision,
            };
            self.heap.push(done, synced);
        }
        done
    }

    /// Whether the store would take a write now.
    pub(super) fn takes_writes(&self) -> bool {
        let storage = &self.storage;
        storage.is_up() && storage.pause.until.is_none() && self.now >= storage.full_until
    }

    /// A store must not, and this one does not.
    fn acknowledges_early(&self) -> bool {
        false
    }

    /// The store's watch has shown a revision, at a time.
    pub fn observed(&mut self, at: Micros, seen: &Seen) {
        let shown = Event::Shown {
            incarnation: self.storage.incarnation,
            seen: Box::new(seen.clone()),
        };
        self.heap.push(at.max(self.now), shown);
    }

    pub(super) fn synced(&mut self, incarnation: u64, revision: Revision) {
        if incarnation == self.storage.incarnation {
            self.storage.durable = self.storage.durable.max(revision);
        }
    }

    pub(super) fn served(&mut self, incarnation: u64, call: CallId, reply: StoreReply) {
        if incarnation != self.storage.incarnation {
            return;
        }
        if let (Some(revision), StoreReply::Won(_)) = (call.compacts, &reply) {
            self.storage.compacted = self.storage.compacted.max(revision);
        }
        let input = placement::io::Input::Reply(call.id, reply);
        self.reply(call.driver, call.generation, input);
    }

    pub(super) fn shown(&mut self, incarnation: u64, seen: &Seen) {
        if incarnation != self.storage.incarnation {
            return;
        }
        let revision = seen.revision;
        self.storage.durable = self.storage.durable.max(revision);
        if seen.epoch {
            self.storage.epoch = revision;
        }
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Observed {
                epoch: seen.epoch.then_some(revision),
                beat: seen.beat.is_some(),
            };
            self.inform_driver(index, Some(revision), input);
        }
        if let Some(update) = &seen.update {
            let shown = Shown {
                update: update.clone(),
                needs: seen.needs,
            };
            for index in 0..self.nodes.len() {
                self.show_node(index, shown.clone());
            }
            self.latest = Some(shown);
        }
    }

    /// The store's idle progress.
    pub(super) fn safe_time(&mut self) {
        let next = self.now + self.scenario.timings.safe_time_ms * MILLI;
        self.heap.push(next, Event::SafeTime);
        self.check_membership();
        let Some(time) = store_time(self.now) else {
            return;
        };
        // What is not synced yet will be shown, and is older than this.
        let storage = &self.storage;
        if storage.down || storage.pause.until.is_some() || storage.busy_until > self.now {
            return;
        }
        for index in 0..self.nodes.len() {
            if let Some(id) = self.nodes[index].id() {
                let event = Event::Progress { index, id, time };
                self.stream(Process::Node(index), None, event);
            }
        }
    }

    /// It loses what it has not synced and everything that is under way.
    pub(super) fn crash_store(&mut self, down: Micros) {
        if !self.storage.down {
            let storage = &mut self.storage;
            storage.incarnation += 1;
            storage.down = true;
            storage.busy_until = 0;
            storage.pause = Pause::default();
            let durable = storage.durable;
            self.effects.push(Effect::StoreCrashed(durable));
            self.heap.push(self.now + down, Event::StoreUp);
        }
    }

    pub(super) fn start_store(&mut self) {
        if self.storage.down {
            self.storage.down = false;
            self.resume_streams();
        }
    }

    /// History goes, up to the last synced revision.
    pub(super) fn compact_all(&mut self) {
        if self.storage.is_up() && self.storage.durable > self.storage.compacted {
            self.storage.compacted = self.storage.durable;
            self.effects.push(Effect::Compact(self.storage.durable));
        }
    }
}
