//! Shortening a schedule that violates an invariant, while it still does: drop what happens,
//! shorten what lasts, take back what was drawn.
//!
//! Source of the idea: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input"
//! (2002). Leaving something out changes what is drawn afterwards, so each candidate is tried with
//! a few seeds.

use std::time::Duration;

use crate::cluster::scenario::{Operation, Scenario};

use super::check::{Invariant, Violation};
use super::run::{MakeStore, Outcome, length, run};

/// A schedule that violates an invariant.
#[derive(Clone, PartialEq, Debug)]
pub struct Shrunk {
    /// The schedule, with the seed with which it fails and the time that it takes.
    pub scenario: Scenario,
    /// The run.
    pub outcome: Outcome,
    /// How many runs it took.
    pub runs: u32,
}

/// Seeds tried for each candidate.
const SEEDS: u64 = 3;

/// How long it may take until the violation shows, beyond when it showed first.
const LONGER: Duration = Duration::from_secs(30);

/// Shortens a schedule, with at most so many runs. `None` if it violates nothing.
pub fn shrink(scenario: &Scenario, store: MakeStore, most_runs: u32) -> Option<Shrunk> {
    let mut search = Search {
        store,
        runs: 0,
        most_runs,
        invariant: Invariant::NoFailure,
        latest: Duration::ZERO,
        best: scenario.clone(),
        outcome: None,
    };
    let first = run(scenario, length(scenario), store(), &mut ());
    let violation = first.violation.clone()?;
    search.invariant = violation.invariant;
    search.keep(scenario.clone(), first, &violation);
    search.ignore_what_came_later();
    loop {
        let before = search.best.clone();
        search.drop_operations();
        search.take_back_settings();
        search.weaken();
        if search.best == before || search.runs >= search.most_runs {
            break;
        }
    }
    Some(Shrunk {
        scenario: search.best,
        outcome: search.outcome?,
        runs: search.runs,
    })
}

struct Search {
    store: MakeStore,
    runs: u32,
    most_runs: u32,
    invariant: Invariant,
    /// When the violation showed.
    latest: Duration,
    best: Scenario,
    outcome: Option<Outcome>,
}

impl Search {
    fn keep(&mut self, mut scenario: Scenario, outcome: Outcome, violation: &Violation) {
        self.latest = Duration::from_micros(violation.elapsed_us);
        // Whole seconds, so that a file can be read by people.
        let end = Duration::from_secs(self.latest.as_secs() + 1);
        scenario.duration = Some(end);
        self.best = scenario;
        self.outcome = Some(outcome);
    }

    /// Whether a candidate violates the same invariant, with one of a few seeds. If so, it is the
    /// best from now on.
    fn accepts(&mut self, candidate: Scenario) -> bool {
        if candidate.validate().is_err() {
            return false;
        }
        let length = self.latest + LONGER;
        for more in 0..SEEDS {
            if self.runs >= self.most_runs {
                return false;
            }
            self.runs += 1;
            let mut candidate = candidate.clone();
            candidate.seed = candidate.seed.wrapping_add(more);
            candidate.duration = Some(length);
            let outcome = run(&candidate, length, (self.store)(), &mut ());
            if let Some(violation) = outcome.violation.clone()
                && violation.invariant == self.invariant
            {
                self.keep(candidate, outcome, &violation);
                return true;
            }
        }
        false
    }

    /// What was to happen after the violation has nothing to do with it.
    fn ignore_what_came_later(&mut self) {
        let latest = self.latest;
        let mut candidate = self.best.clone();
        candidate
            .operations
            .retain(|operation| operation.at <= latest);
        if candidate.heal.is_some_and(|heal| heal > latest) {
            candidate.heal = None;
        }
        candidate.swarm = None;
        self.accepts(candidate);
    }

    /// Drops ever smaller parts of the schedule.
    fn drop_operations(&mut self) {
        let mut size = self.best.operations.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.best.operations.len() {
                let mut candidate = self.best.clone();
                let end = (from + size).min(candidate.operations.len());
                candidate.operations.drain(from..end);
                if !self.accepts(candidate) {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    /// Settings as they are where nothing is said, if that does.
    fn take_back_settings(&mut self) {
        let usual = Scenario::default();
        let changes: [fn(&mut Scenario, &Scenario); 6] = [
            |scenario, usual| scenario.network = usual.network,
            |scenario, usual| scenario.clocks.max_offset_ms = usual.clocks.max_offset_ms,
            |scenario, usual| scenario.failures = usual.failures,
            |scenario, usual| scenario.store = usual.store,
            |scenario, usual| {
                scenario.timings.acceptance_limit_ms = usual.timings.acceptance_limit_ms;
            },
            |scenario, _| scenario.cluster.replicas = scenario.cluster.nodes.min(3),
        ];
        for change in changes {
            let mut candidate = self.best.clone();
            change(&mut candidate, &usual);
            if candidate != self.best {
                self.accepts(candidate);
            }
        }
    }

    /// Once instead of again and again, one instead of many, shorter.
    fn weaken(&mut self) {
        let changes: [fn(&mut Operation); 5] = [
            |operation| operation.every = None,
            |operation| operation.count = operation.count.map(|count| (count / 2).max(1)),
            |operation| operation.lasts = operation.lasts.map(halved),
            |operation| operation.down = operation.down.map(halved),
            |operation| operation.delay = operation.delay.map(halved),
        ];
        for index in 0..self.best.operations.len() {
            for change in changes {
                for _ in 0..4 {
                    let mut candidate = self.best.clone();
                    if let Some(operation) = candidate.operations.get_mut(index) {
                        change(operation);
                    }
                    if candidate == self.best || !self.accepts(candidate) {
                        break;
                    }
                }
            }
        }
    }
}

fn halved(duration: Duration) -> Duration {
    Duration::from_millis((duration.as_millis() as u64 / 2).max(1))
}
