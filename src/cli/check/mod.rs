//! `leasehold check`: runs a scenario with many seeds under the checker, or replays one.

mod progress;
mod report;
mod seeds;
mod trace;

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Args;

use crate::cluster::scenario::{Layout, Scenario};
use crate::codec::Format;
use crate::metastorage::memory::MemoryStore;
use crate::model::ids::GroupId;
use crate::sim::campaign::{Campaign, Summary};
use crate::sim::run::Outcome;
use crate::sim::shrink::{Shrunk, shrink};

use super::failure::Failure;
use super::signals::Signals;
use super::{live, output, scenarios};
use progress::Progress;

/// Look for a way to lose or share a lease: many simulated clusters under faults, each watched by
/// a checker
///
/// Each seed is one cluster with its own faults, as fast as it can be simulated. At each event the
/// checker asks whether all that must hold does. The first violation ends the campaign: it is
/// told, its schedule shortened and written as a scenario file that replays it. Exit code 1 then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  leasehold check                                   100 seeds of the scenario swarm
  leasehold check --seeds 0..10000 --jobs 2         10,000 of them, on two threads
  leasehold check swarm --for 10m                   as many as ten minutes allow
  leasehold check day                               a scenario with a fixed schedule
  leasehold check my.toml --json
  leasehold check --replay 17 --trace --group table/1/0
  leasehold check --replay 17 --save seed17.toml    what seed 17 draws, as a scenario file")]
pub(super) struct Check {
    /// A scenario's name or file
    #[arg(default_value = "swarm")]
    scenario: String,
    /// Seeds to run: A..B (without B), A..=B or one [default: 0..100, or the scenario's seed if it
    /// draws no faults]
    #[arg(long, value_name = "A..B", value_parser = seeds::parse)]
    seeds: Option<Range<u64>>,
    /// Run seeds for so much real time, such as 90s or 10m
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration,
        conflicts_with = "replay")]
    run_for: Option<Duration>,
    /// Threads [default: the machine's]
    #[arg(long, value_name = "N", conflicts_with = "replay")]
    jobs: Option<NonZeroUsize>,
    /// Format of new batches, instead of the scenario's
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Layout of the store, full or delta, instead of the scenario's
    #[arg(long, value_name = "LAYOUT", value_parser = super::run::layout_parser())]
    layout: Option<Layout>,
    /// Run one seed, the same event by event each time
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    replay: Option<u64>,
    /// Print what happens, one line for each event
    #[arg(long, requires = "replay", conflicts_with = "json")]
    trace: bool,
    /// Of the transcript, what concerns this group, such as table/7/3 or zone/1/0
    #[arg(long, value_name = "GROUP", requires = "trace")]
    group: Option<GroupId>,
    /// Of the transcript, what happens at this node, such as node2
    #[arg(long, value_name = "NODE", requires = "trace")]
    node: Option<String>,
    /// In the transcript also what happens all the time: ticks, beats, idle progress
    #[arg(long, requires = "trace")]
    all: bool,
    /// Write the schedule that the replayed seed draws as a scenario file
    #[arg(long, value_name = "FILE", requires = "replay")]
    save: Option<PathBuf>,
    /// Most runs to shorten a schedule that violates something; 0 leaves it as it is
    #[arg(long, value_name = "N", default_value_t = 2000)]
    shrink: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let scenario = self.scenario()?;
        match self.replay {
            Some(seed) => self.replay(&scenario, seed),
            None => self.campaign(&scenario),
        }
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = scenarios::load(&self.scenario)?;
        scenario.store.format = self.format.unwrap_or(scenario.store.format);
        scenario.store.layout = self.layout.unwrap_or(scenario.store.layout);
        if let Some(swarm) = &mut scenario.swarm
            && (self.format.is_some() || self.layout.is_some())
        {
            swarm.fix(self.format.is_some(), self.layout.is_some());
        }
        let valid = scenario.validate();
        let name = &self.scenario;
        valid.map_err(|error| Failure::Usage(format!("scenario {name}: {error}")))?;
        Ok(scenario)
    }

    fn seeds(&self, scenario: &Scenario) -> Range<u64> {
        match &self.seeds {
            Some(seeds) => seeds.clone(),
            None if self.run_for.is_some() => 0..u64::MAX,
            None if scenario.swarm.is_some() => 0..100,
            None => scenario.seed..scenario.seed.saturating_add(1),
        }
    }

    fn campaign(&self, scenario: &Scenario) -> Result<(), Failure> {
        let interrupted = stop_at_signal()?;
        let jobs = (self.jobs).or_else(|| available_parallelism().ok());
        let jobs = jobs.map_or(1, NonZeroUsize::get);
        let campaign = Campaign {
            scenario,
            store: memory,
            jobs,
            stop: &interrupted,
        };
        let seeds = self.seeds(scenario);
        let known_end = self.run_for.is_none() || self.seeds.is_some();
        let all = known_end.then(|| seeds.end - seeds.start);
        let mut progress = Progress::start(all, self.run_for);
        let summary = campaign.run(seeds.clone(), |summary| {
            progress.show(summary);
            !progress.is_time_up()
        });
        let took = progress.finish();
        let about = report::About {
            scenario: &self.scenario,
            jobs,
            took,
            interrupted: interrupted.load(Ordering::Relaxed),
        };
        let found = summary.failed.clone();
        let found = found.map(|outcome| self.investigate(scenario, outcome));
        let found = found.transpose()?;
        self.print(&about, &summary, found.as_ref())?;
        match &found {
            Some(found) => Err(found.failure()),
            None if about.interrupted => Err(Failure::Failed("interrupted".to_owned())),
            None => Ok(()),
        }
    }

    fn print(
        &self,
        about: &report::About<'_>,
        summary: &Summary,
        found: Option<&report::Found>,
    ) -> Result<(), Failure> {
        if self.json {
            return output::print_json(&report::to_json(about, summary, found));
        }
        output::print(&report::to_text(about, summary, found))
    }

    fn replay(&self, scenario: &Scenario, seed: u64) -> Result<(), Failure> {
        let drawn = scenario.for_seed(seed);
        if let Some(file) = &self.save {
            report::save(&drawn, file)?;
        }
        let interrupted = stop_at_signal()?;
        let campaign = Campaign {
            scenario,
            store: memory,
            jobs: 1,
            stop: &interrupted,
        };
        let mut progress = Progress::start(Some(1), None);
        let outcome = match self.trace {
            true => {
                let filter = trace::filter(scenario, self.group, self.node.as_deref(), self.all)?;
                trace::print(&campaign, seed, filter)?
            }
            false => campaign.run_seed(seed, &mut ()),
        };
        let took = progress.finish();
        let about = report::About {
            scenario: &self.scenario,
            jobs: 1,
            took,
            interrupted: interrupted.load(Ordering::Relaxed),
        };
        let mut summary = Summary::default();
        let violated = outcome.violation.is_some();
        if !outcome.cut_short {
            summary.add(outcome.clone());
        }
        let found = violated.then(|| report::Found {
            events: trace::last_events(&drawn, memory, &outcome),
            outcome,
            shrunk: None,
            file: None,
        });
        if !self.trace {
            self.print(&about, &summary, found.as_ref())?;
        }
        match &found {
            Some(found) => Err(found.failure()),
            None if about.interrupted => Err(Failure::Failed("interrupted".to_owned())),
            None => Ok(()),
        }
    }

    /// Looks closer at a violation: what happened last, and the shortest schedule that does it.
    fn investigate(&self, scenario: &Scenario, outcome: Outcome) -> Result<report::Found, Failure> {
        let drawn = scenario.for_seed(outcome.seed);
        let events = trace::last_events(&drawn, memory, &outcome);
        if self.shrink > 0 {
            live::say(&format!(
                "seed {} violates something: shortening its schedule",
                outcome.seed
            ));
        }
        let shrunk = match self.shrink {
            0 => None,
            most => shrink(&drawn, memory, most),
        };
        let scenario = shrunk
            .as_ref()
            .map_or(&drawn, |shrunk: &Shrunk| &shrunk.scenario);
        let file = report::save_violation(scenario, &outcome)?;
        Ok(report::Found {
            outcome,
            events,
            shrunk,
            file: Some(file),
        })
    }
}

fn memory() -> Arc<dyn crate::metastorage::contract::Volatile> {
    Arc::new(MemoryStore::new())
}

/// Set once a signal to end has come.
fn stop_at_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::about("can't start", error))?;
    let mut signals = runtime
        .block_on(async { Signals::catch() })
        .map_err(|error| Failure::about("can't catch signals", error))?;
    runtime.spawn(async move {
        let signal = signals.ended().await;
        live::say(&format!("{signal}, ending"));
        set.store(true, Ordering::Relaxed);
    });
    // It has to listen as long as the process lives.
    std::mem::forget(runtime);
    Ok(stop)
}
