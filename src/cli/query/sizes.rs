//! `leasehold sizes`

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;

use crate::audit::sizes::{self, SizesError, Summary};
use crate::cli::failure::Failure;
use crate::cli::output::{count, decimal};
use crate::placement::record::SizeRow;
use crate::server::answers::Batches;

use super::http::Client;
use super::print::{bytes, json_lines, printing, to_terminal, utc};
use super::source::{Source, SourceArgs};
use super::table::{self, Side};

/// Rows on a terminal if nothing else is asked for.
const ON_TERMINAL: usize = 20;

/// Show how large the stored batches are
///
/// One row a stored batch, from the instance that runs on the data directory or, if none does,
/// from the directory itself; rows of earlier runs are there as well. On a terminal these are the
/// last 20 rows, otherwise all, unless --last or --since says which.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    leasehold sizes --last 100\n  \
    leasehold sizes --since 1h --csv > sizes.csv\n  \
    leasehold sizes --url http://127.0.0.1:7117 --json")]
pub(in crate::cli) struct Sizes {
    #[command(flatten)]
    source: SourceArgs,
    /// The newest N rows
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "since",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    last: Option<u64>,
    /// The rows of so long before the newest one, such as 90s, 1h or 2d
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

impl Sizes {
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let table = !self.json && !self.csv;
        let brief = table && to_terminal() && self.last.is_none() && self.since.is_none();
        let last = match self.last {
            Some(last) => Some(usize::try_from(last).unwrap_or(usize::MAX)),
            None => brief.then_some(ON_TERMINAL),
        };
        let since = self.since.map(millis);
        let batches = match self.source.open()? {
            Source::Instance(client) => ask(&client, last, since)?,
            Source::Store(store) => {
                let rows = match since {
                    Some(span) => sizes::read_span(&store, span),
                    None => sizes::read(&store, None, last),
                };
                Batches::from(rows.map_err(failed)?)
            }
        };
        printing(|out| {
            if self.json {
                print_json(out, &batches)
            } else if self.csv {
                print_csv(out, &batches.rows)
            } else {
                print_table(out, &batches)?;
                if brief && batches.rows.len() == ON_TERMINAL {
                    writeln!(
                        out,
                        "These are the last {ON_TERMINAL} batches: --last N or --since DURATION \
                         shows others."
                    )?;
                }
                Ok(())
            }
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn failed(error: SizesError) -> Failure {
    Failure::Failed(format!(
        "{error}: `leasehold verify` tells what else is damaged"
    ))
}

fn ask(client: &Client, last: Option<usize>, since: Option<u64>) -> Result<Batches, Failure> {
    const PATH: &str = "/v1/batches";
    /// Most rows of one answer.
    const PAGE: usize = 10_000;
    if let Some(last) = last
        && last <= PAGE
    {
        return client.get(PATH, &[("last", &last.to_string())]);
    }
    let mut next = match since {
        None => Some(0),
        Some(span) => {
            let newest: Batches = client.get(PATH, &[("last", "1")])?;
            let newest = newest.summary.last_time.unwrap_or(0);
            Some(newest.saturating_sub(span))
        }
    };
    let mut rows = Vec::new();
    while let Some(since) = next {
        let page: Batches = client.get(PATH, &[("since", &since.to_string())])?;
        rows.extend(page.rows);
        next = page.next;
    }
    let surplus = rows.len().saturating_sub(last.unwrap_or(usize::MAX));
    rows.drain(..surplus);
    Ok(Batches::from(rows))
}

fn print_json(out: &mut impl Write, batches: &Batches) -> io::Result<()> {
    write!(out, "{{\"rows\":")?;
    json_lines(out, &batches.rows)?;
    write!(out, ",\"summary\":")?;
    serde_json::to_writer(&mut *out, &batches.summary)?;
    writeln!(out, "}}")
}

fn print_csv(out: &mut impl Write, rows: &[SizeRow]) -> io::Result<()> {
    writeln!(
        out,
        "revision,time,cause,leases,changed,format,stored_bytes,naive_bytes"
    )?;
    for row in rows {
        writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            row.revision,
            row.time,
            quoted(&row.cause),
            row.leases,
            row.changed,
            quoted(&row.format),
            row.stored_bytes,
            row.naive_bytes
        )?;
    }
    Ok(())
}

/// A text as a CSV field.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn print_table(out: &mut impl Write, batches: &Batches) -> io::Result<()> {
    let head = [
        ("revision", Side::Right),
        ("time (UTC)", Side::Left),
        ("cause", Side::Left),
        ("leases", Side::Right),
        ("changed", Side::Right),
        ("format", Side::Left),
        ("stored bytes", Side::Right),
        ("naive bytes", Side::Right),
        ("ratio", Side::Right),
    ];
    let cells = |row: &SizeRow| {
        let ratio = row.naive_bytes as f64 / row.stored_bytes as f64;
        [
            row.revision.to_string(),
            utc(row.time),
            row.cause.clone(),
            count(row.leases),
            count(row.changed),
            row.format.clone(),
            count(row.stored_bytes),
            count(row.naive_bytes),
            if row.stored_bytes > 0 {
                decimal(ratio, 1)
            } else {
                String::new()
            },
        ]
    };
    let rows: Vec<_> = batches.rows.iter().map(cells).collect();
    table::write(out, head, &rows)?;
    writeln!(out)?;
    print_summary(out, &batches.summary)
}

fn print_summary(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let (Some(first), Some(last), Some(mean)) = (
        summary.first_time,
        summary.last_time,
        summary.mean_stored_bytes,
    ) else {
        return writeln!(out, "No batch is stored.");
    };
    let span = humantime::format_duration(Duration::from_millis(last.saturating_sub(first)));
    writeln!(
        out,
        "{} batches in {span}, {} of them renewals{}",
        count(summary.rows),
        count(summary.renewals),
        match summary.longest_renewal_gap_ms {
            Some(gap) => format!(
                ", at most {} apart",
                humantime::format_duration(Duration::from_millis(gap))
            ),
            None => String::new(),
        }
    )?;
    writeln!(
        out,
        "{} stored, {} a batch; naive {}{}",
        bytes(summary.stored_bytes as f64),
        bytes(mean),
        bytes(summary.naive_bytes as f64),
        match summary.ratio {
            Some(ratio) => format!(", {} times as much", decimal(ratio, 1)),
            None => String::new(),
        }
    )?;
    print_split(out, summary)?;
    if let (Some(stored), Some(naive)) = (summary.stored_bytes_per_day, summary.naive_bytes_per_day)
    {
        let (stored, naive) = (bytes(stored), bytes(naive));
        writeln!(out, "{stored} of records a day at this rate; naive {naive}")?;
    }
    Ok(())
}

/// Snapshots and deltas apart, and what a renewal takes.
fn print_split(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if summary.deltas > 0 {
        writeln!(
            out,
            "snapshots: {} of {} in all; deltas: {} of {}",
            count(summary.snapshots),
            bytes(summary.snapshot_bytes as f64),
            count(summary.deltas),
            bytes(summary.delta_bytes as f64),
        )?;
    }
    if let Some(mean) = summary.mean_renewal_bytes {
        let beside = summary.bookkeeping_bytes as f64 / summary.rows.max(1) as f64;
        writeln!(
            out,
            "{} a renewal on average, snapshots included; beside each batch, keys, size row and beat take {}",
            bytes(mean),
            bytes(beside),
        )?;
    }
    Ok(())
}
