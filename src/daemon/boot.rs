//! Starting: the store is opened, and the cluster goes on where it stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::cluster::heap::{MILLI, Micros};
use crate::cluster::scenario::Scenario;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::{Metastorage, StoreError};
use crate::metastorage::memory::MemoryStore;
use crate::metastorage::sled::{SledOptions, SledStore};
use crate::model::batch::LeaseBatch;
use crate::model::diff::{LeaseUpdate, diff};
use crate::model::hlc::HybridTimestamp;
use crate::model::reads::Reads;
use crate::placement::feed::Seen;
use crate::placement::record::{self, BEAT, State, time_of};

use super::DaemonError;
use super::identity::Identity;
use super::instance::{Instance, store_path};
use super::pace::Speed;

/// Where leases are stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// On disk, in this directory.
    Sled(PathBuf),
    /// In memory: gone when the process ends.
    Memory,
}

/// Shortest pause between two rounds of sled's cleaning.
const CLEAN_LEAST: Duration = Duration::from_millis(1);

/// An open store.
#[derive(Clone)]
pub struct OpenStore {
    /// The store.
    pub store: Arc<dyn Metastorage>,
    /// The same, where it is on disk.
    pub sled: Option<Arc<SledStore>>,
}

/// Opens a store, making it if it is not there. sled cleans up in the background by the real
/// clock: where cluster time passes faster, so must that.
pub fn open(kind: &StoreKind, speed: Speed) -> Result<OpenStore, DaemonError> {
    let data = match kind {
        StoreKind::Memory => {
            return Ok(OpenStore {
                store: Arc::new(MemoryStore::new()),
                sled: None,
            });
        }
        StoreKind::Sled(data) => data,
    };
    std::fs::create_dir_all(data).map_err(|error| DaemonError::Directory {
        path: data.clone(),
        reason: error.to_string(),
    })?;
    let mut options = SledOptions::create();
    options.clean_every = match speed {
        Speed::Max => CLEAN_LEAST,
        Speed::Times(factor) => options
            .clean_every
            .div_f64(factor.max(1.0))
            .max(CLEAN_LEAST),
    };
    match SledStore::open(store_path(data), options) {
        Ok(sled) => {
            let sled = Arc::new(sled);
            Ok(OpenStore {
                store: sled.clone(),
                sled: Some(sled),
            })
        }
        Err(StoreError::Locked(reason)) => Err(DaemonError::InUse(in_use(data, &reason))),
        Err(error) => Err(error.into()),
    }
}

fn in_use(data: &Path, reason: &str) -> String {
    match Instance::read(data) {
        Some(Instance { pid, url }) => format!(
            "{} is in use by process {pid}, which listens on {url}: stop it, or choose another \
             directory with --data",
            data.display()
        ),
        None => reason.to_owned(),
    }
}

/// Which settings the user gave, and which may be taken from the stored cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// The seed was given.
    pub seed: bool,
    /// The number of nodes was given.
    pub nodes: bool,
}

/// A cluster at the point where it begins or goes on.
pub struct Booted {
    /// The cluster.
    pub cluster: Cluster,
    /// What its data directory belongs to.
    pub identity: Identity,
    /// What is stored.
    pub state: Option<State>,
    /// The same as news.
    pub update: Option<Arc<LeaseUpdate>>,
    /// Whether it goes on from stored data.
    pub resumed: bool,
}

/// Makes the cluster of a scenario over a store, going on from what is stored there.
pub fn boot(
    store: &dyn Metastorage,
    mut scenario: Scenario,
    given: Given,
) -> Result<Booted, DaemonError> {
    let stored = Identity::read(store)?;
    if let Some(identity) = &stored {
        adopt(&mut scenario, given, identity)?;
    }
    scenario.validate()?;
    scenario.validate_for_real_store()?;
    let state = record::read(store, None)?;
    let time = last_time(store)?;
    let update = (state.as_ref()).map(|state| Arc::new(news(state, time)));
    let begin = match time {
        Some(time) => time.physical() * MILLI + MILLI,
        None => wall_clock(),
    };
    let ids = stored.as_ref().map(Identity::ids).unwrap_or_default();
    let mut cluster = Cluster::new(scenario, begin, &ids);
    if let Some(update) = &update {
        let seen = Seen {
            revision: update.revision,
            epoch: false,
            beat: None,
            update: Some(update.clone()),
            needs: state.as_ref().map_or(Reads::default(), |state| state.needs),
            snapshot: false,
            read_again: None,
        };
        cluster.observed(begin, &seen);
    }
    let mut identity = Identity {
        seed: cluster.scenario().seed,
        nodes: Vec::new(),
    };
    identity.follow(&cluster);
    let resumed = stored.is_some();
    if stored.as_ref() != Some(&identity) {
        identity.write(store)?;
    }
    Ok(Booted {
        cluster,
        identity,
        state,
        update,
        resumed,
    })
}

/// Takes what was not given from the stored cluster; refuses what contradicts it.
fn adopt(scenario: &mut Scenario, given: Given, stored: &Identity) -> Result<(), DaemonError> {
    let nodes = stored.nodes.len() as u32;
    if !given.seed {
        scenario.seed = stored.seed;
    }
    if !given.nodes {
        scenario.cluster.nodes = nodes;
        scenario.cluster.replicas = scenario.cluster.replicas.min(nodes);
    }
    for (what, wanted, stored) in [
        ("seed", scenario.seed, stored.seed),
        (
            "number of nodes",
            u64::from(scenario.cluster.nodes),
            u64::from(nodes),
        ),
    ] {
        if wanted != stored {
            return Err(DaemonError::OtherCluster {
                what,
                wanted,
                stored,
            });
        }
    }
    Ok(())
}

/// What is stored, as if all of it had just begun.
fn news(state: &State, time: Option<HybridTimestamp>) -> LeaseUpdate {
    let batch = state.chain.batch();
    LeaseUpdate {
        revision: state.revision,
        previous: 0,
        time: time.unwrap_or(HybridTimestamp::MIN),
        changes: diff(&LeaseBatch::default(), batch).into(),
        batch: batch.clone(),
    }
}

/// The last stored time of the cluster.
fn last_time(store: &dyn Metastorage) -> Result<Option<HybridTimestamp>, DaemonError> {
    let beat = store.get(BEAT, None)?;
    Ok(beat.as_ref().map(time_of).transpose()?)
}

#[allow(
    clippy::disallowed_methods,
    reason = "a new cluster begins at the real time"
)]
fn wall_clock() -> Micros {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = since.map(|since| since.as_micros() as Micros).unwrap_or(0);
    // Whole milliseconds: what clocks show and what is stored then fall on the same grid.
    micros / MILLI * MILLI
}
