//! What every metastorage promises. Modelled on etcd: one global revision per change, optimistic
//! transactions, ordered watches, compaction.
//!
//! * An acknowledged transaction is durable: it was written and synced first.
//! * Reads are linearizable.
//! * A watch delivers every revision once, in order, all changes of a revision together.
//! * After `compact(r)` reads at a revision at or below `r` answer [`StoreError::Compacted`]; of
//!   each key the newest value at or below `r` survives.
//! * Outcomes are won, lost, or unknown; a time-out is unknown.
//!
//! Every backend passes the same suite, `tests/store_contract.rs`.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

/// Number of a change of the store, from 1; 0 is the empty store.
pub type Revision = u64;

/// A key or a value, shared.
pub type Bytes = Arc<[u8]>;

/// A key's state at some revision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
    /// Revision at which the key came into being (again, if it had been deleted).
    pub create_revision: Revision,
    /// Revision of its last change.
    pub mod_revision: Revision,
    /// Number of changes since it came into being, from 1.
    pub version: u64,
}

/// A test that a transaction makes before it writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The key is there.
    Exists(Bytes),
    /// The key is not there.
    Absent(Bytes),
    /// The key's last change was at this revision; 0 means that it is not there.
    ModRevision(Bytes, Revision),
    /// The key is there and has this value.
    Value(Bytes, Bytes),
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Sets a key.
    Put(Bytes, Bytes),
    /// Deletes a key, if it is there.
    Delete(Bytes),
    /// Reads a key as it is after the operations before this one.
    Get(Bytes),
    /// Reads all keys that begin with a prefix, by key, likewise.
    GetPrefix(Bytes),
}

/// Conditions, and what to do if all of them hold (`then`) or not (`or_else`). Atomic. The keys
/// written by one branch are distinct.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transaction {
    /// All must hold.
    pub conditions: Vec<Condition>,
    /// Done if they do.
    pub then: Vec<Op>,
    /// Done if they don't.
    pub or_else: Vec<Op>,
}

/// What a transaction did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether the conditions held.
    pub won: bool,
    /// The store's revision afterwards: that of this change, if it changed anything.
    pub revision: Revision,
    /// Results of the reading operations of the branch taken, in order: one of a `Get`, as many
    /// as there are keys of a `GetPrefix`.
    pub reads: Vec<Option<Entry>>,
}

/// Which keys to read, and when.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// First key.
    pub start: Vec<u8>,
    /// First key that is no longer wanted; without one, all that follow are.
    pub end: Option<Vec<u8>>,
    /// At which revision; the latest if not said.
    pub at: Option<Revision>,
    /// At most so many.
    pub limit: Option<usize>,
    /// From the last key backwards.
    pub reverse: bool,
}

impl Range {
    /// All keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self {
            start: prefix.to_vec(),
            end: after_prefix(prefix),
            ..Self::default()
        }
    }
}

/// The first key after all that begin with `prefix`; none if there is no such key.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// One key's change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key.
    pub key: Bytes,
    /// Its new state; none if it was deleted.
    pub entry: Option<Entry>,
}

/// All changes of one revision to the keys watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchEvent {
    /// The revision.
    pub revision: Revision,
    /// The changes, by key.
    pub changes: Vec<Change>,
}

/// A stream of changes.
pub trait Watch: Send {
    /// The next revision that changed a watched key; none if there was none within `wait`
    /// (zero: only what is there already). A watcher that has fallen behind a compaction gets
    /// [`StoreError::Compacted`] and must read again and watch from there.
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, StoreError>;
}

/// A multi-version key-value store. Its methods may block.
pub trait Metastorage: Send + Sync {
    /// Revision of the last change.
    fn revision(&self) -> Result<Revision, StoreError>;

    /// The highest revision that [`compact`](Self::compact) was called with, or 0.
    fn compacted(&self) -> Result<Revision, StoreError>;

    /// A key's state now, or at a revision.
    fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Option<Entry>, StoreError>;

    /// The keys of a range that are there, by key.
    fn range(&self, range: &Range) -> Result<Vec<Entry>, StoreError>;

    /// Carries out a transaction. It makes a new revision if it changes anything.
    fn invoke(&self, transaction: Transaction) -> Result<Outcome, StoreError>;

    /// Watches the keys that begin with `prefix`, from the changes of revision `from` on, which may
    /// lie in the future. If it has been compacted, the answer is [`StoreError::Compacted`].
    fn watch(&self, prefix: &[u8], from: Revision) -> Result<Box<dyn Watch>, StoreError>;

    /// Forgets history: see the module's documentation. Beyond the last revision it is refused;
    /// at or below an earlier compaction it does nothing.
    fn compact(&self, revision: Revision) -> Result<(), StoreError>;
}

/// A store that can be made to forget its last changes, as one does that crashes before it has
/// synced. For simulations.
pub trait Volatile: Metastorage {
    /// Takes back everything after a revision. Watches do not notice: whoever has one must watch
    /// anew.
    ///
    /// # Errors
    /// If history up to a later revision has been compacted.
    fn roll_back(&self, revision: Revision) -> Result<(), StoreError>;
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// That revision's history has been compacted.
    #[error("revision {wanted} is gone: history up to revision {compacted} has been compacted")]
    Compacted {
        /// What was asked for.
        wanted: Revision,
        /// The highest revision that is gone.
        compacted: Revision,
    },
    /// That revision does not exist yet.
    #[error("revision {wanted} does not exist yet: the store is at revision {revision}")]
    Future {
        /// What was asked for.
        wanted: Revision,
        /// The last one.
        revision: Revision,
    },
    /// A key, value or transaction above a limit of the store. Nothing was changed.
    #[error("{what} of {size} bytes is above this store's limit of {limit} bytes")]
    TooLarge {
        /// Key, value or transaction.
        what: &'static str,
        /// Its size, bytes.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// A transaction that is not valid, such as one that writes a key twice. Nothing was changed.
    #[error("invalid transaction: {0}")]
    Invalid(String),
    /// The directory is in use by another process.
    #[error("{0}")]
    Locked(String),
    /// What is stored is damaged.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// No space is left, or less than the store keeps in reserve. Nothing was changed.
    #[error("no space: {0}")]
    Full(String),
    /// The store could not be reached or read. Nothing was changed.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// It is not known whether the change took place: read again, never assume.
    #[error("the outcome of the write is unknown: {0}")]
    Unknown(String),
}
