//! The nodes' processes: their inputs, what comes out, how they start and end, and who notices.

use rand::RngExt;

use crate::model::diff::diff;
use crate::model::ids::{Incarnation, NodeId};
use crate::placement;
use crate::replica;

use super::event::{Effect, Event, Notice, Shown};
use super::heap::MILLI;
use super::scenario::Process;
use super::world::Cluster;

impl Cluster {
    /// An input for a life of a node.
    pub(super) fn node_input(&mut self, index: usize, id: NodeId, input: replica::Input) {
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
                    let notice = Notice::Answered(index, answer.clone());
                    self.effects.push(Effect::Notice(notice));
                    self.send_active(index, placement::io::Input::Answer(answer));
                }
                replica::Output::Stop(stop) => {
                    self.send_active(index, placement::io::Input::Stop(stop));
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

    /// A watched revision for a life of a node.
    pub(super) fn watch(&mut self, index: usize, id: NodeId, shown: Shown) {
        let Shown { update, needs } = shown;
        let member = &mut self.nodes[index];
        if member.id() != Some(id) {
            return;
        }
        // What its release can't read it lets pass, and goes by what it knows until it can.
        member.blind = needs > member.reads;
        if member.blind {
            let notice = Notice::CannotRead(index, update.revision);
            self.effects.push(Effect::Notice(notice));
            return;
        }
        let Some(up) = &mut self.nodes[index].up else {
            return;
        };
        let events = up.tracker.apply(&update);
        for event in &events {
            self.trace.word(event.lease().group.packed());
        }
        let mut update = (*update).clone();
        let applied = up.replica.applied();
        // What it has missed, it finds by comparing.
        if update.previous != applied.0 && update.revision > applied.0 {
            update.changes = diff(applied.1, &update.batch).into();
        }
        if !events.is_empty() {
            let notice = Notice::Tracked(index, id, events);
            self.effects.push(Effect::Notice(notice));
        }
        self.node_input(index, id, replica::Input::Applied(update));
    }

    /// Streams a revision to a node, if it is up.
    pub(super) fn show_node(&mut self, index: usize, shown: Shown) {
        if let Some(id) = self.nodes[index].id() {
            let revision = shown.update.revision;
            let event = Event::Watch { index, id, shown };
            self.stream(Process::Node(index), Some(revision), event);
        }
    }

    pub(super) fn start_node(&mut self, index: usize) {
        if self.nodes[index].up.is_some() {
            return;
        }
        let id = self.draw_id();
        let max_skew = self.scenario.timings.max_skew_ms;
        let node = self.nodes[index].start(self.now, id, max_skew);
        self.effects.push(Effect::Notice(Notice::NodeUp(node)));
        let join = self.now + self.scenario.failures.join_ms * MILLI;
        self.heap.push(join, Event::Joined { index, id });
        if let Some(shown) = self.latest.clone() {
            self.show_node(index, shown);
        }
    }

    pub(super) fn stop_node(&mut self, index: usize) {
        let Some(id) = self.nodes[index].id() else {
            return;
        };
        self.nodes[index].stop(self.now);
        let name = self.nodes[index].name.clone();
        self.effects.push(Effect::Notice(Notice::NodeDown(name)));
        let noticed = self.now + self.scenario.failures.detection_ms * MILLI;
        self.heap.push(noticed, Event::Left { index, id });
    }

    pub(super) fn joined(&mut self, index: usize, id: NodeId) {
        if self.nodes[index].id() != Some(id) {
            return;
        }
        self.nodes[index].joining = false;
        if self.is_heard(index) {
            let name = self.nodes[index].name.clone();
            let reads = self.nodes[index].reads;
            self.topology.join(Incarnation { name, id }, reads);
            self.publish_topology();
        }
    }

    pub(super) fn left(&mut self, index: usize, id: NodeId) {
        let name = &self.nodes[index].name;
        if self.topology.id_of(name) == Some(id) {
            let name = name.clone();
            self.topology.leave(&name);
            self.publish_topology();
        }
    }

    /// Whether the membership service, which lives with the store, hears of a node now.
    fn is_heard(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        node.up.is_some()
            && !node.is_paused()
            && self.now >= node.silent_until
            && !self.network.is_cut(Process::Node(index), Process::Store)
    }

    /// Nodes that have been silent for too long leave the topology, and join it again, under the
    /// same id, when they are heard again.
    pub(super) fn check_membership(&mut self) {
        let detection = self.scenario.failures.detection_ms * MILLI;
        for index in 0..self.nodes.len() {
            let Some(id) = self.nodes[index].id() else {
                continue;
            };
            let heard = self.is_heard(index);
            let node = &mut self.nodes[index];
            let member = self.topology.id_of(&node.name) == Some(id);
            if heard {
                node.heard_at = self.now;
                if !member && !node.joining {
                    node.joining = true;
                    let join = self.now + self.scenario.failures.join_ms * MILLI;
                    self.heap.push(join, Event::Joined { index, id });
                }
            } else if member && self.now - node.heard_at >= detection {
                self.left(index, id);
            }
        }
    }
}
