//! A batch on its way into the store: its record, and the transaction that stores it.

use crate::codec::Format;
use crate::codec::delta::Chain;
use crate::codec::frame;
use crate::metastorage::contract::{Condition, Op, Transaction};
use crate::model::batch::LeaseBatch;
use crate::model::reads::Reads;
use crate::placement::io::{BatchWrite, Form, Revision};
use crate::placement::storing::needed_for;

use super::{BATCH, BEAT, EPOCH, RecordError, SizeRow, delta_key, read_all, size_key, time_value};

/// A record, and the state once it is stored.
#[derive(Clone, Debug)]
pub struct Encoded {
    record: Vec<u8>,
    next: Next,
    format: Format,
}

#[derive(Clone, Debug)]
enum Next {
    /// A chain begins with this batch; whether deltas will follow.
    Begins(LeaseBatch, bool),
    /// The chain goes on.
    GoesOn(Chain),
}

impl Encoded {
    /// Number of bytes of the record.
    pub fn bytes(&self) -> u64 {
        self.record.len() as u64
    }

    /// The format, if it is in full.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What it takes to read it.
    pub fn needs(&self) -> Reads {
        match self.next {
            Next::Begins(..) => needed_for(self.format),
            Next::GoesOn(_) => Reads::Deltas,
        }
    }

    /// The state that a write at a revision has led to.
    pub fn chain(self, revision: Revision) -> Chain {
        match self.next {
            Next::Begins(batch, followed) => {
                let chain = Chain::new(revision, batch);
                if followed {
                    // Part of what a snapshot costs, not of its first delta.
                    chain.digest();
                }
                chain
            }
            Next::GoesOn(chain) => chain,
        }
    }
}

/// Encodes a batch into its record: the part of a write that costs time.
///
/// A batch in full is stored as a chain has it, so that deltas can be followed from a snapshot
/// without reading all of it.
pub fn encode(write: &BatchWrite) -> Result<Encoded, RecordError> {
    let batch = write.batch.clone();
    if write.form == Form::Delta {
        let (chain, record) = write.chain.advance(batch, &write.changed)?;
        let next = Next::GoesOn(chain);
        let format = write.format;
        return Ok(Encoded {
            record,
            next,
            format,
        });
    }
    let batch = batch.settled();
    let (record, format) = match in_full(&batch, write.format) {
        Err(_) if write.substitute != write.format => {
            (in_full(&batch, write.substitute)?, write.substitute)
        }
        record => (record?, write.format),
    };
    let next = Next::Begins(batch, write.form == Form::Snapshot);
    Ok(Encoded {
        record,
        next,
        format,
    })
}

fn in_full(batch: &LeaseBatch, format: Format) -> Result<Vec<u8>, RecordError> {
    let payload = crate::codec::encode(format, batch)?;
    frame::wrap(format, &payload).map_err(|source| RecordError::Frame {
        revision: 0,
        source,
    })
}

/// The transaction that stores an encoded batch, its size row and a beat.
pub fn write_transaction(
    write: &BatchWrite,
    encoded: &Encoded,
) -> Result<Transaction, RecordError> {
    let row = SizeRow::of(write, encoded.format, encoded.bytes());
    let row = serde_json::to_vec(&row).map_err(|error| RecordError::SizeRow {
        revision: 0,
        reason: error.to_string(),
    })?;
    let record = encoded.record.as_slice().into();
    let step = write.chain.step();
    let mut then = Vec::new();
    match write.form {
        Form::Full | Form::Snapshot => {
            then.push(Op::Put(BATCH.into(), record));
            then.extend((1..=step).map(|step| Op::Delete(delta_key(step))));
        }
        Form::Delta => then.push(Op::Put(delta_key(step + 1), record)),
    }
    then.push(Op::Put(size_key(write.time), row.into()));
    then.push(Op::Put(BEAT.into(), time_value(write.time)));
    Ok(Transaction {
        conditions: vec![
            Condition::ModRevision(EPOCH.into(), write.epoch),
            Condition::ModRevision(BATCH.into(), write.chain.base()),
            Condition::Absent(delta_key(step + 1)),
        ],
        then,
        or_else: read_all(),
    })
}
