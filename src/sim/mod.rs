//! Floor 6: the simulator: turns a cluster as fast as it can, against a store in memory that can
//! lose what it has not synced.
//!
//! The store's requests are carried out at the instant at which they arrive there; replies and
//! watched revisions leave it when it has synced. Nothing sleeps and nothing reads a clock, so
//! that a seed gives the same trace on every machine.
//!
//! * `crank` turns; `faults` is what the store suffers; [`observer`] looks on;
//! * [`check`] asks what must always hold; [`run`] is one seed under it, [`campaign`] many;
//! * [`shrink`] shortens a schedule that violates something; [`transcript`] puts a run in words.

pub mod campaign;
pub mod check;
mod crank;
mod faults;
pub mod observer;
pub mod run;
pub mod shrink;
pub mod transcript;

pub use crank::{BEGIN, Simulation, SimulationError};
pub use observer::{Observer, Watching};
