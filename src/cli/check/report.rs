//! What a campaign came to, in words and as JSON.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::scenario::{Action, Scenario};
use crate::sim::campaign::Summary;
use crate::sim::check::Violation;
use crate::sim::run::Outcome;
use crate::sim::shrink::Shrunk;

use super::super::failure::Failure;
use super::super::output::{count, decimal, table};

/// What was run.
pub(super) struct About<'a> {
    pub scenario: &'a str,
    pub jobs: usize,
    pub took: Duration,
    pub interrupted: bool,
}

/// A violation, and what more is known of it.
pub(super) struct Found {
    pub outcome: Outcome,
    /// What happened last.
    pub events: Vec<String>,
    pub shrunk: Option<Shrunk>,
    pub file: Option<PathBuf>,
}

impl Found {
    /// What the command ends with.
    pub fn failure(&self) -> Failure {
        let invariant = self.outcome.violation.as_ref();
        let invariant = invariant.map_or("nothing", |violation| violation.invariant.name());
        Failure::Failed(format!("seed {} violates {invariant}", self.outcome.seed))
    }

    fn replay(&self) -> Option<String> {
        let file = self.file.as_ref()?.display();
        let seed = self
            .shrunk
            .as_ref()
            .map_or(self.outcome.seed, |shrunk| shrunk.scenario.seed);
        Some(format!("leasehold check {file} --replay {seed} --trace"))
    }
}

/// The version and commit that the program was made from.
fn made_from() -> String {
    format!(
        "{} ({})",
        env!("CARGO_PKG_VERSION"),
        env!("LEASEHOLD_COMMIT")
    )
}

pub(super) fn to_text(about: &About<'_>, summary: &Summary, found: Option<&Found>) -> String {
    let mut text = String::new();
    let seconds = about.took.as_secs_f64().max(1e-3);
    let cluster = Duration::from_secs(summary.elapsed_us / 1_000_000);
    let verdict = match found {
        Some(_) => "a VIOLATION",
        None if about.interrupted => "no violation until it was interrupted",
        None => "no violation",
    };
    let _ = writeln!(
        text,
        "{}: {} seed{}, {verdict}\n{} of cluster time and {} events in {} s on {} thread{}; \
         trace {:016x}\n",
        about.scenario,
        count(summary.seeds),
        plural(summary.seeds),
        humantime::format_duration(cluster),
        count(summary.events),
        decimal(seconds, 1),
        about.jobs,
        plural(about.jobs as u64),
        summary.trace_hash,
    );
    if !summary.operations.is_empty() {
        text.push_str(&operations(summary));
        text.push('\n');
    }
    if let Some(found) = found {
        text.push_str(&in_words(found));
    }
    text
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

fn operations(summary: &Summary) -> String {
    let mut rows: Vec<(&Action, &(u64, u64))> = summary.operations.iter().collect();
    rows.sort_by_key(|(action, _)| !action.is_fault());
    let rows = rows.into_iter().map(|(action, (times, seeds))| {
        let share = *seeds as f64 * 100.0 / summary.seeds.max(1) as f64;
        vec![
            action.name().to_owned(),
            count(*times),
            count(*seeds),
            format!("{} %", decimal(share, 1)),
        ]
    });
    table(&["what happened", "times", "seeds", "of all"], rows)
}

/// A violation, its two events first.
pub(super) fn violation(violation: &Violation) -> String {
    let seconds = Duration::from_micros(violation.elapsed_us).as_secs_f64();
    let group = violation.group.map(|group| format!(", group {group}"));
    format!(
        "VIOLATION of {}: {}\n  after {seconds:.6} s{}\n  {}\n  but {}\n",
        violation.invariant,
        violation.invariant.rule(),
        group.unwrap_or_default(),
        violation.first,
        violation.second
    )
}

fn in_words(found: &Found) -> String {
    let mut text = String::new();
    let Some(violated) = &found.outcome.violation else {
        return text;
    };
    let _ = writeln!(
        text,
        "seed {} of leasehold {}",
        found.outcome.seed,
        made_from()
    );
    text.push_str(&violation(violated));
    if !found.events.is_empty() {
        text.push_str("\nwhat happened last:\n");
        for event in &found.events {
            let _ = writeln!(text, "{event}");
        }
    }
    text.push('\n');
    if let Some(shrunk) = &found.shrunk {
        let left = shrunk.scenario.operations.len();
        let _ = writeln!(
            text,
            "shortened to {left} operation{} by {} runs",
            plural(left as u64),
            shrunk.runs
        );
    }
    if let (Some(file), Some(replay)) = (&found.file, found.replay()) {
        let _ = writeln!(
            text,
            "schedule written to {}\nreplay: {replay}",
            file.display()
        );
    }
    text
}

pub(super) fn to_json(about: &About<'_>, summary: &Summary, found: Option<&Found>) -> Value {
    let operations: Vec<Value> = (summary.operations.iter())
        .map(|(action, (times, seeds))| {
            json!({
                "do": action.name(),
                "fault": action.is_fault(),
                "times": times,
                "seeds": seeds,
            })
        })
        .collect();
    json!({
        "scenario": about.scenario,
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("LEASEHOLD_COMMIT"),
        "seeds": summary.seeds,
        "jobs": about.jobs,
        "interrupted": about.interrupted,
        "real_us": about.took.as_micros() as u64,
        "cluster_us": summary.elapsed_us,
        "events": summary.events,
        "trace_hash": format!("{:016x}", summary.trace_hash),
        "operations": operations,
        "violation": found.map(found_json),
    })
}

fn found_json(found: &Found) -> Value {
    let violation = found.outcome.violation.as_ref();
    json!({
        "seed": found.outcome.seed,
        "rule": violation.map(|violation| violation.invariant.rule()),
        "what": violation,
        "events": found.events,
        "operations": found.shrunk.as_ref().map(|shrunk| shrunk.scenario.operations.len()),
        "shrink_runs": found.shrunk.as_ref().map(|shrunk| shrunk.runs),
        "file": found.file.as_ref().map(|file| file.display().to_string()),
        "replay": found.replay(),
    })
}

/// Writes a scenario file.
pub(super) fn save(scenario: &Scenario, file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    let text = scenario
        .to_toml()
        .map_err(|error| Failure::about(&name, error))?;
    std::fs::write(file, text).map_err(|error| Failure::about(&name, error))
}

/// Writes the schedule of a violation as a scenario file in the present directory.
pub(super) fn save_violation(scenario: &Scenario, outcome: &Outcome) -> Result<PathBuf, Failure> {
    let violation = outcome.violation.as_ref();
    let invariant = violation.map_or("nothing", |violation| violation.invariant.name());
    let file = PathBuf::from(format!("violation-{invariant}-{}.toml", outcome.seed));
    let mut scenario = scenario.clone();
    scenario.about = format!("seed {} violates {invariant}", outcome.seed);
    save(&scenario, &file)?;
    Ok(file)
}
