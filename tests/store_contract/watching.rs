//! Watches: no gap, no duplicate, in order.

use std::thread;
use std::time::Duration;

use leasehold::metastorage::contract::{
    Change, Metastorage, Revision, StoreError, Watch, WatchEvent,
};

use super::{bytes, delete, entry, put, run};

fn now(watch: &mut dyn Watch) -> Option<WatchEvent> {
    watch.next(Duration::ZERO).unwrap()
}

fn revisions(watch: &mut dyn Watch) -> Vec<Revision> {
    std::iter::from_fn(|| now(watch))
        .map(|event| event.revision)
        .collect()
}

pub fn each_revision_once_and_in_order(store: &dyn Metastorage) {
    let mut watch = store.watch(b"", 1).unwrap();
    assert_eq!(now(&mut *watch), None);
    run(store, vec![put("a", "1")]);
    run(store, vec![put("a", "2")]);
    assert_eq!(revisions(&mut *watch), [1, 2]);
    assert_eq!(now(&mut *watch), None);
    run(store, vec![put("b", "1")]);
    let event = now(&mut *watch).unwrap();
    assert_eq!(event.revision, 3);
    let change = Change {
        key: bytes("b"),
        entry: Some(entry("b", "1", 3, 3, 1)),
    };
    assert_eq!(event.changes, [change]);
    assert_eq!(now(&mut *watch), None);
}

pub fn all_changes_of_a_revision_together(store: &dyn Metastorage) {
    run(store, vec![put("z", "0")]);
    run(
        store,
        vec![put("c", "1"), put("a", "1"), delete("z"), put("b", "1")],
    );
    let mut watch = store.watch(b"", 2).unwrap();
    let event = now(&mut *watch).unwrap();
    let keys: Vec<_> = event.changes.iter().map(|change| &*change.key).collect();
    assert_eq!(keys, [b"a", b"b", b"c", b"z"]);
    assert_eq!(now(&mut *watch), None);
}

pub fn only_the_prefix(store: &dyn Metastorage) {
    let mut watch = store.watch(b"a/", 1).unwrap();
    run(store, vec![put("a", "1")]);
    run(store, vec![put("a/1", "1"), put("b", "1")]);
    run(store, vec![put("b/1", "1")]);
    run(store, vec![put("a/2", "1")]);
    let event = now(&mut *watch).unwrap();
    assert_eq!((event.revision, event.changes.len()), (2, 1));
    assert_eq!(revisions(&mut *watch), [4]);
}

pub fn deletions(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    run(store, vec![delete("a"), delete("never")]);
    let mut watch = store.watch(b"", 2).unwrap();
    let change = Change {
        key: bytes("a"),
        entry: None,
    };
    let event = WatchEvent {
        revision: 2,
        changes: vec![change],
    };
    assert_eq!(now(&mut *watch), Some(event));
}

pub fn from_any_revision(store: &dyn Metastorage) {
    for round in 1..=5 {
        run(store, vec![put("a", &round.to_string())]);
    }
    store.compact(2).unwrap();
    for from in 3..=7 {
        let mut watch = store.watch(b"", from).unwrap();
        assert_eq!(revisions(&mut *watch), (from..=5).collect::<Vec<_>>());
    }
    // Each event has the value of its time.
    let mut watch = store.watch(b"", 3).unwrap();
    let event = now(&mut *watch).unwrap();
    assert_eq!(event.changes[0].entry, Some(entry("a", "3", 1, 3, 3)));
    let mut ahead = store.watch(b"", 7).unwrap();
    run(store, vec![put("a", "6")]);
    run(store, vec![put("a", "7")]);
    assert_eq!(revisions(&mut *ahead), [7]);
}

pub fn a_lagging_watcher_is_told(store: &dyn Metastorage) {
    let mut lagging = store.watch(b"", 1).unwrap();
    let mut ahead = store.watch(b"", 1).unwrap();
    for round in 1..=5 {
        run(store, vec![put("a", &round.to_string())]);
    }
    assert_eq!(now(&mut *lagging).unwrap().revision, 1);
    for wanted in 1..=4 {
        assert_eq!(now(&mut *ahead).unwrap().revision, wanted);
    }
    store.compact(4).unwrap();
    let told = StoreError::Compacted {
        wanted: 2,
        compacted: 4,
    };
    for wait in [Duration::ZERO, Duration::from_secs(60)] {
        assert_eq!(lagging.next(wait), Err(told.clone()));
    }
    assert_eq!(revisions(&mut *ahead), [5]);
}

pub fn from_a_compacted_revision(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    run(store, vec![put("a", "2")]);
    store.compact(2).unwrap();
    for from in 0..=2 {
        let told = StoreError::Compacted {
            wanted: from.max(1),
            compacted: 2,
        };
        assert_eq!(store.watch(b"", from).err(), Some(told));
    }
    assert!(store.watch(b"", 3).is_ok());
}

pub fn waiting(store: &dyn Metastorage) {
    const ROUNDS: u64 = 50;
    let mut patient = store.watch(b"a", 1).unwrap();
    let idle = patient.next(Duration::from_millis(10));
    assert_eq!(idle, Ok(None));
    thread::scope(|scope| {
        for name in ["a/1", "a/2"] {
            let mut watch = store.watch(b"a", 1).unwrap();
            scope.spawn(move || {
                for wanted in 1..=2 * ROUNDS {
                    let event = watch.next(Duration::from_secs(60)).unwrap().unwrap();
                    assert_eq!(event.revision, wanted);
                }
            });
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    run(store, vec![put(name, &round.to_string())]);
                }
            });
        }
    });
    assert_eq!(store.revision(), Ok(2 * ROUNDS));
    // Writes elsewhere wake a watcher up, but do not make it return.
    thread::scope(|scope| {
        let mut watch = store.watch(b"b", 1).unwrap();
        scope.spawn(move || {
            let event = watch.next(Duration::from_secs(60)).unwrap().unwrap();
            assert_eq!(event.revision, 2 * ROUNDS + 3);
        });
        run(store, vec![put("a/1", "")]);
        run(store, vec![put("a/2", "")]);
        run(store, vec![put("b", "")]);
    });
}
