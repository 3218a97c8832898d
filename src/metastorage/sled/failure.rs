//! What an error of sled means, and what is left to do after one.

use std::io::{self, ErrorKind};
use std::sync::OnceLock;

use crate::metastorage::contract::StoreError;

/// Whether a write has failed. From then on the rows in memory and those on disk may differ, and
/// sled may hang: nothing is read or written until the store is opened again.
#[derive(Debug, Default)]
pub struct Health(OnceLock<Failure>);

#[derive(Debug)]
enum Failure {
    Full(String),
    Other(String),
}

impl Health {
    /// Whether a write may be tried.
    pub fn check_write(&self) -> Result<(), StoreError> {
        match self.0.get() {
            None => Ok(()),
            Some(Failure::Full(why)) => Err(StoreError::Full(why.clone())),
            Some(Failure::Other(why)) => Err(StoreError::Unavailable(why.clone())),
        }
    }

    /// Whether a read would tell the truth.
    pub fn check_read(&self) -> Result<(), StoreError> {
        match self.0.get() {
            None => Ok(()),
            Some(Failure::Full(why) | Failure::Other(why)) => {
                Err(StoreError::Unavailable(why.clone()))
            }
        }
    }

    /// Notes that a write failed; how it ended is unknown until the store is opened again.
    pub fn fail(&self, error: ::sled::Error) -> StoreError {
        let full = matches!(&error, ::sled::Error::Io(error) if is_full(error));
        let what = if full {
            "the disk is full".to_owned()
        } else {
            error.to_string()
        };
        let after = format!("a write failed ({what}): end this process and open the store again");
        let _first_counts = self.0.set(if full {
            Failure::Full(after.clone())
        } else {
            Failure::Other(after.clone())
        });
        StoreError::Unknown(after)
    }
}

/// What an error while reading means.
pub fn read_error(error: ::sled::Error) -> StoreError {
    match error {
        ::sled::Error::Corruption { at, .. } => StoreError::Damaged(match at {
            Some(at) => {
                // Only its debug form tells where it points to.
                let text = format!("{at:?}");
                let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
                let end = digits.find(|c: char| !c.is_ascii_digit());
                let offset = digits.split_at(end.unwrap_or(digits.len())).0;
                format!("sled finds damage at byte {offset} of its file db")
            }
            None => "sled finds damage in its files".to_owned(),
        }),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// What an error of the file system, outside of sled, means.
pub fn file_error(what: &str, path: &std::path::Path, error: &io::Error) -> StoreError {
    let text = format!("cannot {what} {}: {error}", path.display());
    if is_full(error) {
        StoreError::Full(text)
    } else {
        StoreError::Unavailable(text)
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}
