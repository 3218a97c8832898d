//! A store whose files were damaged is read or refused; nothing panics.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use leasehold::metastorage::contract::{Metastorage, Op, Range, StoreError, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};
use leasehold::model::workload::SplitMix64;

fn fill(path: &Path) {
    let store = SledStore::open(path, SledOptions::create()).unwrap();
    for number in 0..60u8 {
        let large = vec![number; 40_000];
        let key = [b'k', number % 7];
        store
            .invoke(Transaction {
                then: vec![
                    Op::Put(b"large"[..].into(), large.into()),
                    Op::Put(key[..].into(), [number][..].into()),
                ],
                ..Transaction::default()
            })
            .unwrap();
    }
}

fn read(path: &Path) -> Result<usize, StoreError> {
    let store = SledStore::open_existing(path)?;
    let compacted = store.compacted()?;
    for revision in compacted + 1..=store.revision()? {
        store.get(b"large", Some(revision))?;
    }
    Ok(store.range(&Range::default())?.len())
}

#[test]
fn one_flipped_bit() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fill(&whole);
    assert_eq!(read(&whole), Ok(8));
    let mut random = SplitMix64::new(7);
    let mut refused = 0;
    for round in 0..24 {
        let copy = folder.path().join(format!("{round}"));
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(&whole).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_file() {
                fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
            }
        }
        let db = copy.join("db");
        let mut bytes = fs::read(&db).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
        let position = random.below(used) as usize;
        bytes[position] ^= 1 << random.below(8);
        fs::write(&db, bytes).unwrap();
        match read(&copy) {
            Ok(_) => {}
            Err(StoreError::Damaged(_)) => refused += 1,
            Err(other) => panic!("byte {position}: {other:?}"),
        }
    }
    assert!(refused > 5, "of 24 only {refused} were noticed");
}
