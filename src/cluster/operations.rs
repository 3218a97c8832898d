//! What a scenario has happen: nodes and drivers crash and start, tables come and go, holders
//! resign.

use rand::RngExt;

use crate::model::ids::GroupId;
use crate::placement;
use crate::placement::activity::Role;
use crate::placement::driver::PlacementDriver;
use crate::replica;

use super::event::{Effect, Event, Notice};
use super::heap::MILLI;
use super::member::DriverSlot;
use super::scenario::{Action, MAX_GROUPS, Operation};
use super::world::{Cluster, micros};

impl Cluster {
    pub(super) fn start_node(&mut self, index: usize) {
        if self.nodes[index].up.is_some() {
            return;
        }
        let id = self.draw_id();
        let max_skew = self.scenario.timings.max_skew_ms;
        let node = self.nodes[index].start(id, max_skew);
        self.effects.push(Effect::Notice(Notice::NodeUp(node)));
        let join = self.now + self.scenario.failures.join_ms * MILLI;
        self.heap.push(join, Event::Joined { index, id });
        if let Some(update) = self.latest.clone() {
            self.send_update(self.now, index, update);
        }
    }

    pub(super) fn stop_node(&mut self, index: usize) {
        let Some(id) = self.nodes[index].id() else {
            return;
        };
        let member = &mut self.nodes[index];
        member.up = None;
        member.down_since = Some(self.now);
        let name = member.name.clone();
        self.effects.push(Effect::Notice(Notice::NodeDown(name)));
        let noticed = self.now + self.scenario.failures.detection_ms * MILLI;
        self.heap.push(noticed, Event::Left { index, id });
    }

    pub(super) fn operate(&mut self, index: usize) {
        let operation = self.scenario.operations[index].clone();
        if let Some(every) = operation.every {
            self.heap
                .push(self.now + micros(every), Event::Operation(index));
        }
        match operation.action {
            Action::RestartNode => {
                let node = self.chosen_node(&operation);
                self.stop_node(node);
                let back = self.now + micros(operation.down);
                self.heap.push(back, Event::NodeUp(node));
            }
            Action::CrashNode => {
                let node = self.chosen_node(&operation);
                self.stop_node(node);
            }
            Action::StartNode => {
                let node = self.chosen_node(&operation);
                self.start_node(node);
            }
            Action::CreateTables => {
                let partitions = self.scenario.cluster.partitions;
                let room = MAX_GROUPS.saturating_sub(self.catalog.group_count());
                let tables = (room / u64::from(partitions)).min(operation.count.into());
                let groups: Vec<_> = (0..tables)
                    .flat_map(|_| self.catalog.create_next(partitions))
                    .collect();
                self.effects
                    .push(Effect::Notice(Notice::Created(groups.len())));
                self.reassign(&groups);
            }
            Action::DropTables => {
                let groups: Vec<_> = (0..operation.count)
                    .flat_map(|_| self.catalog.drop_oldest())
                    .collect();
                groups
                    .iter()
                    .for_each(|group| self.leadership.forget(*group));
                self.effects
                    .push(Effect::Notice(Notice::Dropped(groups.len())));
                self.reassign(&groups);
            }
            Action::Resign => {
                let node = self.chosen_node(&operation);
                self.resign(node, operation.count as usize);
            }
            Action::RestartDriver => {
                let active = |slot: &DriverSlot| {
                    let role = slot.up.as_ref().map(PlacementDriver::role);
                    matches!(role, Some(Role::Active { .. }))
                };
                if let Some(index) = self.drivers.iter().position(active) {
                    self.drivers[index].up = None;
                    self.drivers[index].generation += 1;
                    let back = self.now + micros(operation.down);
                    self.heap.push(back, Event::DriverUp(index));
                }
            }
        }
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

    fn reassign(&mut self, groups: &[GroupId]) {
        let changes: Vec<_> = (groups.iter())
            .map(|group| {
                let exists = self.catalog.contains(*group);
                (*group, exists.then(|| self.catalog.assignment(*group)))
            })
            .collect();
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Assignments(changes.clone());
            self.inform_driver(self.now, index, input);
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
            self.send_node(index, replica::Input::Resign(group, None));
        }
    }
}
