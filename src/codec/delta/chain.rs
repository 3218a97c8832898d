//! The state after some deltas on a snapshot, as writer and readers keep it.

use std::sync::{Arc, OnceLock};

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
    /// Worked out when it is first wanted: a chain without deltas needs none.
    pub(super) digest: OnceLock<Digest>,
    pub(super) entries: Arc<ChainDictionary>,
}

impl Default for Chain {
    /// Nothing is stored yet: no leases, base 0.
    fn default() -> Self {
        Self::new(0, LeaseBatch::default())
    }
}

impl Chain {
    /// At a snapshot that was stored at revision `base`: the batch as it was written or as it was
    /// read. Costs a look at each row, and a copy where the batch has to be settled, which is
    /// rare: after a renewal most leases have the common expiration. The first delta costs another
    /// look at each row, for the digest.
    pub fn new(base: u64, batch: LeaseBatch) -> Self {
        let batch = batch.settled();
        let entries = ChainDictionary::new(Arc::clone(batch.shared_dictionary()));
        Self {
            base,
            step: 0,
            digest: OnceLock::new(),
            batch,
            entries: Arc::new(entries),
        }
    }

    /// The same state with its rows in the memory of another batch, which
    /// [has the same rows](LeaseBatch::has_rows_of): for those who compare by sharing.
    #[must_use]
    pub fn sharing_rows_of(mut self, other: &LeaseBatch) -> Self {
        self.batch = self.batch.sharing_rows_of(other);
        self
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

    /// Their digest. At a snapshot it is worked out from all rows, once.
    pub fn digest(&self) -> Digest {
        *(self.digest).get_or_init(|| Digest::with(&self.entries.hashes, &self.batch))
    }
}
