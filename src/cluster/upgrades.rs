//! Processes that restart with another release, which reads more or less than the one before.

use crate::model::reads::Reads;

use super::event::Event;
use super::heap::Micros;
use super::scenario::{Operation, Process};
use super::world::{Cluster, micros};

impl Cluster {
    /// One process after the other: the nodes, then the drivers.
    pub(super) fn roll_out(&mut self, operation: &Operation) {
        let of = operation.of.unwrap_or_default();
        let reads = operation.reads.unwrap_or_default();
        let nodes = (0..self.nodes.len()).map(Process::Node);
        let drivers = (0..self.drivers.len()).map(Process::Driver);
        let chosen = nodes.chain(drivers).filter(|process| of.covers(*process));
        let pause = micros(operation.down()) + self.settling_time();
        for (turn, process) in chosen.enumerate() {
            let at = self.now + turn as Micros * pause;
            self.heap.push(at, Event::Upgraded { process, reads });
            let back = match process {
                Process::Node(index) => Event::NodeUp(index),
                Process::Driver(index) => Event::DriverUp(index),
                Process::Store => continue,
            };
            self.heap.push(at + micros(operation.down()), back);
        }
    }

    /// A process stops; when it starts again it is of another release.
    pub(super) fn upgrade(&mut self, process: Process, reads: Reads) {
        if self.healed_at.is_some() {
            return;
        }
        match process {
            Process::Node(index) => {
                self.stop_node(index);
                self.nodes[index].reads = reads;
            }
            Process::Driver(index) => {
                self.stop_driver(index);
                self.drivers[index].reads = reads;
            }
            Process::Store => {}
        }
    }
}
