//! What changed from one batch to the next, the common expiration aside.

use std::sync::Arc;

use super::batch::{LeaseBatch, Row};
use super::hlc::HybridTimestamp;
use super::lease::Lease;

/// A group whose lease is not the same in two batches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseChange {
    /// The lease before.
    pub old: Option<Lease>,
    /// The lease after.
    pub new: Option<Lease>,
}

/// One stored revision of the leases, decoded and compared once and shared by all who watch.
#[derive(Clone, Debug)]
pub struct LeaseUpdate {
    /// Revision that stored the batch.
    pub revision: u64,
    /// Revision of the batch that `changes` starts from.
    pub previous: u64,
    /// Time of the write on the driver's clock.
    pub time: HybridTimestamp,
    /// The batch.
    pub batch: LeaseBatch,
    /// What changed since the previous one, by group.
    pub changes: Arc<[LeaseChange]>,
}

/// The groups whose lease began, ended, or was replaced, accepted or denied. A lease that was
/// only prolonged has not changed. O(1) where both batches share their rows.
pub fn diff(old: &LeaseBatch, new: &LeaseBatch) -> Vec<LeaseChange> {
    if old.shares_rows(new) {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut before = old.rows().iter().peekable();
    let mut after = new.rows().iter().peekable();
    loop {
        let pair = match (before.peek(), after.peek()) {
            (None, None) => return changes,
            (Some(_), None) => (before.next(), None),
            (None, Some(_)) => (None, after.next()),
            (Some(a), Some(b)) if a.group() < b.group() => (before.next(), None),
            (Some(a), Some(b)) if a.group() > b.group() => (None, after.next()),
            (Some(_), Some(_)) => (before.next(), after.next()),
        };
        if let (Some(a), Some(b)) = pair
            && same(old, a, new, b)
        {
            continue;
        }
        changes.push(LeaseChange {
            old: pair.0.map(|row| old.lease(row)),
            new: pair.1.map(|row| new.lease(row)),
        });
    }
}

fn same(old: &LeaseBatch, a: &Row, new: &LeaseBatch, b: &Row) -> bool {
    a.start() == b.start()
        && a.accepted() == b.accepted()
        && a.prolongable() == b.prolongable()
        && old.dictionary().node(a.holder()) == new.dictionary().node(b.holder())
        && a.candidate().map(|index| old.dictionary().name(index))
            == b.candidate().map(|index| new.dictionary().name(index))
}
