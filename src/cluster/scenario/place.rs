//! Who can be meant in a scenario: a process, or several.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ClusterShape;

/// One process of a cluster, by its number from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Process {
    /// The metastorage, with the membership service.
    Store,
    /// A placement driver.
    Driver(usize),
    /// A node.
    Node(usize),
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => f.write_str("store"),
            Self::Driver(index) => write!(f, "driver{}", index + 1),
            Self::Node(index) => write!(f, "node{}", index + 1),
        }
    }
}

/// One or several processes: `all`, `nodes`, `drivers`, `store`, `node1`, `driver2`, …
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Place {
    /// Everybody.
    #[default]
    All,
    /// All nodes.
    Nodes,
    /// All drivers.
    Drivers,
    /// One process.
    One(Process),
}

impl Place {
    /// Whether a process is meant.
    pub fn covers(self, process: Process) -> bool {
        match self {
            Self::All => true,
            Self::Nodes => matches!(process, Process::Node(_)),
            Self::Drivers => matches!(process, Process::Driver(_)),
            Self::One(one) => one == process,
        }
    }

    /// Whether a cluster of this shape has it.
    pub fn is_in(self, shape: ClusterShape) -> bool {
        match self {
            Self::One(Process::Node(index)) => index < shape.nodes as usize,
            Self::One(Process::Driver(index)) => index < shape.drivers as usize,
            _ => true,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Nodes => f.write_str("nodes"),
            Self::Drivers => f.write_str("drivers"),
            Self::One(process) => process.fmt(f),
        }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |prefix: &str| {
            let number = text.strip_prefix(prefix)?.parse::<usize>().ok()?;
            number.checked_sub(1)
        };
        match text {
            "all" => Ok(Self::All),
            "nodes" => Ok(Self::Nodes),
            "drivers" => Ok(Self::Drivers),
            "store" => Ok(Self::One(Process::Store)),
            _ => (number("node").map(Process::Node))
                .or(number("driver").map(Process::Driver))
                .map(Self::One)
                .ok_or_else(|| {
                    format!(
                        "`{text}` is nobody: write all, nodes, drivers, store, node1, driver1, …"
                    )
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for name in ["all", "nodes", "drivers", "store", "node3", "driver12"] {
            assert_eq!(name.parse::<Place>().unwrap().to_string(), name);
        }
        for name in ["", "node", "node0", "node-1", "driver", "store1"] {
            assert!(name.parse::<Place>().is_err(), "{name}");
        }
    }
}
