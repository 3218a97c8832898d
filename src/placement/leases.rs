//! The driver's copy of the stored batch, and which of its groups need attention.
//!
//! A lease is **quiet** when all that can ever be done to it is to prolong it together with the
//! others: accepted, prolongable, on the common expiration, its holder up under the same id and
//! still a candidate. Everything else needs attention and is looked at in each tick. So a tick
//! costs what is going on, not what is stored.

use std::collections::BTreeSet;

use crate::codec::delta::Chain;
use crate::codec::naive_size;
use crate::model::batch::{LeaseBatch, Row};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;
use crate::model::topology::{Assignment, Assignments, Topology};

use super::candidate::is_candidate;
use super::io::Stored;

/// The stored batch as the driver knows it.
#[derive(Debug, Default)]
pub struct Leases {
    /// The stored batch, and where the next delta fits.
    pub chain: Chain,
    /// Leases changed by the deltas since the last snapshot.
    pub changed_since_snapshot: usize,
    /// What the naive format would take for it, kept up with each change.
    pub naive_bytes: u64,
    /// Groups that have a lease that is not quiet, or no lease although they are assigned.
    pub attention: BTreeSet<GroupId>,
    /// How many leases are quiet.
    pub quiet: usize,
}

/// Who is up and where the replicas are.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The nodes that are up.
    pub topology: &'a Topology,
    /// The replicas.
    pub assignments: &'a Assignments,
}

impl<'a> Surroundings<'a> {
    /// Of these.
    pub const fn new(topology: &'a Topology, assignments: &'a Assignments) -> Self {
        Self {
            topology,
            assignments,
        }
    }
}

impl Leases {
    /// The stored batch.
    #[inline]
    pub fn batch(&self) -> &LeaseBatch {
        self.chain.batch()
    }

    /// Takes over what is stored, whoever wrote it.
    pub fn adopt(&mut self, stored: Stored, around: Surroundings<'_>) {
        self.chain = stored.chain;
        self.changed_since_snapshot = 0;
        self.naive_bytes = naive_size(self.batch()) as u64;
        self.review_all(around);
    }

    /// Takes over what this driver has just stored: `changed` are the groups it touched, and
    /// `common` the common expiration of the batch that it wrote. If that is stored in another
    /// form, with another common expiration, every lease is looked at again.
    pub fn advance(
        &mut self,
        chain: Chain,
        naive_bytes: u64,
        changed: Vec<GroupId>,
        common: HybridTimestamp,
        around: Surroundings<'_>,
    ) {
        if chain.step() == 0 {
            self.changed_since_snapshot = 0;
        } else {
            self.changed_since_snapshot += changed.len();
        }
        self.chain = chain;
        self.naive_bytes = naive_bytes;
        if self.batch().common_expiration() != common {
            self.review_all(around);
            return;
        }
        self.attention.extend(changed);
        let mut attention = std::mem::take(&mut self.attention);
        attention.retain(|group| !self.is_settled(*group, around));
        self.attention = attention;
        self.count_quiet();
    }

    /// Looks at every group again: the topology has changed, or all leases have lapsed.
    pub fn review_all(&mut self, around: Surroundings<'_>) {
        let leased = self.batch().rows().iter();
        let lively = leased.filter(|row| !self.is_quiet(row, around));
        let mut attention: BTreeSet<_> = lively.map(Row::group).collect();
        let bare = around.assignments.keys();
        attention.extend(bare.filter(|group| self.batch().get(**group).is_none()));
        self.attention = attention;
        self.count_quiet();
    }

    /// Looks at some groups again: their assignments have changed.
    pub fn review(&mut self, groups: impl IntoIterator<Item = GroupId>, around: Surroundings<'_>) {
        for group in groups {
            if self.is_settled(group, around) {
                self.attention.remove(&group);
            } else {
                self.attention.insert(group);
            }
        }
        self.count_quiet();
    }

    /// Puts every lease up for attention.
    pub fn disturb_all(&mut self) {
        self.attention
            .extend(self.chain.batch().rows().iter().map(Row::group));
        self.quiet = 0;
    }

    fn count_quiet(&mut self) {
        let batch = self.chain.batch();
        let lively = self
            .attention
            .iter()
            .filter(|group| batch.get(**group).is_some());
        self.quiet = batch.len() - lively.count();
    }

    /// Quiet, or gone for good.
    fn is_settled(&self, group: GroupId, around: Surroundings<'_>) -> bool {
        match self.batch().get(group) {
            Some(row) => self.is_quiet(row, around),
            None => !around.assignments.contains_key(&group),
        }
    }

    fn is_quiet(&self, row: &Row, around: Surroundings<'_>) -> bool {
        row.accepted()
            && row.prolongable()
            && row.own_expiration().is_none()
            && self.holder_is_candidate(row, around.assignments.get(&row.group()), around.topology)
    }

    /// Whether the holder is up under the id that holds the lease, and still a candidate.
    pub fn holder_is_candidate(
        &self,
        row: &Row,
        assignment: Option<&Assignment>,
        topology: &Topology,
    ) -> bool {
        let (id, name) = self.batch().dictionary().node(row.holder());
        topology.id_of(name) == Some(id)
            && assignment.is_some_and(|assignment| is_candidate(name, assignment, topology))
    }

    /// The latest start of all leases.
    pub fn latest_start(&self) -> Option<HybridTimestamp> {
        self.batch().rows().iter().map(Row::start).max()
    }
}
