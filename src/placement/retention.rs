//! Which history may go: batches after some minutes of cluster time, their size rows after weeks.

use std::collections::VecDeque;

use crate::model::hlc::HybridTimestamp;

use super::io::Revision;

/// How long history is kept, in milliseconds of cluster time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retain {
    /// Superseded batches.
    pub batches_ms: u64,
    /// Size rows.
    pub sizes_ms: u64,
}

impl Default for Retain {
    /// Batches for ten minutes, size rows for thirty days.
    fn default() -> Self {
        Self {
            batches_ms: 10 * 60 * 1000,
            sizes_ms: 30 * 24 * 60 * 60 * 1000,
        }
    }
}

/// How often history is looked at, milliseconds.
const PERIOD_MS: u64 = 30_000;

/// Remembers which revision was the newest at which time, coarsely.
#[derive(Debug)]
pub struct Retention {
    retain: Retain,
    marks: VecDeque<(u64, Revision)>,
    next: u64,
}

/// What may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expired {
    /// History up to this revision.
    pub batches: Option<Revision>,
    /// Size rows from before this time.
    pub sizes: Option<HybridTimestamp>,
}

impl Retention {
    /// Nothing is remembered yet, so nothing goes before a full period of retention has passed.
    pub fn new(retain: Retain) -> Self {
        Self {
            retain,
            marks: VecDeque::new(),
            next: 0,
        }
    }

    /// A batch was stored.
    pub fn stored(&mut self, time: HybridTimestamp, revision: Revision) {
        let spacing = (self.retain.batches_ms / 64).min(PERIOD_MS);
        let time = time.physical();
        if (self.marks.back()).is_none_or(|(last, _)| time >= last + spacing) {
            self.marks.push_back((time, revision));
        }
    }

    /// What may go now; asked as often as one likes, it answers every half a minute.
    pub fn expired(&mut self, now: HybridTimestamp) -> Option<Expired> {
        let physical = now.physical();
        if physical < self.next {
            return None;
        }
        self.next = physical + PERIOD_MS;
        let mut batches = None;
        let horizon = physical.saturating_sub(self.retain.batches_ms);
        // The batch written at a mark was the current one until the next mark: it may go when
        // that one is old enough.
        while let (Some((_, revision)), Some((next, _))) = (self.marks.front(), self.marks.get(1))
            && *next <= horizon
        {
            batches = Some(*revision);
            self.marks.pop_front();
        }
        let sizes = physical.checked_sub(self.retain.sizes_ms);
        let sizes = sizes.and_then(|before| HybridTimestamp::new(before, 0).ok());
        Some(Expired { batches, sizes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> HybridTimestamp {
        HybridTimestamp::new(1_000_000_000_000 + seconds * 1000, 0).unwrap()
    }

    #[test]
    fn keeps_what_is_younger_than_the_retention() {
        let mut retention = Retention::new(Retain {
            batches_ms: 60_000,
            sizes_ms: 100_000,
        });
        let mut gone = 0;
        for second in 0..300 {
            retention.stored(at(second), second + 1);
            if let Some(expired) = retention.expired(at(second)) {
                gone = expired.batches.unwrap_or(gone);
                let age = second.saturating_sub(gone);
                assert!(
                    gone == 0 || age >= 59,
                    "revision {gone} was current {age} s ago"
                );
                assert_eq!(
                    expired.sizes.map(HybridTimestamp::physical),
                    Some(at(second).physical() - 100_000)
                );
            }
        }
        assert!(gone > 200, "{gone}");
    }
}
