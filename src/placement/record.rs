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

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::codec::error::EncodeError;
use crate::codec::frame::{self, FrameError};
use crate::codec::{DecodeError, Decoded, Format};
use crate::metastorage::contract::{
    Bytes, Condition, Entry, Metastorage, Op, Outcome, Range, StoreError, Transaction,
};
use crate::model::hlc::{HybridTimestamp, TimestampError};

use super::io::{BatchWrite, Revision, StoreReply, StoreRequest, Stored};

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

/// What one stored batch took, and what it would have taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SizeRow {
    /// Revision that stored the batch; 0, and left out of the value, until that is known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub revision: Revision,
    /// The driver's clock at the write, milliseconds since the Unix epoch.
    pub time: u64,
    /// Why it was written: `renewal`, `grant`, `publish`, `deny`, `remove`, joined by `+`.
    pub cause: String,
    /// Number of leases.
    pub leases: u64,
    /// Leases that changed other than by being prolonged.
    pub changed: u64,
    /// Format of the batch.
    pub format: String,
    /// Bytes of the stored record.
    pub stored_bytes: u64,
    /// Bytes that the naive format takes for the same batch.
    pub naive_bytes: u64,
}

fn is_unknown(revision: &Revision) -> bool {
    *revision == 0
}

impl SizeRow {
    /// Of a batch about to be written, whose record takes `stored_bytes`.
    pub fn of(write: &BatchWrite, format: Format, stored_bytes: u64) -> Self {
        Self {
            revision: 0,
            time: write.time.physical(),
            cause: write.cause.to_string(),
            leases: write.batch.len() as u64,
            changed: u64::from(write.cause.changed()),
            format: format.name().to_owned(),
            stored_bytes,
            naive_bytes: write.naive_bytes,
        }
    }

    /// From a store's entry.
    pub fn from_entry(entry: &Entry) -> Result<Self, RecordError> {
        let mut row: Self =
            serde_json::from_slice(&entry.value).map_err(|error| RecordError::SizeRow {
                revision: entry.mod_revision,
                reason: error.to_string(),
            })?;
        row.revision = entry.mod_revision;
        Ok(row)
    }
}

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

fn time_value(time: HybridTimestamp) -> Bytes {
    time.composite().to_be_bytes().into()
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

/// Encodes a batch into its record: the part of a write that costs time.
pub fn encode(write: &BatchWrite, format: Format) -> Result<Vec<u8>, RecordError> {
    let payload = crate::codec::encode(format, &write.batch)?;
    frame::wrap(format, &payload).map_err(|source| RecordError::Frame {
        revision: 0,
        source,
    })
}

/// The transaction that stores an encoded batch, its size row and a beat.
pub fn write_transaction(
    write: &BatchWrite,
    format: Format,
    record: Vec<u8>,
) -> Result<Transaction, RecordError> {
    let row = SizeRow::of(write, format, record.len() as u64);
    let row = serde_json::to_vec(&row).map_err(|error| RecordError::SizeRow {
        revision: 0,
        reason: error.to_string(),
    })?;
    Ok(Transaction {
        conditions: vec![
            Condition::ModRevision(EPOCH.into(), write.epoch),
            Condition::ModRevision(BATCH.into(), write.expected),
        ],
        then: vec![
            Op::Put(BATCH.into(), record.into()),
            Op::Put(size_key(write.time), row.into()),
            Op::Put(BEAT.into(), time_value(write.time)),
        ],
        or_else: read_all(),
    })
}

fn read_all() -> Vec<Op> {
    vec![
        Op::Get(EPOCH.into()),
        Op::Get(BATCH.into()),
        Op::Get(BEAT.into()),
    ]
}

fn stored(reads: &[Option<Entry>]) -> Result<Stored, RecordError> {
    let [epoch, batch, beat] = reads else {
        return Err(RecordError::Reads(reads.len()));
    };
    Ok(Stored {
        epoch: epoch.as_ref().map_or(0, |entry| entry.mod_revision),
        revision: batch.as_ref().map_or(0, |entry| entry.mod_revision),
        batch: (batch.as_ref().map(batch_of).transpose()?)
            .map(|decoded| decoded.batch)
            .unwrap_or_default(),
        time: beat.as_ref().map(time_of).transpose()?,
    })
}

/// Carries out a driver's request. `encoded` takes the record of a batch that the caller has
/// encoded already (to measure how long that takes); otherwise it is encoded here.
pub fn execute(
    store: &dyn Metastorage,
    format: Format,
    request: StoreRequest,
    encoded: Option<Vec<u8>>,
) -> StoreReply {
    let outcome = match request {
        StoreRequest::Compact(revision) => {
            return match store.compact(revision) {
                Ok(()) => StoreReply::Won(revision),
                Err(error) => refused(error),
            };
        }
        StoreRequest::PruneSizes { epoch, before } => return prune(store, epoch, before),
        request => match transaction(format, request, encoded) {
            Ok(transaction) => store.invoke(transaction),
            Err(error) => return StoreReply::Unencodable(error.to_string()),
        },
    };
    match outcome {
        Ok(outcome) => reply(outcome),
        Err(error) => refused(error),
    }
}

fn transaction(
    format: Format,
    request: StoreRequest,
    encoded: Option<Vec<u8>>,
) -> Result<Transaction, RecordError> {
    let take = |key: &[u8], condition: Condition, time| Transaction {
        conditions: vec![condition],
        then: vec![Op::Put(key.into(), time_value(time))],
        or_else: read_all(),
    };
    Ok(match request {
        StoreRequest::TakeEpoch { known, time } => {
            let unchanged = Condition::ModRevision(EPOCH.into(), known);
            take(EPOCH, unchanged, time)
        }
        StoreRequest::Beat { epoch, time } => {
            let own = Condition::ModRevision(EPOCH.into(), epoch);
            take(BEAT, own, time)
        }
        StoreRequest::Write(write) => {
            let record = match encoded {
                Some(record) => record,
                None => encode(&write, format)?,
            };
            write_transaction(&write, format, record)?
        }
        StoreRequest::Read | StoreRequest::Compact(_) | StoreRequest::PruneSizes { .. } => {
            Transaction {
                then: read_all(),
                ..Transaction::default()
            }
        }
    })
}

fn reply(outcome: Outcome) -> StoreReply {
    if outcome.won && outcome.reads.is_empty() {
        return StoreReply::Won(outcome.revision);
    }
    match stored(&outcome.reads) {
        Ok(stored) if outcome.won => StoreReply::Read(stored),
        Ok(stored) => StoreReply::Lost(stored),
        Err(error) => StoreReply::Unreadable(error.to_string()),
    }
}

fn refused(error: StoreError) -> StoreReply {
    match error {
        StoreError::Unknown(reason) => StoreReply::Unknown(reason),
        StoreError::Damaged(_) => StoreReply::Unreadable(error.to_string()),
        _ => StoreReply::Unavailable(error.to_string()),
    }
}

/// Size rows deleted in one transaction.
const PRUNE_AT_ONCE: usize = 1000;

fn prune(store: &dyn Metastorage, epoch: Revision, before: HybridTimestamp) -> StoreReply {
    let mut range = Range::prefix(SIZES);
    range.end = Some(size_key(before).to_vec());
    range.limit = Some(PRUNE_AT_ONCE);
    let old = match store.range(&range) {
        Ok(old) => old,
        Err(error) => return refused(error),
    };
    let transaction = Transaction {
        conditions: vec![Condition::ModRevision(EPOCH.into(), epoch)],
        then: old.into_iter().map(|entry| Op::Delete(entry.key)).collect(),
        or_else: Vec::new(),
    };
    match store.invoke(transaction) {
        Ok(outcome) => StoreReply::Won(outcome.revision),
        Err(error) => refused(error),
    }
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
