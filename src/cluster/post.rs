//! What goes over the cluster's network: messages, which are late, lost or doubled as the network
//! has it, and streams, which are late or wait but arrive in order and complete.

use rand::RngExt;

use crate::placement;
use crate::placement::activity::Role;
use crate::placement::driver::PlacementDriver;
use crate::placement::io::Revision;
use crate::replica;

use super::event::{Effect, Event, Notice, StoreCall};
use super::heap::Micros;
use super::member::Stream;
use super::network::StreamFate;
use super::scenario::Process;
use super::world::Cluster;

impl Cluster {
    /// A message: `make` is called for each copy that arrives.
    fn message(&mut self, from: Process, to: Process, mut make: impl FnMut() -> Event) {
        let at = self.now + self.delay();
        if !self.network.is_impaired() {
            self.heap.push(at, make());
            return;
        }
        let fate = (self.network).message(from, to, self.now, &mut self.random);
        for late in [fate.first, fate.second].into_iter().flatten() {
            self.heap.push(at + late, make());
        }
        if fate.first.is_none() {
            let notice = Notice::MessageLost(from, to);
            self.effects.push(Effect::Notice(notice));
        }
    }

    /// A driver's request, and the end of its patience.
    pub(super) fn ask_store(&mut self, call: StoreCall) {
        let patience = self.scenario.network.timeout_ms;
        let driver = call.driver;
        let reply = super::effect::unknown(&format!("no answer within {patience} ms"));
        let given_up = Event::Driver {
            index: driver,
            generation: call.generation,
            input: placement::io::Input::Reply(call.id, reply),
        };
        let at = self.now + patience * super::heap::MILLI;
        self.heap.push(at, given_up);
        self.message(Process::Driver(driver), Process::Store, || {
            Event::Request(call.clone())
        });
    }

    /// The store's reply to a life of a driver.
    pub(super) fn reply(&mut self, index: usize, generation: u64, input: placement::io::Input) {
        self.message(Process::Store, Process::Driver(index), || Event::Driver {
            index,
            generation,
            input: input.clone(),
        });
    }

    /// From a node to every driver that believes that it is the active one.
    pub(super) fn send_active(&mut self, node: usize, input: placement::io::Input) {
        for index in 0..self.drivers.len() {
            let slot = &self.drivers[index];
            let role = slot.up.as_ref().map(PlacementDriver::role);
            if matches!(role, Some(Role::Active { .. })) {
                let generation = slot.generation;
                self.message(Process::Node(node), Process::Driver(index), || {
                    Event::Driver {
                        index,
                        generation,
                        input: input.clone(),
                    }
                });
            }
        }
    }

    /// From a driver to a node.
    pub(super) fn send_node(&mut self, driver: usize, index: usize, input: replica::Input) {
        if let Some(id) = self.nodes[index].id() {
            self.message(Process::Driver(driver), Process::Node(index), || {
                Event::Node {
                    index,
                    id,
                    input: input.clone(),
                }
            });
        }
    }

    fn stream_of(&mut self, to: Process) -> Option<&mut Stream> {
        match to {
            Process::Store => None,
            Process::Driver(index) => self.drivers.get_mut(index).map(|slot| &mut slot.stream),
            Process::Node(index) => self.nodes.get_mut(index).map(|node| &mut node.stream),
        }
    }

    /// Something that the store tells in order. `revision` is that of something watched.
    pub(super) fn stream(&mut self, to: Process, revision: Option<Revision>, event: Event) {
        let fate = if !self.storage.is_up() {
            StreamFate::Waits
        } else if self.network.is_impaired() {
            self.network.stream(to, &mut self.random)
        } else {
            StreamFate::Late(0)
        };
        let delay = self.delay();
        let now = self.now;
        let Some(stream) = self.stream_of(to) else {
            return;
        };
        match fate {
            StreamFate::Late(late) if stream.waiting.is_empty() => {
                let at = (now + delay + late).max(stream.until);
                stream.until = at;
                self.heap.push(at, event);
            }
            _ => {
                stream.first = stream.first.or(revision);
                stream.waiting.push_back(event);
            }
        }
    }

    /// Streams that can go on do so; where history has been compacted meanwhile, the consumer
    /// reads again.
    pub(super) fn resume_streams(&mut self) {
        if !self.storage.is_up() {
            return;
        }
        let drivers = (0..self.drivers.len()).map(Process::Driver);
        let nodes = (0..self.nodes.len()).map(Process::Node);
        for to in drivers.chain(nodes).collect::<Vec<_>>() {
            let fate = self.network.stream(to, &mut self.random);
            let StreamFate::Late(late) = fate else {
                continue;
            };
            let compacted = self.storage.compacted;
            let Some(stream) = self.stream_of(to) else {
                continue;
            };
            if stream.waiting.is_empty() {
                continue;
            }
            let mut waiting = std::mem::take(&mut stream.waiting);
            let lost = stream.first.take().is_some_and(|first| first <= compacted);
            let until = stream.until;
            if lost {
                waiting.retain(|event| !is_watched(event));
                waiting.extend(self.read_again(to));
                self.effects.push(Effect::Notice(Notice::ReadAgain(to)));
            }
            let mut at = until.max(self.now + late);
            for event in waiting {
                at = at.max(self.now + late + self.delay());
                self.heap.push(at, event);
            }
            if let Some(stream) = self.stream_of(to) {
                stream.until = at;
            }
        }
    }

    /// When the last of what is on its way in order, and of what the store is at work on, arrives.
    pub(super) fn late_until(&self) -> Micros {
        let drivers = self.drivers.iter().map(|slot| slot.stream.until);
        let nodes = self.nodes.iter().map(|node| node.stream.until);
        let last = drivers.chain(nodes).max().unwrap_or(0);
        last.max(self.storage.busy_until())
    }

    /// What a consumer finds that reads what is stored instead of what it has missed.
    fn read_again(&self, to: Process) -> Option<Event> {
        match to {
            Process::Store => None,
            Process::Node(index) => Some(Event::Watch {
                index,
                id: self.nodes.get(index)?.id()?,
                shown: self.latest.clone()?,
            }),
            Process::Driver(index) => Some(Event::Driver {
                index,
                generation: self.drivers.get(index)?.generation,
                input: placement::io::Input::Observed {
                    epoch: Some(self.storage.epoch),
                    beat: false,
                },
            }),
        }
    }

    /// News for a driver, in order.
    pub(super) fn inform_driver(
        &mut self,
        index: usize,
        revision: Option<Revision>,
        input: placement::io::Input,
    ) {
        let generation = self.drivers[index].generation;
        if self.drivers[index].up.is_some() {
            let event = Event::Driver {
                index,
                generation,
                input,
            };
            self.stream(Process::Driver(index), revision, event);
        }
    }

    pub(super) fn publish_topology(&mut self) {
        for index in 0..self.drivers.len() {
            let input = placement::io::Input::Topology(self.topology.clone());
            self.inform_driver(index, None, input);
        }
    }

    pub(super) fn delay(&mut self) -> Micros {
        let network = &self.scenario.network;
        self.random.random_range(network.min_us..=network.max_us)
    }
}

fn is_watched(event: &Event) -> bool {
    match event {
        Event::Watch { .. } => true,
        Event::Driver { input, .. } => matches!(input, placement::io::Input::Observed { .. }),
        _ => false,
    }
}
