//! The reader's side: a frame applied to the state that it was made for.

use std::sync::Arc;

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::batch::LeaseBatch;
use crate::model::diff::LeaseChange;
use crate::model::digest::Digest;
use crate::model::hlc::HybridTimestamp;

use super::chain::Chain;
use super::edit::Edit;
use super::entries::ChainDictionary;
use super::error::DeltaError;
use super::frame::Delta;
use super::header::Header;

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
        let header = Header::read(frame)?;
        self.check_place(&header.delta)?;
        let delta = header.read_rest(frame, self.batch.len())?;
        let common = self.moved_common(&delta)?;
        let old_common = self.batch.common_expiration();
        let moved = self.digest().recommon(old_common, common);
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
            digest: delta.digest.into(),
            entries,
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

/// A timestamp, if its parts are in range.
pub(super) fn timestamp(physical: i64, logical: u16) -> Option<HybridTimestamp> {
    HybridTimestamp::new(u64::try_from(physical).ok()?, logical).ok()
}
