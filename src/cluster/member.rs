//! The processes of a cluster: nodes and drivers.

use crate::model::ids::{Incarnation, NodeId, NodeName};
use crate::placement::driver::PlacementDriver;
use crate::placement::tracker::Tracker;
use crate::replica::Replica;

use super::heap::{MILLI, Micros};

/// A node, up or down.
#[derive(Debug)]
pub struct Member {
    /// Name, for life.
    pub name: NodeName,
    /// How far its clock is ahead of true time, milliseconds.
    pub offset_ms: u64,
    /// What runs there, if it is up.
    pub up: Option<Running>,
    /// Since when it is down.
    pub down_since: Option<Micros>,
    /// When the last watched revision arrives: they don't overtake each other.
    pub(super) watched_until: Micros,
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
    pub(super) fn new(name: NodeName, offset_ms: u64) -> Self {
        Self {
            name,
            offset_ms,
            up: None,
            down_since: Some(0),
            watched_until: 0,
        }
    }

    /// Starts it under an id.
    pub(super) fn start(&mut self, id: NodeId, max_skew: u64) -> Incarnation {
        let me = Incarnation {
            name: self.name.clone(),
            id,
        };
        self.up = Some(Running {
            replica: Replica::new(me.clone(), max_skew),
            tracker: Tracker::new(max_skew),
        });
        self.down_since = None;
        me
    }

    /// Its present id, if it is up.
    pub fn id(&self) -> Option<NodeId> {
        self.up.as_ref().map(|up| up.replica.incarnation().id)
    }

    /// What its physical clock shows, milliseconds.
    pub fn physical(&self, now: Micros) -> u64 {
        now / MILLI + self.offset_ms
    }
}

/// A driver's process.
#[derive(Debug)]
pub(super) struct DriverSlot {
    /// What runs there, if it is up.
    pub up: Option<PlacementDriver>,
    /// Counts its starts.
    pub generation: u64,
    /// When the last news of the metastorage arrive: they don't overtake each other.
    pub informed_until: Micros,
}
