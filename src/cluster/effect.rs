//! What a cluster wants of the crank that turns it, and what it has to tell.

use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{Incarnation, NodeId, NodeName};
use crate::model::message::GrantAnswer;
use crate::model::reads::Reads;
use crate::placement;
use crate::placement::io::{RequestId, Revision, StoreReply, StoreRequest};
use crate::placement::tracker::TrackerEvent;

use super::heap::{MILLI, Micros};
use super::scenario::{Action, Process};

/// A request of a driver to the store, to be carried out by the crank.
#[derive(Clone, Debug)]
pub struct StoreCall {
    /// Which driver asks, from 0.
    pub driver: usize,
    pub(super) generation: u64,
    pub(super) id: RequestId,
    /// When the driver asked.
    pub sent: Micros,
    /// What the driver's release can read.
    pub reads: Reads,
    /// What is wanted.
    pub request: StoreRequest,
    /// What is read comes damaged: decides how. Of a write, its event in the watch is meant.
    pub damage: Option<u64>,
    /// The driver does not learn the outcome.
    pub(super) forgotten: bool,
}

/// Names a call when its reply comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallId {
    /// Which driver asked, from 0.
    pub driver: usize,
    pub(super) generation: u64,
    pub(super) id: RequestId,
    /// The revision up to which history is to be forgotten, of such a call.
    pub(super) compacts: Option<Revision>,
    pub(super) forgotten: bool,
}

impl StoreCall {
    /// Its name.
    pub fn call_id(&self) -> CallId {
        let compacts = match self.request {
            StoreRequest::Compact(revision) => Some(revision),
            _ => None,
        };
        CallId {
            driver: self.driver,
            generation: self.generation,
            id: self.id,
            compacts,
            forgotten: self.forgotten,
        }
    }
}

/// What a step of the cluster wants of its crank.
#[derive(Debug)]
pub enum Effect {
    /// Carry this out and call [`complete`](super::world::Cluster::complete).
    Store(StoreCall),
    /// The store has crashed: all after this revision is lost.
    StoreCrashed(Revision),
    /// Store the same leases again, as somebody else would.
    Rewrite,
    /// Forget history up to this revision.
    Compact(Revision),
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
    /// A driver's process ended.
    DriverDown(usize),
    /// A driver's process began.
    DriverUp(usize),
    /// An operation of the scenario was carried out.
    Done(Action),
    /// All faults have ended.
    Healed,
    /// A node (from 0) answered an offer. Its tracker and replica are as they were then.
    Answered(usize, GrantAnswer),
    /// What a node's (from 0) tracker made of a revision, in which of its lives.
    Tracked(usize, NodeId, Vec<TrackerEvent>),
    /// A node (from 0) was shown a revision that its release can't read.
    CannotRead(usize, Revision),
    /// A message did not get through.
    MessageLost(Process, Process),
    /// A stream of the store could not be resumed, so what is stored was read again.
    ReadAgain(Process),
}

/// The reply to a call that could not be carried out, or whose outcome is not known.
pub(super) fn unknown(reason: &str) -> StoreReply {
    StoreReply::Unknown(reason.to_owned())
}

/// The store's clock, for what it tells by itself.
pub(super) fn store_time(now: Micros) -> Option<HybridTimestamp> {
    HybridTimestamp::new(now / MILLI, 0).ok()
}
