//! The row that says what a stored batch took.

use serde::{Deserialize, Serialize};

use crate::codec::Format;
use crate::metastorage::contract::Entry;
use crate::model::hlc::HybridTimestamp;
use crate::placement::io::{BatchWrite, Form, Revision};

use super::{BATCH, BEAT, RecordError, delta_key, size_key};

/// What the row of a delta says of its format.
pub const DELTA: &str = "delta";

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
    /// Format of the snapshot, or [`DELTA`] for a delta.
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
    /// Of a batch about to be written, whose record takes `stored_bytes`. `format` is that of
    /// snapshots.
    pub fn of(write: &BatchWrite, format: Format, stored_bytes: u64) -> Self {
        Self {
            revision: 0,
            time: write.time.physical(),
            cause: write.cause.to_string(),
            leases: write.batch.len() as u64,
            changed: u64::from(write.cause.changed()),
            format: match write.form {
                Form::Full | Form::Snapshot => format.name().to_owned(),
                Form::Delta => DELTA.to_owned(),
            },
            stored_bytes,
            naive_bytes: write.naive_bytes,
        }
    }

    /// Whether the batch was stored as a delta.
    pub fn is_delta(&self) -> bool {
        self.format == DELTA
    }

    /// Bytes that are stored with the record: its key, this row and its key, the beat and its key.
    pub fn bookkeeping_bytes(&self) -> u64 {
        let record = if self.is_delta() {
            delta_key(0).len()
        } else {
            BATCH.len()
        };
        let stored = Self {
            revision: 0,
            ..self.clone()
        };
        let row = serde_json::to_vec(&stored).map_or(0, |row| row.len());
        let keys = record + size_key(HybridTimestamp::MIN).len() + BEAT.len();
        (keys + row + size_of::<u64>()) as u64
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
