//! The processes of a cluster: nodes and drivers.

use std::collections::VecDeque;

use crate::model::ids::{Incarnation, NodeId, NodeName};
use crate::model::reads::Reads;
use crate::placement::driver::PlacementDriver;
use crate::placement::io::Revision;
use crate::placement::tracker::Tracker;
use crate::replica::Replica;

use super::clock::ProcessClock;
use super::event::Event;
use super::heap::Micros;
use super::scenario::CrashPoint;

/// A node, up or down.
#[derive(Debug)]
pub struct Member {
    /// Name, for life.
    pub name: NodeName,
    /// Its clock.
    pub clock: ProcessClock,
    /// What runs there, if it is up.
    pub up: Option<Running>,
    /// Since when it is down.
    pub down_since: Option<Micros>,
    /// What follows the store's watch.
    pub(super) stream: Stream,
    /// What waits while it stands still.
    pub(super) pause: Pause,
    /// When the membership service last heard of it.
    pub(super) heard_at: Micros,
    /// It says nothing to the membership service until then.
    pub(super) silent_until: Micros,
    /// Whether its return to the topology is under way.
    pub(super) joining: bool,
    /// What its release can read of stored leases.
    pub(super) reads: Reads,
    /// Whether the newest that it was shown is more than its release can read.
    pub(super) blind: bool,
}

/// What runs on a node that is up.
#[derive(Debug)]
pub struct Running {
    /// The side that answers offers and serves.
    pub replica: Replica,
    /// The side that knows who holds what.
    pub tracker: Tracker,
}

impl Member {
    /// A node that is down.
    pub(super) fn new(name: NodeName, clock: ProcessClock, reads: Reads) -> Self {
        Self {
            name,
            clock,
            up: None,
            down_since: Some(0),
            stream: Stream::default(),
            pause: Pause::default(),
            heard_at: 0,
            silent_until: 0,
            joining: false,
            reads,
            blind: false,
        }
    }

    /// Starts it under an id.
    pub(super) fn start(&mut self, now: Micros, id: NodeId, max_skew: u64) -> Incarnation {
        let me = Incarnation {
            name: self.name.clone(),
            id,
        };
        self.up = Some(Running {
            replica: Replica::new(me.clone(), max_skew),
            tracker: Tracker::new(max_skew),
        });
        self.down_since = None;
        self.heard_at = now;
        self.joining = true;
        self.blind = false;
        me
    }

    /// It crashes: what it was to do and to see is lost.
    pub(super) fn stop(&mut self, now: Micros) {
        self.up = None;
        self.down_since = Some(now);
        self.stream.reset();
        self.pause = Pause::default();
        self.joining = false;
    }

    /// Its present id, if it is up.
    pub fn id(&self) -> Option<NodeId> {
        self.up.as_ref().map(|up| up.replica.incarnation().id)
    }

    /// What its physical clock shows, milliseconds.
    pub fn physical(&self, now: Micros) -> u64 {
        self.clock.physical(now)
    }

    /// What its release can read of stored leases.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// Whether it stands still.
    pub fn is_paused(&self) -> bool {
        self.pause.until.is_some()
    }
}

/// A driver's process.
#[derive(Debug)]
pub(super) struct DriverSlot {
    /// What runs there, if it is up.
    pub up: Option<PlacementDriver>,
    /// Counts its starts and ends.
    pub generation: u64,
    /// Its clock.
    pub clock: ProcessClock,
    /// News of the metastorage, topology and assignments.
    pub stream: Stream,
    /// What waits while it stands still.
    pub pause: Pause,
    /// Where it is to crash.
    pub trap: Option<Trap>,
    /// What its release can read of stored leases.
    pub reads: Reads,
}

/// Where a driver is to crash, and for how long it is then down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub point: CrashPoint,
    pub down: Micros,
}

impl DriverSlot {
    /// A driver that is down.
    pub fn new(clock: ProcessClock, reads: Reads) -> Self {
        Self {
            up: None,
            generation: 0,
            clock,
            stream: Stream::default(),
            pause: Pause::default(),
            trap: None,
            reads,
        }
    }

    /// It crashes.
    pub fn stop(&mut self) {
        self.up = None;
        self.generation += 1;
        self.stream.reset();
        self.pause = Pause::default();
        self.trap = None;
    }
}

/// What arrives in order: nothing overtakes, and what can't be delivered now waits.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// When the last of it arrives.
    pub until: Micros,
    /// What waits for the link to work.
    pub waiting: VecDeque<Event>,
    /// The first revision among it.
    pub first: Option<Revision>,
}

impl Stream {
    /// Its consumer starts anew.
    pub fn reset(&mut self) {
        self.waiting.clear();
        self.first = None;
    }
}

/// A process that stands still handles everything when it goes on.
#[derive(Debug, Default)]
pub(super) struct Pause {
    /// Until when, if it does.
    pub until: Option<Micros>,
    /// What came meanwhile, in order.
    pub waiting: VecDeque<Event>,
}
