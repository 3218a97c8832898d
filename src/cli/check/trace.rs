//! The transcript of a run.

use std::collections::VecDeque;
use std::io::{BufWriter, Write};

use crate::cluster::scenario::Scenario;
use crate::model::ids::GroupId;
use crate::sim::campaign::Campaign;
use crate::sim::run::{MakeStore, Outcome, length, run};
use crate::sim::transcript::{Filter, Transcript};

use super::super::failure::Failure;

/// Lines before a violation that are worth reading.
const LAST: usize = 25;

/// What of the transcript is wanted.
pub(super) fn filter(
    scenario: &Scenario,
    group: Option<GroupId>,
    node: Option<&str>,
    routine: bool,
) -> Result<Filter, Failure> {
    let nodes = scenario.cluster.nodes;
    let index = |name: &str| {
        (0..nodes)
            .find(|index| crate::cluster::scenario::node_name(index + 1) == name)
            .map(|index| index as usize)
            .ok_or_else(|| {
                Failure::Usage(format!(
                    "there is no node `{name}`; the nodes are node1 to node{nodes}"
                ))
            })
    };
    Ok(Filter {
        group,
        node: node.map(index).transpose()?,
        routine,
    })
}

/// Runs a seed and prints what happens.
pub(super) fn print(
    campaign: &Campaign<'_>,
    seed: u64,
    filter: Filter,
) -> Result<Outcome, Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    let mut transcript = Transcript::new(filter, |line: &str| {
        if failed.is_none() {
            failed = writeln!(out, "{line}").err();
        }
    });
    let outcome = campaign.run_seed(seed, &mut transcript);
    let end = match &outcome.violation {
        Some(violation) => super::report::violation(violation),
        None => format!(
            "trace {:016x}: {} events\n",
            outcome.trace_hash, outcome.events
        ),
    };
    let flushed = out.write_all(end.as_bytes()).and_then(|()| out.flush());
    match failed.or(flushed.err()) {
        Some(error) => Err(Failure::output(error)),
        None => Ok(outcome),
    }
}

/// What happened last before a violation, of the group concerned if there is one.
pub(super) fn last_events(scenario: &Scenario, store: MakeStore, outcome: &Outcome) -> Vec<String> {
    let group = outcome.violation.as_ref().and_then(|found| found.group);
    let filter = Filter {
        group,
        ..Filter::default()
    };
    let mut last = VecDeque::with_capacity(LAST);
    let mut transcript = Transcript::new(filter, |line: &str| {
        if last.len() == LAST {
            last.pop_front();
        }
        last.push_back(line.to_owned());
    });
    run(scenario, length(scenario), store(), &mut transcript);
    last.into()
}
