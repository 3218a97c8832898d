//! Values of all sizes.

use leasehold::metastorage::contract::{Bytes, Condition, Metastorage, Op, Range};
use leasehold::metastorage::mvcc::limits::Limits;
use leasehold::metastorage::sled::SledOptions;
use leasehold::model::workload::SplitMix64;

use super::{bytes, holds, run};

fn random(size: usize) -> Bytes {
    let mut random = SplitMix64::new(size as u64);
    (0..size).map(|_| random.next() as u8).collect()
}

fn sizes() -> [usize; 8] {
    let chunk = SledOptions::default().chunk_bytes;
    [
        0,
        1,
        chunk - 1,
        chunk,
        chunk + 1,
        2 * chunk,
        193_636,
        5_000_000,
    ]
}

pub fn around_the_chunk_size(store: &dyn Metastorage) {
    for size in sizes() {
        run(store, vec![Op::Put(bytes("a"), random(size))]);
    }
    let mut watch = store.watch(b"", 1).unwrap();
    for (size, revision) in sizes().into_iter().zip(1..) {
        let then = store.get(b"a", Some(revision)).unwrap().unwrap();
        assert!(then.value == random(size), "{size}");
        let event = watch.next(std::time::Duration::ZERO).unwrap().unwrap();
        assert_eq!(event.changes[0].entry.as_ref(), Some(&then));
    }
    let [.., largest] = sizes();
    let is = |value| vec![Condition::Value(bytes("a"), value)];
    assert!(holds(store, is(random(largest))));
    let mut other = random(largest).to_vec();
    other[largest - 1] ^= 1;
    assert!(!holds(store, is(other.into())));
}

pub fn several_in_one_transaction(store: &dyn Metastorage) {
    let keys = (b'a'..).map(|key| Bytes::from([key]));
    let puts = keys
        .zip(sizes())
        .map(|(key, size)| Op::Put(key, random(size)));
    let mut ops: Vec<_> = puts.collect();
    ops.reverse();
    run(store, ops);
    let found = store.range(&Range::default()).unwrap();
    assert_eq!(found.len(), sizes().len());
    for (entry, size) in found.iter().zip(sizes()) {
        assert!(entry.value == random(size), "{size}");
        assert_eq!((entry.create_revision, entry.version), (1, 1));
    }
}

pub fn compacted(store: &dyn Metastorage) {
    for round in 0..8 {
        run(store, vec![Op::Put(bytes("a"), random(200_000 + round))]);
    }
    store.compact(6).unwrap();
    for revision in [7, 8] {
        let then = store.get(b"a", Some(revision)).unwrap().unwrap();
        assert!(then.value == random(200_000 + revision as usize - 1));
    }
    store.compact(8).unwrap();
    let left = store.get(b"a", None).unwrap().unwrap();
    assert!(left.value == random(200_007));
    run(store, vec![Op::Delete(bytes("a"))]);
    store.compact(9).unwrap();
    assert_eq!(store.range(&Range::default()), Ok(vec![]));
}

pub fn the_largest(store: &dyn Metastorage) {
    let largest = Bytes::from(vec![7; Limits::default().value]);
    run(store, vec![Op::Put(bytes("a"), largest.clone())]);
    assert!(store.get(b"a", None).unwrap().unwrap().value == largest);
    run(store, vec![Op::Put(bytes("a"), bytes("small"))]);
    store.compact(2).unwrap();
    assert_eq!(store.get(b"a", None).unwrap().unwrap().version, 2);
}
