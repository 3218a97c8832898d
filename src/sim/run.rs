//! One seed of a scenario under the checker.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::event::Notice;
use crate::cluster::heap::Micros;
use crate::cluster::scenario::{Action, Scenario};
use crate::cluster::world::Cluster;
use crate::metastorage::contract::{Metastorage, Volatile};

use super::check::{Checker, Violation, liveness_bound};
use super::{Observer, Simulation, Watching};

/// Makes an empty store for a run.
pub type MakeStore = fn() -> Arc<dyn Volatile>;

/// What came of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Hash of all events.
    pub trace_hash: u64,
    /// Number of events.
    pub events: u64,
    /// How long it lasted, microseconds of cluster time.
    pub elapsed_us: Micros,
    /// How often each operation was carried out.
    pub operations: BTreeMap<Action, u64>,
    /// What did not hold, if something did not.
    pub violation: Option<Violation>,
    /// Whether an observer had seen enough before it was over.
    pub cut_short: bool,
}

/// Length of a run whose scenario does not say.
const USUAL_LENGTH: Duration = Duration::from_secs(600);

/// How long a scenario is run: as it says, or until it must have recovered from its faults.
pub fn length(scenario: &Scenario) -> Duration {
    let recovered = (scenario.heal).map(|heal| {
        heal + Duration::from_micros(liveness_bound(scenario)) + Duration::from_secs(5)
    });
    scenario.duration.or(recovered).unwrap_or(USUAL_LENGTH)
}

/// Runs a scenario, whose swarm has been drawn, for a time or until something does not hold.
pub fn run(
    scenario: &Scenario,
    length: Duration,
    store: Arc<dyn Volatile>,
    also: &mut impl Observer,
) -> Outcome {
    let mut checker = Checker::default();
    let mut tally = Tally::default();
    let mut outcome = Outcome {
        seed: scenario.seed,
        trace_hash: 0,
        events: 0,
        elapsed_us: 0,
        operations: BTreeMap::new(),
        violation: None,
        cut_short: false,
    };
    let mut simulation = match Simulation::new(scenario.clone(), store) {
        Ok(simulation) => simulation,
        Err(error) => {
            checker.fail(0, &error.to_string());
            outcome.violation = checker.into_violation();
            return outcome;
        }
    };
    let until = simulation.cluster().begin() + length.as_micros() as Micros;
    let turned = catch_unwind(AssertUnwindSafe(|| {
        let mut observers = Watching(&mut checker, Watching(&mut tally, also));
        while simulation.cluster().next_at().is_some_and(|at| at <= until) {
            simulation.step(&mut observers)?;
            if observers.has_enough() {
                return Ok(true);
            }
        }
        Ok::<_, super::SimulationError>(false)
    }));
    let cluster = simulation.cluster();
    let elapsed_us = cluster.now() - cluster.begin();
    match turned {
        Ok(Ok(enough)) => outcome.cut_short = enough && checker.violation().is_none(),
        Ok(Err(error)) => checker.fail(elapsed_us, &error.to_string()),
        Err(panic) => checker.fail(elapsed_us, &format!("panic: {}", message(&*panic))),
    }
    Outcome {
        trace_hash: cluster.trace_hash(),
        events: tally.events,
        elapsed_us,
        operations: tally.operations,
        violation: checker.into_violation(),
        ..outcome
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("without a message")
}

#[derive(Debug, Default)]
struct Tally {
    events: u64,
    operations: BTreeMap<Action, u64>,
}

impl Observer for Tally {
    fn notice(&mut self, _cluster: &Cluster, notice: &Notice) {
        if let Notice::Done(action) = notice {
            *self.operations.entry(*action).or_default() += 1;
        }
    }

    fn stepped(&mut self, _cluster: &Cluster, _store: &dyn Metastorage) {
        self.events += 1;
    }
}
