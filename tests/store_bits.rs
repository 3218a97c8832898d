//! A store whose files were damaged is read or refused; nothing panics.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use leasehold::metastorage::contract::{Metastorage, Op, Range, StoreError, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};
use leasehold::model::workload::SplitMix64;

const TRANSACTIONS: u64 = 60;

fn fill(path: &Path) {
    let store = SledStore::open(path, SledOptions::create()).unwrap();
    for number in 0..TRANSACTIONS as u8 {
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
    // sled takes damage in its log for the end of the log: that must not pass for the store.
    assert_eq!(store.revision()?, TRANSACTIONS);
    Ok(store.range(&Range::default())?.len())
}

/// Copies a store's files, all but sled's snapshot if it is not wanted.
fn copy(whole: &Path, to: &Path, with_snapshot: bool) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(whole).unwrap() {
        let entry = entry.unwrap();
        let snapshot = entry.file_name().to_string_lossy().starts_with("snap.");
        if entry.path().is_file() && (with_snapshot || !snapshot) {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn one_flipped_bit() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fill(&whole);
    assert_eq!(read(&whole), Ok(8));
    let mut random = SplitMix64::new(7);
    let mut refused = 0;
    for round in 0..48 {
        let copy = folder.path().join(format!("{round}"));
        self::copy(&whole, &copy, round % 2 == 0);
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
    assert!(refused > 5, "of 48 only {refused} were noticed");
}

/// sled's files as they were earlier stand for a log that it has cut.
#[test]
fn a_log_that_ends_early_is_not_the_whole_store() {
    let folder = tempfile::tempdir().unwrap();
    let [earlier, whole] = ["earlier", "whole"].map(|name| folder.path().join(name));
    fill(&whole);
    copy(&whole, &earlier, true);
    fill(&whole);
    let mark = earlier.join("leasehold.revision");
    fs::copy(whole.join("leasehold.revision"), &mark).unwrap();
    for _ in 0..2 {
        let refused = SledStore::open_existing(&earlier);
        let Err(StoreError::Damaged(why)) = refused else {
            panic!("{refused:?}")
        };
        assert!(why.contains("had come to revision 120"), "{why}");
        assert!(why.contains("lead to 60 only"), "{why}");
        assert!(why.contains(&mark.display().to_string()), "{why}");
    }
    // Whoever accepts the loss says so by deleting the mark.
    fs::remove_file(&mark).unwrap();
    assert_eq!(read(&earlier), Ok(8));
    assert!(mark.exists());
    assert_eq!(read(&earlier), Ok(8));
}

#[test]
fn the_mark_itself() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fill(&whole);
    let mark = whole.join("leasehold.revision");
    let written = fs::read(&mark).unwrap();
    assert_eq!(written.len(), 12);
    assert_eq!(written[..8], TRANSACTIONS.to_le_bytes());
    // Behind, being made, or of an earlier version: the store is ahead of it, which is sound.
    let mut behind = 59u64.to_le_bytes().to_vec();
    let sealed = [b"leasehold.revision", &behind[..]].concat();
    behind.extend(crc32fast::hash(&sealed).to_le_bytes());
    for sound in [&behind[..], &[]] {
        fs::write(&mark, sound).unwrap();
        assert_eq!(read(&whole), Ok(8));
        assert_eq!(fs::read(&mark).unwrap(), written);
    }
    fs::remove_file(&mark).unwrap();
    assert_eq!(read(&whole), Ok(8));
    assert_eq!(fs::read(&mark).unwrap(), written);
    let mut longer = written.clone();
    longer.push(0);
    let mut flipped = written.clone();
    flipped[3] ^= 1;
    for wrong in [&written[..11], &longer, &flipped] {
        fs::write(&mark, wrong).unwrap();
        let refused = SledStore::open_existing(&whole);
        assert!(matches!(refused, Err(StoreError::Damaged(_))));
    }
}
