//! The cluster: everything that the protocol needs around it, except the store.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::model::ids::{GroupId, GroupKind, NodeId, NodeName};
use crate::model::topology::{Assignments, Topology};
use crate::placement;
use crate::placement::activity::Role;
use crate::placement::driver::PlacementDriver;

use super::catalog::Catalog;
use super::clock::ProcessClock;
use super::event::{Effect, Event, Shown};
use super::heap::{EventHeap, MILLI, Micros, TraceHash};
use super::leadership::Leadership;
use super::member::{DriverSlot, Member};
use super::network::Network;
use super::scenario::{Scenario, node_name};
use super::storage::Storage;

/// A simulated cluster. A crank calls [`step`](Self::step), carries out the effects and reports
/// back with [`complete`](Self::complete) and [`observed`](Self::observed).
pub struct Cluster {
    pub(super) scenario: Scenario,
    pub(super) begin: Micros,
    pub(super) now: Micros,
    pub(super) random: ChaCha8Rng,
    pub(super) heap: EventHeap<Event>,
    pub(super) trace: TraceHash,
    pub(super) catalog: Catalog,
    pub(super) leadership: Leadership,
    pub(super) topology: Topology,
    pub(super) nodes: Vec<Member>,
    pub(super) drivers: Vec<DriverSlot>,
    pub(super) network: Network,
    pub(super) storage: Storage,
    /// The newest batch that watchers may see.
    pub(super) latest: Option<Shown>,
    pub(super) next_in_turn: usize,
    pub(super) healed_at: Option<Micros>,
    pub(super) effects: Vec<Effect>,
}

impl Cluster {
    /// A cluster of a valid scenario at a time (microseconds since the Unix epoch). `ids` are
    /// the ids of its nodes if they have been running before; else they are drawn.
    pub fn new(scenario: Scenario, begin: Micros, ids: &[NodeId]) -> Self {
        // A cluster that goes on from stored data must not draw the same ids again.
        let mut random = ChaCha8Rng::seed_from_u64(scenario.seed ^ begin.rotate_left(32));
        let shape = scenario.cluster;
        let names: Vec<NodeName> = (1..=shape.nodes).map(|n| node_name(n).into()).collect();
        let (most, bound) = (scenario.clocks.max_offset_ms, scenario.clock_bound_ms());
        let mut clock = || ProcessClock::new(random.random_range(0..=most), bound);
        let nodes = (names.iter())
            .map(|name| Member::new(name.clone(), clock(), shape.reads))
            .collect();
        let drivers = (0..shape.drivers)
            .map(|_| DriverSlot::new(clock(), shape.reads))
            .collect();
        let mut catalog = Catalog::new(scenario.seed, names, shape.replicas as usize);
        for table in 1..=shape.tables {
            catalog.create(GroupKind::Table, table as i32, shape.partitions);
        }
        for zone in 1..=shape.zones {
            catalog.create(GroupKind::Zone, zone as i32, shape.zone_partitions);
        }
        let mut cluster = Self {
            begin,
            now: begin,
            random,
            heap: EventHeap::default(),
            trace: TraceHash::default(),
            catalog,
            leadership: Leadership::default(),
            topology: Topology::default(),
            nodes,
            drivers,
            network: Network::default(),
            storage: Storage::default(),
            latest: None,
            next_in_turn: 0,
            healed_at: None,
            effects: Vec::new(),
            scenario,
        };
        cluster.boot(ids);
        cluster
    }

    fn boot(&mut self, ids: &[NodeId]) {
        let max_skew = self.scenario.timings.max_skew_ms;
        for index in 0..self.nodes.len() {
            let drawn = self.draw_id();
            let id = ids.get(index).copied().unwrap_or(drawn);
            let node = self.nodes[index].start(self.now, id, max_skew);
            self.nodes[index].joining = false;
            self.topology.join(node, self.nodes[index].reads);
        }
        let assignments = Arc::new(self.assignments());
        for index in 0..self.drivers.len() {
            self.start_driver(index, assignments.clone());
        }
        self.heap.push(self.now, Event::SafeTime);
        for index in 0..self.scenario.operations.len() {
            let at = micros(self.scenario.operations[index].at);
            self.heap.push(self.begin + at, Event::Operation(index));
        }
        if let Some(heal) = self.scenario.heal {
            self.heap.push(self.begin + micros(heal), Event::Heal);
        }
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Micros> {
        self.heap.next_at()
    }

    /// The time of the last event.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// The time at which it began.
    pub fn begin(&self) -> Micros {
        self.begin
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Member] {
        &self.nodes
    }

    /// What exists.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What each driver is, `None` for one that is down.
    pub fn roles(&self) -> impl Iterator<Item = Option<&Role>> {
        self.drivers
            .iter()
            .map(|slot| slot.up.as_ref().map(PlacementDriver::role))
    }

    /// Assigned groups none of whose replicas is up, as the active driver counted them.
    pub fn groups_without_candidate(&self) -> usize {
        let drivers = self.drivers.iter().filter_map(|slot| slot.up.as_ref());
        drivers
            .map(PlacementDriver::groups_without_candidate)
            .max()
            .unwrap_or(0)
    }

    /// The hash of every event so far: equal for equal seeds.
    pub fn trace_hash(&self) -> u64 {
        self.trace.value()
    }

    /// Nothing happens until this time.
    pub fn pass(&mut self, until: Micros) {
        self.now = self.now.max(until);
    }

    /// Lets the next event happen. Returns what it wants of the crank, in order.
    pub fn step(&mut self) -> Vec<Effect> {
        if let Some((at, event)) = self.heap.pop() {
            self.now = self.now.max(at);
            self.trace.word(self.now);
            event.digest(&mut self.trace);
            self.happen(event);
        }
        std::mem::take(&mut self.effects)
    }

    /// When all faults have ended, if they have.
    pub fn healed_at(&self) -> Option<Micros> {
        self.healed_at
    }

    /// The nodes that are in the topology, under the ids that it has.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// When the next event is going to happen, at the latest time that has been already.
    pub fn now_at_next(&self) -> Micros {
        self.next_at().map_or(self.now, |at| at.max(self.now))
    }

    /// Whether a driver stands still.
    pub fn is_driver_paused(&self, index: usize) -> bool {
        let slot = self.drivers.get(index);
        slot.is_some_and(|slot| slot.pause.until.is_some())
    }

    /// The event that is going to happen next.
    pub fn peek(&self) -> Option<&Event> {
        self.heap.peek()
    }

    /// Handles an event, unless its process stands still.
    fn happen(&mut self, event: Event) {
        let Some(event) = self.hold(event) else {
            return;
        };
        self.handle(event);
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Driver {
                index,
                generation,
                input,
            } => self.drive(index, generation, input),
            Event::Tick { index, generation } => {
                if self.drivers[index].generation == generation {
                    let next = self.now + self.scenario.timings.tick_ms * MILLI;
                    self.heap.push(next, Event::Tick { index, generation });
                    self.drive(index, generation, placement::io::Input::Tick);
                }
            }
            Event::Request(call) => self.serve(call),
            Event::Served {
                incarnation,
                call,
                reply,
            } => self.served(incarnation, call, reply),
            Event::Synced {
                incarnation,
                revision,
            } => self.synced(incarnation, revision),
            Event::Shown { incarnation, seen } => self.shown(incarnation, &seen),
            Event::StoreUp => self.start_store(),
            Event::Node { index, id, input } => self.node_input(index, id, input),
            Event::Watch { index, id, shown } => self.watch(index, id, shown),
            Event::Progress { index, id, time } => {
                if self.nodes[index].id() == Some(id)
                    && !self.nodes[index].blind
                    && let Some(up) = &mut self.nodes[index].up
                {
                    up.tracker.progress(time);
                }
            }
            Event::SafeTime => self.safe_time(),
            Event::Operation(index) => self.operate(index),
            Event::NodeUp(index) => self.start_node(index),
            Event::NodeDown(index) => {
                if self.healed_at.is_none() {
                    self.stop_node(index);
                }
            }
            Event::Joined { index, id } => self.joined(index, id),
            Event::Left { index, id } => self.left(index, id),
            Event::DriverLeft { index, generation } => self.driver_left(index, generation),
            Event::Upgraded { process, reads } => self.upgrade(process, reads),
            Event::DriverUp(index) => {
                if self.drivers[index].up.is_none() {
                    let assignments = Arc::new(self.assignments());
                    self.start_driver(index, assignments);
                }
            }
            Event::Resumed(process) => self.resume(process),
            Event::Expired => {
                self.network.expire(self.now);
                self.resume_streams();
            }
            Event::Moved(groups) => self.moved(&groups),
            Event::Heal => self.heal(),
        }
    }

    pub(super) fn leader(&mut self, group: GroupId) -> Option<NodeName> {
        let assignment = self.catalog.assignment(group);
        let election = self.scenario.failures.election_ms * MILLI;
        let nodes = &self.nodes;
        let down_since = |name: &str| {
            let member = nodes.iter().find(|node| *node.name == *name);
            member.map_or(Some(0), |node| node.down_since)
        };
        (self.leadership).leader(group, &assignment, self.now, election, down_since)
    }

    pub(super) fn assignments(&self) -> Assignments {
        let groups = self.catalog.groups();
        groups
            .map(|group| (group, self.catalog.assignment(group)))
            .collect()
    }

    pub(super) fn draw_id(&mut self) -> NodeId {
        NodeId::from_halves(self.random.random(), self.random.random())
    }
}

pub(super) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(Micros::MAX / 4)
}
