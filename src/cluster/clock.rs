//! The clock of a process: ahead of true time by what it began with, what it drifts and what it
//! has stepped, kept within the bound that the cluster's clocks promise to each other.

use super::heap::{MILLI, Micros};

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessClock {
    /// Microseconds ahead, at `since`.
    ahead: i64,
    since: Micros,
    /// Parts in a million.
    drift: i64,
    /// Most microseconds ahead.
    bound: i64,
}

impl ProcessClock {
    /// A clock that is constantly ahead. Both in milliseconds.
    pub fn new(ahead_ms: u64, bound_ms: u64) -> Self {
        let micros = |milliseconds: u64| i64::try_from(milliseconds * MILLI).unwrap_or(i64::MAX);
        Self {
            ahead: micros(ahead_ms),
            since: 0,
            drift: 0,
            bound: micros(bound_ms),
        }
    }

    /// How far it is ahead, microseconds.
    pub fn ahead(&self, now: Micros) -> i64 {
        let elapsed = i64::try_from(now.saturating_sub(self.since)).unwrap_or(i64::MAX);
        let drifted = elapsed.saturating_mul(self.drift) / 1_000_000;
        self.ahead.saturating_add(drifted).clamp(0, self.bound)
    }

    /// What it shows, milliseconds since the Unix epoch.
    pub fn physical(&self, now: Micros) -> u64 {
        now.saturating_add_signed(self.ahead(now)) / MILLI
    }

    /// It is set forward, or back if negative, as far as the bound allows. Milliseconds.
    pub fn step(&mut self, now: Micros, by_ms: i64) {
        let by = by_ms.saturating_mul(MILLI as i64);
        self.settle(now);
        self.ahead = self.ahead.saturating_add(by).clamp(0, self.bound);
    }

    /// From now on it is fast, or slow if negative, as far as the bound allows.
    pub fn drift(&mut self, now: Micros, parts_per_million: i64) {
        self.settle(now);
        self.drift = parts_per_million;
    }

    fn settle(&mut self, now: Micros) {
        self.ahead = self.ahead(now);
        // Until it is used, a clock counts from time 0, when it did not drift.
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    #[test]
    fn steps_and_drifts_within_its_bound() {
        let mut clock = ProcessClock::new(100, 500);
        let now = 1_000 * SECOND;
        assert_eq!(clock.physical(now), 1_000_100);
        clock.step(now, 300);
        assert_eq!(clock.physical(now), 1_000_400);
        clock.step(now, 300);
        assert_eq!(clock.physical(now), 1_000_500);
        clock.drift(now, -1_000);
        assert_eq!(clock.ahead(now + 100 * SECOND), 400_000);
        assert_eq!(clock.ahead(now + 10_000 * SECOND), 0);
        clock.step(now + 100 * SECOND, -10_000);
        assert_eq!(clock.ahead(now + 100 * SECOND), 0);
    }
}
