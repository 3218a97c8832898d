//! Damaged rows are told, never served.

use std::path::Path;
use std::time::Duration;

use leasehold::metastorage::contract::{Metastorage, Range, StoreError};

use super::{beneath, large, open, put};

/// Revision 1 has a small value, 2 and 3 a large one.
fn filled(path: &Path) {
    let store = open(path);
    put(&store, "small", *b"value");
    put(&store, "large", large(1));
    put(&store, "large", large(2));
}

fn rows(db: &::sled::Db, table: u8) -> Vec<(sled::IVec, sled::IVec)> {
    db.scan_prefix([table]).map(Result::unwrap).collect()
}

fn is_damaged<T: std::fmt::Debug>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Damaged(_)))
}

#[test]
fn every_byte_of_a_version_counts() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let db = beneath(directory.path());
    let (row, record) = rows(&db, b'k')
        .into_iter()
        .find(|(row, _)| row.windows(5).any(|part| part == b"small"))
        .unwrap();
    drop(db);
    for at in 0..record.len() {
        let mut damaged = record.to_vec();
        damaged[at] ^= 0x10;
        let db = beneath(directory.path());
        db.insert(&row, damaged).unwrap();
        drop(db);
        let store = open(directory.path());
        assert!(is_damaged(store.get(b"small", None)), "byte {at}");
        assert!(is_damaged(store.range(&Range::default())), "byte {at}");
        assert!(store.get(b"large", None).is_ok());
    }
}

#[test]
fn a_chunk_changed_lost_or_of_another_version() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let db = beneath(directory.path());
    let chunks = rows(&db, b'c');
    drop(db);
    let (older, newer) = chunks.split_at(chunks.len() / 2);
    let (row, chunk) = &newer[3];
    let mut changed = chunk.to_vec();
    changed[100] ^= 1;
    let shorter = chunk[1..].to_vec();
    let other = older[3].1.to_vec();
    for replacement in [Some(changed), Some(shorter), Some(other), None] {
        let db = beneath(directory.path());
        match replacement {
            Some(replacement) => drop(db.insert(row, replacement).unwrap()),
            None => drop(db.remove(row).unwrap()),
        }
        drop(db);
        let store = open(directory.path());
        assert!(is_damaged(store.get(b"large", None)));
        assert!(is_damaged(
            store.watch(b"", 3).unwrap().next(Duration::ZERO)
        ));
        assert_eq!(
            *store.get(b"large", Some(2)).unwrap().unwrap().value,
            large(1)
        );
    }
}

#[test]
fn an_event_changed_or_lost() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let db = beneath(directory.path());
    let (row, record) = rows(&db, b'e').swap_remove(1);
    let mut changed = record.to_vec();
    changed[5] ^= 1;
    db.insert(&row, changed).unwrap();
    drop(db);
    for _ in 0..2 {
        let store = open(directory.path());
        let mut watch = store.watch(b"", 1).unwrap();
        assert_eq!(watch.next(Duration::ZERO).unwrap().unwrap().revision, 1);
        assert!(is_damaged(watch.next(Duration::ZERO)));
        assert!(is_damaged(watch.next(Duration::ZERO)));
        drop((store, watch));
        beneath(directory.path()).remove(&row).unwrap();
    }
}

#[test]
fn a_row_of_another_format_is_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let db = beneath(directory.path());
    for row in ["k", "kx", "kkkkkkkkkkkkkkkk"] {
        db.insert(row, "").unwrap();
    }
    drop(db);
    let store = open(directory.path());
    assert!(is_damaged(store.range(&Range::default())));
    let db = {
        drop(store);
        beneath(directory.path())
    };
    db.insert("e", "").unwrap();
    drop(db);
    let reopened =
        leasehold::metastorage::sled::SledStore::open(directory.path(), super::options());
    // Too short for an event: it is not one.
    assert!(reopened.is_ok());
}
