//! Turning a simulated cluster.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cluster::event::{Effect, StoreCall};
use crate::cluster::heap::Micros;
use crate::cluster::scenario::Scenario;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::{Metastorage, StoreError, Volatile, Watch};
use crate::placement::feed::Feed;
use crate::placement::io::StoreRequest;
use crate::placement::record::{self, PREFIX, ReadError};

use super::Observer;
use super::faults::damage_event;

/// Where simulated time begins: 2026-03-20 09:46:40 UTC, in microseconds since the Unix epoch.
pub const BEGIN: Micros = 1_774_000_000_000_000;

/// A cluster and its store.
pub struct Simulation {
    pub(super) cluster: Cluster,
    pub(super) store: Arc<dyn Volatile>,
    pub(super) watch: Box<dyn Watch>,
    pub(super) feed: Feed,
}

impl Simulation {
    /// A cluster of a valid scenario over an empty store.
    pub fn new(scenario: Scenario, store: Arc<dyn Volatile>) -> Result<Self, SimulationError> {
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
            self.step(observer)?;
        }
        self.cluster.pass(until);
        Ok(())
    }

    /// Lets the next event happen.
    pub fn step(&mut self, observer: &mut impl Observer) -> Result<(), SimulationError> {
        if let Some(event) = self.cluster.peek() {
            observer.before(&self.cluster, event);
        }
        for effect in self.cluster.step() {
            self.carry_out(effect, observer)?;
        }
        observer.stepped(&self.cluster, &*self.store);
        Ok(())
    }

    fn carry_out(
        &mut self,
        effect: Effect,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        match effect {
            Effect::Notice(notice) => observer.notice(&self.cluster, &notice),
            Effect::Store(call) => self.store_call(call, observer)?,
            Effect::StoreCrashed(kept) => self.lose_after(kept, observer)?,
            Effect::Rewrite => self.rewrite(observer)?,
            Effect::Compact(revision) => self.store.compact(revision)?,
        }
        Ok(())
    }

    fn store_call(
        &mut self,
        call: StoreCall,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        observer.asked(&self.cluster, &*self.store, &call);
        let settings = self.cluster.scenario();
        let (reads, took) = (call.reads, settings.network.store_us);
        let (id, damage) = (call.call_id(), call.damage);
        let reply = match (damage, &call.request) {
            (Some(seed), StoreRequest::Read) => self.damaged_read(seed, reads, call.request),
            _ => record::execute(&*self.store, reads, call.request, None),
        };
        observer.answered(&self.cluster, &*self.store, &reply);
        let done = self.cluster.complete(took, id, reply);
        self.show(done, damage, observer)
    }

    /// Shows what the store's watch has, from a time on.
    pub(super) fn show(
        &mut self,
        at: Micros,
        damage: Option<u64>,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        while let Some(mut event) = self.watch.next(Duration::ZERO)? {
            if let Some(seed) = damage {
                damage_event(&mut event, seed);
            }
            let seen = self.feed.follow(&*self.store, &event)?;
            self.cluster.observed(at, &seen);
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
