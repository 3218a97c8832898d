//! Cluster time and real time.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::cluster::heap::Micros;

/// How fast cluster time passes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Speed {
    /// So many times as fast as real time.
    Times(f64),
    /// As fast as the store acknowledges.
    Max,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(factor) => write!(f, "{factor}"),
            Self::Max => f.write_str("max"),
        }
    }
}

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(factor) if (0.01..=100_000.0).contains(&factor) => Ok(Self::Times(factor)),
            _ => Err(SpeedError(text.to_owned())),
        }
    }
}

/// Not a speed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a speed: expected a factor from 0.01 to 100000, or max")]
pub struct SpeedError(String);

/// Maps real time to cluster time. Uses the monotonic clock, so that a step of the wall clock
/// moves nothing.
#[derive(Debug)]
pub struct Pacer {
    started: Instant,
    begin: Micros,
    speed: Speed,
}

impl Pacer {
    /// Cluster time is `begin` now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the daemon is where the real clock is read"
    )]
    pub fn new(begin: Micros, speed: Speed) -> Self {
        Self {
            started: Instant::now(),
            begin,
            speed,
        }
    }

    /// How long to wait in real time until cluster time is `at`.
    pub fn wait(&self, at: Micros) -> Duration {
        match self.speed {
            Speed::Max => Duration::ZERO,
            Speed::Times(factor) => {
                let elapsed = self.started.elapsed();
                let due = at.saturating_sub(self.begin) as f64 / factor / 1e6;
                Duration::from_secs_f64(due).saturating_sub(elapsed)
            }
        }
    }

    /// What cluster time is by the real clock; none if it is not bound to it.
    pub fn now(&self) -> Option<Micros> {
        match self.speed {
            Speed::Max => None,
            Speed::Times(factor) => {
                let elapsed = self.started.elapsed().as_secs_f64() * factor * 1e6;
                Some(self.begin + elapsed as Micros)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        assert_eq!("max".parse(), Ok(Speed::Max));
        assert_eq!("60".parse(), Ok(Speed::Times(60.0)));
        for bad in ["0", "-1", "fast", "NaN", "inf", "", "1e9"] {
            assert!(bad.parse::<Speed>().is_err(), "{bad}");
        }
    }
}
