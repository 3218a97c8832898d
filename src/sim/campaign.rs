//! Many seeds, on several threads. A seed's run depends on nothing else, so that the outcomes are
//! the same on any number of threads.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use crate::cluster::scenario::{Action, Scenario};

use super::observer::{Observer, Until, Watching};
use super::run::{MakeStore, Outcome, length, run};

/// What many runs came to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Runs.
    pub seeds: u64,
    /// Events of all.
    pub events: u64,
    /// Cluster time of all, microseconds.
    pub elapsed_us: u64,
    /// Combined hash of all traces, whatever their order.
    pub trace_hash: u64,
    /// How often each operation was carried out, and in how many runs.
    pub operations: BTreeMap<Action, (u64, u64)>,
    /// The run with the lowest seed in which something did not hold.
    pub failed: Option<Outcome>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.events += outcome.events;
        self.elapsed_us += outcome.elapsed_us;
        let turned = outcome.trace_hash.rotate_left((outcome.seed % 64) as u32);
        self.trace_hash = self.trace_hash.wrapping_add(turned);
        for (action, count) in &outcome.operations {
            let (times, runs) = self.operations.entry(*action).or_default();
            *times += count;
            *runs += 1;
        }
        let first = |failed: &Outcome| outcome.seed < failed.seed;
        if outcome.violation.is_some() && self.failed.as_ref().is_none_or(first) {
            self.failed = Some(outcome);
        }
    }
}

/// What to run, and how.
pub struct Campaign<'a> {
    /// The scenario; its swarm is drawn for each seed.
    pub scenario: &'a Scenario,
    /// Makes the store of a run.
    pub store: MakeStore,
    /// Threads.
    pub jobs: usize,
    /// Ends the campaign when set, and what runs at that moment counts for nothing.
    pub stop: &'a AtomicBool,
}

impl Campaign<'_> {
    /// Runs a range of seeds, until one fails or it is stopped. `goes_on` hears of each run that
    /// has ended, in the order in which they end, and says whether another may begin.
    pub fn run(&self, seeds: Range<u64>, mut goes_on: impl FnMut(&Summary) -> bool) -> Summary {
        let next = AtomicU64::new(seeds.start);
        let no_more = AtomicBool::new(false);
        let mut summary = Summary::default();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                let (tell, next, no_more) = (tell.clone(), &next, &no_more);
                scope.spawn(move || {
                    while !no_more.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        let outcome = self.run_seed(seed, &mut ());
                        if outcome.violation.is_some() {
                            no_more.store(true, Ordering::Relaxed);
                        }
                        if outcome.cut_short || tell.send(outcome).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(tell);
            for outcome in told {
                summary.add(outcome);
                if !goes_on(&summary) {
                    no_more.store(true, Ordering::Relaxed);
                }
            }
        });
        summary
    }

    /// Runs one seed.
    pub fn run_seed(&self, seed: u64, also: &mut impl Observer) -> Outcome {
        let scenario = self.scenario.for_seed(seed);
        let mut observers = Watching(Until(self.stop), also);
        let store = (self.store)();
        run(&scenario, length(&scenario), store, &mut observers)
    }
}
