//! The rules of a multi-version store, in one place and pure: which revisions can be read, what a
//! transaction does, what a watcher sees, what a compaction forgets.
//!
//! A backend keeps a [`History`]: of each key its versions, and of each revision the keys that it
//! changed. It applies what [`transaction::decide`] and [`compaction::superseded`] tell it to,
//! atomically. Deleting a key appends a version without a value, a tombstone, which lives until it
//! is compacted.

pub mod compaction;
pub mod limits;
pub mod read;
pub mod transaction;
pub mod watch;

use std::ops::ControlFlow;
use std::sync::Arc;

use super::contract::{Bytes, Revision, StoreError};

/// One version of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version<V> {
    /// Revision at which the key came into being.
    pub create_revision: Revision,
    /// Revision of this version.
    pub mod_revision: Revision,
    /// Number of changes since the key came into being, from 1; 0 for a tombstone.
    pub version: u64,
    /// The value, or where it is; none for a tombstone.
    pub value: Option<V>,
}

/// What a backend keeps, as the rules read it.
pub trait History {
    /// A value, or where it is: the rules load only those they need.
    type Value;

    /// A key's newest version at or below `at`, tombstones included.
    fn newest(&self, key: &[u8], at: Revision) -> Result<Option<Version<Self::Value>>, StoreError>;

    /// The value of a version of a key.
    fn load(
        &self,
        key: &[u8],
        mod_revision: Revision,
        value: &Self::Value,
    ) -> Result<Bytes, StoreError>;

    /// Visits, by key, the newest version at or below `at` of every key from `start` up to but
    /// without `end`, tombstones included; from the last key backwards if `reverse`.
    fn scan(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        at: Revision,
        reverse: bool,
        visit: &mut Visit<'_, Self::Value>,
    ) -> Result<(), StoreError>;

    /// The keys that an uncompacted revision changed, in order.
    fn changed(&self, revision: Revision) -> Result<Arc<[Bytes]>, StoreError>;
}

/// Takes a key and its version; breaks to end the scan.
pub type Visit<'a, V> = dyn FnMut(Bytes, Version<V>) -> Result<ControlFlow<()>, StoreError> + 'a;

/// How far a store has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The last revision, 0 if there is none.
    pub revision: Revision,
    /// The highest revision compacted, or 0.
    pub compacted: Revision,
}

impl Position {
    /// The revision to read at.
    ///
    /// # Errors
    /// If it is compacted or does not exist yet.
    pub fn read_at(&self, at: Option<Revision>) -> Result<Revision, StoreError> {
        let Some(wanted) = at else {
            return Ok(self.revision);
        };
        self.not_compacted(wanted)?;
        self.not_future(wanted)?;
        Ok(wanted)
    }

    /// Whether a compaction at `revision` has anything to do.
    ///
    /// # Errors
    /// If the revision does not exist yet.
    pub fn compacts(&self, revision: Revision) -> Result<bool, StoreError> {
        self.not_future(revision)?;
        Ok(revision > self.compacted)
    }

    fn not_compacted(&self, wanted: Revision) -> Result<(), StoreError> {
        // Revision 0, the empty store, can be read until something has been compacted.
        if self.compacted > 0 && wanted <= self.compacted {
            return Err(StoreError::Compacted {
                wanted,
                compacted: self.compacted,
            });
        }
        Ok(())
    }

    fn not_future(&self, wanted: Revision) -> Result<(), StoreError> {
        if wanted > self.revision {
            return Err(StoreError::Future {
                wanted,
                revision: self.revision,
            });
        }
        Ok(())
    }
}
