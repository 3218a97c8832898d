//! `leasehold compare`

mod renewals;

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::codec::{self, Format, naive_size};
use crate::model::batch::LeaseBatch;
use crate::model::workload::{Churn, Plan, Workload};

use crate::cli::failure::Failure;
use crate::cli::input::Input;
use crate::cli::output::{count, decimal, print, print_json, table};
use crate::cli::payload::Payload;
use crate::cli::timing::{self, work};

use renewals::Courses;

/// A stored batch, a named workload, or a planned cluster. Without any: the reference workload.
/// Times are medians of interleaved runs; +zstd is the format with zstd level 1 behind it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    leasehold compare batch.bin\n  \
    leasehold compare --workload steady --json\n  \
    leasehold compare --workload steady --changed 250 --snapshot-every 32\n  \
    leasehold compare --tables 200 --partitions 64 --nodes 12 --age 30d --churn 2")]
pub(super) struct Compare {
    /// A stored batch; `-` is standard input
    #[arg(conflicts_with_all = ["workload", "tables", "partitions", "nodes", "age", "churn"])]
    file: Option<PathBuf>,
    /// A named workload: reference, steady, churn, failover or large
    #[arg(long, conflicts_with_all = ["tables", "partitions", "nodes", "age", "churn"])]
    workload: Option<Workload>,
    /// Planned: number of tables [default: 1000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    tables: Option<u32>,
    /// Planned: partitions of each table [default: 25]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    partitions: Option<u32>,
    /// Planned: number of nodes [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: Option<u32>,
    /// Planned: tables were created up to this long ago [default: 10d]
    #[arg(long, value_parser = humantime::parse_duration)]
    age: Option<Duration>,
    /// Planned: percentage of leases that are not quiet [default: 0]
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=100))]
    churn: Option<u64>,
    /// How often the batch is written
    #[arg(long, value_parser = humantime::parse_duration, default_value = "2.5s")]
    interval: Duration,
    /// Layout delta: of so many renewals one is stored in full
    #[arg(long, value_name = "K", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=1024))]
    snapshot_every: u32,
    /// Layout delta: so many leases are granted anew in each renewal [default: one in a thousand]
    #[arg(long, value_name = "N")]
    changed: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The most leases of a planned cluster.
const LEASE_LIMIT: u64 = 4_000_000;
/// The longest age of a planned cluster: the generator's clock starts in 1970.
const AGE_LIMIT: Duration = Duration::from_secs(50 * 365 * 86_400);
const ZSTD_LEVEL: i32 = 1;
/// How long measuring the formats may take.
const BUDGET: Duration = Duration::from_secs(3);

impl Compare {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.interval.is_zero() {
            let message = "--interval must be longer than 0";
            return Err(Failure::Usage(message.to_owned()));
        }
        let batch = self.batch()?;
        let comparison = Comparison::of(&batch, self.interval);
        let changed = self.changed.unwrap_or(batch.len().div_ceil(1000));
        let courses = Courses::of(&batch, changed, self.snapshot_every, comparison.per_day);
        if self.json {
            let mut json = comparison.json();
            json["delta"] = courses.json();
            print_json(&json)
        } else {
            print(&format!("{}\n{}", comparison.text(), courses.text()))
        }
    }

    fn batch(&self) -> Result<LeaseBatch, Failure> {
        if let Some(file) = &self.file {
            let payload = Payload::read(&Input::new(file.clone()), None)?;
            return Ok(payload.decode()?.batch);
        }
        let planned = self.tables.is_some()
            || self.partitions.is_some()
            || self.nodes.is_some()
            || self.age.is_some()
            || self.churn.is_some();
        if !planned {
            return Ok(self.workload.unwrap_or(Workload::Reference).generate());
        }
        let usual = Plan::new(43);
        let age = self.age.unwrap_or(Duration::from_millis(usual.age));
        if age > AGE_LIMIT {
            return Err(Failure::Usage("--age must be at most 50 years".to_owned()));
        }
        let plan = Plan {
            tables: self.tables.unwrap_or(usual.tables),
            partitions: self.partitions.unwrap_or(usual.partitions),
            nodes: self.nodes.unwrap_or(usual.nodes),
            age: age.as_millis() as u64,
            churn: self.churn.map(|percent| Churn::per_thousand(percent * 10)),
            ..usual
        };
        let leases = u64::from(plan.tables) * u64::from(plan.partitions);
        if leases > LEASE_LIMIT {
            let (leases, limit) = (count(leases), count(LEASE_LIMIT));
            return Err(Failure::Usage(format!(
                "--tables times --partitions is {leases} leases; the limit of this command is \
                 {limit}"
            )));
        }
        Ok(plan.generate())
    }
}

/// A format with or without zstd behind it.
#[derive(Clone, Copy)]
struct Way {
    format: Format,
    zstd: bool,
}

impl Way {
    fn all() -> impl Iterator<Item = Self> {
        let both = |format| [false, true].map(|zstd| Self { format, zstd });
        Format::ALL.into_iter().flat_map(both)
    }

    fn name(self) -> String {
        format!("{}{}", self.format, if self.zstd { "+zstd" } else { "" })
    }

    fn serialize(self, batch: &LeaseBatch) -> Result<Vec<u8>, String> {
        let bytes = codec::encode(self.format, batch).map_err(|error| error.to_string())?;
        if self.zstd {
            zstd::bulk::compress(&bytes, ZSTD_LEVEL).map_err(|error| error.to_string())
        } else {
            Ok(bytes)
        }
    }

    /// `size` is that of the payload behind zstd.
    fn deserialize(self, bytes: &[u8], size: usize) -> Option<LeaseBatch> {
        let payload;
        let bytes = if self.zstd {
            payload = zstd::bulk::decompress(bytes, size).ok()?;
            &payload
        } else {
            bytes
        };
        Some(codec::decode_as(self.format, bytes).ok()?.batch)
    }
}

struct Comparison {
    leases: usize,
    naive: usize,
    per_day: f64,
    /// Seconds for one copy of the rows.
    copy: f64,
    entries: Vec<(Way, Result<Entry, String>)>,
}

struct Entry {
    bytes: usize,
    /// Seconds.
    serialize: f64,
    /// Seconds.
    deserialize: f64,
}

impl Comparison {
    fn of(batch: &LeaseBatch, interval: Duration) -> Self {
        let serialized: Vec<_> = Way::all().map(|way| (way, way.serialize(batch))).collect();
        let mut works = vec![work(|| black_box(batch.rows()).to_vec())];
        let mut size = 0;
        for (way, bytes) in &serialized {
            let Ok(bytes) = bytes else { continue };
            // The format alone comes before the format with zstd.
            size = if way.zstd { size } else { bytes.len() };
            works.push(work(move || way.serialize(black_box(batch))));
            works.push(work(move || way.deserialize(black_box(bytes), size)));
        }
        let mut medians = timing::medians(&works, BUDGET).into_iter();
        drop(works);
        let mut next = || medians.next().unwrap_or(0.0);
        let copy = next();
        let entries = serialized.into_iter().map(|(way, bytes)| {
            let entry = bytes.map(|bytes| Entry {
                bytes: bytes.len(),
                serialize: next(),
                deserialize: next(),
            });
            (way, entry)
        });
        let entries = entries.collect();
        Self {
            leases: batch.len(),
            naive: naive_size(batch),
            per_day: 86_400.0 / interval.as_secs_f64(),
            copy,
            entries,
        }
    }

    fn per_lease(&self, amount: f64) -> Option<f64> {
        (self.leases > 0).then(|| amount / self.leases as f64)
    }

    fn json(&self) -> Value {
        let formats: Vec<_> = (self.entries.iter())
            .map(|(way, entry)| match entry {
                Ok(entry) => json!({
                    "format": way.name(),
                    "bytes": entry.bytes,
                    "bytes_per_lease": self.per_lease(entry.bytes as f64),
                    "ratio_to_naive": entry.bytes as f64 / self.naive as f64,
                    "serialize_us": entry.serialize * 1e6,
                    "deserialize_us": entry.deserialize * 1e6,
                    "serialize_ns_per_lease": self.per_lease(entry.serialize * 1e9),
                    "deserialize_ns_per_lease": self.per_lease(entry.deserialize * 1e9),
                    "serialize_per_copy_of_rows": entry.serialize / self.copy,
                    "deserialize_per_copy_of_rows": entry.deserialize / self.copy,
                    "bytes_per_day": (entry.bytes as f64 * self.per_day).round() as u64,
                }),
                Err(error) => json!({"format": way.name(), "error": error}),
            })
            .collect();
        json!({
            "leases": self.leases,
            "naive_bytes": self.naive,
            "copy_of_rows_us": self.copy * 1e6,
            "writes_per_day": self.per_day,
            "formats": formats,
        })
    }

    fn text(&self) -> String {
        let each = |amount: f64| match self.per_lease(amount) {
            Some(amount) => decimal(amount, 2),
            None => "-".to_owned(),
        };
        let mut errors = String::new();
        let mut rows = Vec::new();
        for (way, entry) in &self.entries {
            match entry {
                Ok(entry) => rows.push(vec![
                    way.name(),
                    count(entry.bytes as u64),
                    each(entry.bytes as f64),
                    decimal(100.0 * entry.bytes as f64 / self.naive as f64, 2),
                    decimal(entry.serialize * 1e6, 1),
                    each(entry.serialize * 1e9),
                    decimal(entry.serialize / self.copy, 2),
                    decimal(entry.deserialize * 1e6, 1),
                    each(entry.deserialize * 1e9),
                    decimal(entry.deserialize / self.copy, 2),
                    decimal(entry.bytes as f64 * self.per_day / 1e6, 1),
                ]),
                Err(_) if way.zstd => {}
                Err(error) => errors.push_str(&format!("\n{}: {error}", way.name())),
            }
        }
        if !errors.is_empty() {
            errors.push('\n');
        }
        let head = [
            "format",
            "bytes",
            "per\nlease",
            "% of\nnaive",
            "serialize\nµs",
            "ns per\nlease",
            "×\ncopy",
            "deserialize\nµs",
            "ns per\nlease",
            "×\ncopy",
            "MB\nper day",
        ];
        format!(
            "{} leases, written {} times a day\n\n{}\ncopy of rows: {} µs, {} ns per lease\n{errors}",
            count(self.leases as u64),
            decimal(self.per_day, 0),
            table(&head, rows),
            decimal(self.copy * 1e6, 2),
            each(self.copy * 1e9),
        )
    }
}
