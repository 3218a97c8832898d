//! Processes that stand still: what comes meanwhile waits, in order, until they go on.

use std::collections::VecDeque;

use super::event::Event;
use super::heap::Micros;
use super::member::Pause;
use super::scenario::Process;
use super::world::Cluster;

impl Event {
    /// The process that handles it, if one does.
    pub fn process(&self) -> Option<Process> {
        match self {
            Self::Driver { index, .. } | Self::Tick { index, .. } => Some(Process::Driver(*index)),
            Self::Node { index, .. } | Self::Watch { index, .. } | Self::Progress { index, .. } => {
                Some(Process::Node(*index))
            }
            Self::Request(_) => Some(Process::Store),
            _ => None,
        }
    }
}

impl Cluster {
    fn pause_of(&mut self, process: Process) -> Option<&mut Pause> {
        match process {
            Process::Store => Some(&mut self.storage.pause),
            Process::Driver(index) => self.drivers.get_mut(index).map(|slot| &mut slot.pause),
            Process::Node(index) => self.nodes.get_mut(index).map(|node| &mut node.pause),
        }
    }

    /// A process stands still for so long, or longer if it does so already.
    pub(super) fn pause(&mut self, process: Process, lasts: Micros) {
        let until = self.now + lasts;
        if let Some(pause) = self.pause_of(process) {
            pause.until = pause.until.max(Some(until));
            self.heap.push(until, Event::Resumed(process));
        }
    }

    /// The event, unless it has to wait.
    pub(super) fn hold(&mut self, event: Event) -> Option<Event> {
        let Some(process) = event.process() else {
            return Some(event);
        };
        match self.pause_of(process) {
            Some(pause) if pause.until.is_some() => {
                pause.waiting.push_back(event);
                None
            }
            _ => Some(event),
        }
    }

    /// The process goes on, unless it stands still for longer.
    pub(super) fn resume(&mut self, process: Process) {
        let now = self.now;
        let Some(pause) = self.pause_of(process) else {
            return;
        };
        if pause.until.is_some_and(|until| until <= now) {
            pause.until = None;
            let waiting: VecDeque<_> = std::mem::take(&mut pause.waiting);
            for event in waiting {
                self.handle(event);
            }
        }
    }

    /// Every process goes on.
    pub(super) fn resume_all(&mut self) {
        let drivers = (0..self.drivers.len()).map(Process::Driver);
        let nodes = (0..self.nodes.len()).map(Process::Node);
        let all: Vec<_> = drivers.chain(nodes).chain([Process::Store]).collect();
        for process in all {
            if let Some(pause) = self.pause_of(process)
                && pause.until.is_some()
            {
                pause.until = Some(0);
                self.resume(process);
            }
        }
    }
}
