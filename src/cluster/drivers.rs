//! The drivers' processes: their inputs, what comes out, and where they crash.

use std::sync::Arc;

use crate::model::ids::{NodeId, NodeName};
use crate::model::topology::Assignments;
use crate::placement::driver::PlacementDriver;
use crate::placement::io::{Input, Now, Output, StoreReply, StoreRequest};
use crate::placement::retention::Retain;
use crate::replica;

use super::event::{Effect, Event, Notice, StoreCall};
use super::heap::MILLI;
use super::member::Trap;
use super::scenario::{CrashPoint, Process};
use super::world::Cluster;

impl Cluster {
    /// An input for a life of a driver.
    pub(super) fn drive(&mut self, index: usize, generation: u64, input: Input) {
        let slot = &mut self.drivers[index];
        let (Some(driver), true) = (&mut slot.up, slot.generation == generation) else {
            return;
        };
        let now = Now {
            physical: slot.clock.physical(self.now),
            monotonic: (self.now - self.begin) / MILLI,
        };
        let trap = slot.trap;
        let springs = trap.is_some_and(|trap| springs_at(trap.point, &input));
        let mut outputs = Vec::new();
        driver.step(now, input, &mut outputs);
        for output in outputs {
            if let Some(trap) = trap
                && (springs || (trap.point == CrashPoint::BeforeWrite && is_write(&output)))
            {
                if matches!(output, Output::Notice(_)) {
                    self.output(index, generation, output);
                    continue;
                }
                self.spring(index, trap);
                return;
            }
            let written = is_write(&output);
            self.output(index, generation, output);
            if let Some(trap) = trap
                && trap.point == CrashPoint::AfterWrite
                && written
            {
                self.spring(index, trap);
                return;
            }
        }
        if springs && let Some(trap) = trap {
            self.spring(index, trap);
        }
    }

    fn output(&mut self, index: usize, generation: u64, output: Output) {
        match output {
            Output::Store(id, request) => self.ask_store(StoreCall {
                driver: index,
                generation,
                id,
                sent: self.now,
                reads: self.drivers[index].reads,
                request,
                damage: None,
                forgotten: false,
            }),
            Output::Grant(to, offer) => {
                if let Some(to) = self.index_of(to) {
                    let leader = self.leader(offer.group);
                    self.send_node(index, to, replica::Input::Granted { offer, leader });
                }
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

    /// A trap has been reached.
    fn spring(&mut self, index: usize, trap: Trap) {
        self.stop_driver(index);
        self.heap.push(self.now + trap.down, Event::DriverUp(index));
    }

    pub(super) fn stop_driver(&mut self, index: usize) {
        if self.drivers[index].up.is_some() {
            let generation = self.drivers[index].generation;
            self.drivers[index].stop();
            let noticed = self.now + self.scenario.failures.detection_ms * MILLI;
            let left = Event::DriverLeft { index, generation };
            self.heap.push(noticed, left);
            let notice = Notice::DriverDown(index);
            self.effects.push(Effect::Notice(notice));
        }
    }

    pub(super) fn start_driver(&mut self, index: usize, assignments: Arc<Assignments>) {
        let store = &self.scenario.store;
        let retain = Retain {
            batches_ms: store.retain.as_millis() as u64,
            sizes_ms: store.retain_sizes.as_millis() as u64,
        };
        let (storing, timings) = (store.storing(), self.scenario.timings);
        let slot = &mut self.drivers[index];
        let mut driver = PlacementDriver::new(timings, retain, storing, slot.reads);
        driver.assign(assignments);
        slot.up = Some(driver);
        slot.generation += 1;
        slot.stream.reset();
        let (generation, reads) = (slot.generation, slot.reads);
        // It is announced before it does anything, so that others write what it can read.
        let others = self.topology.all_read();
        self.topology.driver_came(driver_name(index), reads);
        if self.topology.all_read() != others {
            self.publish_topology();
        }
        for input in [Input::Topology(self.topology.clone()), Input::Start] {
            let event = Event::Driver {
                index,
                generation,
                input,
            };
            self.heap.push(self.now, event);
        }
        let first = self.now + self.scenario.timings.tick_ms * MILLI;
        self.heap.push(first, Event::Tick { index, generation });
        let notice = Notice::DriverUp(index);
        self.effects.push(Effect::Notice(notice));
    }

    /// A driver's end is noticed, unless it is back.
    pub(super) fn driver_left(&mut self, index: usize, generation: u64) {
        let slot = &self.drivers[index];
        if slot.up.is_some() || slot.generation != generation + 1 {
            return;
        }
        let before = self.topology.all_read();
        self.topology.driver_left(&driver_name(index));
        if self.topology.all_read() != before {
            self.publish_topology();
        }
    }

    /// The driver that believes that it is active, or the first that is up.
    pub(super) fn active_driver(&self) -> Option<usize> {
        use crate::placement::activity::Role;
        let role = |index: &usize| {
            let up = self.drivers.get(*index)?.up.as_ref();
            up.map(PlacementDriver::role)
        };
        let active = |index: &usize| matches!(role(index), Some(Role::Active { .. }));
        let mut all = 0..self.drivers.len();
        all.clone()
            .find(active)
            .or_else(|| all.find(|index| role(index).is_some()))
    }

    fn index_of(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.id() == Some(id))
    }
}

fn driver_name(index: usize) -> NodeName {
    Process::Driver(index).to_string().into()
}

/// Whether a driver that takes this input is to crash before anything comes of it.
fn springs_at(point: CrashPoint, input: &Input) -> bool {
    let Input::Reply(_, reply) = input else {
        return false;
    };
    match point {
        CrashPoint::AfterTake => matches!(reply, StoreReply::Won(_)),
        CrashPoint::AfterRead => matches!(reply, StoreReply::Read(_)),
        CrashPoint::AfterAck => matches!(reply, StoreReply::Written { .. }),
        CrashPoint::Now | CrashPoint::BeforeWrite | CrashPoint::AfterWrite => false,
    }
}

fn is_write(output: &Output) -> bool {
    matches!(output, Output::Store(_, StoreRequest::Write(_)))
}
