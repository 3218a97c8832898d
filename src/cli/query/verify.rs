//! `leasehold verify`

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;

use crate::audit::verify::{Damage, Report, verify};
use crate::cli::failure::Failure;
use crate::cli::output::count;

use super::print::{json, printing};
use super::source::{DataArgs, StoreFailure};
use super::table::{self, Side};

/// Check everything that is stored
///
/// Reads it all and says what is damaged: checksums, batches that can't be read, leases that break
/// what the protocol promises, size rows that don't fit their batches. Goes on after damage, and
/// repairs nothing; but whoever opens a damaged directory lets sled cut its log where it finds the
/// damage, so check a copy of one that matters. Ends with 1 if something is wrong. No instance may
/// run on the directory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold verify --data leasehold-data")]
pub(in crate::cli) struct Verify {
    #[command(flatten)]
    data: DataArgs,
    /// Maximum clock skew of the cluster: accepted leases of a group are so far apart
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "500ms",
        value_parser = humantime::parse_duration
    )]
    max_skew: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let max_skew = u64::try_from(self.max_skew.as_millis()).unwrap_or(u64::MAX);
        let report = match self.data.open() {
            Ok(store) => {
                verify(&store, max_skew).map_err(|error| Failure::Failed(error.to_string()))?
            }
            Err(StoreFailure::Damaged(what)) => Report {
                damaged: 1,
                damage: vec![Damage {
                    revision: None,
                    key: None,
                    what,
                }],
                ..Report::default()
            },
            Err(StoreFailure::Other(failure)) => return Err(failure),
        };
        printing(|out| match self.json {
            true => json(out, &report),
            false => print_report(out, &report),
        })?;
        match report.damaged {
            0 => Ok(()),
            1 => Err(Failure::Failed("1 thing is wrong".to_owned())),
            many => Err(Failure::Failed(format!("{} things are wrong", count(many)))),
        }
    }
}

fn print_report(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let head = [
        ("revision", Side::Right),
        ("key", Side::Left),
        ("what is wrong", Side::Left),
    ];
    let cells = |damage: &Damage| {
        let unknown = || "?".to_owned();
        [
            damage.revision.map_or_else(unknown, |it| it.to_string()),
            damage.key.clone().unwrap_or_else(unknown),
            damage.what.clone(),
        ]
    };
    if !report.damage.is_empty() {
        let rows: Vec<_> = report.damage.iter().map(cells).collect();
        table::write(out, head, &rows)?;
        let more = report.damaged.saturating_sub(rows.len() as u64);
        if more > 0 {
            writeln!(out, "and {} more", count(more))?;
        }
        writeln!(out)?;
    }
    if report.unchecked > 0 {
        writeln!(
            out,
            "The leases of {} deltas could not be checked: what they are based on is damaged.",
            count(report.unchecked)
        )?;
    }
    writeln!(
        out,
        "{} batches and {} size rows read; revision {}, history since revision {}{}",
        count(report.batches),
        count(report.size_rows),
        report.revision,
        report.compacted.saturating_add(1),
        if report.damaged == 0 {
            ": all is well"
        } else {
            ""
        }
    )
}
