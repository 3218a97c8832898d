//! The rows on disk: compaction deletes them, whatever interrupts it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::metastorage::contract::{Metastorage, Op, StoreError, Transaction};

use super::{beneath, bytes, large, open, put};

/// Number of rows: chunks, events, versions.
fn rows(path: &Path) -> [usize; 3] {
    let db = beneath(path);
    [b'c', b'e', b'k'].map(|table| db.scan_prefix([table]).count())
}

fn filled(path: &Path) {
    let store = open(path);
    for round in 0..100 {
        put(&store, "large", large(round));
    }
    for key in ["a", "b"] {
        put(&store, key, *b"1");
        let deletion = Transaction {
            then: vec![Op::Delete(bytes(key))],
            ..Transaction::default()
        };
        store.invoke(deletion).unwrap();
    }
}

#[test]
fn compaction_deletes_what_is_superseded() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let chunks = 50_000usize.div_ceil(6 << 10);
    assert_eq!(rows(directory.path()), [100 * chunks, 104, 104]);
    let store = open(directory.path());
    store.compact(90).unwrap();
    drop(store);
    assert_eq!(rows(directory.path()), [11 * chunks, 14, 15]);
    open(directory.path()).compact(104).unwrap();
    assert_eq!(rows(directory.path()), [chunks, 0, 1]);
    let store = open(directory.path());
    assert_eq!(
        *store.get(b"large", None).unwrap().unwrap().value,
        large(99)
    );
}

#[test]
fn an_interrupted_compaction_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    // As a crash leaves it: recorded, and part of a version's chunks deleted.
    let db = beneath(directory.path());
    let mut record = 104u64.to_le_bytes().to_vec();
    let checksum = crc32fast::hash(&[b"mcompacted".as_slice(), &record].concat());
    record.extend(checksum.to_le_bytes());
    db.insert("mcompacted", record).unwrap();
    for chunk in db.scan_prefix(b"c").keys().take(5) {
        db.remove(chunk.unwrap()).unwrap();
    }
    drop(db);
    let store = open(directory.path());
    assert_eq!(store.compacted(), Ok(104));
    assert_eq!(
        *store.get(b"large", None).unwrap().unwrap().value,
        large(99)
    );
    drop(store);
    let [_, events, versions] = rows(directory.path());
    assert_eq!([events, versions], [0, 1]);
}

#[test]
fn readers_of_the_past_see_the_truth_or_that_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut gone = 0;
            while !done.load(Ordering::Relaxed) {
                let compacted = store.compacted().unwrap();
                let last = store.revision().unwrap();
                for at in compacted + 1..=last.min(compacted + 5) {
                    match store.get(b"large", Some(at)) {
                        Ok(entry) => assert!(*entry.unwrap().value == large(at)),
                        Err(StoreError::Compacted { .. }) => gone += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            println!("{gone} reads came too late");
        });
        for round in 1..=300 {
            let revision = put(&store, "large", large(round));
            if revision > 5 {
                store.compact(revision - 5).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn half_a_transaction_after_a_failed_write_is_removed() {
    for lost in [b'c', b'e', b'k'] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        put(&store, "large", large(1));
        let both = Transaction {
            then: ["large", "other"]
                .map(|key| Op::Put(bytes(key), large(2).into()))
                .to_vec(),
            ..Transaction::default()
        };
        store.invoke(both).unwrap();
        drop(store);
        let db = beneath(directory.path());
        // Of the second transaction, the last row of one table is not there.
        let row = db.scan_prefix([lost]).keys().last().unwrap().unwrap();
        db.remove(row).unwrap();
        drop(db);
        let [marker, suspect] =
            ["leasehold.store", "leasehold.store.suspect"].map(|name| directory.path().join(name));
        fs::rename(&marker, &suspect).unwrap();
        // It was not acknowledged.
        fs::remove_file(directory.path().join("leasehold.revision")).unwrap();
        let store = open(directory.path());
        assert_eq!(store.revision(), Ok(1));
        assert_eq!(*store.get(b"large", None).unwrap().unwrap().value, large(1));
        assert_eq!(store.get(b"other", None), Ok(None));
        assert_eq!(put(&store, "third", *b"3"), 2);
        assert_eq!(store.get(b"other", None), Ok(None));
        assert!(marker.exists() && !suspect.exists());
        drop(store);
        assert_eq!(rows(directory.path()), [9, 2, 2]);
    }
}

#[test]
fn a_whole_transaction_after_a_failed_write_stays() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let [marker, suspect] =
        ["leasehold.store", "leasehold.store.suspect"].map(|name| directory.path().join(name));
    fs::rename(&marker, &suspect).unwrap();
    let before = rows(directory.path());
    assert_eq!(open(directory.path()).revision(), Ok(104));
    assert_eq!(rows(directory.path()), before);
}
