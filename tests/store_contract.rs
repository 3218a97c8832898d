//! The contract suite: every metastorage passes it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "store_contract/compaction.rs"]
mod compaction;
#[path = "store_contract/large.rs"]
mod large;
#[path = "store_contract/model.rs"]
mod model;
#[path = "store_contract/reads.rs"]
mod reads;
#[path = "store_contract/transactions.rs"]
mod transactions;
#[path = "store_contract/watching.rs"]
mod watching;

use leasehold::metastorage::contract::{
    Bytes, Condition, Entry, Metastorage, Op, Outcome, Revision, Transaction,
};

/// Runs every case against every store.
macro_rules! suite {
    ($($module:ident::$case:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $case() {
                super::$module::$case(&leasehold::metastorage::memory::MemoryStore::new());
            })*
        }
        mod sled {
            $(#[test] fn $case() {
                let directory = tempfile::tempdir().unwrap();
                super::$module::$case(&super::open_sled(directory.path()));
            })*
        }
    };
}

suite![
    transactions::an_empty_store_is_at_revision_0,
    transactions::each_change_is_one_revision,
    transactions::an_entry_tells_its_life,
    transactions::conditions_on_existence,
    transactions::conditions_on_the_revision,
    transactions::conditions_on_the_value,
    transactions::all_conditions_must_hold,
    transactions::the_loser_reads_in_the_same_step,
    transactions::a_get_sees_the_operations_before_it,
    transactions::what_changes_nothing_makes_no_revision,
    transactions::a_key_written_twice_is_refused,
    transactions::too_large_is_refused,
    reads::ranges,
    reads::ranges_backwards_and_limited,
    reads::keys_with_zeros_and_without_bytes,
    reads::the_past,
    reads::the_future_is_refused,
    compaction::compacted_revisions_are_refused,
    compaction::the_newest_value_survives,
    compaction::tombstones_go,
    compaction::twice_or_too_far,
    watching::each_revision_once_and_in_order,
    watching::all_changes_of_a_revision_together,
    watching::only_the_prefix,
    watching::deletions,
    watching::from_any_revision,
    watching::a_lagging_watcher_is_told,
    watching::from_a_compacted_revision,
    watching::waiting,
    large::around_the_chunk_size,
    large::several_in_one_transaction,
    large::compacted,
    large::the_largest,
];

/// The sled store under test.
fn open_sled(path: &std::path::Path) -> leasehold::metastorage::sled::SledStore {
    use leasehold::metastorage::sled::{SledOptions, SledStore};
    let options = SledOptions {
        lock_wait: std::time::Duration::from_secs(10),
        ..SledOptions::create()
    };
    SledStore::open(path, options).unwrap()
}

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn put(key: &str, value: &str) -> Op {
    Op::Put(bytes(key), bytes(value))
}

fn delete(key: &str) -> Op {
    Op::Delete(bytes(key))
}

fn read(key: &str) -> Op {
    Op::Get(bytes(key))
}

/// Carries operations out without a condition.
fn run(store: &dyn Metastorage, ops: Vec<Op>) -> Outcome {
    let transaction = Transaction {
        then: ops,
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap()
}

/// Whether a condition holds, tested without changing anything.
fn holds(store: &dyn Metastorage, conditions: Vec<Condition>) -> bool {
    let transaction = Transaction {
        conditions,
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap().won
}

fn value(store: &dyn Metastorage, key: &str, at: Option<Revision>) -> Option<String> {
    let entry = store.get(key.as_bytes(), at).unwrap()?;
    Some(String::from_utf8(entry.value.to_vec()).unwrap())
}

fn entry(key: &str, value: &str, create: Revision, changed: Revision, version: u64) -> Entry {
    Entry {
        key: bytes(key),
        value: bytes(value),
        create_revision: create,
        mod_revision: changed,
        version,
    }
}
