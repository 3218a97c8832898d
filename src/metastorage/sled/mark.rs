//! How far the store has come, beside sled. sled takes damage in its log for the end of it, as a
//! crash would leave it, and goes on from there: only somebody else can tell that more was
//! acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::metastorage::contract::{Revision, StoreError};

use super::failure::file_error;
use super::layout;

/// The file: the record of a number in a row of this name.
const MARK: &str = "leasehold.revision";
const SIZE: u64 = 12;

/// The last revision that was acknowledged. It is written after the transaction was synced and is
/// not synced itself: after a crash of the machine it may be an earlier one, never a later one.
#[derive(Debug)]
pub struct Mark {
    path: PathBuf,
    file: File,
}

impl Mark {
    /// Opens the mark in a store's directory. Where there is none, as in a store of an earlier
    /// version, one is made at revision 0.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(MARK);
        let failed = |error| file_error("open", &path, &error);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        let empty = file.metadata().map_err(failed)?.len() == 0;
        let mark = Self {
            path: path.clone(),
            file,
        };
        if empty {
            // Synced, so that later on nothing but its content changes.
            let made = mark.put(0).and_then(|()| mark.file.sync_all());
            made.map_err(failed)?;
        }
        Ok(mark)
    }

    /// Refuses a store that has come less far than it had; catches up with one that has come
    /// farther.
    pub fn check(&self, revision: Revision) -> Result<(), StoreError> {
        let path = self.path.display();
        let record = self.record();
        let record = record.map_err(|error| file_error("read", &self.path, &error))?;
        let marked = layout::read_number(MARK.as_bytes(), &record).map_err(|_| {
            StoreError::Damaged(format!(
                "{path} does not hold a revision and its checksum: delete it to go on without the \
                 check that no revision is lost"
            ))
        })?;
        if marked > revision {
            return Err(StoreError::Damaged(format!(
                "the store had come to revision {marked}, but its files lead to {revision} only: \
                 the later ones are lost; put a copy of the directory in its place, or delete \
                 {path} to go on without them"
            )));
        }
        if marked < revision {
            self.advance(revision);
        }
        Ok(())
    }

    /// Notes that a revision is on the disk. If that fails the mark stays behind, and less is
    /// noticed when the store is opened again.
    pub fn advance(&self, revision: Revision) {
        let _stays_behind = self.put(revision);
    }

    fn record(&self) -> io::Result<Vec<u8>> {
        let (mut file, mut record) = (&self.file, Vec::new());
        file.seek(SeekFrom::Start(0))?;
        file.take(SIZE + 1).read_to_end(&mut record)?;
        Ok(record)
    }

    fn put(&self, revision: Revision) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&layout::write_number(MARK.as_bytes(), revision))
    }
}
