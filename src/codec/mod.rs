//! Floor 2: the byte formats of a batch. Pure.

pub mod error;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A byte format of a batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// One self-contained record per lease.
    Naive,
    /// Per table, delta- and dictionary-coded, without the section for zones (release 3.0).
    CompactV1TablesOnly,
    /// The same with zones (release 3.1).
    CompactV1,
    /// The same with more than 8 ids under at most 8 names.
    CompactV2,
}

impl Format {
    /// All formats, oldest first.
    pub const ALL: [Self; 4] = [
        Self::Naive,
        Self::CompactV1TablesOnly,
        Self::CompactV1,
        Self::CompactV2,
    ];

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::CompactV1TablesOnly => "compact-v1-tables-only",
            Self::CompactV1 => "compact-v1",
            Self::CompactV2 => "compact-v2",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|known| known.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a format: expected naive, compact-v1-tables-only, compact-v1 or compact-v2")]
pub struct UnknownFormat(String);
