//! The state after some deltas on a snapshot, as writer and readers keep it.

use std::sync::Arc;

use crate::model::batch::LeaseBatch;
use crate::model::digest::Digest;

use super::entries::ChainDictionary;

/// A snapshot with some deltas applied. Cloning it shares the leases.
///
/// The chain's dictionary is what the snapshot's leases use, in order of first appearance, and
/// then what each delta adds. It does not depend on the format that the snapshot was stored in.
#[derive(Clone, Debug)]
pub struct Chain {
    pub(super) base: u64,
    pub(super) step: u64,
    pub(super) batch: LeaseBatch,
    pub(super) digest: Digest,
    pub(super) entries: Arc<ChainDictionary>,
}

impl Chain {
    /// At a snapshot that was stored at revision `base`. Costs a look at each row.
    ///
    /// The batch is one that was read, or one that [`LeaseBatch::apply`] made: no row names the
    /// common expiration as its own. Rows are copied only if their dictionary is not in order of
    /// first appearance.
    pub fn new(base: u64, mut batch: LeaseBatch) -> Self {
        batch.order_dictionary();
        let entries = ChainDictionary::new(Arc::clone(batch.shared_dictionary()));
        Self {
            base,
            step: 0,
            digest: Digest::with(&entries.hashes, &batch),
            batch,
            entries: Arc::new(entries),
        }
    }

    /// Revision of the snapshot.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Number of the last delta; 0 at the snapshot.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The leases.
    pub fn batch(&self) -> &LeaseBatch {
        &self.batch
    }

    /// Their digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
