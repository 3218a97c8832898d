//! Reading keys and ranges, now and in the past.

use leasehold::metastorage::contract::{Metastorage, Op, Range, StoreError};

use super::{bytes, delete, entry, put, run, value};

fn keys(store: &dyn Metastorage, range: &Range) -> Vec<String> {
    let entries = store.range(range).unwrap();
    let keys = entries
        .iter()
        .map(|entry| String::from_utf8(entry.key.to_vec()).unwrap());
    keys.collect()
}

fn between(start: &str, end: &str) -> Range {
    Range {
        start: start.into(),
        end: Some(end.into()),
        ..Range::default()
    }
}

pub fn ranges(store: &dyn Metastorage) {
    let all = ["a", "a/1", "a/2", "a0", "b"];
    run(store, all.iter().rev().map(|key| put(key, key)).collect());
    run(
        store,
        vec![put("a/1", "again"), put("a/3", ""), delete("a/2")],
    );
    assert_eq!(
        keys(store, &Range::default()),
        ["a", "a/1", "a/3", "a0", "b"]
    );
    assert_eq!(keys(store, &Range::prefix(b"a/")), ["a/1", "a/3"]);
    assert_eq!(keys(store, &Range::prefix(b"c")), [""; 0]);
    assert_eq!(keys(store, &Range::prefix(b"")).len(), 5);
    assert_eq!(keys(store, &between("a/1", "a0")), ["a/1", "a/3"]);
    assert_eq!(keys(store, &between("a/11", "b")), ["a/3", "a0"]);
    assert_eq!(keys(store, &between("b", "a")), [""; 0]);
    assert_eq!(keys(store, &between("a", "a")), [""; 0]);
    let found = store.range(&Range::prefix(b"a/1"));
    assert_eq!(found, Ok(vec![entry("a/1", "again", 1, 2, 2)]));
}

pub fn ranges_backwards_and_limited(store: &dyn Metastorage) {
    for round in 0..3 {
        for key in ["a", "b", "c", "d"] {
            run(store, vec![put(key, &round.to_string())]);
        }
    }
    run(store, vec![delete("c")]);
    let range = |limit, reverse| Range {
        limit,
        reverse,
        ..Range::default()
    };
    assert_eq!(keys(store, &range(None, true)), ["d", "b", "a"]);
    assert_eq!(keys(store, &range(Some(2), true)), ["d", "b"]);
    assert_eq!(keys(store, &range(Some(1), false)), ["a"]);
    assert_eq!(keys(store, &range(Some(3), false)), ["a", "b", "d"]);
    assert_eq!(keys(store, &range(Some(9), false)), ["a", "b", "d"]);
    assert_eq!(keys(store, &range(Some(0), true)), [""; 0]);
    let before = Range {
        at: Some(7),
        ..range(Some(2), true)
    };
    let found = store.range(&before);
    assert_eq!(
        found,
        Ok(vec![entry("d", "0", 4, 4, 1), entry("c", "1", 3, 7, 2)])
    );
}

pub fn keys_with_zeros_and_without_bytes(store: &dyn Metastorage) {
    let keys: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\x01",
        b"\0\xFF",
        b"\x01",
        b"\x01\0",
        b"\xFF",
        b"\xFF\xFF",
    ];
    for key in keys.iter().rev() {
        run(store, vec![Op::Put((*key).into(), (*key).into())]);
    }
    for key in keys {
        let entry = store.get(key, None).unwrap().unwrap();
        assert_eq!(&*entry.value, key);
    }
    let found = store.range(&Range::default()).unwrap();
    let found: Vec<_> = found.iter().map(|entry| &*entry.key).collect();
    assert_eq!(found, keys);
    let zeros = store.range(&Range::prefix(b"\0")).unwrap();
    assert_eq!(zeros.len(), 4);
    assert_eq!(store.range(&Range::prefix(b"\xFF")).unwrap().len(), 2);
}

pub fn the_past(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    run(store, vec![put("b", "1"), put("a", "2")]);
    run(store, vec![delete("a")]);
    run(store, vec![put("a", "3")]);
    let then = |at| value(store, "a", Some(at));
    assert_eq!(then(0), None);
    assert_eq!(then(1).as_deref(), Some("1"));
    assert_eq!(then(2).as_deref(), Some("2"));
    assert_eq!(then(3), None);
    assert_eq!(then(4).as_deref(), Some("3"));
    let counts = [0, 1, 2, 1, 2];
    for (at, count) in (0..).zip(counts) {
        for reverse in [false, true] {
            let range = Range {
                at: Some(at),
                reverse,
                ..Range::default()
            };
            assert_eq!(store.range(&range).unwrap().len(), count, "at {at}");
        }
    }
    assert_eq!(bytes("2"), store.get(b"a", Some(2)).unwrap().unwrap().value);
}

pub fn the_future_is_refused(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    let refused = StoreError::Future {
        wanted: 2,
        revision: 1,
    };
    assert_eq!(store.get(b"a", Some(2)), Err(refused.clone()));
    let range = Range {
        at: Some(2),
        ..Range::default()
    };
    assert_eq!(store.range(&range), Err(refused));
}
