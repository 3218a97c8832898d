//! What goes over the cluster's network: every message is delayed, and what follows the store's
//! watch arrives in order.

use std::sync::Arc;

use rand::RngExt;

use crate::model::diff::LeaseUpdate;
use crate::placement;
use crate::placement::activity::Role;
use crate::replica;

use super::event::Event;
use super::heap::Micros;
use super::world::Cluster;

impl Cluster {
    /// When something that follows the store's watch arrives at a node.
    pub(super) fn in_watch_order(&mut self, from: Micros, index: usize) -> Micros {
        let at = (from + self.delay()).max(self.nodes[index].watched_until);
        self.nodes[index].watched_until = at;
        at
    }

    pub(super) fn send_update(&mut self, from: Micros, index: usize, update: Arc<LeaseUpdate>) {
        if let Some(id) = self.nodes[index].id() {
            let at = self.in_watch_order(from, index);
            self.heap.push(at, Event::Watch { index, id, update });
        }
    }

    pub(super) fn send_driver(&mut self, from: Micros, index: usize, input: placement::io::Input) {
        let at = from + self.delay();
        self.arrive(at, index, input);
    }

    /// News of the metastorage, which arrive in order.
    pub(super) fn inform_driver(
        &mut self,
        from: Micros,
        index: usize,
        input: placement::io::Input,
    ) {
        let at = (from + self.delay()).max(self.drivers[index].informed_until);
        self.drivers[index].informed_until = at;
        self.arrive(at, index, input);
    }

    /// An input arrives at what runs on a driver's place now, not at what may run there then.
    fn arrive(&mut self, at: Micros, index: usize, input: placement::io::Input) {
        let generation = self.drivers[index].generation;
        let event = Event::Driver {
            index,
            generation,
            input,
        };
        self.heap.push(at, event);
    }

    /// To every driver that believes that it is the active one.
    pub(super) fn send_active(&mut self, input: placement::io::Input) {
        for index in 0..self.drivers.len() {
            let driver = self.drivers[index].up.as_ref();
            if driver.is_some_and(|driver| matches!(driver.role(), Role::Active { .. })) {
                self.send_driver(self.now, index, input.clone());
            }
        }
    }

    pub(super) fn send_node(&mut self, index: usize, input: replica::Input) {
        if let Some(id) = self.nodes[index].id() {
            let at = self.now + self.delay();
            self.heap.push(at, Event::Node { index, id, input });
        }
    }

    pub(super) fn publish_topology(&mut self) {
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Topology(self.topology.clone());
            self.inform_driver(self.now, index, input);
        }
    }

    pub(super) fn delay(&mut self) -> Micros {
        let network = &self.scenario.network;
        self.random.random_range(network.min_us..=network.max_us)
    }
}
