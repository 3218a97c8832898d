//! What the release that runs on a process can read of stored leases.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What can be read; each reads what those before it read. Any reads the naive records, which
/// came first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reads {
    /// `compact-v1`, with and without zones.
    CompactV1,
    /// And `compact-v2`.
    CompactV2,
    /// And `columnar`.
    Columnar,
    /// And deltas after a snapshot.
    #[default]
    Deltas,
}

impl Reads {
    /// All, oldest first.
    pub const ALL: [Self; 4] = [
        Self::CompactV1,
        Self::CompactV2,
        Self::Columnar,
        Self::Deltas,
    ];

    /// Its name in scenarios and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompactV1 => "compact-v1",
            Self::CompactV2 => "compact-v2",
            Self::Columnar => "columnar",
            Self::Deltas => "deltas",
        }
    }
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
