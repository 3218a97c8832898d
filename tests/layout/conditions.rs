//! Two drivers never write over each other, whatever the forms of their writes.

use leasehold::codec::Format;
use leasehold::codec::delta::Chain;
use leasehold::metastorage::contract::{Metastorage, Op};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::reads::Reads;
use leasehold::model::workload::Workload;
use leasehold::placement::io::{BatchWrite, Cause, Form, StoreReply, StoreRequest};
use leasehold::placement::record::{self, delta_key, execute};

use super::support::write;

const FORMS: [Form; 2] = [Form::Snapshot, Form::Delta];

fn ts(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap()
}

/// A store with a snapshot and two deltas, and its epoch.
fn begun() -> (MemoryStore, u64) {
    let store = MemoryStore::new();
    let take = StoreRequest::TakeEpoch {
        known: 0,
        time: ts(1),
    };
    let StoreReply::Won(epoch) = execute(&store, Reads::default(), take, None) else {
        panic!("the first one takes it");
    };
    for form in [Form::Snapshot, Form::Delta, Form::Delta] {
        let chain = chain(&store);
        assert!(won(&ask(&store, epoch, chain, form)));
    }
    (store, epoch)
}

fn chain(store: &MemoryStore) -> Chain {
    let state = record::read(store, None).unwrap();
    state.map(|state| state.chain).unwrap_or_default()
}

/// A renewal of what a chain holds.
fn ask(store: &MemoryStore, epoch: u64, chain: Chain, form: Form) -> StoreReply {
    let mut batch = chain.batch().clone();
    if batch.is_empty() {
        batch = Workload::Churn.with_tables(2);
    }
    let time = batch.common_expiration().plus_millis(2_500);
    batch.set_common_expiration(time);
    let write = BatchWrite {
        epoch,
        naive_bytes: leasehold::codec::naive_size(&batch) as u64,
        chain,
        changed: Vec::new(),
        batch,
        form,
        format: Format::Columnar,
        substitute: Format::Columnar,
        time,
        cause: Cause {
            renewal: true,
            ..Cause::default()
        },
    };
    let request = StoreRequest::Write(Box::new(write));
    execute(store, Reads::default(), request, None)
}

fn won(reply: &StoreReply) -> bool {
    matches!(reply, StoreReply::Written { .. })
}

#[test]
fn of_two_writes_on_the_same_state_one_wins() {
    for first in FORMS {
        for second in FORMS {
            let (store, epoch) = begun();
            let known = chain(&store);
            let StoreReply::Written {
                revision,
                chain: after,
                ..
            } = ask(&store, epoch, known.clone(), first)
            else {
                panic!("the first one wins");
            };
            let StoreReply::Lost(stored) = ask(&store, epoch, known, second) else {
                panic!("{first:?} then {second:?}: the second one loses");
            };
            assert_eq!(stored.revision, revision);
            assert_eq!(stored.chain.digest(), after.digest());
            assert_eq!(
                (stored.chain.base(), stored.chain.step()),
                (after.base(), after.step())
            );
            assert_eq!(store.revision(), Ok(revision));
        }
    }
}

#[test]
fn a_write_on_an_older_state_loses() {
    for form in FORMS {
        for since in FORMS {
            let (store, epoch) = begun();
            let old = chain(&store);
            for _ in 0..3 {
                assert!(won(&ask(&store, epoch, chain(&store), since)));
            }
            let reply = ask(&store, epoch, old, form);
            assert!(matches!(reply, StoreReply::Lost(_)), "{form:?}, {since:?}");
        }
    }
}

#[test]
fn a_write_under_another_epoch_loses() {
    for form in FORMS {
        let (store, epoch) = begun();
        let take = StoreRequest::TakeEpoch {
            known: epoch,
            time: ts(2),
        };
        execute(&store, Reads::default(), take, None);
        let reply = ask(&store, epoch, chain(&store), form);
        assert!(matches!(reply, StoreReply::Lost(_)), "{form:?}");
    }
}

#[test]
fn what_cannot_be_read_is_not_overwritten() {
    for form in FORMS {
        let (store, epoch) = begun();
        let known = chain(&store);
        write(&store, vec![Op::Put(delta_key(2), (*b"rubbish").into())]);
        let reply = ask(&store, epoch + 7, known, form);
        assert!(matches!(reply, StoreReply::Unreadable(_)), "{reply:?}");
    }
}
