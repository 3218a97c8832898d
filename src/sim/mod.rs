//! Floor 6: the simulator: turns a cluster as fast as it can, against a store in memory that can
//! lose what it has not synced.
//!
//! The store's requests are carried out at the instant at which they arrive there; replies and
//! watched revisions leave it when it has synced. Nothing sleeps and nothing reads a clock, so
//! that a seed gives the same trace on every machine.

mod crank;
mod faults;

pub use crank::{BEGIN, Simulation, SimulationError};

use crate::cluster::event::{Event, Notice, StoreCall};
use crate::cluster::world::Cluster;
use crate::metastorage::contract::Metastorage;
use crate::model::diff::LeaseUpdate;
use crate::placement::io::{Revision, StoreReply};

/// Sees everything that happens, from outside.
pub trait Observer {
    /// A revision of the leases was written. It is not synced yet.
    fn stored(&mut self, _cluster: &Cluster, _update: &LeaseUpdate) {}

    /// Something worth telling.
    fn notice(&mut self, _cluster: &Cluster, _notice: &Notice) {}

    /// An event is about to happen.
    fn before(&mut self, _cluster: &Cluster, _event: &Event) {}

    /// A request is about to be carried out by the store.
    fn asked(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _call: &StoreCall) {}

    /// A request has been carried out. The reply has not left the store.
    fn answered(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _reply: &StoreReply) {}

    /// Somebody else has stored the leases again.
    fn rewritten(&mut self, _cluster: &Cluster, _store: &dyn Metastorage) {}

    /// The store has crashed and lost what came after a revision.
    fn crashed(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _kept: Revision) {}

    /// An event has happened, with all that followed at that instant.
    fn stepped(&mut self, _cluster: &Cluster, _store: &dyn Metastorage) {}
}

/// Looks the other way.
impl Observer for () {}
