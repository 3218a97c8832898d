//! How leases look in the metastorage: keys, values and transactions.
//!
//! | key | value |
//! |---|---|
//! | `lease/batch` | the snapshot: the stored record of a batch ([`crate::codec::frame`]) |
//! | `lease/delta/` + number, 8 hexadecimal digits | what changed since: a frame ([`crate::codec::delta`]) |
//! | `lease/beat` | the active driver's clock: composite timestamp, big-endian u64 |
//! | `lease/epoch` | the same, at the moment of taking over; its revision is the epoch |
//! | `sizes/` + composite timestamp, 16 hexadecimal digits | a [`SizeRow`], as JSON |
//!
//! A batch is written together with its size row and a beat, in one transaction: as a snapshot,
//! which takes the deltas before it away, or as the next delta. The snapshot's revision is the base
//! of its deltas, which are numbered from 1 without a gap. So that no two drivers write over each
//! other, either kind is written only if the epoch and the snapshot are unchanged and the next
//! delta is not there.

mod execute;
mod lookup;
mod size_row;
mod state;
mod write;

use thiserror::Error;

use crate::codec::delta::DeltaError;
use crate::codec::error::EncodeError;
use crate::codec::frame::{self, FrameError};
use crate::codec::{DecodeError, Decoded};
use crate::metastorage::contract::{Bytes, Entry, Op, Range};
use crate::model::hlc::{HybridTimestamp, TimestampError};

use super::io::Revision;

pub use execute::execute;
pub use lookup::{Lookup, lookup};
pub use size_row::{DELTA, SizeRow};
pub use state::{LastWrite, ReadError, State, read, read_last};
pub use write::{Encoded, encode, write_transaction};

/// Key of the snapshot.
pub const BATCH: &[u8] = b"lease/batch";
/// What the keys of deltas begin with.
pub const DELTAS: &[u8] = b"lease/delta/";
/// Key of the beat.
pub const BEAT: &[u8] = b"lease/beat";
/// Key of the epoch.
pub const EPOCH: &[u8] = b"lease/epoch";
/// What these begin with, to be watched.
pub const PREFIX: &[u8] = b"lease/";
/// What the keys of size rows begin with.
pub const SIZES: &[u8] = b"sizes/";

/// Key of the size row of a batch written at a time.
pub fn size_key(time: HybridTimestamp) -> Bytes {
    let mut key = SIZES.to_vec();
    key.extend_from_slice(format!("{:016x}", time.composite()).as_bytes());
    key.into()
}

/// Key of a delta.
pub fn delta_key(step: u64) -> Bytes {
    let mut key = DELTAS.to_vec();
    key.extend_from_slice(format!("{step:08x}").as_bytes());
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

/// Reads epoch, beat, snapshot and deltas.
fn read_all() -> Vec<Op> {
    vec![
        Op::Get(EPOCH.into()),
        Op::Get(BEAT.into()),
        Op::Get(BATCH.into()),
        Op::GetPrefix(DELTAS.into()),
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
    /// A delta, or the chain that it belongs to.
    #[error("delta of revision {revision}: {source}")]
    Delta {
        /// Its revision.
        revision: Revision,
        /// What is wrong.
        source: DeltaError,
    },
    /// A gap in the deltas, or deltas without a snapshot.
    #[error(
        "delta {step} after the snapshot of revision {base} is missing, but a later one is there"
    )]
    MissingDelta {
        /// Revision of the snapshot; 0 if there is none.
        base: Revision,
        /// Number of the delta.
        step: u64,
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
    /// The store answered fewer reads than asked for.
    #[error("the store answered {0} reads, fewer than the 3 asked for")]
    Reads(usize),
}
