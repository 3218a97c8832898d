//! Events in order of (time, sequence), and the hash of all that have happened.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Microseconds since the Unix epoch: the cluster's true time, which none of its nodes knows.
pub type Micros = u64;

/// Microseconds in a millisecond.
pub const MILLI: Micros = 1_000;

struct Due<E> {
    at: Micros,
    sequence: u64,
    event: E,
}

impl<E> Due<E> {
    fn key(&self) -> (Micros, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    /// The earliest is the greatest, as `BinaryHeap` wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// What is going to happen. Events of one instant come in the order in which they were added.
pub struct EventHeap<E> {
    heap: BinaryHeap<Due<E>>,
    sequence: u64,
}

impl<E> Default for EventHeap<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl<E> EventHeap<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Micros, event: E) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.heap.push(Due {
            at,
            sequence,
            event,
        });
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Micros> {
        self.heap.peek().map(|due| due.at)
    }

    /// The next event and its time.
    pub fn pop(&mut self) -> Option<(Micros, E)> {
        self.heap.pop().map(|due| (due.at, due.event))
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
