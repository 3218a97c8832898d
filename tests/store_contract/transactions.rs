//! Transactions: conditions, branches, revisions.

use leasehold::metastorage::contract::{
    Condition, Metastorage, Op, Outcome, StoreError, Transaction,
};

use super::{bytes, delete, entry, holds, put, read, run, value};

pub fn an_empty_store_is_at_revision_0(store: &dyn Metastorage) {
    assert_eq!(store.revision(), Ok(0));
    assert_eq!(store.compacted(), Ok(0));
    assert_eq!(store.get(b"a", None), Ok(None));
    assert_eq!(store.get(b"a", Some(0)), Ok(None));
}

pub fn each_change_is_one_revision(store: &dyn Metastorage) {
    assert_eq!(run(store, vec![put("a", "1")]).revision, 1);
    assert_eq!(run(store, vec![put("b", "1"), put("c", "1")]).revision, 2);
    assert_eq!(run(store, vec![delete("a"), put("b", "2")]).revision, 3);
    assert_eq!(store.revision(), Ok(3));
}

pub fn an_entry_tells_its_life(store: &dyn Metastorage) {
    run(store, vec![put("other", "")]);
    run(store, vec![put("a", "1")]);
    assert_eq!(store.get(b"a", None), Ok(Some(entry("a", "1", 2, 2, 1))));
    run(store, vec![put("a", "2")]);
    assert_eq!(store.get(b"a", None), Ok(Some(entry("a", "2", 2, 3, 2))));
    run(store, vec![delete("a")]);
    assert_eq!(store.get(b"a", None), Ok(None));
    run(store, vec![put("a", "3")]);
    assert_eq!(store.get(b"a", None), Ok(Some(entry("a", "3", 5, 5, 1))));
}

pub fn conditions_on_existence(store: &dyn Metastorage) {
    run(store, vec![put("a", "1"), put("gone", "")]);
    run(store, vec![delete("gone")]);
    for (key, there) in [("a", true), ("b", false), ("gone", false)] {
        assert_eq!(holds(store, vec![Condition::Exists(bytes(key))]), there);
        assert_eq!(holds(store, vec![Condition::Absent(bytes(key))]), !there);
    }
}

pub fn conditions_on_the_revision(store: &dyn Metastorage) {
    run(store, vec![put("a", "1"), put("gone", "")]);
    run(store, vec![put("a", "2"), delete("gone")]);
    let at = |key: &str, revision| vec![Condition::ModRevision(bytes(key), revision)];
    assert!(holds(store, at("a", 2)));
    for other in [0, 1, 3] {
        assert!(!holds(store, at("a", other)));
    }
    assert!(holds(store, at("b", 0)));
    assert!(!holds(store, at("b", 1)));
    assert!(holds(store, at("gone", 0)));
    assert!(!holds(store, at("gone", 2)));
}

pub fn conditions_on_the_value(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    run(store, vec![put("a", "2")]);
    let is = |key: &str, value: &str| vec![Condition::Value(bytes(key), bytes(value))];
    assert!(holds(store, is("a", "2")));
    assert!(!holds(store, is("a", "1")));
    assert!(!holds(store, is("a", "")));
    assert!(!holds(store, is("b", "")));
}

pub fn all_conditions_must_hold(store: &dyn Metastorage) {
    run(store, vec![put("a", "1")]);
    let good = Condition::Exists(bytes("a"));
    let bad = Condition::Exists(bytes("b"));
    assert!(holds(store, vec![]));
    assert!(holds(store, vec![good.clone(), good.clone()]));
    assert!(!holds(store, vec![good.clone(), bad.clone()]));
    assert!(!holds(store, vec![bad, good]));
}

pub fn the_loser_reads_in_the_same_step(store: &dyn Metastorage) {
    let claim = |who: &str| Transaction {
        conditions: vec![Condition::Absent(bytes("a"))],
        then: vec![put("a", who)],
        or_else: vec![read("a"), read("b")],
    };
    let won = store.invoke(claim("one")).unwrap();
    let expected = Outcome {
        won: true,
        revision: 1,
        reads: vec![],
    };
    assert_eq!(won, expected);
    let lost = store.invoke(claim("two")).unwrap();
    let expected = Outcome {
        won: false,
        revision: 1,
        reads: vec![Some(entry("a", "one", 1, 1, 1)), None],
    };
    assert_eq!(lost, expected);
    // The loser's branch may write too.
    let loser = Transaction {
        conditions: vec![Condition::Absent(bytes("a"))],
        then: vec![],
        or_else: vec![put("a", "two")],
    };
    let outcome = store.invoke(loser).unwrap();
    assert_eq!((outcome.won, outcome.revision), (false, 2));
    assert_eq!(value(store, "a", None).as_deref(), Some("two"));
}

pub fn a_get_sees_the_operations_before_it(store: &dyn Metastorage) {
    run(store, vec![put("a", "1"), put("b", "1")]);
    let ops = vec![
        read("a"),
        put("a", "2"),
        read("a"),
        delete("b"),
        read("b"),
        read("c"),
        put("c", "1"),
        read("c"),
    ];
    let expected = vec![
        Some(entry("a", "1", 1, 1, 1)),
        Some(entry("a", "2", 1, 2, 2)),
        None,
        None,
        Some(entry("c", "1", 2, 2, 1)),
    ];
    assert_eq!(run(store, ops).reads, expected);
}

pub fn what_changes_nothing_makes_no_revision(store: &dyn Metastorage) {
    assert_eq!(run(store, vec![]).revision, 0);
    assert_eq!(run(store, vec![delete("a"), read("a")]).revision, 0);
    run(store, vec![put("a", "1")]);
    assert_eq!(run(store, vec![read("a")]).revision, 1);
    assert_eq!(run(store, vec![delete("b")]).revision, 1);
    // A put always is a change, of the same value too.
    assert_eq!(run(store, vec![put("a", "1")]).revision, 2);
}

pub fn a_key_written_twice_is_refused(store: &dyn Metastorage) {
    let branches = [
        vec![put("a", "1"), put("a", "2")],
        vec![put("a", "1"), read("a"), delete("a")],
        vec![delete("a"), delete("a")],
    ];
    for branch in branches {
        let then = Transaction {
            then: branch.clone(),
            ..Transaction::default()
        };
        let or_else = Transaction {
            or_else: branch,
            ..Transaction::default()
        };
        for transaction in [then, or_else] {
            let refused = store.invoke(transaction);
            assert!(
                matches!(&refused, Err(StoreError::Invalid(why)) if why.contains("`a`")),
                "{refused:?}"
            );
        }
    }
    // Each branch has its own keys.
    let transaction = Transaction {
        then: vec![put("a", "1")],
        or_else: vec![put("a", "2")],
        ..Transaction::default()
    };
    assert_eq!(store.invoke(transaction).unwrap().revision, 1);
}

pub fn too_large_is_refused(store: &dyn Metastorage) {
    let limits = leasehold::metastorage::mvcc::limits::Limits::default();
    let key = vec![b'k'; limits.key + 1];
    let value = vec![0; limits.value + 1];
    let half = vec![0; limits.transaction / 2];
    let refused = [
        vec![Op::Put(key.clone().into(), bytes(""))],
        vec![Op::Get(key.clone().into())],
        vec![Op::GetPrefix(key.clone().into())],
        vec![Op::Put(bytes("a"), value.into())],
        vec![
            Op::Put(bytes("a"), half.clone().into()),
            Op::Put(bytes("b"), half.into()),
        ],
    ];
    for then in refused {
        let transaction = Transaction {
            then,
            ..Transaction::default()
        };
        let refused = store.invoke(transaction);
        let Err(StoreError::TooLarge { size, limit, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(size > limit);
    }
    let many = Transaction {
        then: vec![read("a"); limits.operations + 1],
        ..Transaction::default()
    };
    assert!(matches!(store.invoke(many), Err(StoreError::Invalid(_))));
    assert_eq!(store.revision(), Ok(0));
    run(store, vec![Op::Put(key[1..].into(), bytes("fits"))]);
    assert_eq!(store.revision(), Ok(1));
}
