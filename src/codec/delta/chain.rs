//! The state after some deltas on a snapshot, as writer and readers keep it.

use std::sync::Arc;

use crate::model::batch::LeaseBatch;
use crate::model::digest::Digest;

use super::entries::ChainDictionary;

/// A snapshot with some deltas applied. Cloning it shares the leases.
///
/// Formats differ in what they keep of a batch besides its leases. So that all who start from a
/// snapshot start alike, whoever wrote it and in whichever format, the chain settles it: the
/// common expiration is the most frequent one, and the chain's dictionary is what the leases
/// use, in order of first appearance, and then what each delta adds.
#[derive(Clone, Debug)]
pub struct Chain {
    pub(super) base: u64,
    pub(super) step: u64,
    pub(super) batch: LeaseBatch,
    pub(super) digest: Digest,
    pub(super) entries: Arc<ChainDictionary>,
    /// Whether the batch was settled: then the one that its writer goes on from has other own
    /// expirations for the same leases, and the first delta has to look at all rows.
    pub(super) settled: bool,
}

impl Chain {
    /// At a snapshot that was stored at revision `base`: the batch as it was written or as it was
    /// read. Costs a look at each row, and a copy where the batch has to be settled, which is
    /// rare: after a renewal most leases have the common expiration.
    pub fn new(base: u64, mut batch: LeaseBatch) -> Self {
        let settled = batch.settle_expirations();
        batch.order_dictionary();
        let entries = ChainDictionary::new(Arc::clone(batch.shared_dictionary()));
        Self {
            base,
            step: 0,
            digest: Digest::with(&entries.hashes, &batch),
            batch,
            entries: Arc::new(entries),
            settled,
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
