//! What happens in a cluster, and what it wants of the crank that turns it.

use std::sync::Arc;

use crate::model::diff::LeaseUpdate;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{Incarnation, NodeId, NodeName};
use crate::placement;
use crate::placement::io::{RequestId, StoreReply, StoreRequest};
use crate::replica;

use super::heap::TraceHash;

/// An event on the heap. A node's id, or a driver's generation, says which incarnation it is
/// meant for: one for a former incarnation is lost, as a message to a dead process is.
#[derive(Debug)]
pub(super) enum Event {
    /// An input arrives at a driver.
    Driver {
        index: usize,
        generation: u64,
        input: placement::io::Input,
    },
    /// A driver's tick; each makes the next.
    Tick { index: usize, generation: u64 },
    /// A driver's request arrives at the store.
    Request(StoreCall),
    /// An input arrives at a node.
    Node {
        index: usize,
        id: NodeId,
        input: replica::Input,
    },
    /// A watched revision arrives at a node.
    Watch {
        index: usize,
        id: NodeId,
        update: Arc<LeaseUpdate>,
    },
    /// The store tells a node how far it has seen everything.
    Progress {
        index: usize,
        id: NodeId,
        time: HybridTimestamp,
    },
    /// The store's idle progress; each makes the next.
    SafeTime,
    /// An operation of the scenario.
    Operation(usize),
    /// A node starts.
    NodeUp(usize),
    /// A node's start is noticed.
    Joined { index: usize, id: NodeId },
    /// A node's end is noticed.
    Left { index: usize, id: NodeId },
    /// A driver starts.
    DriverUp(usize),
}

impl Event {
    /// Adds the event to the hash of the trace.
    pub(super) fn digest(&self, hash: &mut TraceHash) {
        let mut words = |words: &[u64]| words.iter().for_each(|word| hash.word(*word));
        let half = |id: &NodeId| id.halves().0;
        match self {
            Self::Driver {
                index,
                generation,
                input,
            } => {
                words(&[1, *index as u64, *generation]);
                digest_driver_input(input, hash);
            }
            Self::Tick { index, generation } => words(&[2, *index as u64, *generation]),
            Self::Request(call) => {
                words(&[3, call.driver as u64, call.generation, call.id]);
                if let StoreRequest::Write(write) = &call.request {
                    let common = write.batch.common_expiration().composite();
                    hash.word(write.chain.base());
                    hash.word(write.chain.step());
                    hash.word(common);
                    hash.word(write.batch.len() as u64);
                    hash.word(u64::from(write.cause.changed()));
                }
            }
            Self::Node { index, id, input } => {
                words(&[4, *index as u64, half(id)]);
                digest_node_input(input, hash);
            }
            Self::Watch { index, id, update } => {
                let time = update.time.composite();
                words(&[5, *index as u64, half(id), update.revision, time]);
            }
            Self::Progress { index, id, time } => {
                words(&[6, *index as u64, half(id), time.composite()]);
            }
            Self::SafeTime => words(&[7]),
            Self::Operation(index) => words(&[8, *index as u64]),
            Self::NodeUp(index) => words(&[9, *index as u64]),
            Self::Joined { index, id } => words(&[10, *index as u64, half(id)]),
            Self::Left { index, id } => words(&[11, *index as u64, half(id)]),
            Self::DriverUp(index) => words(&[12, *index as u64]),
        }
    }
}

fn digest_driver_input(input: &placement::io::Input, hash: &mut TraceHash) {
    use placement::io::Input;
    let mut words = |words: &[u64]| words.iter().for_each(|word| hash.word(*word));
    match input {
        Input::Start => words(&[1]),
        Input::Tick => words(&[2]),
        Input::Topology(topology) => {
            words(&[3, topology.len() as u64]);
            for node in topology.nodes() {
                hash.text(&node.name);
                hash.word(node.id.halves().0);
            }
        }
        Input::Assignments(changes) => {
            words(&[4, changes.len() as u64]);
            for (group, change) in changes {
                hash.word(group.packed());
                hash.word(u64::from(change.is_some()));
            }
        }
        Input::Reply(id, reply) => {
            let (kind, revision) = match reply {
                StoreReply::Won(revision) => (1, *revision),
                StoreReply::Written { revision, .. } => (8, *revision),
                StoreReply::Lost(stored) => (2, stored.revision),
                StoreReply::Read(stored) => (3, stored.revision),
                StoreReply::Unknown(_) => (4, 0),
                StoreReply::Unavailable(_) => (5, 0),
                StoreReply::Unreadable(_) => (6, 0),
                StoreReply::Unencodable(_) => (7, 0),
            };
            words(&[5, *id, kind, revision]);
        }
        Input::Observed { epoch, beat } => words(&[6, epoch.unwrap_or(0), u64::from(*beat)]),
        Input::Answer(answer) => words(&[
            7,
            answer.group.packed(),
            answer.start.composite(),
            answer.node.halves().0,
            answer.sent.composite(),
        ]),
        Input::Stop(stop) => words(&[8, stop.group.packed(), stop.holder.halves().0]),
    }
}

fn digest_node_input(input: &replica::Input, hash: &mut TraceHash) {
    use replica::Input;
    let (kind, group, time) = match input {
        Input::Granted { offer, .. } => (1, offer.group.packed(), offer.start.composite()),
        Input::CaughtUp(group, start) => (2, group.packed(), start.composite()),
        Input::Applied(update) => (3, update.revision, update.time.composite()),
        Input::Resign(group, _) => (4, group.packed(), 0),
    };
    for word in [kind, group, time] {
        hash.word(word);
    }
}

/// A request of a driver to the store, to be carried out by the crank.
#[derive(Clone, Debug)]
pub struct StoreCall {
    pub(super) driver: usize,
    pub(super) generation: u64,
    pub(super) id: RequestId,
    /// What is wanted.
    pub request: StoreRequest,
}

/// Names a call when its reply comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallId {
    pub(super) driver: usize,
    pub(super) generation: u64,
    pub(super) id: RequestId,
}

impl StoreCall {
    /// Its name.
    pub fn call_id(&self) -> CallId {
        CallId {
            driver: self.driver,
            generation: self.generation,
            id: self.id,
        }
    }
}

/// What a step of the cluster wants of its crank.
#[derive(Debug)]
pub enum Effect {
    /// Carry this out and call [`complete`](super::world::Cluster::complete).
    Store(StoreCall),
    /// Something worth telling.
    Notice(Notice),
}

/// Something worth telling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A driver has something to say.
    Driver(usize, placement::io::Notice),
    /// A node came up under a new id.
    NodeUp(Incarnation),
    /// A node went down.
    NodeDown(NodeName),
    /// Tables were created: so many groups more.
    Created(usize),
    /// Tables were dropped: so many groups less.
    Dropped(usize),
    /// A holder was told whether its lease is not going to be prolonged.
    Stopped(bool),
}
