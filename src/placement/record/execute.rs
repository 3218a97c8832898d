//! A driver's requests, carried out on a store.

use crate::codec::Format;
use crate::metastorage::contract::{
    Condition, Entry, Metastorage, Op, Outcome, Range, StoreError, Transaction,
};
use crate::model::hlc::HybridTimestamp;
use crate::placement::io::{Revision, StoreReply, StoreRequest, Stored};

use super::write::{encode, write_transaction};
use super::{BEAT, EPOCH, RecordError, SIZES, batch_of, read_all, size_key, time_of, time_value};

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
