//! Whose directory it is, and what is still there after closing.

use std::fs;
use std::time::Duration;

use leasehold::metastorage::contract::{Metastorage, Op, Range, StoreError, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};

use super::{beneath, bytes, large, open, options, put};

#[test]
fn reopened_everything_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for round in 1..=6 {
        put(&store, "a", large(round));
        put(&store, "b", round.to_string().into_bytes());
    }
    let deletion = Transaction {
        then: vec![Op::Delete(bytes("b"))],
        ..Transaction::default()
    };
    store.invoke(deletion).unwrap();
    store.compact(4).unwrap();
    let history: Vec<_> = (5..=13).map(|at| all(&store, at)).collect();
    drop(store);
    let store = SledStore::open(directory.path(), options()).unwrap();
    assert_eq!((store.revision(), store.compacted()), (Ok(13), Ok(4)));
    assert_eq!(
        (5..=13).map(|at| all(&store, at)).collect::<Vec<_>>(),
        history
    );
    let mut watch = store.watch(b"", 5).unwrap();
    let events = std::iter::from_fn(|| watch.next(Duration::ZERO).unwrap());
    assert!(events.map(|event| event.revision).eq(5..=13));
    drop(watch);
    // A compaction up to the last revision leaves no event to tell it by.
    store.compact(13).unwrap();
    drop(store);
    let store = open(directory.path());
    assert_eq!((store.revision(), store.compacted()), (Ok(13), Ok(13)));
    assert_eq!(put(&store, "a", large(7)), 14);
    assert!(store.disk_size().unwrap() > 50_000);
}

fn all(store: &SledStore, at: u64) -> Vec<leasehold::metastorage::contract::Entry> {
    let range = Range {
        at: Some(at),
        ..Range::default()
    };
    store.range(&range).unwrap()
}

#[test]
fn none_is_made_unless_asked() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let refused = SledStore::open_existing(&missing).unwrap_err();
    assert!(refused.to_string().contains("missing"), "{refused}");
    assert!(!missing.exists());
    let refused = SledStore::open_existing(directory.path()).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    drop(open(&missing));
    let existing = SledOptions {
        create: false,
        ..options()
    };
    assert!(SledStore::open(&missing, existing).is_ok());
}

#[test]
fn a_directory_with_other_things_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.tex"), "").unwrap();
    let refused = SledStore::open(directory.path(), options()).unwrap_err();
    assert!(refused.to_string().contains("thesis.tex"), "{refused}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    // The daemon's own files are not other things.
    fs::remove_file(directory.path().join("thesis.tex")).unwrap();
    fs::write(directory.path().join("leasehold.url"), "").unwrap();
    drop(open(directory.path()));
}

#[test]
fn the_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    beneath(directory.path())
        .insert("theirs", "precious")
        .unwrap();
    for _ in 0..2 {
        let refused = SledStore::open(directory.path(), options()).unwrap_err();
        assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    }
    let ours = |name: &str| directory.path().join(name).exists();
    assert!(!ours("leasehold.store") && !ours("leasehold.revision"));
    assert_eq!(beneath(directory.path()).len(), 1);
}

#[test]
fn an_unknown_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let db = beneath(directory.path());
    let mut record = 2u64.to_le_bytes().to_vec();
    let checksum = crc32fast::hash(&[b"mformat".as_slice(), &record].concat());
    record.extend(checksum.to_le_bytes());
    db.insert("mformat", record).unwrap();
    drop(db);
    let refused = SledStore::open(directory.path(), options()).unwrap_err();
    assert!(refused.to_string().contains("format 2"), "{refused}");
}

#[test]
fn an_emptied_store_is_not_taken_for_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    drop(beneath(directory.path()));
    for file in ["db", "conf"] {
        fs::remove_file(directory.path().join(file)).unwrap();
    }
    let refused = SledStore::open(directory.path(), options()).unwrap_err();
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
}

#[test]
fn a_locked_directory_is_told_and_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let holder = open(directory.path());
    let impatient = SledOptions {
        lock_wait: Duration::ZERO,
        ..options()
    };
    let refused = SledStore::open(directory.path(), impatient).unwrap_err();
    let path = directory.path().display().to_string();
    assert!(
        matches!(&refused, StoreError::Locked(why) if why.contains(&path)),
        "{refused}"
    );
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| SledStore::open(directory.path(), options()).map(drop));
        super::pause();
        drop(holder);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}

#[test]
fn an_interrupted_opening_leaves_nothing_in_the_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    // Killed before sled had made its database, half of the settings written.
    fs::create_dir_all(path.join("blobs")).unwrap();
    fs::write(
        path.join("conf"),
        "segment_size: 524288\nuse_compression: false\nvers",
    )
    .unwrap();
    put(&open(&path), "a", large(1));
    // Killed while sled wrote a snapshot, which is what it would read first.
    for content in ["", "half a snapshot, long enough to be checked"] {
        fs::write(path.join("snap.00FFFFFFFFFFFFFF.generating"), content).unwrap();
        let store = open(&path);
        assert_eq!(*store.get(b"a", None).unwrap().unwrap().value, large(1));
    }
}
