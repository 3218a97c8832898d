//! A disk that gets full.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::metastorage::contract::{Metastorage, Op, StoreError, Transaction};
use leasehold::metastorage::sled::{FreeSpace, SledOptions, SledStore};

use super::{bytes, large, options, put};

const MIB: u64 = 1 << 20;

#[test]
fn writing_stops_with_little_space_and_resumes_with_more() {
    let directory = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(64 * MIB));
    let probe = Arc::clone(&free);
    let options = SledOptions {
        free_space: FreeSpace::from_fn(move |_| Ok(probe.load(Ordering::Relaxed))),
        ..options()
    };
    let store = SledStore::open(directory.path(), options).unwrap();
    let write = || {
        let transaction = Transaction {
            then: vec![Op::Put(bytes("a"), bytes("1"))],
            ..Transaction::default()
        };
        store.invoke(transaction).map(|outcome| outcome.revision)
    };
    assert_eq!(write(), Ok(1));
    for (now, revision) in [
        (64 * MIB - 1, None),
        (64 * MIB, None),
        (128 * MIB - 1, None),
        (128 * MIB, Some(2)),
        (64 * MIB, Some(3)),
    ] {
        free.store(now, Ordering::Relaxed);
        match revision {
            Some(revision) => assert_eq!(write(), Ok(revision)),
            None => assert!(matches!(write(), Err(StoreError::Full(_))), "{now}"),
        }
    }
    // What is there can be read, and compaction may make room.
    free.store(16 * MIB, Ordering::Relaxed);
    assert!(matches!(write(), Err(StoreError::Full(_))));
    assert_eq!(store.revision(), Ok(3));
    assert_eq!(store.compact(1), Ok(()));
    free.store(16 * MIB - 1, Ordering::Relaxed);
    assert!(matches!(store.compact(2), Err(StoreError::Full(_))));
    assert_eq!(store.failure(), None);
}

const DIRECTORY: &str = "LEASEHOLD_TEST_FULL_DIRECTORY";

/// Not a test of its own: runs where the disk is small.
#[test]
fn child_on_a_small_disk() {
    let Some(path) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let path = Path::new(&path);
    let acknowledged = path.join("acknowledged");
    // The reserve would keep it from what is to be shown.
    let options = SledOptions {
        free_space: FreeSpace::from_fn(|_| Ok(u64::MAX)),
        ..options()
    };
    let store = SledStore::open(path.join("store"), options).unwrap();
    if let Ok(before) = std::fs::read_to_string(&acknowledged) {
        // The second time there is space again.
        let before: u64 = before.parse().unwrap();
        let revision = store.revision().unwrap();
        assert!(
            revision == before || revision == before + 1,
            "{revision}, {before}"
        );
        for at in 1..=revision {
            assert!(*store.get(b"a", Some(at)).unwrap().unwrap().value == large(at));
        }
        assert_eq!(put(&store, "a", large(revision + 1)), revision + 1);
        return;
    }
    std::fs::write(path.join("ballast"), vec![0; 8 << 20]).unwrap();
    std::fs::write(&acknowledged, "0").unwrap();
    for round in 1.. {
        let transaction = || Transaction {
            then: vec![Op::Put(bytes("a"), large(round).into())],
            ..Transaction::default()
        };
        let Err(error) = store.invoke(transaction()) else {
            std::fs::write(&acknowledged, round.to_string()).unwrap_or(());
            continue;
        };
        assert!(matches!(error, StoreError::Unknown(_)), "{error}");
        assert!(matches!(
            store.invoke(transaction()),
            Err(StoreError::Full(_))
        ));
        assert!(matches!(store.compact(1), Err(StoreError::Full(_))));
        assert!(matches!(
            store.get(b"a", None),
            Err(StoreError::Unavailable(_))
        ));
        assert!(matches!(store.failure(), Some(StoreError::Full(_))));
        std::fs::remove_file(path.join("ballast")).unwrap();
        std::fs::write(&acknowledged, (round - 1).to_string()).unwrap();
        // Closing sled would hang now; the store knows.
        drop(store);
        return;
    }
}

#[test]
fn a_full_disk_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    // A small disk of one's own: a file system in memory in a name space of mounts.
    let script = "mount -t tmpfs -o size=40m none \"$1\" || exit 77\n\
        for round in 1 2; do\n\
          timeout 60 \"$0\" --exact space::child_on_a_small_disk --nocapture || exit 1\n\
        done";
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg(directory.path())
        .env(DIRECTORY, directory.path())
        .output();
    let Ok(ran) = ran else {
        println!("skipped: there is no unshare here");
        return;
    };
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    if ran.status.code() == Some(77) || said.contains("unshare failed") {
        println!("skipped: no small disk can be made here: {said}");
        return;
    }
    assert!(ran.status.success(), "{said}");
    println!("{said}");
}
