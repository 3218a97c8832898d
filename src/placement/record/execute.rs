//! A driver's requests, carried out on a store.

use crate::metastorage::contract::{
    Condition, Entry, Metastorage, Op, Outcome, Range, StoreError, Transaction,
};
use crate::model::hlc::HybridTimestamp;
use crate::model::reads::Reads;
use crate::placement::io::{BatchWrite, Revision, StoreReply, StoreRequest, Stored};

use super::state::State;
use super::write::{Encoded, encode, write_transaction};
use super::{BEAT, EPOCH, RecordError, SIZES, read_all, size_key, time_of, time_value};

/// Carries out a driver's request. `encoded` takes the record of a batch that the caller has
/// encoded already (to measure how long that takes); otherwise it is encoded here. `reads` is
/// what the driver's release can read.
pub fn execute(
    store: &dyn Metastorage,
    reads: Reads,
    request: StoreRequest,
    encoded: Option<Encoded>,
) -> StoreReply {
    let known = |key: &[u8], revision| Condition::ModRevision(key.into(), revision);
    match request {
        StoreRequest::Read => {
            let transaction = Transaction {
                then: read_all(),
                ..Transaction::default()
            };
            match store.invoke(transaction) {
                Ok(outcome) => understood(&outcome.reads, reads, StoreReply::Read),
                Err(error) => refused(error),
            }
        }
        StoreRequest::TakeEpoch { known: last, time } => {
            put_time(store, reads, EPOCH, known(EPOCH, last), time)
        }
        StoreRequest::Beat { epoch, time } => {
            put_time(store, reads, BEAT, known(EPOCH, epoch), time)
        }
        StoreRequest::Write(batch) => write(store, reads, &batch, encoded),
        StoreRequest::Compact(revision) => match store.compact(revision) {
            Ok(()) => StoreReply::Won(revision),
            Err(error) => refused(error),
        },
        StoreRequest::PruneSizes { epoch, before } => prune(store, epoch, before),
    }
}

fn put_time(
    store: &dyn Metastorage,
    reads: Reads,
    key: &[u8],
    condition: Condition,
    time: HybridTimestamp,
) -> StoreReply {
    let transaction = Transaction {
        conditions: vec![condition],
        then: vec![Op::Put(key.into(), time_value(time))],
        or_else: read_all(),
    };
    match store.invoke(transaction) {
        Ok(outcome) if outcome.won => StoreReply::Won(outcome.revision),
        Ok(outcome) => understood(&outcome.reads, reads, StoreReply::Lost),
        Err(error) => refused(error),
    }
}

fn write(
    store: &dyn Metastorage,
    reads: Reads,
    write: &BatchWrite,
    encoded: Option<Encoded>,
) -> StoreReply {
    let encoded = match encoded {
        Some(encoded) => Ok(encoded),
        None => encode(write),
    };
    let transaction = encoded.and_then(|encoded| {
        let transaction = write_transaction(write, &encoded)?;
        Ok((encoded, transaction))
    });
    let (encoded, transaction) = match transaction {
        Ok(both) => both,
        Err(error) => return StoreReply::Unencodable(error.to_string()),
    };
    match store.invoke(transaction) {
        Ok(Outcome { won, revision, .. }) if won => StoreReply::Written {
            revision,
            needs: encoded.needs(),
            chain: encoded.chain(revision),
        },
        Ok(outcome) => understood(&outcome.reads, reads, StoreReply::Lost),
        Err(error) => refused(error),
    }
}

/// What [`read_all`] has read, as a release that reads no more than `reads` understands it.
fn understood(
    entries: &[Option<Entry>],
    reads: Reads,
    reply: fn(Stored) -> StoreReply,
) -> StoreReply {
    match stored(entries) {
        Ok(stored) => match stored.needs {
            Some(needs) if needs > reads => StoreReply::TooNew {
                epoch: stored.epoch,
                needs,
            },
            _ => reply(stored),
        },
        Err(error) => StoreReply::Unreadable(error.to_string()),
    }
}

/// What [`read_all`] has read.
fn stored(reads: &[Option<Entry>]) -> Result<Stored, RecordError> {
    let [epoch, beat, leases @ ..] = reads else {
        return Err(RecordError::Reads(reads.len()));
    };
    let state = State::of(leases)?;
    Ok(Stored {
        epoch: epoch.as_ref().map_or(0, |entry| entry.mod_revision),
        revision: state.as_ref().map_or(0, |state| state.revision),
        needs: state.as_ref().map(|state| state.needs),
        chain: state.map(|state| state.chain).unwrap_or_default(),
        time: beat.as_ref().map(time_of).transpose()?,
    })
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
