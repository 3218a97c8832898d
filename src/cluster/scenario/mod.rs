//! Scenario files: what cluster to simulate and what happens to it. TOML; every setting has a
//! default, and an unknown one is an error that names the nearest valid name.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::codec::Format;
use crate::model::reads::Reads;
use crate::model::timings::Timings;
use crate::placement::storing::Storing;

mod operation;
mod place;
mod swarm;
mod text;

pub use operation::{Action, CrashPoint, Operation};
pub use place::{Place, Process};
pub use swarm::Swarm;

/// A scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// What it is for, in a line.
    pub about: String,
    /// How long it lasts in cluster time; for ever if not said.
    #[serde(
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub duration: Option<Duration>,
    /// Decides everything that is drawn.
    pub seed: u64,
    /// When all faults end: from then on the cluster is to recover within a bound.
    #[serde(
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub heal: Option<Duration>,
    /// The cluster.
    pub cluster: ClusterShape,
    /// The protocol's settings.
    pub timings: Timings,
    /// What is stored, and for how long.
    pub store: StoreSettings,
    /// Delays.
    pub network: Network,
    /// How far node clocks are off.
    pub clocks: Clocks,
    /// What follows a failure.
    pub failures: Failures,
    /// Faults that each seed draws for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swarm: Option<Swarm>,
    /// What happens.
    #[serde(rename = "operation", skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            about: String::new(),
            duration: None,
            seed: 1,
            heal: None,
            cluster: ClusterShape::default(),
            timings: Timings::default(),
            store: StoreSettings::default(),
            network: Network::default(),
            clocks: Clocks::default(),
            failures: Failures::default(),
            swarm: None,
            operations: Vec::new(),
        }
    }
}

/// Size of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterShape {
    /// Tables at the start, with ids from 1.
    pub tables: u32,
    /// Partitions of each table.
    pub partitions: u32,
    /// Distribution zones at the start, with ids from 1.
    pub zones: u32,
    /// Partitions of each zone.
    pub zone_partitions: u32,
    /// Nodes, named node1, node2, …
    pub nodes: u32,
    /// Replicas of each partition; at most as many as nodes.
    pub replicas: u32,
    /// Placement drivers; one is active, the others stand by.
    pub drivers: u32,
    /// What the releases of all nodes and drivers can read at the start.
    pub reads: Reads,
}

impl Default for ClusterShape {
    fn default() -> Self {
        Self {
            tables: 1000,
            partitions: 25,
            zones: 0,
            zone_partitions: 25,
            nodes: 3,
            replicas: 3,
            drivers: 1,
            reads: Reads::default(),
        }
    }
}

/// What is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Format of new batches.
    #[serde(with = "text::format")]
    pub format: Format,
    /// Whether each batch is stored in full.
    pub layout: Layout,
    /// In the layout `delta`: of so many batches one is stored in full.
    pub snapshot_every: u32,
    /// How long superseded batches are kept, in cluster time.
    #[serde(with = "text::duration")]
    pub retain: Duration,
    /// How long size rows are kept, in cluster time.
    #[serde(with = "text::duration")]
    pub retain_sizes: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            format: Format::Columnar,
            layout: Layout::Delta,
            snapshot_every: 64,
            retain: Duration::from_secs(10 * 60),
            retain_sizes: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl StoreSettings {
    /// How batches are stored if everybody can read that.
    pub fn storing(&self) -> Storing {
        Storing {
            format: self.format,
            snapshot_every: self.batches_per_snapshot(),
        }
    }

    /// Of how many batches one is stored in full: 1 if all are.
    pub fn batches_per_snapshot(&self) -> u32 {
        match self.layout {
            Layout::Full => 1,
            Layout::Delta => self.snapshot_every,
        }
    }
}

/// How batches follow each other in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each is stored in full.
    Full,
    /// Now and then one is stored in full, between them what has changed.
    Delta,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 2] = [Self::Full, Self::Delta];

    /// Its name in settings and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Delta => "delta",
        }
    }
}

/// Delays, drawn evenly between a least and a most, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Least delay of a message.
    pub min_us: u64,
    /// Greatest delay of a message.
    pub max_us: u64,
    /// Time that a simulated store takes for a request.
    pub store_us: u64,
    /// After so many milliseconds without an answer of the store the outcome is unknown.
    pub timeout_ms: u64,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            min_us: 200,
            max_us: 2_000,
            store_us: 1_000,
            timeout_ms: 1_000,
        }
    }
}

/// Clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clocks {
    /// Each clock is ahead by a constant, drawn between zero and this many milliseconds.
    pub max_offset_ms: u64,
    /// Whatever happens to it, no clock is ahead of true time by more than so many milliseconds,
    /// or behind it; the protocol's `max_skew_ms` if not said. Beyond that leases are not safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ms: Option<u64>,
}

impl Scenario {
    /// How far clocks are apart at most, milliseconds.
    pub fn clock_bound_ms(&self) -> u64 {
        (self.clocks.bound_ms).unwrap_or(self.timings.max_skew_ms.max(self.clocks.max_offset_ms))
    }
}

/// What follows a failure, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Failures {
    /// Until a node that went down leaves the topology.
    pub detection_ms: u64,
    /// Until a node that came up joins the topology.
    pub join_ms: u64,
    /// Until a group that lost its leader has another.
    pub election_ms: u64,
    /// Most time that a replica takes to catch up before it accepts a lease.
    pub catch_up_ms: u64,
}

impl Default for Failures {
    fn default() -> Self {
        Self {
            detection_ms: 1_000,
            join_ms: 100,
            election_ms: 500,
            catch_up_ms: 20,
        }
    }
}

impl Scenario {
    /// The text of a scenario file that reads as this scenario.
    ///
    /// # Errors
    /// If it can't be written as TOML, which no valid scenario is known for.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|error| ScenarioError(error.to_string()))
    }

    /// From the text of a scenario file.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) and of [`validate`](Self::validate).
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let scenario = Self::read(text)?;
        scenario.validate()?;
        Ok(scenario)
    }

    /// The same, of which some settings are to be overridden before it is validated.
    ///
    /// # Errors
    /// If it is not TOML, or has other fields or types than a scenario.
    pub fn read(toml: &str) -> Result<Self, ScenarioError> {
        toml::from_str(toml).map_err(|error| {
            let hint = text::nearest_name(error.message());
            ScenarioError(format!("{}{hint}", error.to_string().trim_end()))
        })
    }

    /// Checks that a real store can take part: the simulator can do more to its own.
    ///
    /// # Errors
    /// If something happens that only the simulator can carry out.
    pub fn validate_for_real_store(&self) -> Result<(), ScenarioError> {
        if self.swarm.is_some() {
            return Err(ScenarioError(
                "a swarm draws its faults for `leasehold check`, which simulates the store".into(),
            ));
        }
        let mut actions = self.operations.iter().map(|operation| operation.action);
        match actions.find(|action| action.needs_simulated_store()) {
            Some(action) => Err(ScenarioError(format!(
                "`{}` needs a simulated store: use `leasehold check`",
                action.name()
            ))),
            None => Ok(()),
        }
    }

    /// Checks what the types don't.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let refuse = |reason: String| Err(ScenarioError(reason));
        let ClusterShape {
            tables,
            partitions,
            zones,
            zone_partitions,
            nodes,
            replicas,
            drivers,
            reads: _,
        } = self.cluster;
        let ranges = [
            ("nodes", nodes, 1, 1_000),
            ("replicas", replicas, 1, 1_000),
            ("drivers", drivers, 1, 100),
            ("tables", tables, 0, 10_000_000),
            ("partitions", partitions, 1, 1_000_000),
            ("zones", zones, 0, 10_000_000),
            ("zone_partitions", zone_partitions, 1, 1_000_000),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return refuse(format!("{name} = {value} is outside {low}..={high}"));
            }
        }
        let groups = u64::from(tables) * u64::from(partitions)
            + u64::from(zones) * u64::from(zone_partitions);
        if groups > MAX_GROUPS {
            return refuse(format!(
                "{groups} partitions in all are more than the {MAX_GROUPS} that a batch may hold"
            ));
        }
        if replicas > nodes {
            return refuse(format!(
                "replicas = {replicas} is more than nodes = {nodes}: a node holds at most one \
                 replica of a partition"
            ));
        }
        let snapshot_every = self.store.snapshot_every;
        if !(2..=MAX_SNAPSHOT_EVERY).contains(&snapshot_every) {
            return refuse(format!(
                "snapshot_every = {snapshot_every} is outside 2..={MAX_SNAPSHOT_EVERY}: to store \
                 every batch in full, choose the layout `full`"
            ));
        }
        let format = self.store.format;
        if zones > 0 && matches!(format, Format::Naive | Format::CompactV1TablesOnly) {
            return refuse(format!(
                "zones = {zones}, but {format} carries tables only: use columnar or compact-v2"
            ));
        }
        let Network {
            min_us,
            max_us,
            store_us,
            ..
        } = self.network;
        if min_us > max_us {
            return refuse(format!(
                "network: min_us = {min_us} is above max_us = {max_us}"
            ));
        }
        if max_us.max(store_us) > MAX_DELAY_US {
            return refuse(format!(
                "network: delays are at most {MAX_DELAY_US} microseconds, a quarter of a minute"
            ));
        }
        let timeout_ms = self.network.timeout_ms;
        if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
            return refuse(format!(
                "network: timeout_ms = {timeout_ms} is outside 1..={MAX_TIMEOUT_MS}"
            ));
        }
        if self.clock_bound_ms() > MAX_BOUND_MS {
            return refuse(format!("clocks: bound_ms is at most {MAX_BOUND_MS}"));
        }
        if let Some(swarm) = &self.swarm {
            swarm.validate(self)?;
        }
        for operation in &self.operations {
            operation.validate(self.cluster)?;
        }
        (self.timings.validate()).map_err(|error| ScenarioError(error.to_string()))
    }
}

/// The largest number of groups: what the readers of batches allow.
pub const MAX_GROUPS: u64 = 16 * 1024 * 1024;

/// Most batches from one snapshot to the next: the transaction of a snapshot takes them away.
const MAX_SNAPSHOT_EVERY: u32 = 1_024;

/// Largest delay of a message or of the store, microseconds.
const MAX_DELAY_US: u64 = 15_000_000;

/// Longest time to wait for the store, milliseconds.
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Furthest that clocks may be apart, milliseconds: an hour.
const MAX_BOUND_MS: u64 = 3_600_000;

/// Name of the node with a number, from 1.
pub fn node_name(number: u32) -> String {
    format!("node{number}")
}

/// What is wrong with a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScenarioError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_scenario() {
        assert_eq!(Scenario::parse("").unwrap(), Scenario::default());
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let text = "about = 'x'\nseed = 7\nheal = '13m'\nduration = '4m'\n[clocks]\nbound_ms = 9\n\
                    [store]\nformat = 'naive'\n[swarm]\n[[operation]]\nat = '1500ms'\n\
                    do = 'lose'\nfrom = 'driver1'\nfor = '2s'\npercent = 30\n";
        let scenario = Scenario::parse(text).unwrap();
        let written = scenario.to_toml().unwrap();
        assert_eq!(Scenario::parse(&written).unwrap(), scenario, "{written}");
    }

    #[test]
    fn unknown_names_hint_at_the_nearest() {
        for (text, hint) in [
            ("[cluster]\ntabels = 3", "did you mean `tables`?"),
            ("[timing]\ntick_ms = 3", "did you mean `timings`?"),
            (
                "[[operation]]\nat = '1s'\ndo = 'restart'",
                "did you mean `restart-node`?",
            ),
        ] {
            let message = Scenario::parse(text).unwrap_err().to_string();
            assert!(message.contains(hint), "{message}");
            assert!(message.contains("line"), "{message}");
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        for (text, reason) in [
            (
                "[cluster]\nnodes = 2",
                "replicas = 3 is more than nodes = 2",
            ),
            ("[timings]\nlease_interval_ms = 2000", "must be at least"),
            ("duration = '5 parsecs'", "not a duration"),
            (
                "[cluster]\nzones = 1\n[store]\nformat = 'naive'",
                "carries tables only",
            ),
            ("[network]\nmax_us = 20000000", "at most 15000000"),
            (
                "[[operation]]\nat = '1s'\nevery = '1ns'\ndo = 'resign'",
                "at least 10ms",
            ),
            (
                "[[operation]]\nat = '1s'\ncount = 4000000000\ndo = 'create-tables'",
                "outside 1..=100000",
            ),
            ("[store]\nformat = 'zip'", "not a format"),
            (
                "[[operation]]\nat = '1s'\ndo = 'crash-node'\nnode = 'n1'",
                "no node `n1`",
            ),
            (
                "[[operation]]\nat = '1s'\ndo = 'cut'\nfrom = 'node4'",
                "no `node4` among 3 nodes and 1 drivers",
            ),
            (
                "[[operation]]\nat = '1s'\ndo = 'compact'\nfor = '3s'",
                "`compact` has no `for`: it takes only `at` and `every`",
            ),
        ] {
            let message = Scenario::parse(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
