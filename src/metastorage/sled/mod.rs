//! A metastorage on disk, in one tree of sled 0.34.
//!
//! A transaction is one batch, flushed and synced before it is acknowledged. Large values are split
//! into chunks, since sled puts what does not fit a page into files of its own that it never
//! reclaims. Opening reads a few rows, never all keys. See docs/STORE.md.

mod failure;
mod guard;
mod history;
mod layout;
mod leftovers;
mod mark;
mod open;
mod repair;
mod space;
mod watch;
mod write;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use super::contract::{
    Entry, Metastorage, Outcome, Range, Revision, StoreError, Transaction, Watch,
};
use super::mvcc::watch::Cursor;
use super::mvcc::{Position, read};
use super::waiting::{Watched, broken};
use failure::Health;
use guard::guarded;
use history::Rows;
pub use open::SledOptions;
pub use space::{FreeSpace, Reserve, disk_size};

/// The store. It and its watches hold the directory until the last of them is dropped.
pub struct SledStore {
    inner: Arc<Inner>,
}

impl fmt::Debug for SledStore {
    /// Where it is; sled would show all its pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SledStore");
        shown
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

impl SledStore {
    /// Opens the store in a directory; makes it if it is not there and `options.create` says so.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another process has it, [`StoreError::Unavailable`] if there is
    /// none or it is something else, [`StoreError::Damaged`].
    pub fn open(path: impl AsRef<Path>, options: SledOptions) -> Result<Self, StoreError> {
        let inner = guarded(|| open::open(path.as_ref(), options))?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Opens the store in a directory with the default options, never making one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open(path, SledOptions::default())
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Bytes that the directory takes on the disk.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn disk_size(&self) -> Result<u64, StoreError> {
        disk_size(&self.inner.path)
    }

    /// Why nothing can be written any more, if so: a write has failed. The process should then end.
    pub fn failure(&self) -> Option<StoreError> {
        self.inner.health.check_write().err()
    }

    /// Gives the store up without closing it: what was acknowledged is on the disk, and the
    /// directory stays locked until the process ends. Dropping a store whose write has failed does
    /// the same, since closing sled then may hang.
    pub fn leak(self) {
        std::mem::forget(self);
    }
}

impl SledStore {
    /// Runs a write. If sled panics within it, how it ended is unknown, and the store is given up.
    fn writing<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut panicked = true;
        let result = guarded(|| {
            let result = work();
            panicked = false;
            result
        });
        match result {
            Err(StoreError::Damaged(why)) if panicked => {
                Err(self.inner.health.fail(::sled::Error::ReportableBug(why)))
            }
            result => result,
        }
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        if self.failure().is_some() {
            std::mem::forget(Arc::clone(&self.inner));
        }
    }
}

impl Metastorage for SledStore {
    fn revision(&self) -> Result<Revision, StoreError> {
        self.inner.health.check_read()?;
        Ok(self.inner.position()?.revision)
    }

    fn compacted(&self) -> Result<Revision, StoreError> {
        self.inner.health.check_read()?;
        Ok(self.inner.position()?.compacted)
    }

    fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Option<Entry>, StoreError> {
        guarded(|| {
            let _pinned = self.inner.pin()?;
            let at = self.inner.position()?.read_at(at)?;
            read::get(&self.inner.rows(), key, at)
        })
    }

    fn range(&self, range: &Range) -> Result<Vec<Entry>, StoreError> {
        guarded(|| {
            let _pinned = self.inner.pin()?;
            let at = self.inner.position()?.read_at(range.at)?;
            read::range(&self.inner.rows(), range, at)
        })
    }

    fn invoke(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        self.writing(|| self.inner.invoke(&transaction))
    }

    fn watch(&self, prefix: &[u8], from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.health.check_read()?;
        let cursor = Cursor::new(prefix, from, self.inner.position()?)?;
        Ok(Box::new(watch::SledWatch::new(
            cursor,
            Arc::clone(&self.inner),
        )))
    }

    fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.writing(|| self.inner.compact(revision))
    }
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    options: SledOptions,
    config: ::sled::Config,
    db: ::sled::Db,
    /// The file that sled writes to, to sync it.
    file: File,
    /// Says how far the store has come, if sled should lose it.
    mark: mark::Mark,
    /// What can be read: it moves on only when a transaction is on the disk.
    position: Watched<Position>,
    health: Health,
    /// Held by whoever makes the next revision.
    writer: Mutex<space::Guard>,
    /// Held by whoever compacts.
    compactor: Mutex<()>,
    /// Read-locked by those who read history, write-locked while some of it is deleted.
    deletion: RwLock<()>,
}

impl Inner {
    fn rows(&self) -> Rows<'_> {
        Rows(&self.db)
    }

    fn position(&self) -> Result<Position, StoreError> {
        Ok(*self.position.lock()?)
    }

    /// Keeps what can be read now from being deleted.
    fn pin(&self) -> Result<RwLockReadGuard<'_, ()>, StoreError> {
        let pinned = self.deletion.read().map_err(|_| broken())?;
        self.health.check_read()?;
        Ok(pinned)
    }
}
