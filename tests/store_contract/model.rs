//! Random operations on both stores and on a model too simple to be wrong: they agree on all.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold::metastorage::contract::{
    Bytes, Change, Condition, Entry, Metastorage, Op, Range, Transaction, WatchEvent,
};
use leasehold::metastorage::memory::MemoryStore;
use proptest::prelude::*;

use super::open_sled;

/// The whole state at every revision.
#[derive(Default)]
struct Model {
    states: Vec<BTreeMap<Bytes, Entry>>,
    compacted: u64,
}

impl Model {
    fn new() -> Self {
        Self {
            states: vec![BTreeMap::new()],
            compacted: 0,
        }
    }

    fn revision(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    fn invoke(&mut self, transaction: &Transaction) -> (bool, u64, Vec<Option<Entry>>) {
        let now = self.states.last().unwrap();
        let won = transaction
            .conditions
            .iter()
            .all(|condition| match condition {
                Condition::Exists(key) => now.contains_key(key),
                Condition::Absent(key) => !now.contains_key(key),
                Condition::ModRevision(key, wanted) => {
                    now.get(key).map_or(0, |entry| entry.mod_revision) == *wanted
                }
                Condition::Value(key, wanted) => {
                    now.get(key).is_some_and(|entry| entry.value == *wanted)
                }
            });
        let mut next = now.clone();
        let mut reads = Vec::new();
        let revision = self.states.len() as u64;
        for op in if won {
            &transaction.then
        } else {
            &transaction.or_else
        } {
            match op {
                Op::Put(key, value) => {
                    let before = next.get(key);
                    let entry = Entry {
                        key: key.clone(),
                        value: value.clone(),
                        create_revision: before.map_or(revision, |entry| entry.create_revision),
                        mod_revision: revision,
                        version: before.map_or(1, |entry| entry.version + 1),
                    };
                    next.insert(key.clone(), entry);
                }
                Op::Delete(key) => drop(next.remove(key)),
                Op::Get(key) => reads.push(next.get(key).cloned()),
                Op::GetPrefix(prefix) => {
                    let all = next.values().filter(|entry| entry.key.starts_with(prefix));
                    reads.extend(all.cloned().map(Some));
                }
            }
        }
        if next != *now {
            self.states.push(next);
        }
        (won, self.revision(), reads)
    }

    fn range(&self, range: &Range) -> Option<Vec<Entry>> {
        let at = range.at.unwrap_or(self.revision());
        if range
            .at
            .is_some_and(|at| self.compacted > 0 && at <= self.compacted)
        {
            return None;
        }
        let state = self.states.get(at as usize)?;
        let mut found: Vec<_> = state
            .values()
            .filter(|entry| *entry.key >= *range.start)
            .filter(|entry| range.end.as_ref().is_none_or(|end| *entry.key < **end))
            .cloned()
            .collect();
        if range.reverse {
            found.reverse();
        }
        found.truncate(range.limit.unwrap_or(usize::MAX));
        Some(found)
    }

    fn events(&self, prefix: &[u8], from: u64) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        for revision in from.max(1)..=self.revision() {
            let [before, after] = [revision - 1, revision].map(|at| &self.states[at as usize]);
            let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
            let changes: Vec<_> = keys
                .into_iter()
                .filter(|key| key.starts_with(prefix) && before.get(*key) != after.get(*key))
                .map(|key| Change {
                    key: key.clone(),
                    entry: after.get(key).cloned(),
                })
                .collect();
            if !changes.is_empty() {
                events.push(WatchEvent { revision, changes });
            }
        }
        events
    }
}

#[derive(Clone, Debug)]
enum Step {
    Invoke(Transaction),
    Range(Range),
    Compact(u64),
    Watch(Bytes, u64),
    Reopen,
}

fn key() -> impl Strategy<Value = Bytes> {
    let keys: [&[u8]; 7] = [b"", b"a", b"a\0", b"a\0b", b"ab", b"b", b"b/c"];
    prop::sample::select(keys.to_vec()).prop_map(Bytes::from)
}

fn value() -> impl Strategy<Value = Bytes> {
    let sizes = prop_oneof![8 => 0usize..4, 1 => Just(20_000usize)];
    (sizes, 0u8..3).prop_map(|(size, byte)| vec![byte; size].into())
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        key().prop_map(Condition::Exists),
        key().prop_map(Condition::Absent),
        (key(), 0u64..12).prop_map(|(key, revision)| Condition::ModRevision(key, revision)),
        (key(), value()).prop_map(|(key, value)| Condition::Value(key, value)),
    ]
}

fn branch() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        1 => key().prop_map(Op::Delete),
        1 => key().prop_map(Op::Get),
        1 => key().prop_map(Op::GetPrefix),
    ];
    prop::collection::vec(op, 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    let transaction = (prop::collection::vec(condition(), 0..2), branch(), branch());
    let range = (
        key(),
        prop::option::of(key()),
        prop::option::of(0u64..20),
        prop::option::of(0usize..4),
        any::<bool>(),
    );
    prop_oneof![
        6 => transaction.prop_map(|(conditions, then, or_else)| Step::Invoke(Transaction {
            conditions, then, or_else,
        })),
        3 => range.prop_map(|(start, end, at, limit, reverse)| Step::Range(Range {
            start: start.to_vec(),
            end: end.map(|end| end.to_vec()),
            at,
            limit,
            reverse,
        })),
        1 => (0u64..20).prop_map(Step::Compact),
        1 => (key(), 0u64..20).prop_map(|(prefix, from)| Step::Watch(prefix, from)),
        1 => Just(Step::Reopen),
    ]
}

fn distinct(branch: &[Op]) -> bool {
    let written = branch.iter().filter_map(|op| match op {
        Op::Put(key, _) | Op::Delete(key) => Some(key),
        Op::Get(_) | Op::GetPrefix(_) => None,
    });
    let mut keys = std::collections::BTreeSet::new();
    written.into_iter().all(|key| keys.insert(key))
}

fn check(model: &mut Model, store: &dyn Metastorage, step: &Step) {
    match step {
        Step::Invoke(transaction) => {
            if !distinct(&transaction.then) || !distinct(&transaction.or_else) {
                assert!(store.invoke(transaction.clone()).is_err());
                return;
            }
            let outcome = store.invoke(transaction.clone()).unwrap();
            let expected = model.invoke(transaction);
            assert_eq!((outcome.won, outcome.revision, outcome.reads), expected);
        }
        Step::Range(range) => assert_eq!(store.range(range).ok(), model.range(range)),
        Step::Compact(revision) => {
            let compacted = store.compact(*revision).is_ok();
            assert_eq!(compacted, *revision <= model.revision());
            if compacted {
                model.compacted = model.compacted.max(*revision);
            }
        }
        Step::Watch(prefix, from) => {
            let Ok(mut watch) = store.watch(prefix, *from) else {
                assert!((*from).max(1) <= model.compacted);
                return;
            };
            assert!((*from).max(1) > model.compacted);
            let events = std::iter::from_fn(|| watch.next(Duration::ZERO).unwrap());
            assert_eq!(events.collect::<Vec<_>>(), model.events(prefix, *from));
        }
        Step::Reopen => {}
    }
    assert_eq!(store.revision(), Ok(model.revision()));
    assert_eq!(store.compacted(), Ok(model.compacted));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn memory_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        let store = MemoryStore::new();
        for step in &steps {
            check(&mut model, &store, step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn sled_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        let directory = tempfile::tempdir().unwrap();
        let mut store = open_sled(directory.path());
        for step in &steps {
            if matches!(step, Step::Reopen) {
                drop(store);
                store = open_sled(directory.path());
            }
            check(&mut model, &store, step);
        }
    }
}
