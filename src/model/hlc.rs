//! Hybrid logical clock: timestamps and the clock that issues them.
//!
//! A timestamp is 48 bits of physical milliseconds since the Unix epoch and a 16-bit logical
//! counter, packed as `physical << 16 | logical`. Source: Kulkarni et al., "Logical Physical
//! Clocks" (2014), in the layout of Apache Ignite 3. No I/O here: the physical clock is an
//! argument.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest physical part of a timestamp, in milliseconds: 2^47 − 1.
pub const MAX_PHYSICAL: u64 = (1 << 47) - 1;

const LOGICAL_BITS: u32 = 16;

/// A hybrid timestamp, never zero, so that `Option<HybridTimestamp>` takes eight bytes as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct HybridTimestamp(NonZeroU64);

impl HybridTimestamp {
    /// The smallest timestamp: physical 0, logical 1.
    pub const MIN: Self = Self(NonZeroU64::MIN);

    /// From physical milliseconds (at most [`MAX_PHYSICAL`]) and the logical counter; the two
    /// must not both be zero.
    pub const fn new(physical: u64, logical: u16) -> Result<Self, TimestampError> {
        if physical > MAX_PHYSICAL {
            return Err(TimestampError::PhysicalOutOfRange(physical));
        }
        Self::from_composite(physical << LOGICAL_BITS | logical as u64)
    }

    /// From the packed form.
    pub const fn from_composite(composite: u64) -> Result<Self, TimestampError> {
        if composite >> LOGICAL_BITS > MAX_PHYSICAL {
            return Err(TimestampError::PhysicalOutOfRange(
                composite >> LOGICAL_BITS,
            ));
        }
        match NonZeroU64::new(composite) {
            Some(value) => Ok(Self(value)),
            None => Err(TimestampError::Zero),
        }
    }

    /// From a packed form that the caller has checked; of 0, the smallest timestamp.
    #[inline]
    pub(crate) const fn from_checked(composite: u64) -> Self {
        debug_assert!(composite >> LOGICAL_BITS <= MAX_PHYSICAL);
        match NonZeroU64::new(composite) {
            Some(value) => Self(value),
            None => Self::MIN,
        }
    }

    /// The packed form, `physical << 16 | logical`.
    #[inline]
    pub const fn composite(self) -> u64 {
        self.0.get()
    }

    /// Physical part, milliseconds since the Unix epoch.
    #[inline]
    pub const fn physical(self) -> u64 {
        self.0.get() >> LOGICAL_BITS
    }

    /// Logical part.
    #[inline]
    pub const fn logical(self) -> u16 {
        (self.0.get() & 0xFFFF) as u16
    }

    /// The next timestamp; stays at the largest one.
    #[must_use]
    pub const fn tick(self) -> Self {
        match Self::from_composite(self.0.get() + 1) {
            Ok(next) => next,
            Err(_) => self,
        }
    }

    /// `milliseconds` later, with logical part 0; clamped to the largest physical part.
    #[must_use]
    pub const fn plus_millis(self, milliseconds: u64) -> Self {
        let physical = self.physical().saturating_add(milliseconds);
        let physical = if physical > MAX_PHYSICAL {
            MAX_PHYSICAL
        } else {
            physical
        };
        match Self::new(physical, 0) {
            Ok(later) => later,
            Err(_) => Self::MIN,
        }
    }

    /// Surely earlier than `other` on every clock of a cluster whose skew is at most
    /// `max_skew` milliseconds. False within the skew.
    pub const fn before(self, other: Self, max_skew: u64) -> bool {
        self.physical().saturating_add(max_skew) < other.physical()
    }

    /// Surely later than `other`; see [`before`](Self::before).
    pub const fn after(self, other: Self, max_skew: u64) -> bool {
        other.before(self, max_skew)
    }
}

impl fmt::Debug for HybridTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.physical(), self.logical())
    }
}

impl fmt::Display for HybridTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The JSON shape of a timestamp.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    physical: u64,
    logical: u16,
}

impl From<HybridTimestamp> for Parts {
    fn from(timestamp: HybridTimestamp) -> Self {
        Self {
            physical: timestamp.physical(),
            logical: timestamp.logical(),
        }
    }
}

impl TryFrom<Parts> for HybridTimestamp {
    type Error = TimestampError;

    fn try_from(parts: Parts) -> Result<Self, TimestampError> {
        Self::new(parts.physical, parts.logical)
    }
}

/// Why a number is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// Physical part above [`MAX_PHYSICAL`].
    #[error("physical time {0} ms is above the limit 2^47 - 1")]
    PhysicalOutOfRange(u64),
    /// Physical and logical part are both zero, which means "none".
    #[error("a timestamp of 0 means \"none\" and can't be used here")]
    Zero,
}

/// A node's hybrid logical clock. It never goes back, whatever its physical clock does.
#[derive(Debug, Clone)]
pub struct HybridClock {
    last: Option<HybridTimestamp>,
    max_skew: u64,
}

impl HybridClock {
    /// A clock of a cluster whose physical clocks differ by at most `max_skew` milliseconds.
    pub const fn new(max_skew: u64) -> Self {
        Self {
            last: None,
            max_skew,
        }
    }

    /// Issues a timestamp: `max(physical, last + 1)`. `physical` is the own physical clock in
    /// milliseconds.
    pub fn now(&mut self, physical: u64) -> HybridTimestamp {
        let wall = wall(physical);
        let issued = match self.last {
            Some(last) if last >= wall => last.tick(),
            _ => wall,
        };
        self.last = Some(issued);
        issued
    }

    /// What [`now`](Self::now) would not be below, without issuing a timestamp.
    pub fn peek(&self, physical: u64) -> HybridTimestamp {
        let wall = wall(physical);
        self.last.map_or(wall, |last| last.max(wall))
    }

    /// Moves the clock forward to a timestamp that another node issued. One that is further
    /// ahead of the own physical clock than the maximum skew is refused and changes nothing.
    pub fn observe(&mut self, physical: u64, received: HybridTimestamp) -> Result<(), ClockError> {
        if received.physical() > physical.saturating_add(self.max_skew) {
            return Err(ClockError::TooFarAhead {
                received,
                physical,
                max_skew: self.max_skew,
            });
        }
        self.restore(received);
        Ok(())
    }

    /// Moves the clock forward to a timestamp read from the own store, such as the start of a
    /// stored lease. It was issued by this cluster, so the skew is not checked.
    pub fn restore(&mut self, stored: HybridTimestamp) {
        self.last = self.last.max(Some(stored));
    }
}

fn wall(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical.min(MAX_PHYSICAL), 0).unwrap_or(HybridTimestamp::MIN)
}

/// Why a received timestamp was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClockError {
    /// Further in the future than clocks of this cluster may differ.
    #[error(
        "received timestamp {received} is more than {max_skew} ms ahead of the own clock \
         ({physical} ms): the sender's clock is wrong, or the maximum skew is set too low"
    )]
    TooFarAhead {
        /// What was received.
        received: HybridTimestamp,
        /// The own physical clock, milliseconds.
        physical: u64,
        /// The bound, milliseconds.
        max_skew: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(physical: u64, logical: u16) -> HybridTimestamp {
        HybridTimestamp::new(physical, logical).unwrap()
    }

    #[test]
    fn refuses_zero_and_large() {
        assert_eq!(HybridTimestamp::new(0, 0), Err(TimestampError::Zero));
        assert!(HybridTimestamp::new(MAX_PHYSICAL, u16::MAX).is_ok());
        assert_eq!(
            HybridTimestamp::new(MAX_PHYSICAL + 1, 0),
            Err(TimestampError::PhysicalOutOfRange(MAX_PHYSICAL + 1))
        );
        assert_eq!(HybridTimestamp::MIN, at(0, 1));
    }

    #[test]
    fn tick_carries_into_the_physical_part_and_saturates() {
        assert_eq!(at(7, u16::MAX).tick(), at(8, 0));
        assert_eq!(
            at(MAX_PHYSICAL, u16::MAX).tick(),
            at(MAX_PHYSICAL, u16::MAX)
        );
    }

    #[test]
    fn before_and_after_are_false_within_the_skew() {
        let (a, b) = (at(1000, 5), at(1500, 0));
        assert!(!a.before(b, 500));
        assert!(a.before(at(1501, 0), 500));
        assert!(!b.after(a, 500));
        assert!(at(1501, 0).after(a, 500));
    }

    #[test]
    fn clock_never_goes_back() {
        let mut clock = HybridClock::new(500);
        assert_eq!(clock.now(1000), at(1000, 0));
        assert_eq!(clock.now(1000), at(1000, 1));
        assert_eq!(clock.now(400), at(1000, 2));
        assert_eq!(clock.now(1001), at(1001, 0));
    }

    #[test]
    fn clock_follows_others_up_to_the_skew() {
        let mut clock = HybridClock::new(500);
        clock.observe(1000, at(1500, 3)).unwrap();
        assert_eq!(clock.now(1000), at(1500, 4));
        assert!(matches!(
            clock.observe(1000, at(1501, 0)),
            Err(ClockError::TooFarAhead { .. })
        ));
        assert_eq!(clock.now(1000), at(1500, 5));
        clock.restore(at(9000, 0));
        assert_eq!(clock.now(1000), at(9000, 1));
    }
}
