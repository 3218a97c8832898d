//! What changed from one batch to the next, the common expiration aside.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::{LeaseBatch, Row};
use super::dictionary::Dictionary;
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
    let translation = Translation::new(old.dictionary(), new.dictionary());
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
            && translation.same(a, b)
        {
            continue;
        }
        changes.push(LeaseChange {
            old: pair.0.map(|row| old.lease(row)),
            new: pair.1.map(|row| new.lease(row)),
        });
    }
}

/// Where the entries of one dictionary are in another, so that rows compare as numbers.
struct Translation {
    nodes: Vec<Option<u32>>,
    names: Vec<Option<u32>>,
}

impl Translation {
    fn new(old: &Dictionary, new: &Dictionary) -> Self {
        let index: BTreeMap<_, u32> = new.names().iter().zip(0..).collect();
        let names: Vec<_> = (old.names().iter())
            .map(|name| index.get(name).copied())
            .collect();
        let index: BTreeMap<_, u32> = (new.nodes().iter())
            .map(|node| (node.id, node.name))
            .zip(0..)
            .collect();
        let nodes = (old.nodes().iter())
            .map(|node| {
                let name = names.get(node.name as usize).copied().flatten()?;
                index.get(&(node.id, name)).copied()
            })
            .collect();
        Self { nodes, names }
    }

    fn same(&self, a: &Row, b: &Row) -> bool {
        let translated = |table: &[Option<u32>], old: u32| table.get(old as usize).copied();
        let candidate = match a.candidate() {
            Some(old) => translated(&self.names, old),
            None => Some(None),
        };
        a.packed_start() == b.packed_start()
            && a.accepted() == b.accepted()
            && a.prolongable() == b.prolongable()
            && translated(&self.nodes, a.holder()) == Some(Some(b.holder()))
            && candidate == Some(b.candidate())
            && (a.candidate().is_none() || b.candidate().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::workload::Workload;

    #[test]
    fn compares_leases_not_indexes() {
        let batch = Workload::Churn.with_tables(4);
        let leases: Vec<Lease> = batch.leases().collect();
        let reversed = LeaseBatch::from_leases(leases.iter().rev());
        let reversed = reversed.expect("the same leases");
        assert_eq!(diff(&batch, &reversed), []);

        let mut altered = leases.clone();
        altered[7].accepted ^= true;
        altered.remove(3);
        let altered = LeaseBatch::from_leases(&altered).expect("one lease less");
        let changes = diff(&batch, &altered);
        assert_eq!(changes.len(), 2);
        assert_eq!(
            (&changes[0].old, &changes[0].new),
            (&Some(leases[3].clone()), &None)
        );
        assert_eq!(changes[1].old, Some(leases[7].clone()));
        assert_eq!(diff(&altered, &batch).len(), 2);
    }

    #[test]
    fn a_prolonged_lease_has_not_changed() {
        let batch = Workload::Steady.with_tables(2);
        let mut renewed = batch.clone();
        renewed.set_common_expiration(batch.common_expiration().plus_millis(2500));
        assert_eq!(diff(&batch, &renewed), []);
        let leases: Vec<Lease> = renewed.leases().collect();
        let decoded = LeaseBatch::from_leases(&leases).expect("the same leases");
        assert_eq!(diff(&batch, &decoded), []);
    }
}
