//! Compaction: what is gone and what is not.

use leasehold::metastorage::contract::{Metastorage, Range, StoreError};

use super::{delete, entry, put, run, value};

pub fn compacted_revisions_are_refused(store: &dyn Metastorage) {
    for round in 1..=5 {
        run(store, vec![put("a", &round.to_string())]);
    }
    store.compact(3).unwrap();
    assert_eq!(store.compacted(), Ok(3));
    assert_eq!(store.revision(), Ok(5));
    for wanted in 0..=3 {
        let refused = StoreError::Compacted {
            wanted,
            compacted: 3,
        };
        assert_eq!(store.get(b"a", Some(wanted)), Err(refused.clone()));
        let range = Range {
            at: Some(wanted),
            ..Range::default()
        };
        assert_eq!(store.range(&range), Err(refused));
    }
    assert_eq!(value(store, "a", Some(4)).as_deref(), Some("4"));
    assert_eq!(value(store, "a", None).as_deref(), Some("5"));
}

pub fn the_newest_value_survives(store: &dyn Metastorage) {
    run(store, vec![put("old", "1")]);
    run(store, vec![put("both", "1")]);
    run(store, vec![put("both", "2")]);
    run(store, vec![put("both", "3")]);
    store.compact(3).unwrap();
    assert_eq!(
        store.get(b"old", None),
        Ok(Some(entry("old", "1", 1, 1, 1)))
    );
    assert_eq!(
        store.get(b"old", Some(4)),
        Ok(Some(entry("old", "1", 1, 1, 1)))
    );
    assert_eq!(
        store.get(b"both", Some(4)),
        Ok(Some(entry("both", "3", 2, 4, 3)))
    );
    // Up to the last revision: only what is there now is left.
    store.compact(4).unwrap();
    assert_eq!(
        store.get(b"both", None),
        Ok(Some(entry("both", "3", 2, 4, 3)))
    );
    assert_eq!(store.revision(), Ok(4));
    assert_eq!(run(store, vec![put("both", "4")]).revision, 5);
    assert_eq!(
        store.get(b"both", None),
        Ok(Some(entry("both", "4", 2, 5, 4)))
    );
}

pub fn tombstones_go(store: &dyn Metastorage) {
    run(store, vec![put("a", "1"), put("b", "1")]);
    run(store, vec![delete("a")]);
    run(store, vec![put("a", "2")]);
    run(store, vec![delete("a"), delete("b")]);
    run(store, vec![put("b", "2")]);
    store.compact(4).unwrap();
    assert_eq!(store.get(b"a", None), Ok(None));
    assert_eq!(store.get(b"b", None), Ok(Some(entry("b", "2", 5, 5, 1))));
    assert_eq!(store.range(&Range::default()).unwrap().len(), 1);
    run(store, vec![put("a", "3")]);
    assert_eq!(store.get(b"a", None), Ok(Some(entry("a", "3", 6, 6, 1))));
}

pub fn twice_or_too_far(store: &dyn Metastorage) {
    assert_eq!(store.compact(0), Ok(()));
    run(store, vec![put("a", "1")]);
    run(store, vec![put("a", "2")]);
    let refused = StoreError::Future {
        wanted: 3,
        revision: 2,
    };
    assert_eq!(store.compact(3), Err(refused));
    assert_eq!(store.compacted(), Ok(0));
    assert_eq!(store.compact(2), Ok(()));
    assert_eq!(store.compact(2), Ok(()));
    assert_eq!(store.compact(1), Ok(()));
    assert_eq!(store.compacted(), Ok(2));
    assert_eq!(value(store, "a", None).as_deref(), Some("2"));
}
