//! Keeping some of the disk free: sled does not survive a full one.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::metastorage::contract::StoreError;

use super::failure::file_error;

/// How much of the disk to leave free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// Below so many free bytes nothing is written any more. Compaction, which will free some,
    /// may go down to a quarter of it.
    pub stop_below: u64,
    /// Above so many it is again.
    pub resume_above: u64,
}

impl Default for Reserve {
    /// Stops below 64 MiB, resumes above 128 MiB.
    fn default() -> Self {
        Self {
            stop_below: 64 << 20,
            resume_above: 128 << 20,
        }
    }
}

type Probe = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// Tells how many bytes are free where a directory is.
#[derive(Clone)]
pub struct FreeSpace(Arc<Probe>);

impl FreeSpace {
    /// Asks `probe` instead of the file system.
    pub fn from_fn(probe: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static) -> Self {
        Self(Arc::new(probe))
    }

    fn at(&self, path: &Path) -> Result<u64, StoreError> {
        (self.0)(path).map_err(|error| file_error("tell the free space at", path, &error))
    }
}

impl Default for FreeSpace {
    fn default() -> Self {
        Self::from_fn(|path| fs2::available_space(path))
    }
}

impl fmt::Debug for FreeSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeSpace")
    }
}

/// Decides whether there is space to write.
#[derive(Debug)]
pub struct Guard {
    reserve: Reserve,
    free: FreeSpace,
    stopped: bool,
}

impl Guard {
    pub const fn new(reserve: Reserve, free: FreeSpace) -> Self {
        Self {
            reserve,
            free,
            stopped: false,
        }
    }

    /// Whether a change may be written.
    pub fn check(&mut self, path: &Path) -> Result<(), StoreError> {
        let free = self.free.at(path)?;
        let needed = if self.stopped {
            self.reserve.resume_above
        } else {
            self.reserve.stop_below
        };
        self.stopped = free < needed;
        enough(path, free, needed)
    }

    /// Whether a compaction may be.
    pub fn check_compaction(&self, path: &Path) -> Result<(), StoreError> {
        enough(path, self.free.at(path)?, self.reserve.stop_below / 4)
    }
}

fn enough(path: &Path, free: u64, needed: u64) -> Result<(), StoreError> {
    if free < needed {
        return Err(StoreError::Full(format!(
            "{free} bytes are free at {}, {needed} are needed to write",
            path.display()
        )));
    }
    Ok(())
}

/// Bytes that a directory takes on the disk, without its subdirectories' own entries.
///
/// # Errors
/// If it cannot be read.
pub fn disk_size(path: &Path) -> Result<u64, StoreError> {
    let failed = |error| file_error("read", path, &error);
    let mut total = 0;
    for file in fs::read_dir(path).map_err(failed)? {
        let file = file.map_err(failed)?;
        // sled renames and removes files meanwhile.
        let Ok(metadata) = file.metadata() else {
            continue;
        };
        total += if metadata.is_dir() {
            disk_size(&file.path())?
        } else {
            allocated(&metadata)
        };
    }
    Ok(total)
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}
