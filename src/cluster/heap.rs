//! Events in order of (time, sequence), and the hash of all that have happened.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Microseconds since the Unix epoch: the cluster's true time, which none of its nodes knows.
pub type Micros = u64;

/// Microseconds in a millisecond.
pub const MILLI: Micros = 1_000;

/// When an event is due, and where it waits. The sequence keeps events of one instant in order.
type Due = Reverse<(Micros, u64, usize)>;

/// What is going to happen. Events of one instant come in the order in which they were added.
///
/// An event is some 200 bytes: the heap sorts small entries, and the events stay where they are.
pub struct EventHeap<E> {
    heap: BinaryHeap<Due>,
    events: Vec<Option<E>>,
    /// Places in `events` that are free.
    free: Vec<usize>,
    sequence: u64,
}

impl<E> Default for EventHeap<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        }
    }
}

impl<E> EventHeap<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Micros, event: E) {
        self.sequence += 1;
        let place = match self.free.pop() {
            Some(place) => {
                self.events[place] = Some(event);
                place
            }
            None => {
                self.events.push(Some(event));
                self.events.len() - 1
            }
        };
        self.heap.push(Reverse((at, self.sequence, place)));
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Micros> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next event, without letting it happen.
    pub fn peek(&self) -> Option<&E> {
        let Reverse((_, _, place)) = self.heap.peek()?;
        self.events.get(*place)?.as_ref()
    }

    /// The next event and its time.
    pub fn pop(&mut self) -> Option<(Micros, E)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        let event = self.events.get_mut(place).and_then(Option::take)?;
        Some((at, event))
    }

    /// Number of events that are still to happen.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is going to happen.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// A running hash of the trace (FNV-1a, 64 bits, over words): equal for equal traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl TraceHash {
    /// Adds a word.
    pub fn word(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        for byte in text.bytes() {
            self.word(u64::from(byte));
        }
    }

    /// The hash so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_by_time_then_by_insertion() {
        let mut heap = EventHeap::default();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (9, 'e')] {
            heap.push(at, event);
        }
        let order: String = std::iter::from_fn(|| heap.pop()).map(|(_, e)| e).collect();
        assert_eq!(order, "bdace");
    }
}
