//! A course of renewals to measure with: what a batch becomes, 2.5 seconds at a time.

use std::collections::BTreeMap;

use super::batch::{LeaseBatch, LeaseDraft};
use super::hlc::HybridTimestamp;
use super::ids::{GroupId, Incarnation};
use super::workload::SplitMix64;

/// Time from one renewal to the next, milliseconds.
pub const INTERVAL_MS: u64 = 2_500;

/// How long before its renewal a lease began at most, milliseconds.
const BURST_MS: u64 = 50;

/// Draws renewals without end. Each moves the common expiration by [`INTERVAL_MS`] and grants some
/// leases anew: drawn without repetition, each to a node drawn among those of the batch, starting
/// within the last 50 ms, accepted already.
#[derive(Clone, Debug)]
pub struct Renewals {
    random: SplitMix64,
    batch: LeaseBatch,
    changed: usize,
}

/// One renewal.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The leases afterwards.
    pub batch: LeaseBatch,
    /// The groups whose lease is another one now, ascending.
    pub changed: Vec<GroupId>,
}

impl Renewals {
    /// From a batch on; each renewal grants `changed` of its leases anew (all, if it has fewer).
    /// `seed` is the generator's state.
    pub fn new(seed: u64, batch: LeaseBatch, changed: usize) -> Self {
        Self {
            random: SplitMix64::new(seed),
            changed: changed.min(batch.len()),
            batch,
        }
    }

    fn regrants(&mut self) -> BTreeMap<GroupId, Option<LeaseDraft>> {
        let mut drafts = BTreeMap::new();
        let dictionary = self.batch.dictionary();
        let nodes = dictionary.nodes().len() as u64;
        let expiration = self.batch.common_expiration().physical();
        let now = expiration.saturating_sub(2 * INTERVAL_MS);
        while drafts.len() < self.changed {
            let position = self.random.below(self.batch.len() as u64) as usize;
            let Some(row) = self.batch.rows().get(position) else {
                break;
            };
            if drafts.contains_key(&row.group()) {
                continue;
            }
            let (id, name) = dictionary.node(self.random.below(nodes) as u32);
            let start = now.saturating_sub(self.random.below(BURST_MS));
            let draft = LeaseDraft {
                holder: Incarnation {
                    name: name.clone(),
                    id,
                },
                start: self.batch.rows()[position].start().max(at(start)),
                expiration: None,
                accepted: true,
                prolongable: true,
                candidate: None,
            };
            drafts.insert(row.group(), Some(draft));
        }
        drafts
    }
}

fn at(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap_or(HybridTimestamp::MIN)
}

impl Iterator for Renewals {
    type Item = Renewal;

    fn next(&mut self) -> Option<Renewal> {
        let common = self.batch.common_expiration().plus_millis(INTERVAL_MS);
        self.batch.set_common_expiration(common);
        let mut drafts = self.regrants();
        // A lease with an expiration of its own keeps it. Where that is the common one now, its row
        // has to say so.
        for row in self.batch.rows() {
            if row.own_expiration() == Some(common) {
                let draft = || Some(LeaseDraft::of(&self.batch.lease(row)));
                drafts.entry(row.group()).or_insert_with(draft);
            }
        }
        self.batch.apply(&drafts);
        Some(Renewal {
            batch: self.batch.clone(),
            changed: drafts.into_keys().collect(),
        })
    }
}
