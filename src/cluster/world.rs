//! The cluster: everything that the protocol needs around it, except the store.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::model::diff::LeaseUpdate;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, GroupKind, Incarnation, NodeId, NodeName};
use crate::model::topology::{Assignments, Topology};
use crate::placement;
use crate::placement::activity::Role;
use crate::placement::driver::PlacementDriver;
use crate::placement::feed::Seen;
use crate::placement::io::{Now, Output, StoreReply};
use crate::placement::retention::Retain;
use crate::replica;

use super::catalog::Catalog;
use super::event::{CallId, Effect, Event, Notice, StoreCall};
use super::heap::{EventHeap, MILLI, Micros, TraceHash};
use super::leadership::Leadership;
use super::member::{DriverSlot, Member};
use super::scenario::{Scenario, node_name};

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
    pub(super) latest: Option<Arc<LeaseUpdate>>,
    pub(super) next_in_turn: usize,
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
        let nodes = (names.iter())
            .map(|name| {
                let offset = random.random_range(0..=scenario.clocks.max_offset_ms);
                Member::new(name.clone(), offset)
            })
            .collect();
        let mut catalog = Catalog::new(scenario.seed, names, shape.replicas as usize);
        for table in 1..=shape.tables {
            catalog.create(GroupKind::Table, table as i32, shape.partitions);
        }
        for zone in 1..=shape.zones {
            catalog.create(GroupKind::Zone, zone as i32, shape.zone_partitions);
        }
        let drivers = (0..shape.drivers)
            .map(|_| DriverSlot {
                up: None,
                generation: 0,
                informed_until: 0,
            })
            .collect();
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
            latest: None,
            next_in_turn: 0,
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
            let node = self.nodes[index].start(id, max_skew);
            self.topology.join(node);
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

    /// The store has answered a call, at a time.
    pub fn complete(&mut self, at: Micros, call: CallId, reply: StoreReply) {
        let input = placement::io::Input::Reply(call.id, reply);
        let at = at.max(self.now) + self.delay();
        let event = Event::Driver {
            index: call.driver,
            generation: call.generation,
            input,
        };
        self.heap.push(at, event);
    }

    /// The store's watch has shown a revision, at a time.
    pub fn observed(&mut self, at: Micros, seen: &Seen) {
        let at = at.max(self.now);
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Observed {
                epoch: seen.epoch.then_some(seen.revision),
                beat: seen.beat.is_some(),
            };
            self.inform_driver(at, index, input);
        }
        if let Some(update) = &seen.update {
            self.latest = Some(update.clone());
            for index in 0..self.nodes.len() {
                self.send_update(at, index, update.clone());
            }
        }
    }

    fn happen(&mut self, event: Event) {
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
            Event::Request(call) => self.effects.push(Effect::Store(call)),
            Event::Node { index, id, input } => self.node_input(index, id, input),
            Event::Watch { index, id, update } => {
                if self.nodes[index].id() == Some(id)
                    && let Some(up) = &mut self.nodes[index].up
                {
                    for event in up.tracker.apply(&update) {
                        self.trace.word(event.lease().group.packed());
                    }
                    let input = replica::Input::Applied((*update).clone());
                    self.node_input(index, id, input);
                }
            }
            Event::Progress { index, id, time } => {
                if self.nodes[index].id() == Some(id)
                    && let Some(up) = &mut self.nodes[index].up
                {
                    up.tracker.progress(time);
                }
            }
            Event::SafeTime => self.safe_time(),
            Event::Operation(index) => self.operate(index),
            Event::NodeUp(index) => self.start_node(index),
            Event::Joined { index, id } => {
                if self.nodes[index].id() == Some(id) {
                    let name = self.nodes[index].name.clone();
                    self.topology.join(Incarnation { name, id });
                    self.publish_topology();
                }
            }
            Event::Left { index, id } => {
                let name = self.nodes[index].name.clone();
                if self.topology.id_of(&name) == Some(id) {
                    self.topology.leave(&name);
                    self.publish_topology();
                }
            }
            Event::DriverUp(index) => {
                let assignments = Arc::new(self.assignments());
                self.start_driver(index, assignments);
            }
        }
    }

    fn drive(&mut self, index: usize, generation: u64, input: placement::io::Input) {
        let slot = &mut self.drivers[index];
        let (Some(driver), true) = (&mut slot.up, slot.generation == generation) else {
            return;
        };
        let now = Now {
            physical: self.now / MILLI,
            monotonic: (self.now - self.begin) / MILLI,
        };
        let mut outputs = Vec::new();
        driver.step(now, input, &mut outputs);
        for output in outputs {
            match output {
                Output::Store(id, request) => {
                    let at = self.now + self.delay();
                    let call = StoreCall {
                        driver: index,
                        generation,
                        id,
                        request,
                    };
                    self.heap.push(at, Event::Request(call));
                }
                Output::Grant(to, offer) => {
                    let Some(to) = self.index_of(to) else {
                        continue;
                    };
                    let leader = self.leader(offer.group);
                    self.send_node(to, replica::Input::Granted { offer, leader });
                }
                Output::Stopped(_, answer) => {
                    let stopped = answer.expiration.is_some();
                    self.effects.push(Effect::Notice(Notice::Stopped(stopped)));
                }
                Output::Notice(notice) => {
                    let notice = Notice::Driver(index, notice);
                    self.effects.push(Effect::Notice(notice));
                }
            }
        }
    }

    fn node_input(&mut self, index: usize, id: NodeId, input: replica::Input) {
        let physical = self.nodes[index].physical(self.now);
        let member = &mut self.nodes[index];
        if member.id() != Some(id) {
            return;
        }
        let name = member.name.clone();
        let Some(up) = &mut member.up else {
            return;
        };
        let mut outputs = Vec::new();
        up.replica.step(physical, input, &mut outputs);
        for output in outputs {
            match output {
                replica::Output::Answer(answer) => {
                    self.send_active(placement::io::Input::Answer(answer));
                }
                replica::Output::Stop(stop) => {
                    self.send_active(placement::io::Input::Stop(stop));
                }
                replica::Output::TakeLeadership(group) => {
                    self.leadership.take(group, name.clone());
                }
                replica::Output::CatchUp(group, start) => {
                    let most = self.scenario.failures.catch_up_ms * MILLI;
                    let at = self.now + self.random.random_range(0..=most);
                    let input = replica::Input::CaughtUp(group, start);
                    self.heap.push(at, Event::Node { index, id, input });
                }
                replica::Output::Wait(group, start, milliseconds) => {
                    let at = self.now + milliseconds * MILLI;
                    let input = replica::Input::CaughtUp(group, start);
                    self.heap.push(at, Event::Node { index, id, input });
                }
            }
        }
    }

    fn safe_time(&mut self) {
        let next = self.now + self.scenario.timings.safe_time_ms * MILLI;
        self.heap.push(next, Event::SafeTime);
        let Ok(time) = HybridTimestamp::new(self.now / MILLI, 0) else {
            return;
        };
        for index in 0..self.nodes.len() {
            if let Some(id) = self.nodes[index].id() {
                let at = self.in_watch_order(self.now, index);
                self.heap.push(at, Event::Progress { index, id, time });
            }
        }
    }

    pub(super) fn start_driver(&mut self, index: usize, assignments: Arc<Assignments>) {
        let store = &self.scenario.store;
        let retain = Retain {
            batches_ms: store.retain.as_millis() as u64,
            sizes_ms: store.retain_sizes.as_millis() as u64,
        };
        let mut driver =
            PlacementDriver::new(self.scenario.timings, retain, store.batches_per_snapshot());
        driver.assign(assignments);
        let slot = &mut self.drivers[index];
        slot.up = Some(driver);
        slot.generation += 1;
        let generation = slot.generation;
        let topology = placement::io::Input::Topology(self.topology.clone());
        for input in [topology, placement::io::Input::Start] {
            let event = Event::Driver {
                index,
                generation,
                input,
            };
            self.heap.push(self.now, event);
        }
        let first = self.now + self.scenario.timings.tick_ms * MILLI;
        self.heap.push(first, Event::Tick { index, generation });
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

    pub(super) fn index_of(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id() == Some(id))
    }

    pub(super) fn draw_id(&mut self) -> NodeId {
        NodeId::from_halves(self.random.random(), self.random.random())
    }
}

pub(super) fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(Micros::MAX / 4)
}
