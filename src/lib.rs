//! **leasehold**: a lease manager for a cluster's metadata that you can simulate, run and measure.
//!
//! # The house
//!
//! | floor | module | |
//! |---|---|---|
//! | 1 | [`model`] | clock values, ids, leases, batches, topology, workloads |
//! | 2 | [`codec`] | byte formats, the stored record |
//! | 3 | [`metastorage::contract`], [`metastorage::mvcc`] | the store's rules |
//! | 4 | [`placement`], [`replica`] | the driver; a node's side |
//! | 5 | [`cluster`] | event heap, nodes, network, scenario |
//! | 5 | [`audit`] | what is stored, summed up and verified |
//! | 6 | [`sim`], [`metastorage::memory`], [`metastorage::sled`] | the simulator; the stores |
//! | 7 | [`daemon`] | the real clock |
//! | 8 | [`server`] | HTTP |
//! | 9 | [`cli`] | the command line |
//!
//! A module uses only lower floors and its own. Floors 1 to 5 are pure: time is an argument,
//! chance comes from a seed.
//!
//! # Ten lines
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use leasehold::cluster::scenario::Scenario;
//! use leasehold::metastorage::memory::MemoryStore;
//! use leasehold::sim::Simulation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::parse("[cluster]\ntables = 4\npartitions = 5")?;
//! let mut simulation = Simulation::new(scenario, Arc::new(MemoryStore::new()))?;
//! simulation.run_for(Duration::from_secs(60), &mut ())?;
//! let node = simulation.cluster().nodes()[0].up.as_ref().expect("nothing has failed");
//! assert_eq!(node.tracker.batch().len(), 20);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod audit;
pub mod cli;
pub mod cluster;
pub mod codec;
pub mod daemon;
pub mod metastorage;
pub mod model;
pub mod placement;
pub mod replica;
pub mod server;
pub mod sim;
