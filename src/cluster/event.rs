//! What happens in a cluster.

use std::sync::Arc;

use crate::model::diff::LeaseUpdate;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::model::reads::Reads;
use crate::placement;
use crate::placement::feed::Seen;
use crate::placement::io::{Revision, StoreReply};
use crate::replica;

pub use super::effect::{CallId, Effect, Notice, StoreCall};
use super::scenario::Process;

/// A batch, as the store shows it to nodes.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The leases, and what has changed.
    pub update: Arc<LeaseUpdate>,
    /// What it takes to read that.
    pub needs: Reads,
}

/// An event on the heap. A node's id, a driver's generation or the store's incarnation says which
/// life of the process it is meant for: one for a former life is lost, as a message to a dead
/// process is. Processes are numbered from 0.
#[derive(Debug)]
pub enum Event {
    /// An input arrives at a driver.
    Driver {
        /// Which.
        index: usize,
        /// In which of its lives.
        generation: u64,
        /// What.
        input: placement::io::Input,
    },
    /// A driver's tick; each makes the next.
    Tick {
        /// Which.
        index: usize,
        /// In which of its lives.
        generation: u64,
    },
    /// A driver's request arrives at the store.
    Request(StoreCall),
    /// The store has served a request, and the reply leaves it.
    Served {
        /// In which of its lives.
        incarnation: u64,
        /// Which.
        call: CallId,
        /// The reply.
        reply: StoreReply,
    },
    /// The store has synced everything up to a revision.
    Synced {
        /// In which of its lives.
        incarnation: u64,
        /// The revision.
        revision: Revision,
    },
    /// The store shows a revision to its watchers.
    Shown {
        /// In which of its lives.
        incarnation: u64,
        /// What they see.
        seen: Box<Seen>,
    },
    /// The store is back after a crash.
    StoreUp,
    /// An input arrives at a node.
    Node {
        /// Which.
        index: usize,
        /// In which of its lives.
        id: NodeId,
        /// What.
        input: replica::Input,
    },
    /// A watched revision arrives at a node.
    Watch {
        /// Which.
        index: usize,
        /// In which of its lives.
        id: NodeId,
        /// The revision.
        shown: Shown,
    },
    /// The store tells a node how far it has seen everything.
    Progress {
        /// Which.
        index: usize,
        /// In which of its lives.
        id: NodeId,
        /// Up to when.
        time: HybridTimestamp,
    },
    /// The store's idle progress; each makes the next.
    SafeTime,
    /// An operation of the scenario, by its number from 0.
    Operation(usize),
    /// A node starts.
    NodeUp(usize),
    /// A node crashes.
    NodeDown(usize),
    /// A node's start is noticed.
    Joined {
        /// Which.
        index: usize,
        /// In which of its lives.
        id: NodeId,
    },
    /// A node's end is noticed.
    Left {
        /// Which.
        index: usize,
        /// In which of its lives.
        id: NodeId,
    },
    /// A driver starts.
    DriverUp(usize),
    /// A driver's end is noticed.
    DriverLeft {
        /// Which.
        index: usize,
        /// In which of its lives it ended.
        generation: u64,
    },
    /// A process is stopped, and starts again with another release.
    Upgraded {
        /// Which.
        process: Process,
        /// What that release can read.
        reads: Reads,
    },
    /// A process that stood still may go on.
    Resumed(Process),
    /// Something that impaired the network may be over.
    Expired,
    /// The replicas of groups have arrived at their new places.
    Moved(Vec<GroupId>),
    /// All faults end.
    Heal,
}
