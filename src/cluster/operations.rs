//! What a scenario has happen: processes crash, stand still and start, the network and the store
//! fail, clocks step, tables come and go, holders resign; and the end of all faults.

use std::sync::Arc;

use rand::RngExt;

use crate::model::ids::GroupId;
use crate::placement;
use crate::placement::activity::Role;
use crate::placement::driver::PlacementDriver;
use crate::replica;

use super::event::{Effect, Event, Notice};
use super::heap::{MILLI, Micros};
use super::member::Trap;
use super::network::{Impairment, Trouble};
use super::scenario::{Action, CrashPoint, MAX_GROUPS, Operation, Place, Process};
use super::world::{Cluster, micros};

impl Cluster {
    pub(super) fn operate(&mut self, index: usize) {
        if self.healed_at.is_some() {
            return;
        }
        let operation = self.scenario.operations[index].clone();
        if let Some(every) = operation.every {
            self.heap
                .push(self.now + micros(every), Event::Operation(index));
        }
        let done = Notice::Done(operation.action);
        self.effects.push(Effect::Notice(done));
        match operation.action {
            Action::RestartNode => {
                let node = self.chosen_node(&operation);
                self.restart_node(node, 0, micros(operation.down()));
            }
            Action::CrashNode => {
                let node = self.chosen_node(&operation);
                self.stop_node(node);
            }
            Action::StartNode => {
                let node = self.chosen_node(&operation);
                self.start_node(node);
            }
            Action::RollingRestart => {
                let down = micros(operation.down());
                for node in 0..self.nodes.len() {
                    let after = node as Micros * (down + self.settling_time());
                    self.restart_node(node, after, down);
                }
            }
            Action::RestartStorm => {
                let node = self.chosen_node(&operation);
                let down = micros(operation.down());
                for turn in 0..Micros::from(operation.count()) {
                    self.restart_node(node, turn * (down + self.settling_time()), down);
                }
            }
            Action::PauseNode => {
                let node = self.chosen_node(&operation);
                self.pause(Process::Node(node), micros(operation.lasts()));
            }
            Action::LeaveNode => {
                let node = self.chosen_node(&operation);
                self.nodes[node].silent_until = self.now + micros(operation.lasts());
                if let Some(id) = self.nodes[node].id() {
                    self.left(node, id);
                }
            }
            Action::Cut
            | Action::Partition
            | Action::Lose
            | Action::Duplicate
            | Action::Reorder
            | Action::SlowLink
            | Action::SlowNode
            | Action::Clog
            | Action::LagWatch
            | Action::CutWatch => self.impair(&operation),
            Action::StepClock | Action::DriftClock => self.disturb_clocks(&operation),
            Action::CrashStore => self.crash_store(micros(operation.down())),
            Action::SlowStore => {
                let until = self.now + micros(operation.lasts());
                self.storage.slow = (micros(operation.delay()), until);
            }
            Action::StallStore => self.pause(Process::Store, micros(operation.lasts())),
            Action::FillStore => {
                self.storage.full_until = self.now + micros(operation.lasts());
            }
            Action::Conflict => {
                if self.takes_writes() {
                    self.effects.push(Effect::Rewrite);
                }
            }
            Action::LoseOutcome => self.storage.forgets += operation.count(),
            Action::Compact => self.compact_all(),
            Action::Corrupt => self.storage.damages += operation.count(),
            Action::CrashDriver => self.crash_driver(&operation),
            Action::RestartDriver => {
                let active = |index: &usize| {
                    let role = self.drivers[*index].up.as_ref().map(PlacementDriver::role);
                    matches!(role, Some(Role::Active { .. }))
                };
                if let Some(index) = (0..self.drivers.len()).find(active) {
                    self.stop_driver(index);
                    let back = self.now + micros(operation.down());
                    self.heap.push(back, Event::DriverUp(index));
                }
            }
            Action::Upgrade => self.roll_out(&operation),
            Action::PauseDriver => {
                if let Some(index) = self.chosen_driver(&operation) {
                    self.pause(Process::Driver(index), micros(operation.lasts()));
                }
            }
            Action::CreateTables => {
                let partitions = self.scenario.cluster.partitions;
                let room = MAX_GROUPS.saturating_sub(self.catalog.group_count());
                let tables = (room / u64::from(partitions)).min(operation.count().into());
                let groups: Vec<_> = (0..tables)
                    .flat_map(|_| self.catalog.create_next(partitions))
                    .collect();
                self.effects
                    .push(Effect::Notice(Notice::Created(groups.len())));
                self.reassign(&groups);
            }
            Action::DropTables => {
                let groups: Vec<_> = (0..operation.count())
                    .flat_map(|_| self.catalog.drop_oldest())
                    .collect();
                groups
                    .iter()
                    .for_each(|group| self.leadership.forget(*group));
                self.effects
                    .push(Effect::Notice(Notice::Dropped(groups.len())));
                self.reassign(&groups);
            }
            Action::MoveAssignments => self.move_assignments(&operation),
            Action::Resign => {
                let node = self.chosen_node(&operation);
                self.resign(node, operation.count() as usize);
            }
        }
    }

    /// Until a node that came up can have been given leases.
    pub(super) fn settling_time(&self) -> Micros {
        let timings = &self.scenario.timings;
        (self.scenario.failures.join_ms + 2 * timings.tick_ms) * MILLI
    }

    fn restart_node(&mut self, node: usize, after: Micros, down: Micros) {
        if after == 0 {
            self.stop_node(node);
        } else {
            self.heap.push(self.now + after, Event::NodeDown(node));
        }
        self.heap.push(self.now + after + down, Event::NodeUp(node));
    }

    /// The node that an operation names, or the next in turn.
    fn chosen_node(&mut self, operation: &Operation) -> usize {
        let named = operation.node.as_deref();
        let named = named.and_then(|name| self.nodes.iter().position(|node| *node.name == *name));
        named.unwrap_or_else(|| {
            self.next_in_turn += 1;
            (self.next_in_turn - 1) % self.nodes.len()
        })
    }

    /// The driver that an operation names, or the active one.
    fn chosen_driver(&self, operation: &Operation) -> Option<usize> {
        let named = operation.of;
        match named {
            Some(place) => {
                (0..self.drivers.len()).find(|index| place.covers(Process::Driver(*index)))
            }
            None => self.active_driver(),
        }
    }

    fn crash_driver(&mut self, operation: &Operation) {
        let down = micros(operation.down());
        let point = operation.point.unwrap_or_default();
        let Some(index) = self.chosen_driver(operation) else {
            return;
        };
        if point == CrashPoint::Now {
            self.stop_driver(index);
            self.heap.push(self.now + down, Event::DriverUp(index));
        } else {
            self.drivers[index].trap = Some(Trap { point, down });
        }
    }

    fn impair(&mut self, operation: &Operation) {
        let until = self.now + micros(operation.lasts());
        let late = micros(operation.delay());
        let everybody = Place::All;
        let (from, to) = (
            operation.from.unwrap_or(everybody),
            operation.to.unwrap_or(everybody),
        );
        let store = Place::One(Process::Store);
        let (from, to, trouble, both) = match operation.action {
            Action::Cut => (from, to, Trouble::Cut, false),
            Action::Partition => (from, to, Trouble::Cut, true),
            Action::Lose => (from, to, Trouble::Lose(operation.percent()), false),
            Action::Duplicate => (from, to, Trouble::Duplicate(operation.percent()), false),
            Action::Reorder => (from, to, Trouble::Reorder(late), false),
            Action::SlowLink => (from, to, Trouble::Slow(late), false),
            Action::Clog => (from, to, Trouble::Clog, false),
            Action::SlowNode => {
                let node = Place::One(Process::Node(self.chosen_node(operation)));
                (node, everybody, Trouble::Slow(late), true)
            }
            Action::LagWatch => {
                let to = operation.of.unwrap_or(everybody);
                (store, to, Trouble::LagWatch(late), false)
            }
            _ => {
                let to = operation.of.unwrap_or(everybody);
                (store, to, Trouble::CutWatch, false)
            }
        };
        let impairment = Impairment {
            from,
            to,
            trouble,
            until,
        };
        self.network.impair(impairment);
        if both && from != to {
            let (from, to) = (to, from);
            self.network.impair(Impairment {
                from,
                to,
                ..impairment
            });
        }
        self.heap.push(until, Event::Expired);
    }

    fn disturb_clocks(&mut self, operation: &Operation) {
        let of = operation.of.unwrap_or_default();
        let now = self.now;
        let nodes = (self.nodes.iter_mut().enumerate())
            .map(|(index, node)| (Process::Node(index), &mut node.clock));
        let drivers = (self.drivers.iter_mut().enumerate())
            .map(|(index, slot)| (Process::Driver(index), &mut slot.clock));
        for (process, clock) in nodes.chain(drivers) {
            if !of.covers(process) {
                continue;
            }
            match operation.action {
                Action::StepClock => clock.step(now, operation.step_ms.unwrap_or(100)),
                _ => clock.drift(now, operation.ppm.unwrap_or(500)),
            }
        }
    }

    fn move_assignments(&mut self, operation: &Operation) {
        let all: Vec<GroupId> = self.catalog.groups().collect();
        let from = self.random.random_range(0..all.len().max(1));
        let count = operation.count() as usize;
        let chosen = all.iter().cycle().skip(from).take(count.min(all.len()));
        let groups: Vec<GroupId> = chosen.copied().collect();
        for group in &groups {
            self.catalog.depart(*group);
        }
        self.reassign(&groups);
        let arrived = self.now + micros(operation.lasts());
        self.heap.push(arrived, Event::Moved(groups));
    }

    /// Replicas that were on the move have arrived.
    pub(super) fn moved(&mut self, groups: &[GroupId]) {
        for group in groups {
            self.catalog.arrive(*group);
        }
        self.reassign(groups);
    }

    /// All faults end. A node or a driver may be lost for good: the rest has to do without.
    pub(super) fn heal(&mut self) {
        self.healed_at = Some(self.now.max(self.late_until()));
        self.effects.push(Effect::Notice(Notice::Healed));
        self.network.heal();
        self.storage.heal();
        self.start_store();
        self.resume_all();
        self.resume_streams();
        self.moved(&self.catalog.on_the_move());
        let nodes = self.nodes.len();
        let lost = self.random.random_range(0..3 * nodes);
        for node in 0..nodes {
            self.nodes[node].silent_until = 0;
            if node == lost && nodes > 1 {
                self.stop_node(node);
            } else {
                self.start_node(node);
            }
        }
        let drivers = self.drivers.len();
        let lost = self.random.random_range(0..4 * drivers);
        // Drivers must not be left alone with what they can't read.
        let stored = self.latest.as_ref().map(|shown| shown.needs);
        let newest = (self.drivers.iter().map(|slot| slot.reads))
            .chain(stored)
            .max()
            .unwrap_or_default();
        let assignments = Arc::new(self.assignments());
        for driver in 0..drivers {
            self.drivers[driver].trap = None;
            let up = self.drivers[driver].up.as_ref();
            let older = self.drivers[driver].reads < newest;
            let halted = up.is_some_and(|up| matches!(up.role(), Role::Halted(_)));
            self.drivers[driver].reads = newest;
            if halted || older || (driver == lost && drivers > 1) {
                self.stop_driver(driver);
            }
            if driver != lost && self.drivers[driver].up.is_none() {
                self.start_driver(driver, assignments.clone());
            }
        }
        // A driver that has nobody to stand by for it has to come back.
        if drivers == 1 && self.drivers[0].up.is_none() {
            self.start_driver(0, assignments);
        }
    }

    pub(super) fn reassign(&mut self, groups: &[GroupId]) {
        let changes: Vec<_> = (groups.iter())
            .map(|group| {
                let exists = self.catalog.contains(*group);
                (*group, exists.then(|| self.catalog.assignment(*group)))
            })
            .collect();
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Assignments(changes.clone());
            self.inform_driver(index, None, input);
        }
    }

    fn resign(&mut self, index: usize, count: usize) {
        let physical = self.nodes[index].physical(self.now);
        let Some(up) = &self.nodes[index].up else {
            return;
        };
        let rows = up.tracker.batch().rows();
        let from = self.random.random_range(0..rows.len().max(1));
        let groups: Vec<_> = (rows.iter().cycle().skip(from).take(rows.len()))
            .map(|row| row.group())
            .filter(|group| up.replica.serves(*group, physical))
            .take(count)
            .collect();
        for group in groups {
            if let Some(id) = self.nodes[index].id() {
                let input = replica::Input::Resign(group, None);
                self.heap.push(self.now, Event::Node { index, id, input });
            }
        }
    }
}
