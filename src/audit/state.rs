//! How a lease stands at a time, in one word.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::lease::Lease;

/// How a lease stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LeaseState {
    /// Its holder may serve, and it will be prolonged.
    Accepted,
    /// Its holder has not agreed yet.
    Waiting,
    /// Its holder may serve, but it will not be prolonged.
    Denied,
    /// It is over.
    Expired,
}

impl LeaseState {
    /// The state of a lease at a time, milliseconds since the Unix epoch.
    pub fn at(lease: &Lease, time: u64) -> Self {
        if lease.expiration.physical() <= time {
            Self::Expired
        } else if !lease.accepted {
            Self::Waiting
        } else if !lease.prolongable {
            Self::Denied
        } else {
            Self::Accepted
        }
    }

    /// Whether the holder may serve.
    pub const fn is_valid(self) -> bool {
        matches!(self, Self::Accepted | Self::Denied)
    }

    /// Its name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Waiting => "waiting",
            Self::Denied => "denied",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
