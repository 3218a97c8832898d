//! What the tests of queries share: a cluster that has run for a while, and its store on disk.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::cluster::scenario::Scenario;
use leasehold::daemon::instance::store_path;
use leasehold::metastorage::contract::{Metastorage, Op, Transaction};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::metastorage::sled::{SledOptions, SledStore};
use leasehold::sim::{Observer, Simulation};

/// 48 partitions of tables and 4 of a zone on three nodes, of which one restarts.
pub const SCENARIO: &str = r#"
[cluster]
tables = 12
partitions = 4
zones = 1
zone_partitions = 4

[[operation]]
at = "60s"
do = "restart-node"
node = "node2"
"#;

/// The number of groups in it.
pub const GROUPS: usize = 52;

/// The cluster after so many seconds, and its store.
pub fn run(seconds: u64, observer: &mut impl Observer) -> (Simulation, MemoryStore) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let store = MemoryStore::new();
    let mut simulation = Simulation::new(scenario, Arc::new(store.clone())).unwrap();
    let time = Duration::from_secs(seconds);
    simulation.run_for(time, observer).unwrap();
    (simulation, store)
}

/// Writes the history of a store into a data directory, revision by revision.
pub fn save(data: &Path, store: &dyn Metastorage) {
    let target = open(data);
    let mut watch = store.watch(b"", 1).unwrap();
    while let Some(event) = watch.next(Duration::ZERO).unwrap() {
        let changes = event.changes.into_iter();
        let then = changes.map(|change| match change.entry {
            Some(entry) => Op::Put(entry.key, entry.value),
            None => Op::Delete(change.key),
        });
        let transaction = Transaction {
            then: then.collect(),
            ..Transaction::default()
        };
        let outcome = target.invoke(transaction).unwrap();
        assert_eq!(outcome.revision, event.revision);
    }
}

/// The store of a data directory; makes it.
pub fn open(data: &Path) -> SledStore {
    let options = SledOptions {
        lock_wait: Duration::from_secs(10),
        ..SledOptions::create()
    };
    SledStore::open(store_path(data), options).unwrap()
}
