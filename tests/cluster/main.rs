//! A whole cluster in simulated time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod invariants;
mod renewals;
mod scenarios;
mod seeds;
mod trace;

use std::sync::Arc;

use leasehold::cluster::scenario::Scenario;
use leasehold::metastorage::memory::MemoryStore;
use leasehold::sim::Simulation;

/// A simulation over a store in memory.
fn simulate(scenario: Scenario) -> Simulation {
    Simulation::new(scenario, Arc::new(MemoryStore::new())).unwrap()
}
