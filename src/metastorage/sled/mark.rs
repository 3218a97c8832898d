//! How far the store has come, beside sled. sled takes damage in its log for the end of it, as a
//! crash would leave it, and goes on from there: only somebody else can tell that more was
//! acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::metastorage::contract::{Revision, StoreError};

use super::failure::file_error;

/// The file: the revision, u64 little-endian, and the CRC-32 of these eight bytes.
pub const MARK: &str = "leasehold.revision";
const SIZE: usize = 12;

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
        let failed = |what, error| file_error(what, &path, &error);
        let options = OpenOptions::new().read(true).write(true).clone();
        match options.open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let file = options.clone().create(true).open(&path);
                let file = file.map_err(|error| failed("make", error))?;
                let mark = Self {
                    path: path.clone(),
                    file,
                };
                mark.put(0).map_err(|error| failed("write", error))?;
                let synced = mark.file.sync_all();
                synced.map_err(|error| failed("sync", error))?;
                Ok(mark)
            }
            Err(error) => Err(failed("open", error)),
        }
    }

    /// Refuses a store that has come less far than it had; catches up with one that has come
    /// farther.
    pub fn check(&self, revision: Revision) -> Result<(), StoreError> {
        let marked = self.read()?;
        if marked <= revision {
            if marked < revision {
                self.advance(revision);
            }
            return Ok(());
        }
        Err(StoreError::Damaged(format!(
            "the store had come to revision {marked}, but its files lead to {revision} only: the \
             later ones are lost; put a copy of the directory in its place, or delete {} to go on \
             without them",
            self.path.display()
        )))
    }

    fn read(&self) -> Result<Revision, StoreError> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.take(SIZE as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| file_error("read", &self.path, &error))?;
        if bytes.is_empty() {
            // It was being made.
            return Ok(0);
        }
        let whole = bytes.split_first_chunk::<8>().filter(|(number, checksum)| {
            *checksum == crc32fast::hash(number.as_slice()).to_le_bytes()
        });
        match whole {
            Some((number, _)) => Ok(Revision::from_le_bytes(*number)),
            None => Err(StoreError::Damaged(format!(
                "{} does not hold a revision and its checksum: delete it to go on without the \
                 check that no revision is lost",
                self.path.display()
            ))),
        }
    }

    /// Notes that a revision is on the disk. If that fails the mark stays behind, and less is
    /// noticed when the store is opened again.
    pub fn advance(&self, revision: Revision) {
        let _stays_behind = self.put(revision);
    }

    fn put(&self, revision: Revision) -> std::io::Result<()> {
        let number = revision.to_le_bytes();
        let mut record = [0; SIZE];
        let checksum = crc32fast::hash(&number).to_le_bytes();
        let bytes = number.into_iter().chain(checksum);
        for (slot, byte) in record.iter_mut().zip(bytes) {
            *slot = byte;
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&record)
    }
}
