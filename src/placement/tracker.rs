//! A node's view of who holds what, fed by the store's watch.
//!
//! Each revision is handled whole: EXPIRED for every lease that ended, then ELECTED for every
//! lease that began, so that a group never seems to have two primaries. A tracker may miss
//! revisions (it re-read after a compaction, or joined late): it then compares what it knew with
//! what is there now.

use std::collections::BTreeMap;

use crate::model::batch::LeaseBatch;
use crate::model::diff::{LeaseChange, LeaseUpdate, diff};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::model::topology::Topology;

/// The begin or end of a primary's time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrackerEvent {
    /// An accepted lease ended: it vanished, or another start took its place.
    Expired {
        /// Revision at which that became known.
        revision: u64,
        /// The lease that ended.
        lease: Lease,
    },
    /// A lease was accepted.
    Elected {
        /// Revision at which that became known.
        revision: u64,
        /// The lease.
        lease: Lease,
    },
}

impl TrackerEvent {
    /// The lease that ended or began.
    pub fn lease(&self) -> &Lease {
        match self {
            Self::Expired { lease, .. } | Self::Elected { lease, .. } => lease,
        }
    }
}

/// EXPIRED, then ELECTED, for the changes of one revision.
pub fn events(revision: u64, changes: &[LeaseChange]) -> Vec<TrackerEvent> {
    let accepted = |lease: &Option<Lease>| lease.clone().filter(|lease| lease.accepted);
    let pairs = || changes.iter().map(|c| (accepted(&c.old), accepted(&c.new)));
    let start = |lease: &Option<Lease>| lease.as_ref().map(|lease| lease.start);
    let turned = |(old, new): &(Option<Lease>, Option<Lease>)| start(old) != start(new);
    let expired = (pairs().filter(turned))
        .filter_map(|(old, _)| old)
        .map(|lease| TrackerEvent::Expired { revision, lease });
    let elected = (pairs().filter(turned))
        .filter_map(|(_, new)| new)
        .map(|lease| TrackerEvent::Elected { revision, lease });
    expired.chain(elected).collect()
}

/// The answer to "who is primary of this group at that time?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Primary {
    /// This lease holds beyond the time asked for, on every clock of the cluster.
    Holds(Lease),
    /// Nobody surely holds the group then.
    Nobody,
    /// The tracker has not yet seen everything up to that time; ask again when it has.
    NotYet,
}

/// How waiting for a primary ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// There is one.
    Elected(Lease),
    /// There was none in time.
    TimedOut,
}

/// Names one who waits.
pub type WaiterId = u64;

#[derive(Debug)]
struct Waiter {
    group: GroupId,
    at: HybridTimestamp,
    /// On the monotonic clock, milliseconds.
    deadline: u64,
}

/// The view.
#[derive(Debug)]
pub struct Tracker {
    max_skew: u64,
    revision: u64,
    batch: LeaseBatch,
    safe_time: Option<HybridTimestamp>,
    waiters: BTreeMap<WaiterId, Waiter>,
}

impl Tracker {
    /// A tracker that has seen nothing. `max_skew` in milliseconds.
    pub fn new(max_skew: u64) -> Self {
        Self {
            max_skew,
            revision: 0,
            batch: LeaseBatch::default(),
            safe_time: None,
            waiters: BTreeMap::new(),
        }
    }

    /// The revision of the batch it knows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The batch it knows.
    pub fn batch(&self) -> &LeaseBatch {
        &self.batch
    }

    /// Everything up to this time has been seen.
    pub fn safe_time(&self) -> Option<HybridTimestamp> {
        self.safe_time
    }

    /// Takes over a revision and says what it means. One that is not newer is ignored.
    pub fn apply(&mut self, update: &LeaseUpdate) -> Vec<TrackerEvent> {
        if update.revision <= self.revision {
            return Vec::new();
        }
        let events = if update.previous == self.revision {
            events(update.revision, &update.changes)
        } else {
            events(update.revision, &diff(&self.batch, &update.batch))
        };
        self.revision = update.revision;
        self.batch = update.batch.clone();
        self.progress(update.time);
        events
    }

    /// The store has nothing older than this time to tell any more.
    pub fn progress(&mut self, safe_time: HybridTimestamp) {
        self.safe_time = self.safe_time.max(Some(safe_time));
    }

    /// Who is primary of a group at a time.
    pub fn primary(&self, group: GroupId, at: HybridTimestamp) -> Primary {
        let common = self.batch.common_expiration();
        match self.batch.get(group) {
            Some(row) if row.accepted() && row.expiration(common).after(at, self.max_skew) => {
                Primary::Holds(self.batch.lease(row))
            }
            _ if self.safe_time >= Some(at) => Primary::Nobody,
            _ => Primary::NotYet,
        }
    }

    /// Waits until a group has a primary at a time whose holder is up, at most until `deadline`
    /// (milliseconds on the monotonic clock). [`poll`](Self::poll) tells.
    pub fn await_primary(
        &mut self,
        id: WaiterId,
        group: GroupId,
        at: HybridTimestamp,
        deadline: u64,
    ) {
        let waiter = Waiter {
            group,
            at,
            deadline,
        };
        self.waiters.insert(id, waiter);
    }

    /// Nobody waits any more for this.
    pub fn cancel(&mut self, id: WaiterId) {
        self.waiters.remove(&id);
    }

    /// The waits that are over, by id; to be asked after each input and at deadlines.
    pub fn poll(&mut self, monotonic: u64, topology: &Topology) -> Vec<(WaiterId, Awaited)> {
        let mut over = Vec::new();
        for (id, waiter) in &self.waiters {
            match self.primary(waiter.group, waiter.at) {
                Primary::Holds(lease) if topology.is_alive(lease.holder_id) => {
                    over.push((*id, Awaited::Elected(lease)));
                }
                _ if monotonic >= waiter.deadline => over.push((*id, Awaited::TimedOut)),
                _ => {}
            }
        }
        for (id, _) in &over {
            self.waiters.remove(id);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{GroupKind, NodeId};
    use crate::model::reads::Reads;

    const SKEW: u64 = 500;

    fn ts(physical: u64) -> HybridTimestamp {
        HybridTimestamp::new(physical, 0).unwrap()
    }

    fn group() -> GroupId {
        GroupId::new(GroupKind::Table, 1, 0).unwrap()
    }

    fn lease(start: u64, expiration: u64, accepted: bool) -> Lease {
        Lease {
            group: group(),
            holder_name: "a".into(),
            holder_id: NodeId::from_halves(0, start),
            start: ts(start),
            expiration: ts(expiration),
            accepted,
            prolongable: true,
            proposed_candidate: None,
        }
    }

    fn update(previous: &LeaseUpdate, leases: &[Lease]) -> LeaseUpdate {
        let batch = LeaseBatch::from_leases(leases).unwrap();
        LeaseUpdate {
            revision: previous.revision + 1,
            previous: previous.revision,
            time: previous.time.plus_millis(1000),
            changes: diff(&previous.batch, &batch).into(),
            batch,
        }
    }

    fn nothing() -> LeaseUpdate {
        LeaseUpdate {
            revision: 0,
            previous: 0,
            time: ts(1000),
            batch: LeaseBatch::default(),
            changes: [].into(),
        }
    }

    fn starts(events: &[TrackerEvent]) -> Vec<(&'static str, u64)> {
        let start = |event: &TrackerEvent| match event {
            TrackerEvent::Expired { lease, .. } => ("expired", lease.start.physical()),
            TrackerEvent::Elected { lease, .. } => ("elected", lease.start.physical()),
        };
        events.iter().map(start).collect()
    }

    #[test]
    fn elected_once_at_acceptance_and_expired_before_the_next() {
        let mut tracker = Tracker::new(SKEW);
        let granted = update(&nothing(), &[lease(10, 120_000, false)]);
        assert_eq!(starts(&tracker.apply(&granted)), []);
        let accepted = update(&granted, &[lease(10, 5_000, true)]);
        assert_eq!(starts(&tracker.apply(&accepted)), [("elected", 10)]);
        assert_eq!(tracker.apply(&accepted), [], "a revision counts once");
        let prolonged = update(&accepted, &[lease(10, 7_500, true)]);
        assert_eq!(starts(&tracker.apply(&prolonged)), []);
        let next = update(&prolonged, &[lease(20, 9_000, true)]);
        assert_eq!(
            starts(&tracker.apply(&next)),
            [("expired", 10), ("elected", 20)]
        );
        let gone = update(&next, &[]);
        assert_eq!(starts(&tracker.apply(&gone)), [("expired", 20)]);
    }

    #[test]
    fn a_late_tracker_compares_what_it_knew() {
        let mut tracker = Tracker::new(SKEW);
        let first = update(&nothing(), &[lease(10, 5_000, true)]);
        tracker.apply(&first);
        let missed = update(&first, &[lease(10, 6_000, true)]);
        let seen = update(&missed, &[lease(20, 9_000, true)]);
        assert_eq!(
            starts(&tracker.apply(&seen)),
            [("expired", 10), ("elected", 20)]
        );
    }

    #[test]
    fn primary_allows_for_the_skew_and_waits_for_safe_time() {
        let mut tracker = Tracker::new(SKEW);
        assert_eq!(tracker.primary(group(), ts(1)), Primary::NotYet);
        let accepted = update(&nothing(), &[lease(10, 5_000, true)]);
        tracker.apply(&accepted);
        assert!(matches!(
            tracker.primary(group(), ts(4_499)),
            Primary::Holds(_)
        ));
        assert_eq!(tracker.primary(group(), ts(4_500)), Primary::NotYet);
        tracker.progress(ts(4_500));
        assert_eq!(tracker.primary(group(), ts(4_500)), Primary::Nobody);
    }

    #[test]
    fn await_primary_wants_a_living_holder_and_times_out() {
        let mut tracker = Tracker::new(SKEW);
        tracker.await_primary(1, group(), ts(100), 50);
        tracker.await_primary(2, group(), ts(100), 500);
        let mut topology = Topology::default();
        assert_eq!(tracker.poll(50, &topology), [(1, Awaited::TimedOut)]);
        let held = lease(10, 5_000, true);
        tracker.apply(&update(&nothing(), std::slice::from_ref(&held)));
        assert_eq!(tracker.poll(60, &topology), [], "the holder is not up");
        topology.join(held.holder(), Reads::default());
        assert_eq!(tracker.poll(70, &topology), [(2, Awaited::Elected(held))]);
        assert_eq!(tracker.poll(900, &topology), []);
    }
}
