//! The state after some deltas on a snapshot, as writer and readers keep it.

use std::sync::{Arc, OnceLock};

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
    /// At a snapshot that was stored at revision `base`. Its first delta costs a look at each row.
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
