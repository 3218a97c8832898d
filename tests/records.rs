//! A driver's requests, carried out on a store.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use leasehold::codec::Format;
use leasehold::codec::delta::Chain;
use leasehold::metastorage::contract::{Metastorage, Op, Transaction};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::reads::Reads;
use leasehold::model::workload::Workload;
use leasehold::placement::io::{BatchWrite, Cause, Form, StoreReply, StoreRequest, Stored};
use leasehold::placement::record::{BATCH, BEAT, SizeRow, execute, size_range};

fn ts(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap()
}

fn ask(store: &MemoryStore, request: StoreRequest) -> StoreReply {
    execute(store, Reads::default(), request, None)
}

fn take(store: &MemoryStore, known: u64) -> StoreReply {
    let time = ts(1000);
    ask(store, StoreRequest::TakeEpoch { known, time })
}

fn write(store: &MemoryStore, epoch: u64, expected: u64, time: u64) -> StoreReply {
    let batch = Workload::Churn.with_tables(2);
    let naive_bytes = leasehold::codec::naive_size(&batch) as u64;
    let write = BatchWrite {
        epoch,
        chain: Chain::new(expected, batch.clone()),
        form: Form::Snapshot,
        changed: Vec::new(),
        batch,
        format: Format::CompactV2,
        substitute: Format::CompactV2,
        time: ts(time),
        cause: Cause {
            renewal: true,
            granted: 2,
            ..Cause::default()
        },
        naive_bytes,
    };
    ask(store, StoreRequest::Write(Box::new(write)))
}

fn won(reply: StoreReply) -> u64 {
    match reply {
        StoreReply::Won(revision) | StoreReply::Written { revision, .. } => revision,
        other => panic!("{other:?}"),
    }
}

fn lost(reply: StoreReply) -> Stored {
    match reply {
        StoreReply::Lost(stored) => stored,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_its_size_row_and_a_beat_are_one_change() {
    let store = MemoryStore::new();
    let epoch = won(take(&store, 0));
    let revision = won(write(&store, epoch, 0, 2000));
    for key in [BATCH, BEAT] {
        assert_eq!(
            store.get(key, None).unwrap().unwrap().mod_revision,
            revision
        );
    }
    let rows = store.range(&size_range(None)).unwrap();
    let row = SizeRow::from_entry(&rows[0]).unwrap();
    assert_eq!((row.revision, row.leases, row.changed), (revision, 50, 2));
    assert_eq!(row.cause, "renewal+grant");
    let record = store.get(BATCH, None).unwrap().unwrap().value;
    assert_eq!(row.stored_bytes, record.len() as u64);

    let StoreReply::Read(stored) = ask(&store, StoreRequest::Read) else {
        panic!("not read");
    };
    assert_eq!((stored.epoch, stored.revision), (epoch, revision));
    assert_eq!(*stored.chain.batch(), Workload::Churn.with_tables(2));
    assert_eq!(stored.time, Some(ts(2000)));
}

#[test]
fn a_write_under_another_epoch_is_lost() {
    let store = MemoryStore::new();
    let first = won(take(&store, 0));
    let revision = won(write(&store, first, 0, 2000));
    let second = won(take(&store, first));
    let stored = lost(write(&store, first, revision, 3000));
    assert_eq!((stored.epoch, stored.revision), (second, revision));
    let beat = StoreRequest::Beat {
        epoch: first,
        time: ts(3000),
    };
    assert_eq!(lost(ask(&store, beat)).epoch, second);
    won(write(&store, second, revision, 3000));
}

#[test]
fn a_write_over_another_batch_is_lost() {
    let store = MemoryStore::new();
    let epoch = won(take(&store, 0));
    let first = won(write(&store, epoch, 0, 2000));
    assert_eq!(lost(write(&store, epoch, 0, 3000)).revision, first);
    let second = won(write(&store, epoch, first, 3000));
    assert_eq!(lost(write(&store, epoch, first, 4000)).revision, second);
    assert_eq!(store.range(&size_range(None)).unwrap().len(), 2);
}

#[test]
fn of_two_that_take_the_same_epoch_one_loses() {
    let store = MemoryStore::new();
    let first = won(take(&store, 0));
    assert_eq!(lost(take(&store, 0)).epoch, first);
}

#[test]
fn old_size_rows_are_pruned_under_the_own_epoch_only() {
    let store = MemoryStore::new();
    let epoch = won(take(&store, 0));
    let mut revision = 0;
    for second in 2..6 {
        revision = won(write(&store, epoch, revision, second * 1000));
    }
    let rows = || store.range(&size_range(None)).unwrap().len();
    let before = ts(4000);
    let foreign = epoch + 100;
    ask(
        &store,
        StoreRequest::PruneSizes {
            epoch: foreign,
            before,
        },
    );
    assert_eq!(rows(), 4);
    ask(&store, StoreRequest::PruneSizes { epoch, before });
    assert_eq!(rows(), 2);
}

#[test]
fn what_cannot_be_read_is_said_to_be_so() {
    let store = MemoryStore::new();
    let epoch = won(take(&store, 0));
    won(write(&store, epoch, 0, 2000));
    let mut record = store.get(BATCH, None).unwrap().unwrap().value.to_vec();
    for position in [5, 20, record.len() - 1] {
        record[position] ^= 1;
        store
            .invoke(Transaction {
                then: vec![Op::Put(BATCH.into(), record.clone().into())],
                ..Transaction::default()
            })
            .unwrap();
        for reply in [
            ask(&store, StoreRequest::Read),
            write(&store, epoch, 0, 3000),
        ] {
            assert!(matches!(reply, StoreReply::Unreadable(_)), "{reply:?}");
        }
        record[position] ^= 1;
    }
}

#[test]
fn a_batch_that_the_format_cannot_carry_changes_nothing() {
    let store = MemoryStore::new();
    let epoch = won(take(&store, 0));
    let mut lease = Workload::Steady.with_tables(1).leases().next().unwrap();
    lease.group = "zone/1/0".parse().unwrap();
    let write = BatchWrite {
        epoch,
        chain: Chain::default(),
        form: Form::Snapshot,
        changed: Vec::new(),
        batch: LeaseBatch::from_leases([&lease]).unwrap(),
        format: Format::Naive,
        substitute: Format::Naive,
        time: ts(2000),
        cause: Cause::default(),
        naive_bytes: 0,
    };
    let request = StoreRequest::Write(Box::new(write));
    let reply = execute(&store, Reads::default(), request, None);
    let StoreReply::Unencodable(reason) = reply else {
        panic!("{reply:?}");
    };
    assert!(reason.contains("zone/1/0"), "{reason}");
    assert_eq!(store.get(BATCH, None).unwrap(), None);
}
