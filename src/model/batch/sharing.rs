//! Batches that are the same but for their common expiration, or for the order of their
//! dictionary.

use std::sync::Arc;

use super::LeaseBatch;

impl LeaseBatch {
    /// Whether the other batch has the same rows over the same dictionary, so that at most the
    /// common expiration differs. O(1) where both share them, otherwise one comparison of memory.
    pub fn has_rows_of(&self, other: &Self) -> bool {
        self.shares_rows(other) || (self.dictionary == other.dictionary && self.rows == other.rows)
    }

    /// The same rows in the other batch's memory, which [`has_rows_of`](Self::has_rows_of) found to
    /// be equal.
    #[must_use]
    pub fn sharing_rows_of(mut self, other: &Self) -> Self {
        debug_assert!(self.has_rows_of(other));
        self.rows = Arc::clone(&other.rows);
        self.dictionary = Arc::clone(&other.dictionary);
        self
    }
}
