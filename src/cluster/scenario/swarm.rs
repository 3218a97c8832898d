//! Swarm testing: each seed draws which kinds of faults it has, how many and how strong, and the
//! settings under which they happen, so that rare combinations occur. What is drawn is a scenario
//! with a fixed schedule, which can be written down, replayed and shortened.
//!
//! Source of the idea: Groce et al., "Swarm Testing" (ISSTA 2012): leaving features out finds
//! more than having all of them always.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::codec::Format;
use crate::model::reads::Reads;

use super::place::{Place, Process};
use super::text;
use super::{Action, CrashPoint, Layout, Operation, Scenario, ScenarioError, node_name};

/// What seeds may draw.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Swarm {
    /// The first fault comes after this time.
    #[serde(with = "text::duration")]
    pub from: Duration,
    /// The last fault begins before this time.
    #[serde(with = "text::duration")]
    pub until: Duration,
    /// Most faults of one kind.
    pub most: u32,
    /// Kinds that are never drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Action>,
    /// Kinds that every seed has; the others come by chance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Action>,
    /// Whether delays, clocks, layout, format and replicas are drawn too. Otherwise they are the
    /// scenario's.
    pub settings: bool,
    /// The format is the scenario's all the same.
    #[serde(skip)]
    pub same_format: bool,
    /// The layout is the scenario's all the same.
    #[serde(skip)]
    pub same_layout: bool,
}

impl Default for Swarm {
    fn default() -> Self {
        Self {
            from: Duration::from_secs(20),
            until: Duration::from_secs(9 * 60),
            most: 4,
            without: Vec::new(),
            always: Vec::new(),
            settings: true,
            same_format: false,
            same_layout: false,
        }
    }
}

impl Swarm {
    /// Leaves format or layout as the scenario has them.
    pub fn fix(&mut self, format: bool, layout: bool) {
        self.same_format |= format;
        self.same_layout |= layout;
    }

    pub(super) fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let refuse = |reason: &str| Err(ScenarioError(format!("swarm: {reason}")));
        if self.from >= self.until {
            return refuse("`from` must be before `until`");
        }
        if scenario.heal.is_some_and(|heal| heal <= self.until) {
            return refuse("`until` must be before the scenario's `heal`");
        }
        if !(1..=1000).contains(&self.most) {
            return refuse("`most` must be within 1..=1000");
        }
        Ok(())
    }
}

impl Scenario {
    /// The scenario of a seed: the same, with this seed and with what its swarm draws for it.
    #[must_use]
    pub fn for_seed(&self, seed: u64) -> Self {
        let mut drawn = self.clone();
        drawn.seed = seed;
        let Some(swarm) = drawn.swarm.take() else {
            return drawn;
        };
        let mut draw = Draw {
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x5377_6172_6D00_0000),
        };
        if swarm.settings {
            draw.settings(&mut drawn);
            if swarm.same_format {
                drawn.store.format = self.store.format;
            }
            if swarm.same_layout {
                drawn.store.layout = self.store.layout;
            }
        }
        let share = draw.random.random_range(5..=45);
        for action in Action::ALL {
            // Drawn for every kind, so that leaving one out changes nothing about the others.
            let on = draw.random.random_range(0..100) < share;
            let count = draw.random.random_range(1..=swarm.most);
            let operations: Vec<_> = (0..count)
                .map(|_| draw.operation(&drawn, &swarm, *action))
                .collect();
            if (on || swarm.always.contains(action)) && !swarm.without.contains(action) {
                drawn.operations.extend(operations);
            }
        }
        drawn.operations.sort_by_key(|operation| operation.at);
        drawn
    }
}

struct Draw {
    random: ChaCha8Rng,
}

impl Draw {
    /// About evenly on a logarithmic scale: small values are as likely as large ones. Without
    /// floating point, which may differ from machine to machine.
    fn spread(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = ((*range.start()).max(1), (*range.end()).max(1));
        let power = self.random.random_range(low.ilog2()..=high.ilog2());
        let (least, most) = (low.max(1 << power), high.min((2 << power) - 1));
        let value = self.random.random_range(least..=most);
        // Three digits: a schedule is read by people.
        let unit = 10_u64.pow(value.ilog10().saturating_sub(2));
        (value / unit * unit).max(low)
    }

    fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.spread(range))
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let index = self.random.random_range(0..choices.len().max(1));
        choices.get(index).copied()
    }

    fn settings(&mut self, scenario: &mut Scenario) {
        let skew = scenario.timings.max_skew_ms;
        scenario.clocks.max_offset_ms = self.random.random_range(0..=skew);
        scenario.network.min_us = self.spread(50..=2_000);
        scenario.network.max_us = scenario.network.min_us + self.spread(100..=200_000);
        scenario.network.store_us = self.spread(100..=50_000);
        let limit = scenario.timings.acceptance_limit_ms;
        scenario.timings.acceptance_limit_ms =
            self.one_of(&[limit, 5_000, 10_000]).unwrap_or(limit);
        let zones = scenario.cluster.zones > 0;
        let formats: Vec<_> = Format::ALL
            .into_iter()
            .filter(|format| !(zones && tables_only(*format)))
            .collect();
        let format = self.one_of(&formats);
        scenario.store.format = format.unwrap_or(scenario.store.format);
        let layouts = [Layout::Full, Layout::Delta, Layout::Delta, Layout::Delta];
        let layout = self.one_of(&layouts);
        scenario.store.layout = layout.unwrap_or(scenario.store.layout);
        scenario.store.snapshot_every = self.spread(2..=64) as u32;
        scenario.store.retain = self.millis(5_000..=600_000);
        let nodes = scenario.cluster.nodes;
        scenario.cluster.replicas = self.random.random_range(nodes.min(2)..=nodes);
        scenario.cluster.reads = match self.random.random_range(0..4) {
            0 => self.one_of(&Reads::ALL).unwrap_or_default(),
            _ => scenario.cluster.reads,
        };
        scenario.failures.detection_ms = self.spread(100..=3_000);
        scenario.failures.join_ms = self.spread(10..=1_000);
        scenario.failures.election_ms = self.spread(10..=2_000);
        scenario.failures.catch_up_ms = self.spread(1..=2_000);
    }

    fn node(&mut self, scenario: &Scenario) -> Option<String> {
        let nodes = scenario.cluster.nodes;
        Some(node_name(self.random.random_range(1..=nodes.max(1))))
    }

    fn process(&mut self, scenario: &Scenario, store: bool) -> Process {
        let (nodes, drivers) = (scenario.cluster.nodes, scenario.cluster.drivers);
        let drawn = self
            .random
            .random_range(0..nodes + drivers + u32::from(store));
        if drawn < nodes {
            Process::Node(drawn as usize)
        } else if drawn < nodes + drivers {
            Process::Driver((drawn - nodes) as usize)
        } else {
            Process::Store
        }
    }

    /// Two ends of links: one process and the rest, two processes, or kinds of processes.
    fn ends(&mut self, scenario: &Scenario) -> (Option<Place>, Option<Place>) {
        let one = Place::One(self.process(scenario, true));
        let other = match self.random.random_range(0..6) {
            0 | 1 => Place::All,
            2 => Place::Nodes,
            3 => Place::Drivers,
            4 => Place::One(Process::Store),
            _ => Place::One(self.process(scenario, true)),
        };
        let (from, to) = match self.random.random_range(0..4) {
            0 => (other, one),
            _ => (one, other),
        };
        (Some(from), Some(to))
    }

    fn driver(&mut self, scenario: &Scenario) -> Option<Place> {
        let drivers = scenario.cluster.drivers;
        // Half of the time the active one, whichever that is.
        let index = self.random.random_range(0..2 * drivers.max(1));
        (index < drivers).then_some(Place::One(Process::Driver(index as usize)))
    }

    /// One process, or all of a kind.
    fn upgraded(&mut self, scenario: &Scenario) -> Option<Place> {
        let one = Place::One(self.process(scenario, false));
        self.one_of(&[one, one, Place::All, Place::Nodes, Place::Drivers])
    }

    fn operation(&mut self, scenario: &Scenario, swarm: &Swarm, action: Action) -> Operation {
        let (from, until) = (
            swarm.from.as_millis() as u64,
            swarm.until.as_millis() as u64,
        );
        let at = Duration::from_millis(self.random.random_range(from..until));
        let mut operation = Operation::new(at, action);
        let bound = scenario.clock_bound_ms().max(1) as i64;
        for setting in action.settings() {
            match *setting {
                "node" => operation.node = self.node(scenario),
                "of" => {
                    operation.of = match action {
                        Action::Upgrade => self.upgraded(scenario),
                        Action::CrashDriver | Action::PauseDriver => self.driver(scenario),
                        _ => Some(Place::One(self.process(scenario, false))),
                    }
                }
                "from" => (operation.from, operation.to) = self.ends(scenario),
                "for" => operation.lasts = Some(self.millis(100..=20_000)),
                "down" => {
                    let most = if matches!(action, Action::RestartStorm | Action::Upgrade) {
                        500
                    } else {
                        15_000
                    };
                    operation.down = Some(self.millis(10..=most));
                }
                "delay" => operation.delay = Some(self.millis(5..=4_000)),
                "count" => {
                    operation.count = Some(match action {
                        Action::CreateTables | Action::DropTables => 1,
                        Action::RestartStorm => self.random.random_range(2..=10),
                        Action::LoseOutcome | Action::Corrupt => self.random.random_range(1..=3),
                        _ => self.random.random_range(1..=8),
                    });
                }
                "percent" => operation.percent = Some(self.random.random_range(5..=90)),
                "step_ms" => operation.step_ms = Some(self.random.random_range(-bound..=bound)),
                "ppm" => operation.ppm = Some(self.random.random_range(-20_000..=20_000)),
                "reads" => operation.reads = self.one_of(&Reads::ALL),
                "point" => operation.point = self.one_of(&CrashPoint::ALL),
                _ => {}
            }
        }
        operation
    }
}

fn tables_only(format: Format) -> bool {
    matches!(format, Format::Naive | Format::CompactV1TablesOnly)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swarm() -> Scenario {
        Scenario::parse(
            "heal = '9m30s'\n[cluster]\ntables = 4\npartitions = 5\ndrivers = 2\n[swarm]",
        )
        .unwrap()
    }

    #[test]
    fn what_a_seed_draws_is_valid_the_same_each_time_and_can_be_written_down() {
        let swarm = swarm();
        for seed in 0..200 {
            let drawn = swarm.for_seed(seed);
            drawn.validate().unwrap();
            assert_eq!(drawn, swarm.for_seed(seed));
            let written = drawn.to_toml().unwrap();
            assert_eq!(Scenario::parse(&written).unwrap(), drawn, "{written}");
        }
        assert_ne!(swarm.for_seed(1).operations, swarm.for_seed(2).operations);
    }

    #[test]
    fn every_kind_is_drawn_by_many_seeds_and_left_out_by_many() {
        let swarm = swarm();
        let drawn: Vec<_> = (0..1000).map(|seed| swarm.for_seed(seed)).collect();
        for action in Action::ALL {
            let has = |drawn: &&Scenario| drawn.operations.iter().any(|o| o.action == *action);
            let with = drawn.iter().filter(has).count();
            assert!((150..=350).contains(&with), "{}: {with}", action.name());
        }
    }
}
