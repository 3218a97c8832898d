//! The writer's side: the frame from one batch to the next.

use std::sync::Arc;

use crate::codec::error::EncodeError;
use crate::model::batch::{LeaseBatch, Row};
use crate::model::digest::Digest;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;

use super::MAX_CHANGES;
use super::chain::Chain;
use super::entries::{ChainDictionary, Memo, Translation};
use super::frame::Delta;
use super::growth::MAX_NAME;
use super::packing::most_frequent;
use super::values::{DeltaLease, Grant, OwnExpiration};

impl Chain {
    /// The chain after one more delta, which makes `next` of the batch, and the frame that says
    /// so.
    ///
    /// `next` is made of the chain's [`batch`](Self::batch). `changed` are the groups whose rows may differ
    /// (replaced, added, removed), ascending; all other rows must be what they were, with an
    /// expiration of their own or without, so that only the common one moves.
    ///
    /// Costs O(changed · log n) and, if nothing changed, O(1); the first delta after a snapshot
    /// looks at all rows once, for the digest.
    ///
    /// # Errors
    ///
    /// The list does not ascend, or can't be all that changed; a changed row names the common
    /// expiration as its own; there is more to say than a frame holds ([`MAX_CHANGES`]): then
    /// write a snapshot.
    pub fn advance(
        &self,
        next: LeaseBatch,
        changed: &[GroupId],
    ) -> Result<(Self, Vec<u8>), EncodeError> {
        let (old_common, common) = (self.batch.common_expiration(), next.common_expiration());
        let changes = Changes::between(self, &next, changed)?;
        let entries = if changes.is_without_entries() {
            Arc::clone(&self.entries)
        } else {
            let (names, nodes) = (&changes.delta.new_names, &changes.delta.new_nodes);
            Arc::new(self.entries.extended(names, nodes))
        };
        let digest = (self.digest().recommon(old_common, common))
            .replace(changes.sum_of_old(&entries), changes.sum_of_new(&entries));
        let delta = Delta {
            digest,
            ..changes.finish(common)
        };
        let frame = delta.write(self.entries.name_count(), self.entries.node_count());
        let chain = Self {
            base: self.base,
            step: delta.step,
            batch: next,
            digest: digest.into(),
            entries,
        };
        chain.check_small();
        Ok((chain, frame))
    }
}

impl Chain {
    /// In tests, an unlisted change of a small batch does not go unnoticed.
    fn check_small(&self) {
        const SMALL: usize = 10_000;
        debug_assert!(
            self.batch.len() > SMALL || self.digest() == Digest::of(&self.batch),
            "a row changed whose group is not listed"
        );
    }
}

fn check_ascending(changed: &[GroupId]) -> Result<(), EncodeError> {
    match changed.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(EncodeError::ChangesNotAscending { group: pair[1] }),
        None => Ok(()),
    }
}

/// What changes, its rows numbered as the chain's dictionary has it.
struct Changes {
    /// All but the replaced and added leases and the digest.
    delta: Delta,
    removed: Vec<Row>,
    replaced: Vec<(u32, Row, Row)>,
    added: Vec<Row>,
}

impl Changes {
    fn between(chain: &Chain, next: &LeaseBatch, changed: &[GroupId]) -> Result<Self, EncodeError> {
        let old = &chain.batch;
        let too_large = |what, size, limit| EncodeError::TooLarge { what, size, limit };
        let Some(step) = chain.step.checked_add(1) else {
            return Err(too_large("a step", chain.step, u64::MAX - 1));
        };
        check_ascending(changed)?;
        let (before, after) = (old.common_expiration(), next.common_expiration());
        let mut changes = Self {
            delta: Delta {
                common_logical: after.logical(),
                ..Delta::quiet(chain.base, step, difference(after, before), chain.digest())
            },
            removed: Vec::new(),
            replaced: Vec::new(),
            added: Vec::new(),
        };
        if !changed.is_empty() {
            changes.collect(chain, next, changed)?;
        }
        let expected = old.len() - changes.removed.len() + changes.added.len();
        if next.len() != expected {
            let found = next.len();
            return Err(EncodeError::UnlistedChange { expected, found });
        }
        let counts = [
            changes.removed.len(),
            changes.replaced.len(),
            changes.added.len(),
        ];
        if let Some(count) = counts.into_iter().find(|count| *count > MAX_CHANGES) {
            let what = "a number of changes";
            return Err(too_large(what, count as u64, MAX_CHANGES as u64));
        }
        let mut names = changes.delta.new_names.iter();
        if let Some(name) = names.find(|name| name.len() > MAX_NAME) {
            return Err(too_large("a node name", name.len() as u64, MAX_NAME as u64));
        }
        Ok(changes)
    }

    fn collect(
        &mut self,
        chain: &Chain,
        next: &LeaseBatch,
        changed: &[GroupId],
    ) -> Result<(), EncodeError> {
        let old = &chain.batch;
        let common = next.common_expiration();
        let mut translation = Translation::new(&chain.entries);
        let mut of_old = Memo::new(old.dictionary());
        let mut of_new = Memo::new(next.dictionary());
        for group in changed {
            let position = old.rows().binary_search_by_key(group, Row::group);
            let before = position.ok().and_then(|position| {
                let row = of_old.translated(old.rows().get(position)?, &mut translation);
                Some((position as u32, row))
            });
            let after = next.get(*group);
            let after = after.map(|row| of_new.translated(row, &mut translation));
            if after.is_some_and(|row| row.own_expiration() == Some(common)) {
                return Err(EncodeError::OwnExpirationIsCommon { group: *group });
            }
            match (before, after) {
                (None, None) => {}
                (Some((position, row)), None) => {
                    self.delta.removed.push(position);
                    self.removed.push(row);
                }
                (None, Some(row)) => self.added.push(row),
                (Some((_, before)), Some(after)) if before == after => {}
                (Some((position, before)), Some(after)) => {
                    self.replaced.push((position, before, after));
                }
            }
        }
        (self.delta.new_names, self.delta.new_nodes) = translation.collected();
        Ok(())
    }

    fn is_without_entries(&self) -> bool {
        self.delta.new_names.is_empty() && self.delta.new_nodes.is_empty()
    }

    fn sum_of_old(&self, entries: &ChainDictionary) -> u64 {
        let replaced = self.replaced.iter().map(|(_, before, _)| before);
        sum(entries, replaced.chain(&self.removed))
    }

    fn sum_of_new(&self, entries: &ChainDictionary) -> u64 {
        let replaced = self.replaced.iter().map(|(_, _, after)| after);
        sum(entries, replaced.chain(&self.added))
    }

    /// The delta, its leases said relative to the common expiration.
    fn finish(self, common: HybridTimestamp) -> Delta {
        let replaced = self.replaced.iter().map(|(_, _, after)| after);
        let lifetime = lifetime(replaced.chain(&self.added));
        let replaced = self.replaced.iter().map(|(position, before, after)| {
            let same =
                before.packed_start() == after.packed_start() && before.holder() == after.holder();
            (*position, said(after, same, lifetime, common))
        });
        let replaced = replaced.collect();
        let added = self.added.iter();
        let added = added.map(|row| (row.group(), said(row, false, lifetime, common)));
        Delta {
            replaced,
            added: added.collect(),
            ..self.delta
        }
    }
}

fn sum<'a>(entries: &ChainDictionary, rows: impl Iterator<Item = &'a Row>) -> u64 {
    let hashes = rows.map(|row| entries.hashes.row(row));
    hashes.fold(0, u64::wrapping_add)
}

/// Milliseconds from one time to another.
fn difference(to: HybridTimestamp, from: HybridTimestamp) -> i64 {
    to.physical() as i64 - from.physical() as i64
}

/// For how long after its start a lease holds, where a frame can say it so.
fn lifetime_of(row: &Row) -> Option<i64> {
    let own = row.own_expiration().filter(|own| own.logical() == 0)?;
    Some(difference(own, row.start())).filter(|lifetime| *lifetime >= 0)
}

/// The lifetime that most leases have, unless more of them end at one moment.
fn lifetime<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Option<i64> {
    let lifetime = most_frequent(rows.clone().filter_map(lifetime_of))?;
    let end = most_frequent(rows.clone().filter_map(Row::own_expiration))?;
    let living = rows
        .clone()
        .filter(|row| lifetime_of(row) == Some(lifetime));
    let ending = rows.filter(|row| row.own_expiration() == Some(end));
    (living.count() >= ending.count()).then_some(lifetime)
}

fn said(row: &Row, same: bool, lifetime: Option<i64>, common: HybridTimestamp) -> DeltaLease {
    let grant = Grant {
        holder: row.holder(),
        start_offset: difference(row.start(), common),
        start_logical: row.start().logical(),
    };
    let expiration = match (row.own_expiration(), lifetime_of(row)) {
        (None, _) => OwnExpiration::Common,
        (Some(_), Some(after)) if Some(after) == lifetime => OwnExpiration::AfterStart(after),
        (Some(own), _) => OwnExpiration::At {
            offset: difference(own, common),
            logical: own.logical(),
        },
    };
    DeltaLease {
        grant: (!same).then_some(grant),
        expiration,
        accepted: row.accepted(),
        prolongable: row.prolongable(),
        candidate: row.candidate(),
    }
}
