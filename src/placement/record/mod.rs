//! How leases look in the metastorage: keys, values and transactions.
//!
//! | key | value |
//! |---|---|
//! | `lease/batch` | the stored record of a batch ([`crate::codec::frame`]) |
//! | `lease/beat` | the active driver's clock: composite timestamp, big-endian u64 |
//! | `lease/epoch` | the same, at the moment of taking over; its revision is the epoch |
//! | `sizes/` + composite timestamp, 16 hexadecimal digits | a [`SizeRow`], as JSON |
//!
//! A batch is written together with its size row and a beat, in one transaction.

mod execute;
mod size_row;
mod write;

use thiserror::Error;

use crate::codec::error::EncodeError;
use crate::codec::frame::{self, FrameError};
use crate::codec::{DecodeError, Decoded};
use crate::metastorage::contract::{Bytes, Entry, Op, Range};
use crate::model::hlc::{HybridTimestamp, TimestampError};

use super::io::Revision;

pub use execute::execute;
pub use size_row::SizeRow;
pub use write::{encode, write_transaction};

/// Key of the batch.
pub const BATCH: &[u8] = b"lease/batch";
/// Key of the beat.
pub const BEAT: &[u8] = b"lease/beat";
/// Key of the epoch.
pub const EPOCH: &[u8] = b"lease/epoch";
/// What the three begin with, to be watched.
pub const PREFIX: &[u8] = b"lease/";
/// What the keys of size rows begin with.
pub const SIZES: &[u8] = b"sizes/";

/// Key of the size row of a batch written at a time.
pub fn size_key(time: HybridTimestamp) -> Bytes {
    let mut key = SIZES.to_vec();
    key.extend_from_slice(format!("{:016x}", time.composite()).as_bytes());
    key.into()
}

/// The size rows written within a range of times, newest last.
pub fn size_range(since: Option<HybridTimestamp>) -> Range {
    let mut range = Range::prefix(SIZES);
    if let Some(since) = since {
        range.start = size_key(since).to_vec();
    }
    range
}

/// The value of a beat or epoch.
fn time_value(time: HybridTimestamp) -> Bytes {
    time.composite().to_be_bytes().into()
}

/// Reads epoch, batch and beat.
fn read_all() -> Vec<Op> {
    vec![
        Op::Get(EPOCH.into()),
        Op::Get(BATCH.into()),
        Op::Get(BEAT.into()),
    ]
}

/// The timestamp in the value of a beat or epoch.
pub fn time_of(entry: &Entry) -> Result<HybridTimestamp, RecordError> {
    let bytes = <[u8; 8]>::try_from(&*entry.value).map_err(|_| RecordError::Beat {
        revision: entry.mod_revision,
        reason: format!("{} bytes instead of 8", entry.value.len()),
    })?;
    let composite = u64::from_be_bytes(bytes);
    HybridTimestamp::from_composite(composite).map_err(|error: TimestampError| RecordError::Beat {
        revision: entry.mod_revision,
        reason: error.to_string(),
    })
}

/// The batch in a stored record.
pub fn batch_of(entry: &Entry) -> Result<Decoded, RecordError> {
    let revision = entry.mod_revision;
    let record =
        frame::open(&entry.value).map_err(|source| RecordError::Frame { revision, source })?;
    record
        .decode()
        .map_err(|source| RecordError::Batch { revision, source })
}

/// What is wrong with something stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The batch can't be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The record around a batch.
    #[error("batch of revision {revision}: {source}")]
    Frame {
        /// Its revision.
        revision: Revision,
        /// What is wrong.
        source: FrameError,
    },
    /// The batch within an intact record.
    #[error("batch of revision {revision}: {source}")]
    Batch {
        /// Its revision.
        revision: Revision,
        /// What is wrong.
        source: DecodeError,
    },
    /// A size row.
    #[error("size row of revision {revision}: {reason}")]
    SizeRow {
        /// Its revision.
        revision: Revision,
        /// What is wrong.
        reason: String,
    },
    /// A beat or epoch.
    #[error("beat or epoch of revision {revision}: {reason}")]
    Beat {
        /// Its revision.
        revision: Revision,
        /// What is wrong.
        reason: String,
    },
    /// The store answered another number of reads than asked for.
    #[error("the store answered {0} reads instead of 3")]
    Reads(usize),
}
