//! What a scenario can have happen, once or again and again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::reads::Reads;

use super::place::Place;
use super::text;
use super::{ClusterShape, ScenarioError, node_name};

/// Something that happens once, or again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// When, in cluster time from the start.
    #[serde(with = "text::duration")]
    pub at: Duration,
    /// And again after each such time.
    #[serde(
        default,
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub every: Option<Duration>,
    /// What.
    #[serde(rename = "do")]
    pub action: Action,
    /// Which node; each in turn if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Which process; for what happens to drivers, the active one if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Place>,
    /// On the links from whom; from all if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Place>,
    /// On the links to whom; to all if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Place>,
    /// How long it lasts.
    #[serde(
        rename = "for",
        default,
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasts: Option<Duration>,
    /// For how long what crashed is down.
    #[serde(
        default,
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub down: Option<Duration>,
    /// By how much something is late.
    #[serde(
        default,
        with = "text::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay: Option<Duration>,
    /// How many tables, groups, restarts or writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// How many messages of a hundred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// By how many milliseconds a clock steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<i64>,
    /// By how many parts in a million a clock is fast, or slow if negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ppm: Option<i64>,
    /// Where a driver crashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<CrashPoint>,
    /// What another release can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
}

/// Where a driver crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrashPoint {
    /// At once.
    #[default]
    Now,
    /// Having taken over, before it has read what is stored.
    AfterTake,
    /// Having read, before it has done anything.
    AfterRead,
    /// Having decided on a batch, before the write is sent.
    BeforeWrite,
    /// The write is on its way to the store.
    AfterWrite,
    /// The write has been acknowledged, before a message is sent.
    AfterAck,
}

impl CrashPoint {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Now,
        Self::AfterTake,
        Self::AfterRead,
        Self::BeforeWrite,
        Self::AfterWrite,
        Self::AfterAck,
    ];
}

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident $name:literal [$($field:literal),*] ,)*) => {
        /// What can happen.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Action {
            $($(#[$doc])* $variant,)*
        }

        impl std::fmt::Display for Action {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in scenarios and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The settings that it takes, beside `at` and `every`.
            pub const fn settings(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($field),*],)* }
            }
        }
    };
}

actions! {
    /// A node crashes and comes back under a new id.
    RestartNode "restart-node" ["node", "down"],
    /// A node crashes and stays down.
    CrashNode "crash-node" ["node"],
    /// A node that is down comes back under a new id.
    StartNode "start-node" ["node"],
    /// One node after the other restarts.
    RollingRestart "rolling-restart" ["down"],
    /// A node restarts `count` times in a row: more ids than names.
    RestartStorm "restart-storm" ["node", "down", "count"],
    /// A node stands still, as in a long garbage collection, and goes on.
    PauseNode "pause-node" ["node", "for"],
    /// All messages from and to a node are late.
    SlowNode "slow-node" ["node", "for", "delay"],
    /// A node leaves the topology and joins it again under the same id.
    LeaveNode "leave-node" ["node", "for"],
    /// Messages and streams do not get through, one way.
    Cut "cut" ["from", "to", "for"],
    /// Messages and streams do not get through, either way.
    Partition "partition" ["from", "to", "for"],
    /// Some messages are lost.
    Lose "lose" ["from", "to", "for", "percent"],
    /// Some messages arrive twice.
    Duplicate "duplicate" ["from", "to", "for", "percent"],
    /// Messages overtake each other: each is late by up to `delay`.
    Reorder "reorder" ["from", "to", "for", "delay"],
    /// Messages and streams are late by `delay`.
    SlowLink "slow-link" ["from", "to", "for", "delay"],
    /// Messages are stuck and arrive together when it is over.
    Clog "clog" ["from", "to", "for"],
    /// A clock steps, within the bound on clocks.
    StepClock "step-clock" ["of", "step_ms"],
    /// A clock begins to be fast or slow, within the bound on clocks.
    DriftClock "drift-clock" ["of", "ppm"],
    /// The store crashes, what it had not synced is lost, and it comes back.
    CrashStore "crash-store" ["down"],
    /// The store takes longer by `delay` for everything.
    SlowStore "slow-store" ["for", "delay"],
    /// The store does nothing, and goes on.
    StallStore "stall-store" ["for"],
    /// The store has no space: it takes no writes.
    FillStore "fill-store" ["for"],
    /// Somebody else stores the same leases again, as a snapshot.
    Conflict "conflict" [],
    /// Of the next `count` batch writes the outcome does not become known.
    LoseOutcome "lose-outcome" ["count"],
    /// What watchers see is late by `delay`.
    LagWatch "lag-watch" ["of", "for", "delay"],
    /// Watchers see nothing, and then go on where they were.
    CutWatch "cut-watch" ["of", "for"],
    /// All history is compacted.
    Compact "compact" [],
    /// The next `count` readings from the store have a flipped bit.
    Corrupt "corrupt" ["count"],
    /// A driver crashes at a point of its work, and comes back, knowing nothing.
    CrashDriver "crash-driver" ["of", "point", "down"],
    /// The active driver crashes and comes back, knowing nothing.
    RestartDriver "restart-driver" ["down"],
    /// Nodes and drivers restart, one after the other, with a release that reads more or less.
    Upgrade "upgrade" ["of", "reads", "down"],
    /// A driver stands still and goes on.
    PauseDriver "pause-driver" ["of", "for"],
    /// Tables are created.
    CreateTables "create-tables" ["count"],
    /// The oldest tables are dropped.
    DropTables "drop-tables" ["count"],
    /// The replicas of `count` groups move to other nodes, which takes as long as it lasts.
    MoveAssignments "move-assignments" ["count", "for"],
    /// A node asks to give up groups that it serves.
    Resign "resign" ["node", "count"],
}

impl Action {
    /// Whether only the simulator can do this to its store.
    pub const fn needs_simulated_store(self) -> bool {
        matches!(
            self,
            Self::CrashStore | Self::Conflict | Self::Compact | Self::Corrupt
        )
    }

    /// Whether it is something that goes wrong, not something that somebody wants.
    pub const fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::StartNode
                | Self::CreateTables
                | Self::DropTables
                | Self::MoveAssignments
                | Self::Upgrade
                | Self::Resign
        )
    }
}

impl Operation {
    /// At a time, with all settings left out.
    pub const fn new(at: Duration, action: Action) -> Self {
        Self {
            at,
            every: None,
            action,
            node: None,
            of: None,
            from: None,
            to: None,
            lasts: None,
            down: None,
            delay: None,
            count: None,
            percent: None,
            step_ms: None,
            ppm: None,
            point: None,
            reads: None,
        }
    }

    /// How long it lasts; five seconds if not said.
    pub fn lasts(&self) -> Duration {
        self.lasts.unwrap_or(Duration::from_secs(5))
    }

    /// For how long what crashed is down; ten seconds if not said, one for each of several.
    pub fn down(&self) -> Duration {
        let several = matches!(self.action, Action::RestartStorm | Action::Upgrade);
        let usual = if several { 1 } else { 10 };
        self.down.unwrap_or(Duration::from_secs(usual))
    }

    /// By how much something is late; 200 ms if not said.
    pub fn delay(&self) -> Duration {
        self.delay.unwrap_or(Duration::from_millis(200))
    }

    /// How many; one if not said, of the restarts of a storm ten.
    pub fn count(&self) -> u32 {
        let storm = matches!(self.action, Action::RestartStorm);
        self.count.unwrap_or(if storm { 10 } else { 1 })
    }

    /// How many messages of a hundred; 20 if not said.
    pub fn percent(&self) -> u32 {
        self.percent.unwrap_or(20)
    }

    /// Checks what the types don't.
    pub(super) fn validate(&self, shape: ClusterShape) -> Result<(), ScenarioError> {
        let refuse = |reason: String| Err(ScenarioError(format!("operation: {reason}")));
        let name = self.action.name();
        for (setting, given) in self.given() {
            let takes = self.action.settings();
            if given && !takes.contains(&setting) {
                let takes = match takes {
                    [] => "only `at` and `every`".to_owned(),
                    takes => format!("`at`, `every`, `{}`", takes.join("`, `")),
                };
                return refuse(format!("`{name}` has no `{setting}`: it takes {takes}"));
            }
        }
        if self.every.is_some_and(|every| every < LEAST_PERIOD) {
            return refuse(format!(
                "`every` must be at least {}",
                humantime::format_duration(LEAST_PERIOD)
            ));
        }
        if !(1..=MAX_COUNT).contains(&self.count()) {
            return refuse(format!(
                "count = {} is outside 1..={MAX_COUNT}",
                self.count()
            ));
        }
        if self.percent() > 100 {
            return refuse(format!("percent = {} is outside 0..=100", self.percent()));
        }
        if self.delay() > MAX_DELAY {
            let most = humantime::format_duration(MAX_DELAY);
            return refuse(format!("`delay` is at most {most}"));
        }
        if self.step_ms.is_some_and(|by| by.abs() > MAX_STEP_MS) {
            return refuse(format!("step_ms is at most {MAX_STEP_MS} either way"));
        }
        if self.ppm.is_some_and(|ppm| ppm.abs() > MAX_PPM) {
            return refuse(format!("ppm is at most {MAX_PPM} either way"));
        }
        let nodes = shape.nodes;
        if let Some(name) = &self.node
            && !(1..=nodes).any(|number| *name == node_name(number))
        {
            return refuse(format!(
                "there is no node `{name}`; the nodes are node1 to node{nodes}"
            ));
        }
        for place in [self.of, self.from, self.to].into_iter().flatten() {
            if !place.is_in(shape) {
                return refuse(format!(
                    "there is no `{place}` among {nodes} nodes and {} drivers",
                    shape.drivers
                ));
            }
        }
        Ok(())
    }

    fn given(&self) -> [(&'static str, bool); 13] {
        [
            ("node", self.node.is_some()),
            ("of", self.of.is_some()),
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
            ("for", self.lasts.is_some()),
            ("down", self.down.is_some()),
            ("delay", self.delay.is_some()),
            ("count", self.count.is_some()),
            ("percent", self.percent.is_some()),
            ("step_ms", self.step_ms.is_some()),
            ("ppm", self.ppm.is_some()),
            ("point", self.point.is_some()),
            ("reads", self.reads.is_some()),
        ]
    }
}

/// Shortest period of an operation.
const LEAST_PERIOD: Duration = Duration::from_millis(10);

/// Most tables or groups of one operation.
const MAX_COUNT: u32 = 100_000;

/// Largest delay of an operation.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// Largest step of a clock, milliseconds: an hour.
const MAX_STEP_MS: i64 = 3_600_000;

/// Most by which a clock is fast or slow: a tenth.
const MAX_PPM: i64 = 100_000;
