//! Opening a store: whose directory it is, and whether it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use crate::metastorage::contract::StoreError;
use crate::metastorage::mvcc::Position;
use crate::metastorage::mvcc::limits::Limits;
use crate::metastorage::waiting::Watched;

use super::failure::{Health, file_error, read_error};
use super::mark::Mark;
use super::space::{FreeSpace, Guard, Reserve};
use super::{Inner, Rows, layout, leftovers};

/// sled remembers this: a store can only be opened with the size it was made with. A page above a
/// quarter of it becomes a file in `blobs/`.
const SEGMENT_BYTES: usize = 512 << 10;

/// A page of sled has up to 19 rows (16, and 3 of a sibling merged into it): of this size they stay
/// below a quarter of a segment, with their keys. Larger chunks are a little faster and leave more
/// on the disk; smaller ones the reverse. See docs/STORE.md.
const CHUNK_BYTES: usize = 6 << 10;

/// Says that the directory holds a store of ours which was completely made.
pub const MARKER: &str = "leasehold.store";
/// The marker's name after a failed write: half of it may be among the rows.
pub const SUSPECT_MARKER: &str = "leasehold.store.suspect";

/// Pause between two attempts to get the directory's lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How to open a store.
#[derive(Clone, Debug)]
pub struct SledOptions {
    /// Make the store if there is none.
    pub create: bool,
    /// sled's page cache, bytes; the memory it takes can be several times that.
    pub cache_bytes: u64,
    /// Values above so many bytes are split into chunks of this size, 512 to 65,536. Values that
    /// are stored keep the size they were split with.
    pub chunk_bytes: usize,
    /// How long to wait for the lock of the directory, which can come late after a store in it was
    /// closed.
    pub lock_wait: Duration,
    /// How often sled gathers in the background what is left of mostly empty segments, milliseconds
    /// at least. With many writes between two times it lags behind, and the directory grows.
    pub clean_every: Duration,
    /// Largest keys, values and transactions.
    pub limits: Limits,
    /// How much of the disk to leave free.
    pub reserve: Reserve,
    /// How to tell what is free.
    pub free_space: FreeSpace,
    /// Acknowledges what is not on the disk. For the test that shows that this would be noticed.
    #[doc(hidden)]
    pub skip_sync: bool,
}

impl Default for SledOptions {
    fn default() -> Self {
        Self {
            create: false,
            cache_bytes: 16 << 20,
            chunk_bytes: CHUNK_BYTES,
            lock_wait: Duration::from_secs(1),
            clean_every: Duration::from_millis(250),
            limits: Limits::default(),
            reserve: Reserve::default(),
            free_space: FreeSpace::default(),
            skip_sync: false,
        }
    }
}

impl SledOptions {
    /// The default options, for a store that may have to be made.
    pub fn create() -> Self {
        Self {
            create: true,
            ..Self::default()
        }
    }
}

pub fn open(path: &Path, options: SledOptions) -> Result<Inner, StoreError> {
    let chunks = 512..=65_536;
    if !chunks.contains(&options.chunk_bytes) {
        return Err(StoreError::Unavailable(format!(
            "chunk_bytes is {}, expected {} to {}",
            options.chunk_bytes,
            chunks.start(),
            chunks.end()
        )));
    }
    let made = path.join(MARKER).exists() || path.join(SUSPECT_MARKER).exists();
    if !made {
        check_can_make(path, options.create)?;
        make_directory(path)?;
    }
    let config = ::sled::Config::new()
        .path(path)
        .cache_capacity(options.cache_bytes)
        .segment_size(SEGMENT_BYTES)
        .flush_every_ms(Some(milliseconds(options.clean_every)));
    let db = open_sled(&config, path, made, options.lock_wait)?;
    let file = path.join("db");
    let file = OpenOptions::new()
        .write(true)
        .open(&file)
        .map_err(|error| file_error("open", &file, &error))?;
    if made {
        check_format(path, &db)?;
    } else {
        make(path, &db, &file)?;
    }
    let inner = Inner {
        path: path.to_owned(),
        config,
        db,
        file,
        mark: Mark::open(path)?,
        position: Watched::new(Position::default()),
        health: Health::default(),
        writer: Mutex::new(Guard::new(options.reserve, options.free_space.clone())),
        compactor: Mutex::new(()),
        deletion: RwLock::new(()),
        options,
    };
    inner.recover()?;
    Ok(inner)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Refuses to make a store unless asked, and among files that are not ours.
fn check_can_make(path: &Path, create: bool) -> Result<(), StoreError> {
    let refused = |why: &str| {
        let path = path.display();
        Err(StoreError::Unavailable(format!(
            "no store in {path}: {why}"
        )))
    };
    let files = match fs::read_dir(path) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return if create {
                Ok(())
            } else {
                refused("there is no such directory")
            };
        }
        Err(error) => return Err(file_error("read", path, &error)),
    };
    if !create {
        return refused("the directory holds none");
    }
    for file in files {
        let name = file
            .map_err(|error| file_error("read", path, &error))?
            .file_name();
        let name = name.to_string_lossy();
        // What sled makes may be left of an attempt that was interrupted.
        let ours = name.starts_with("leasehold.") || name.starts_with("snap.");
        if !ours && !["db", "conf", "blobs"].contains(&&*name) {
            return refused(&format!(
                "the directory holds other things, such as `{name}`; choose an empty one"
            ));
        }
    }
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(path).map_err(|error| file_error("make", path, &error))?;
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        sync_directory(parent)?;
    }
    Ok(())
}

fn open_sled(
    config: &::sled::Config,
    path: &Path,
    made: bool,
    lock_wait: Duration,
) -> Result<::sled::Db, StoreError> {
    let mut waited = Duration::ZERO;
    loop {
        leftovers::remove(path, made)?;
        match config.open() {
            Err(::sled::Error::Io(error)) if error.to_string().contains("acquire lock") => {
                if waited >= lock_wait {
                    return Err(StoreError::Locked(format!(
                        "{} is in use by another process: stop it, or ask it over HTTP",
                        path.display()
                    )));
                }
                pause();
                waited += LOCK_PAUSE;
            }
            Err(::sled::Error::Io(error)) => return Err(file_error("open", path, &error)),
            Err(error @ (::sled::Error::Corruption { .. } | ::sled::Error::Unsupported(_)))
                if made =>
            {
                return Err(StoreError::Damaged(format!(
                    "{}, so that it cannot open {}: put a copy of the directory in its place; what \
                     sled makes anew from db (snap.*, conf) may be deleted, if only that is damaged",
                    what_sled_says(error),
                    path.display()
                )));
            }
            opened => return opened.map_err(read_error),
        }
    }
}

fn what_sled_says(error: ::sled::Error) -> String {
    match read_error(error) {
        StoreError::Damaged(what) => what,
        _ => "sled does not know its own settings".to_owned(),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process holds the lock: there is nothing to be woken by"
)]
fn pause() {
    std::thread::sleep(LOCK_PAUSE);
}

fn make(path: &Path, db: &::sled::Db, file: &File) -> Result<(), StoreError> {
    if !db.is_empty() || db.tree_names().len() != 1 {
        check_format(path, db)?;
    }
    let row = layout::FORMAT_ROW;
    let record = layout::write_number(row, layout::FORMAT);
    db.insert(row, record).map_err(read_error)?;
    db.flush().map_err(read_error)?;
    let failed = |error| file_error("write to", path, &error);
    // sled syncs its settings nowhere.
    let settings = OpenOptions::new().write(true).open(path.join("conf"));
    settings.and_then(|file| file.sync_all()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let marker = File::create(path.join(MARKER)).map_err(failed)?;
    marker.sync_all().map_err(failed)?;
    sync_directory(path)
}

fn check_format(path: &Path, db: &::sled::Db) -> Result<(), StoreError> {
    let path = path.display();
    match Rows(db).number(layout::FORMAT_ROW)? {
        Some(layout::FORMAT) => Ok(()),
        Some(format) => Err(StoreError::Unavailable(format!(
            "the store in {path} has format {format}, this program reads format {}",
            layout::FORMAT
        ))),
        None if db.is_empty() => Err(StoreError::Damaged(format!(
            "{path} was a store, but nothing that can be read is left in it"
        ))),
        None => Err(StoreError::Unavailable(format!(
            "the database in {path} is not a store of this program"
        ))),
    }
}

impl Inner {
    /// Finds out how far the store had come and completes what was interrupted.
    fn recover(&self) -> Result<(), StoreError> {
        let rows = self.rows();
        let compacted = rows.number(layout::COMPACTED_ROW)?.unwrap_or(0);
        let last = rows.events()?.map_or(0, |(_, last)| last);
        let mut position = Position {
            revision: last.max(compacted),
            compacted,
        };
        if self.path.join(SUSPECT_MARKER).exists() {
            position = self.repair(position)?;
        }
        self.mark.check(position.revision)?;
        *self.position.lock()? = position;
        self.delete_up_to(compacted)
    }
}

fn sync_directory(path: &Path) -> Result<(), StoreError> {
    if cfg!(unix) {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| file_error("sync", path, &error))?;
    }
    Ok(())
}
