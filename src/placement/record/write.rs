//! A batch on its way into the store: its record, and the transaction that stores it.

use crate::codec::Format;
use crate::codec::frame;
use crate::metastorage::contract::{Condition, Op, Transaction};
use crate::placement::io::BatchWrite;

use super::{BATCH, BEAT, EPOCH, RecordError, SizeRow, read_all, size_key, time_value};

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
