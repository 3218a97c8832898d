//! A small cluster that stores deltas, and what it has left in the store.

use std::sync::Arc;
use std::time::Duration;

use leasehold::cluster::event::Notice;
use leasehold::cluster::scenario::Scenario;
use leasehold::cluster::world::Cluster;
use leasehold::metastorage::contract::{Change, Metastorage, Op, Transaction, WatchEvent};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::diff::LeaseUpdate;
use leasehold::placement::record::{DELTAS, PREFIX};
use leasehold::sim::{Observer, Simulation};

/// Things happen: a node restarts, tables come and go, a holder gives up.
pub const SCENARIO: &str = r#"
[cluster]
tables = 6
partitions = 4
drivers = 2

[store]
format = "compact-v2"
layout = "delta"
snapshot_every = 5

[[operation]]
at = "10s"
every = "17s"
do = "restart-node"
down = "3s"

[[operation]]
at = "14s"
every = "9s"
do = "create-tables"

[[operation]]
at = "21s"
every = "9s"
do = "drop-tables"

[[operation]]
at = "16s"
every = "5s"
do = "resign"
"#;

/// Keeps every update.
#[derive(Default)]
pub struct Updates(pub Vec<LeaseUpdate>);

impl Observer for Updates {
    fn stored(&mut self, _: &Cluster, update: &LeaseUpdate) {
        self.0.push(update.clone());
    }

    fn notice(&mut self, _: &Cluster, _: &Notice) {}
}

/// About a minute, up to where several deltas follow the last snapshot.
pub fn run_into_deltas() -> (MemoryStore, Vec<LeaseUpdate>) {
    let runs = (60..90).map(run);
    let mut into_deltas = runs.filter(|(store, _)| {
        let state = leasehold::placement::record::read(store, None).unwrap();
        state.unwrap().chain.step() > 1
    });
    into_deltas.next().unwrap()
}

/// The cluster's store after so many seconds, and what was seen in it.
pub fn run(seconds: u64) -> (MemoryStore, Vec<LeaseUpdate>) {
    run_scenario(SCENARIO, seconds)
}

/// The same of another one.
pub fn run_scenario(scenario: &str, seconds: u64) -> (MemoryStore, Vec<LeaseUpdate>) {
    let scenario = Scenario::parse(scenario).unwrap();
    let store = MemoryStore::new();
    let mut updates = Updates::default();
    let mut simulation = Simulation::new(scenario, Arc::new(store.clone())).unwrap();
    let time = Duration::from_secs(seconds);
    simulation.run_for(time, &mut updates).unwrap();
    (store, updates.0)
}

/// All that a watcher of the leases has been shown.
pub fn events(store: &MemoryStore) -> Vec<WatchEvent> {
    let mut watch = store.watch(PREFIX, 1).unwrap();
    std::iter::from_fn(|| watch.next(Duration::ZERO).unwrap()).collect()
}

/// The delta that an event has brought.
pub fn delta(event: &WatchEvent) -> Option<&Change> {
    let is_delta = |change: &&Change| change.key.starts_with(DELTAS) && change.entry.is_some();
    event.changes.iter().find(is_delta)
}

pub fn write(store: &MemoryStore, then: Vec<Op>) {
    let transaction = Transaction {
        then,
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap();
}
