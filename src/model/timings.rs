//! The protocol's settings, and the constraints between them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Timings of the lease protocol, all in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timings {
    /// How long a renewed lease lasts from the moment of its renewal.
    pub lease_interval_ms: u64,
    /// How often the driver looks for something to do.
    pub tick_ms: u64,
    /// How long a lease waits for its holder's answer.
    pub acceptance_limit_ms: u64,
    /// The largest difference between any two clocks of the cluster at one instant.
    pub max_skew_ms: u64,
    /// How often the active driver shows that it is alive.
    pub beat_ms: u64,
    /// A standby driver takes over after so long without a beat.
    pub takeover_ms: u64,
    /// How often an idle store lets watchers know how far they have seen everything.
    pub safe_time_ms: u64,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            lease_interval_ms: 5_000,
            tick_ms: 500,
            acceptance_limit_ms: 120_000,
            max_skew_ms: 500,
            beat_ms: 500,
            takeover_ms: 1_500,
            safe_time_ms: 250,
        }
    }
}

impl Timings {
    /// A lease that expires within so many milliseconds is due: half the lease interval.
    pub const fn due_within_ms(&self) -> u64 {
        self.lease_interval_ms / 2
    }

    /// Checks the constraints; a refusal states the formula that is violated.
    pub fn validate(&self) -> Result<(), TimingsError> {
        let refuse = |rule: String| Err(TimingsError(rule));
        let Self {
            lease_interval_ms: interval,
            tick_ms: tick,
            max_skew_ms: skew,
            takeover_ms: takeover,
            ..
        } = *self;
        if !(2_000..=120_000).contains(&interval) {
            return refuse(format!(
                "lease_interval_ms = {interval} is outside 2000..=120000"
            ));
        }
        let zero = [
            ("tick_ms", tick),
            ("beat_ms", self.beat_ms),
            ("safe_time_ms", self.safe_time_ms),
        ];
        if let Some((name, _)) = zero.into_iter().find(|(_, value)| *value == 0) {
            return refuse(format!("{name} must not be 0"));
        }
        let least = (tick
            .saturating_add(skew.saturating_mul(2))
            .saturating_add(500))
        .saturating_mul(2);
        if interval < least {
            return refuse(format!(
                "lease_interval_ms = {interval} must be at least \
                 2 x (tick_ms + 2 x max_skew_ms + 500) = {least}"
            ));
        }
        if self.acceptance_limit_ms < 5_000 {
            return refuse(format!(
                "acceptance_limit_ms = {} must be at least 5000",
                self.acceptance_limit_ms
            ));
        }
        let sum = takeover.saturating_add(tick).saturating_add(skew);
        if sum > interval / 2 {
            return refuse(format!(
                "takeover_ms + tick_ms + max_skew_ms = {sum} must be at most \
                 lease_interval_ms / 2 = {}",
                interval / 2
            ));
        }
        if takeover <= self.beat_ms {
            return refuse(format!(
                "takeover_ms = {takeover} must be above beat_ms = {}",
                self.beat_ms
            ));
        }
        Ok(())
    }
}

/// A violated constraint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("timings: {0}")]
pub struct TimingsError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_exactly_at_the_takeover_limit() {
        let timings = Timings::default();
        assert_eq!(timings.validate(), Ok(()));
        let later = Timings {
            takeover_ms: 1_501,
            ..timings
        };
        assert!(later.validate().is_err());
    }

    #[test]
    fn a_refusal_states_the_formula() {
        let timings = Timings {
            lease_interval_ms: 3_999,
            ..Timings::default()
        };
        let message = timings.validate().unwrap_err().to_string();
        assert!(
            message.contains("2 x (tick_ms + 2 x max_skew_ms + 500) = 4000"),
            "{message}"
        );
    }
}
