//! What sled leaves when it is killed while it opens, and then cannot open again.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use fs2::FileExt;

use crate::metastorage::contract::StoreError;

use super::failure::file_error;

/// Removes the leftovers, unless another process has the directory.
///
/// * A snapshot that was being written (`snap.….generating`): sled takes it for the newest, and for
///   corrupt. It holds nothing that the log doesn't.
/// * Settings without a database, in a directory that was not completely `made`: they may be half
///   written.
pub fn remove(path: &Path, made: bool) -> Result<(), StoreError> {
    try_remove(path, made).map_err(|error| file_error("clean up in", path, &error))
}

fn try_remove(path: &Path, made: bool) -> io::Result<()> {
    match OpenOptions::new()
        .read(true)
        .write(true)
        .open(path.join("db"))
    {
        Ok(db) => {
            // Whoever holds the lock may be writing one. It is released with the file.
            if db.try_lock_exclusive().is_err() {
                return Ok(());
            }
            for file in fs::read_dir(path)? {
                let file = file?;
                let name = file.file_name();
                let name = name.to_string_lossy();
                if name.starts_with("snap.") && name.ends_with(".generating") {
                    remove_file(&file.path())?;
                }
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !made => {
            remove_file(&path.join("conf"))
        }
        // Opening will tell what is wrong.
        Err(_) => Ok(()),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
