//! Floor 6: the simulator: turns a cluster as fast as it can, usually against a
//! store in memory.
//!
//! The store's requests are carried out at the instant at which they arrive there; replies and
//! watched revisions leave it when the scenario's store latency has passed. Nothing sleeps and
//! nothing reads a clock, so that a seed gives the same trace on every machine.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cluster::event::{Effect, Notice};
use crate::cluster::heap::Micros;
use crate::cluster::scenario::Scenario;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::{Metastorage, StoreError, Watch};
use crate::model::diff::LeaseUpdate;
use crate::placement::feed::Feed;
use crate::placement::record::{self, PREFIX, ReadError};

/// Where simulated time begins: 2026-03-20 09:46:40 UTC, in microseconds since the Unix epoch.
pub const BEGIN: Micros = 1_774_000_000_000_000;

/// Sees everything that happens, from outside.
pub trait Observer {
    /// A revision of the leases was stored.
    fn stored(&mut self, cluster: &Cluster, update: &LeaseUpdate);

    /// Something worth telling.
    fn notice(&mut self, cluster: &Cluster, notice: &Notice);

    /// An event has happened.
    fn stepped(&mut self, _cluster: &Cluster) {}
}

/// Looks the other way.
impl Observer for () {
    fn stored(&mut self, _cluster: &Cluster, _update: &LeaseUpdate) {}

    fn notice(&mut self, _cluster: &Cluster, _notice: &Notice) {}
}

/// A cluster and its store.
pub struct Simulation {
    cluster: Cluster,
    store: Arc<dyn Metastorage>,
    watch: Box<dyn Watch>,
    feed: Feed,
}

impl Simulation {
    /// A cluster of a valid scenario over an empty store.
    pub fn new(scenario: Scenario, store: Arc<dyn Metastorage>) -> Result<Self, SimulationError> {
        let watch = store.watch(PREFIX, 1)?;
        Ok(Self {
            cluster: Cluster::new(scenario, BEGIN, &[]),
            store,
            watch,
            feed: Feed::default(),
        })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its store.
    pub fn store(&self) -> &dyn Metastorage {
        &*self.store
    }

    /// Lets so much cluster time pass.
    pub fn run_for(
        &mut self,
        time: Duration,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let until = self.cluster.now().saturating_add(micros);
        while self.cluster.next_at().is_some_and(|at| at <= until) {
            for effect in self.cluster.step() {
                self.carry_out(effect, observer)?;
            }
            observer.stepped(&self.cluster);
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        effect: Effect,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        let call = match effect {
            Effect::Notice(notice) => {
                observer.notice(&self.cluster, &notice);
                return Ok(());
            }
            Effect::Store(call) => call,
        };
        let settings = self.cluster.scenario();
        let done = self.cluster.now() + settings.network.store_us;
        let format = settings.store.format;
        let id = call.call_id();
        let reply = record::execute(&*self.store, format, call.request, None);
        self.cluster.complete(done, id, reply);
        while let Some(event) = self.watch.next(Duration::ZERO)? {
            let seen = self.feed.follow(&*self.store, &event)?;
            self.cluster.observed(done, &seen);
            if let Some(update) = &seen.update {
                observer.stored(&self.cluster, update);
            }
        }
        Ok(())
    }
}

/// Why a simulation could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store's watch showed can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}
