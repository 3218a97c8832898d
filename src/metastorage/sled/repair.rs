//! After a failed write: removing the half of it that may be among the rows.
//!
//! sled recovers a batch as a whole after a crash, but not always after an error in the midst of
//! one. Only the transaction in flight can be concerned, which was not acknowledged.

use std::fs;

use ::sled::Batch;

use crate::metastorage::contract::{Revision, StoreError};
use crate::metastorage::mvcc::{History, Position};

use super::failure::{file_error, read_error};
use super::{Inner, layout, open};

impl Inner {
    /// Notes that half of a write may be among the rows. Renaming needs no space.
    pub(super) fn mark_suspect(&self) {
        let marker = self.path.join(open::MARKER);
        let _best_effort = fs::rename(marker, self.path.join(open::SUSPECT_MARKER));
    }

    /// Looks through all rows of a store so marked; tells how far it had come.
    pub(super) fn repair(&self, position: Position) -> Result<Position, StoreError> {
        let mut position = position;
        if position.revision > position.compacted && !self.is_whole(position.revision)? {
            position.revision -= 1;
        }
        self.remove_beyond(position.revision)?;
        self.db.flush().map_err(read_error)?;
        let marker = self.path.join(open::MARKER);
        let restored = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(self.path.join(open::SUSPECT_MARKER), &marker));
        restored.map_err(|error| file_error("restore", &marker, &error))?;
        Ok(position)
    }

    fn is_whole(&self, revision: Revision) -> Result<bool, StoreError> {
        let rows = self.rows();
        let check = || {
            for key in &*rows.changed(revision)? {
                let version = rows.newest(key, revision)?;
                let Some(version) = version.filter(|found| found.mod_revision == revision) else {
                    return Ok(false);
                };
                if let Some(value) = &version.value {
                    rows.load(key, revision, value)?;
                }
            }
            Ok(true)
        };
        match check() {
            Err(StoreError::Damaged(_)) => Ok(false),
            checked => checked,
        }
    }

    fn remove_beyond(&self, revision: Revision) -> Result<(), StoreError> {
        let next = revision + 1;
        let mut batch = Batch::default();
        let events = self.db.range(layout::event_rows(next..=Revision::MAX));
        let chunks = self.db.range(layout::chunk_rows_from(next));
        for row in events.chain(chunks) {
            batch.remove(row.map_err(read_error)?.0);
        }
        let versions = layout::version_prefix(&[])..layout::versions_end();
        for row in self.db.range(versions).keys() {
            let row = row.map_err(read_error)?;
            if layout::split_version_row(&row)?.1 > revision {
                batch.remove(row);
            }
        }
        self.db.apply_batch(batch).map_err(read_error)
    }
}
