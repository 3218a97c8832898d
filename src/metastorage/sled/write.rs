//! Writing: transactions, and the deletion of what has been compacted.

use std::collections::BTreeMap;

use ::sled::Batch;

use crate::metastorage::contract::{Bytes, Outcome, Revision, StoreError, Transaction};
use crate::metastorage::mvcc::{History, Version, compaction, transaction};
use crate::metastorage::waiting::broken;

use super::layout::{self, Chunks, Stored};
use super::{Inner, Rows};

/// A compaction deletes about so many rows at a time, so that readers and writers get their turn.
const DELETED_AT_ONCE: usize = 256;

impl Inner {
    pub(super) fn invoke(&self, transaction: &Transaction) -> Result<Outcome, StoreError> {
        self.options.limits.check(transaction)?;
        let mut space = self.writer.lock().map_err(|_| broken())?;
        self.check_write()?;
        // Not pinned: of what a transaction reads, the newest versions, none is ever deleted.
        let revision = self.position()?.revision;
        let decision = transaction::decide(&self.rows(), revision, transaction)?;
        if decision.writes.is_empty() {
            return Ok(decision.outcome);
        }
        space.check(&self.path)?;
        let revision = decision.outcome.revision;
        let batch = rows_of(revision, decision.writes, self.options.chunk_bytes);
        self.apply(batch)?;
        self.sync()?;
        self.mark.advance(revision);
        self.position.lock()?.revision = revision;
        self.position.notify();
        Ok(decision.outcome)
    }

    pub(super) fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let _only_one = self.compactor.lock().map_err(|_| broken())?;
        self.check_write()?;
        if !self.position()?.compacts(revision)? {
            return Ok(());
        }
        let space = self.writer.lock().map_err(|_| broken())?;
        space.check_compaction(&self.path)?;
        drop(space);
        // First the promise that these revisions will not be read again, then the deletion, which
        // may be interrupted anywhere and is resumed when the store is opened.
        let mut batch = Batch::default();
        let row = layout::COMPACTED_ROW;
        batch.insert(row, layout::write_number(row, revision));
        self.apply(batch)?;
        self.sync()?;
        self.position.lock()?.compacted = revision;
        self.position.notify();
        self.delete_up_to(revision)
    }

    /// Deletes what the compaction of `revision` has made unreadable and is still there.
    pub(super) fn delete_up_to(&self, revision: Revision) -> Result<(), StoreError> {
        let rows = self.rows();
        let Some((oldest, last)) = rows.events()? else {
            return Ok(());
        };
        let mut deletion = Deletion {
            inner: self,
            batch: Batch::default(),
            rows: 0,
        };
        for revision in oldest..=revision.min(last) {
            for (key, gone) in compaction::superseded(&rows, revision)? {
                deletion.version(&rows, &key, gone)?;
            }
            // The event goes last: an interrupted deletion begins again with it.
            for part in rows.event_rows(revision) {
                deletion.row(&part?)?;
            }
        }
        deletion.apply()
    }

    fn check_write(&self) -> Result<(), StoreError> {
        self.health.check_write()?;
        // sled also writes in the background, and hangs on the next write if that failed.
        self.config
            .global_error()
            .map_err(|error| self.health.fail(error))
    }

    fn apply(&self, batch: Batch) -> Result<(), StoreError> {
        let applied = self.db.apply_batch(batch);
        applied.map_err(|error| self.failed(error))
    }

    /// Makes what was applied durable. The flush of sled alone writes the data out
    /// (`sync_file_range`), but neither the file's metadata nor the disk's cache.
    fn sync(&self) -> Result<(), StoreError> {
        if self.options.skip_sync {
            return Ok(());
        }
        let flushed = self.db.flush();
        flushed.map_err(|error| self.failed(error))?;
        let synced = self.file.sync_data();
        synced.map_err(|error| self.failed(error.into()))
    }

    fn failed(&self, error: ::sled::Error) -> StoreError {
        self.mark_suspect();
        self.health.fail(error)
    }
}

/// The rows of a transaction.
fn rows_of(
    revision: Revision,
    writes: BTreeMap<Bytes, Version<Bytes>>,
    chunk_bytes: usize,
) -> Batch {
    let mut batch = Batch::default();
    for (row, record) in layout::write_event(revision, writes.keys(), chunk_bytes) {
        batch.insert(&row, record);
    }
    for ((key, version), slot) in writes.into_iter().zip(0..) {
        let value = version.value.map(|value| {
            if value.len() <= chunk_bytes {
                return Stored::Inline((&*value).into());
            }
            let chunks = Chunks {
                slot,
                len: value.len() as u64,
                chunk: chunk_bytes as u32,
                checksum: crc32fast::hash(&value),
            };
            for (row, chunk) in chunks.rows(revision).zip(value.chunks(chunk_bytes)) {
                batch.insert(&row, chunk);
            }
            Stored::Chunked(chunks)
        });
        let row = layout::version_row(&key, revision);
        let version = Version {
            create_revision: version.create_revision,
            mod_revision: revision,
            version: version.version,
            value,
        };
        let record = layout::write_version(&row, &version);
        batch.insert(row, record);
    }
    batch
}

/// Rows to delete, some at a time.
struct Deletion<'a> {
    inner: &'a Inner,
    batch: Batch,
    rows: usize,
}

impl Deletion<'_> {
    fn version(
        &mut self,
        rows: &Rows<'_>,
        key: &[u8],
        revision: Revision,
    ) -> Result<(), StoreError> {
        // The record goes last: it tells which chunks there are.
        if let Some(Version {
            value: Some(Stored::Chunked(chunks)),
            mod_revision,
            ..
        }) = rows.newest(key, revision)?
            && mod_revision == revision
        {
            for row in chunks.rows(revision) {
                self.row(&row)?;
            }
        }
        self.row(&layout::version_row(key, revision))
    }

    fn row(&mut self, row: &[u8]) -> Result<(), StoreError> {
        self.batch.remove(row);
        self.rows += 1;
        if self.rows >= DELETED_AT_ONCE {
            self.apply()?;
        }
        Ok(())
    }

    fn apply(&mut self) -> Result<(), StoreError> {
        if self.rows > 0 {
            self.rows = 0;
            let _nobody_reads = self.inner.deletion.write().map_err(|_| broken())?;
            self.inner.apply(std::mem::take(&mut self.batch))?;
        }
        Ok(())
    }
}
