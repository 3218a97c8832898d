//! What the daemon lets others see: the server reads this and nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::metastorage::contract::Metastorage;
use crate::model::diff::LeaseUpdate;
use crate::model::ids::{GroupId, NodeId, NodeName};
use crate::model::lease::Lease;
use crate::placement::record::SizeRow;

/// How the daemon is doing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Version of leasehold.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Where it listens.
    pub url: String,
    /// What is wrong, if something is.
    pub trouble: Option<String>,
    /// The store: `sled` or `memory`.
    pub store: String,
    /// Its directory, if it has one.
    pub data: Option<String>,
    /// Format of new batches; where the layout is `delta`, of the snapshots.
    pub format: String,
    /// Layout of the store: `full` or `delta`.
    pub layout: String,
    /// Of so many batches one is stored in full.
    pub snapshot_every: u64,
    /// Pace of cluster time: `1`, `N` or `max`.
    pub speed: String,
    /// The seed.
    pub seed: u64,
    /// Cluster time, milliseconds since the Unix epoch.
    pub time: u64,
    /// Cluster time since this process began, milliseconds.
    pub elapsed_ms: u64,
    /// Revision of the stored batch.
    pub revision: u64,
    /// Number of tables.
    pub tables: u64,
    /// Groups that should have a lease.
    pub groups: u64,
    /// Leases in the stored batch.
    pub leases: u64,
    /// Those of them that are accepted.
    pub accepted: u64,
    /// Groups none of whose replicas is up.
    pub without_candidate: u64,
    /// Leases granted since this process began.
    pub granted: u64,
    /// Accepted leases that ended since this process began.
    pub expired: u64,
    /// Renewals since this process began.
    pub renewals: u64,
    /// Batches stored since this process began.
    pub batches: u64,
    /// Those of them that were stored in full.
    pub snapshots: u64,
    /// Bytes of the records of these, since this process began.
    pub snapshot_bytes: u64,
    /// Bytes of the records of deltas, since this process began.
    pub delta_bytes: u64,
    /// Real time that snapshots took since this process began, microseconds: encoding, storing,
    /// decoding, comparing.
    pub snapshot_us: u64,
    /// Real time since this process began to turn the cluster, microseconds.
    pub real_us: u64,
    /// The first renewal with a lease of every group in which nothing else changed.
    pub settled: Option<Settled>,
    /// Writes that lost, or whose outcome was unknown, since this process began.
    pub writes_lost: u64,
    /// Bytes of the stored record of the last batch.
    pub stored_bytes: u64,
    /// Bytes that naive would have taken for it.
    pub naive_bytes: u64,
    /// Time to encode the last batch and its checksum, microseconds.
    pub encode_us: u64,
    /// Time to check it, decode it and find what changed, microseconds.
    pub decode_us: u64,
    /// Time that the store took to write it, microseconds.
    pub store_us: u64,
    /// The nodes.
    pub nodes: Vec<NodeStatus>,
    /// What each driver is: `active`, `standby`, `starting`, `down` or `halted`.
    pub drivers: Vec<String>,
}

/// How far things were when the cluster had become quiet: at the first renewal with a lease of
/// every group in which nothing else changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settled {
    /// Cluster time since this process began, milliseconds.
    pub elapsed_ms: u64,
    /// Real time since then, microseconds.
    pub real_us: u64,
    /// Real time of it that snapshots took, microseconds.
    pub snapshot_us: u64,
}

/// How a node is doing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Name.
    pub name: NodeName,
    /// Present id, if it is up.
    pub id: Option<NodeId>,
    /// Accepted leases that it holds.
    pub leases: u64,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LiveEvent {
    /// A lease was accepted.
    Elected {
        /// Revision.
        revision: u64,
        /// Cluster time, milliseconds since the Unix epoch.
        time: u64,
        /// The lease.
        lease: Lease,
    },
    /// An accepted lease ended.
    Expired {
        /// Revision.
        revision: u64,
        /// Cluster time, milliseconds since the Unix epoch.
        time: u64,
        /// The lease.
        lease: Lease,
    },
    /// A batch was stored.
    Stored(SizeRow),
    /// A node came up.
    NodeUp {
        /// Cluster time, milliseconds since the Unix epoch.
        time: u64,
        /// Its name.
        name: NodeName,
        /// Its new id.
        id: NodeId,
    },
    /// A node went down.
    NodeDown {
        /// Cluster time, milliseconds since the Unix epoch.
        time: u64,
        /// Its name.
        name: NodeName,
    },
}

impl LiveEvent {
    /// The name of its kind, as in its JSON form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elected { .. } => "elected",
            Self::Expired { .. } => "expired",
            Self::Stored(_) => "stored",
            Self::NodeUp { .. } => "node-up",
            Self::NodeDown { .. } => "node-down",
        }
    }

    /// The group it is about, if it is about one.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Elected { lease, .. } | Self::Expired { lease, .. } => Some(lease.group),
            _ => None,
        }
    }
}

/// Events that a slow reader may be behind before it loses some.
const EVENTS_KEPT: usize = 65_536;

/// The view. Cheap to read; the daemon's thread never waits for a reader.
pub struct View {
    status: Mutex<Status>,
    update: RwLock<Option<Arc<LeaseUpdate>>>,
    events: broadcast::Sender<Arc<LiveEvent>>,
    store: Arc<dyn Metastorage>,
}

impl View {
    /// A view of a store and of nothing else yet.
    pub fn new(store: Arc<dyn Metastorage>, status: Status) -> Self {
        Self {
            status: Mutex::new(status),
            update: RwLock::default(),
            events: broadcast::Sender::new(EVENTS_KEPT),
            store,
        }
    }

    /// How the daemon is doing.
    pub fn status(&self) -> Status {
        self.lock().clone()
    }

    /// Changes the status.
    pub fn update_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.lock());
    }

    /// The newest stored leases; none before the first batch.
    pub fn leases(&self) -> Option<Arc<LeaseUpdate>> {
        let update = self.update.read().unwrap_or_else(PoisonError::into_inner);
        update.clone()
    }

    /// Shows new leases.
    pub fn set_leases(&self, update: Arc<LeaseUpdate>) {
        *self.update.write().unwrap_or_else(PoisonError::into_inner) = Some(update);
    }

    /// What happens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<LiveEvent>> {
        self.events.subscribe()
    }

    /// Tells all who listen. Nobody has to.
    pub fn tell(&self, event: impl FnOnce() -> LiveEvent) {
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(Arc::new(event()));
        }
    }

    /// The store, to read from. Its methods may block.
    pub fn store(&self) -> &Arc<dyn Metastorage> {
        &self.store
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
