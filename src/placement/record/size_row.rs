//! The row that says what a stored batch took.

use serde::{Deserialize, Serialize};

use crate::codec::Format;
use crate::metastorage::contract::Entry;
use crate::placement::io::{BatchWrite, Revision};

use super::RecordError;

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
