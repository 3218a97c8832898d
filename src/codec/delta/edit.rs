//! What a delta does to the rows of a state.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::batch::Row;
use crate::model::diff::LeaseChange;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;

use super::apply::timestamp;
use super::chain::Chain;
use super::entries::ChainDictionary;
use super::frame::Delta;
use super::values::{DeltaLease, OwnExpiration};

/// The rows that a delta puts into a state, and what that does to the digest.
pub(super) struct Edit {
    replaced: Vec<(u32, Row)>,
    /// Where in the old rows each added one belongs.
    added: Vec<(u32, Row)>,
    removed: usize,
    pub(super) old_sum: u64,
    pub(super) new_sum: u64,
}

impl Edit {
    pub(super) fn of(
        chain: &Chain,
        delta: &Delta,
        entries: &ChainDictionary,
        common: HybridTimestamp,
    ) -> Result<Self, DecodeError> {
        let rows = chain.batch.rows();
        let offsets = &delta.offsets;
        let row_at = |position: u32, at, field| {
            rows.get(position as usize).ok_or_else(|| {
                let what = format!("{position} of {} leases", rows.len());
                invalid(at, field, what)
            })
        };
        let resolve = |group, lease: &DeltaLease, old: Option<&Row>| {
            resolved(group, lease, old, common)
                .ok_or("a start or an expiration out of range")
                .map_err(|what| invalid(offsets.columns, "start or own expiration", what))
        };
        let (mut old_sum, mut new_sum) = (0u64, 0u64);
        for position in &delta.removed {
            let row = row_at(*position, offsets.removed, "removed position")?;
            old_sum = old_sum.wrapping_add(entries.hashes.row(row));
        }
        let mut replaced = Vec::with_capacity(delta.replaced.len().min(rows.len()));
        for (position, lease) in &delta.replaced {
            let old = row_at(*position, offsets.replaced, "replaced position")?;
            let new = resolve(old.group(), lease, Some(old))?;
            old_sum = old_sum.wrapping_add(entries.hashes.row(old));
            new_sum = new_sum.wrapping_add(entries.hashes.row(&new));
            replaced.push((*position, new));
        }
        let mut added = Vec::with_capacity(delta.added.len());
        for (group, lease) in &delta.added {
            let Err(place) = rows.binary_search_by_key(group, Row::group) else {
                let what = format!("{group} has a lease already");
                return Err(invalid(offsets.added, "added group", what));
            };
            let new = resolve(*group, lease, None)?;
            new_sum = new_sum.wrapping_add(entries.hashes.row(&new));
            added.push((place as u32, new));
        }
        Ok(Self {
            replaced,
            added,
            removed: delta.removed.len(),
            old_sum,
            new_sum,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.added.is_empty() && self.removed == 0
    }

    /// The rows afterwards.
    pub(super) fn rows(&self, old: &[Row], removed: &[u32]) -> Vec<Row> {
        let mut rows = old.to_vec();
        for (position, row) in &self.replaced {
            if let Some(place) = rows.get_mut(*position as usize) {
                *place = *row;
            }
        }
        if self.added.is_empty() && removed.is_empty() {
            return rows;
        }
        let mut merged = Vec::with_capacity(rows.len() - removed.len() + self.added.len());
        let mut done = 0;
        let mut added = self.added.iter().peekable();
        let mut removed = removed.iter().peekable();
        loop {
            let cut = removed
                .peek()
                .map_or(rows.len(), |position| **position as usize);
            let place = added
                .peek()
                .map_or(rows.len(), |(place, _)| *place as usize);
            let until = cut.min(place);
            merged.extend_from_slice(rows.get(done..until).unwrap_or_default());
            done = until;
            // A row that comes before a removed one stands at the same position.
            if let Some((_, row)) = added.next_if(|(next, _)| *next as usize == until) {
                merged.push(*row);
            } else if removed.next_if(|next| **next as usize == until).is_some() {
                done += 1;
            } else {
                return merged;
            }
        }
    }

    /// What watchers are told.
    pub(super) fn changes(
        &self,
        before: &Chain,
        after: &Chain,
        removed: &[u32],
    ) -> Vec<LeaseChange> {
        let old_rows = before.batch.rows();
        // Both dictionaries are the chain's, so that rows of both compare as they are.
        let old = |position: u32| old_rows.get(position as usize);
        let mut changes: Vec<(GroupId, LeaseChange)> = Vec::new();
        let mut push = |group, old: Option<&Row>, new: Option<&Row>| {
            let change = LeaseChange {
                old: old.map(|row| before.batch.lease(row)),
                new: new.map(|row| after.batch.lease(row)),
            };
            changes.push((group, change));
        };
        for row in removed.iter().filter_map(|position| old(*position)) {
            push(row.group(), Some(row), None);
        }
        for (position, row) in &self.replaced {
            if let Some(old) = old(*position)
                && (old.packed_start() != row.packed_start() || old.words() != row.words())
            {
                push(row.group(), Some(old), Some(row));
            }
        }
        for (_, row) in &self.added {
            push(row.group(), None, Some(row));
        }
        changes.sort_unstable_by_key(|(group, _)| *group);
        changes.into_iter().map(|(_, change)| change).collect()
    }
}

/// The row that a frame describes; none if a time is out of range, or names the common
/// expiration as the row's own.
fn resolved(
    group: GroupId,
    lease: &DeltaLease,
    old: Option<&Row>,
    common: HybridTimestamp,
) -> Option<Row> {
    let base = common.physical() as i64;
    let (holder, start) = match (&lease.grant, old) {
        (Some(grant), _) => {
            let start = timestamp(base + grant.start_offset, grant.start_logical)?;
            (grant.holder, start)
        }
        (None, old) => (old?.holder(), old?.start()),
    };
    let own = match lease.expiration {
        OwnExpiration::Common => None,
        OwnExpiration::AfterStart(millis) => Some(timestamp(start.physical() as i64 + millis, 0)?),
        OwnExpiration::At { offset, logical } => Some(timestamp(base + offset, logical)?),
    };
    if own == Some(common) {
        return None;
    }
    Some(Row::new(
        group,
        start,
        own,
        holder,
        lease.candidate,
        lease.accepted,
        lease.prolongable,
    ))
}
