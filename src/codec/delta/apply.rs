//! The reader's side: a frame applied to the state that it was made for.

use std::sync::Arc;

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::batch::{LeaseBatch, Row};
use crate::model::diff::LeaseChange;
use crate::model::digest::Digest;
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use crate::model::ids::GroupId;

use super::chain::Chain;
use super::entries::ChainDictionary;
use super::error::DeltaError;
use super::frame::Delta;
use super::values::{DeltaLease, OwnExpiration};

impl Chain {
    /// The chain after the delta that a frame carries, and what it changed, by group: leases that
    /// began, ended, or were replaced, accepted or denied. A lease that was only prolonged has not
    /// changed; that is what [`diff`](crate::model::diff::diff) means too.
    ///
    /// O(1) for a frame that moves the common expiration only: the batches share their rows.
    ///
    /// # Errors
    ///
    /// Every frame but the chain's next one, whole and from the same state. The chain stays what
    /// it is.
    pub fn apply(&self, frame: &[u8]) -> Result<(Self, Vec<LeaseChange>), DeltaError> {
        let header = Delta::read_header(frame)?;
        self.check_place(&header.delta)?;
        let delta = header.read_rest(frame, self.batch.len())?;
        let common = self.moved_common(&delta)?;
        let old_common = self.batch.common_expiration();
        let moved = self.digest.recommon(old_common, common);
        if delta.is_quiet() {
            check_digest(&delta, moved)?;
            let mut batch = self.batch.clone();
            batch.set_common_expiration(common);
            return Ok((
                self.after(&delta, batch, Arc::clone(&self.entries)),
                Vec::new(),
            ));
        }
        let entries = self.extended(&delta)?;
        let edit = Edit::of(self, &delta, &entries, common)?;
        let digest = moved.replace(edit.old_sum, edit.new_sum);
        check_digest(&delta, digest)?;
        let rows = if edit.is_empty() {
            Arc::clone(self.batch.shared_rows())
        } else {
            Arc::new(edit.rows(self.batch.rows(), &delta.removed))
        };
        let batch = LeaseBatch::from_shared(common, Arc::clone(&entries.dictionary), rows);
        let chain = self.after(&delta, batch, entries);
        let changes = edit.changes(self, &chain, &delta.removed);
        Ok((chain, changes))
    }

    fn check_place(&self, delta: &Delta) -> Result<(), DeltaError> {
        if delta.base != self.base {
            return Err(DeltaError::WrongBase {
                expected: self.base,
                found: delta.base,
            });
        }
        let expected = self.step.saturating_add(1);
        if delta.step != expected || self.step == u64::MAX {
            return Err(DeltaError::WrongStep {
                expected,
                found: delta.step,
            });
        }
        Ok(())
    }

    fn after(&self, delta: &Delta, batch: LeaseBatch, entries: Arc<ChainDictionary>) -> Self {
        Self {
            base: self.base,
            step: delta.step,
            batch,
            digest: delta.digest,
            entries,
            settled: false,
        }
    }

    fn moved_common(&self, delta: &Delta) -> Result<HybridTimestamp, DecodeError> {
        let common = self.batch.common_expiration();
        let physical = common.physical() as i64 + delta.common_change;
        let moved = timestamp(physical, delta.common_logical);
        moved.ok_or_else(|| {
            let what = "moves outside 0.1 to (2^47 - 1).65535";
            invalid(delta.offsets.common, "common expiration", what)
        })
    }

    /// The chain's dictionary with the delta's new entries.
    fn extended(&self, delta: &Delta) -> Result<Arc<ChainDictionary>, DecodeError> {
        let old = &self.entries;
        let check = |what, said: Option<u32>, known: u32, new: usize| {
            let expected = u64::from(known) + new as u64;
            match said {
                Some(said) if u64::from(said) != expected => Err(invalid(
                    delta.offsets.entries,
                    what,
                    format!("{said} entries, but the chain has {expected} then"),
                )),
                _ => Ok(()),
            }
        };
        let (names, nodes) = (&delta.new_names, &delta.new_nodes);
        check(
            "name count",
            delta.entries.names,
            old.name_count(),
            names.len(),
        )?;
        check(
            "node count",
            delta.entries.nodes,
            old.node_count(),
            nodes.len(),
        )?;
        if names.is_empty() && nodes.is_empty() {
            return Ok(Arc::clone(old));
        }
        let twice = |what, entry: String| {
            let text = format!("{entry} is in the dictionary already");
            invalid(delta.offsets.entries, what, text)
        };
        if let Some(name) = names.iter().find(|name| old.name(name).is_some()) {
            return Err(twice("new name", format!("`{name}`")));
        }
        if let Some(node) = nodes.iter().find(|node| old.node(**node).is_some()) {
            return Err(twice("node id", node.id.to_string()));
        }
        Ok(Arc::new(old.extended(names, nodes)))
    }
}

fn check_digest(delta: &Delta, computed: Digest) -> Result<(), DeltaError> {
    if delta.digest == computed {
        return Ok(());
    }
    Err(DeltaError::WrongState {
        expected: delta.digest,
        computed,
    })
}

/// The rows that a delta puts into a state, and what that does to the digest.
struct Edit {
    replaced: Vec<(u32, Row)>,
    /// Where in the old rows each added one belongs.
    added: Vec<(u32, Row)>,
    removed: usize,
    old_sum: u64,
    new_sum: u64,
}

impl Edit {
    fn of(
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

    fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.added.is_empty() && self.removed == 0
    }

    /// The rows afterwards.
    fn rows(&self, old: &[Row], removed: &[u32]) -> Vec<Row> {
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
    fn changes(&self, before: &Chain, after: &Chain, removed: &[u32]) -> Vec<LeaseChange> {
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
                && (old.start() != row.start() || old.words() != row.words())
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

fn timestamp(physical: i64, logical: u16) -> Option<HybridTimestamp> {
    HybridTimestamp::new(u64::try_from(physical).ok()?, logical).ok()
}

/// The row that a frame describes; none if a time is out of range, or names the common
/// expiration as the row's own.
fn resolved(
    group: GroupId,
    lease: &DeltaLease,
    old: Option<&Row>,
    common: HybridTimestamp,
) -> Option<Row> {
    debug_assert!(common.physical() <= MAX_PHYSICAL);
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
