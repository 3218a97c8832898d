//! `leasehold inspect`

mod delta;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::query;
use crate::codec::anatomy::Anatomy;
use crate::codec::{Format, is_delta};
use crate::model::batch::Row;
use crate::model::ids::GroupKind;

use crate::cli::failure::Failure;
use crate::cli::input::Input;
use crate::cli::output::{count, decimal, print, print_json, table};
use crate::cli::payload::{Payload, format_parser};

/// Reads a payload in any format, a stored record around one, or a delta frame: from a file, or from
/// a data directory on which no instance runs. There the groups and nodes of a delta are named too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    leasehold inspect batch.bin\n  \
    leasehold inspect --data leasehold-data                     what was stored last\n  \
    leasehold inspect --data leasehold-data --revision 1200     what was stored then\n  \
    leasehold inspect --data leasehold-data --raw > record.bin  the snapshot or delta itself")]
pub(super) struct Inspect {
    /// The stored batch or delta; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The format, instead of finding it out
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
    /// Directory of the data, instead of a file
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "format"])]
    data: Option<PathBuf>,
    /// The last record stored at or before this revision [default: the newest]
    #[arg(long, value_name = "R", conflicts_with_all = ["file", "format"])]
    revision: Option<u64>,
    /// Write the record's bytes to standard output as they are
    #[arg(long, conflicts_with_all = ["file", "format", "json"])]
    raw: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a batch holds.
struct Facts {
    tables: u64,
    zones: u64,
    own_expirations: u64,
    candidates: u64,
    unaccepted: u64,
}

impl Facts {
    fn of(rows: &[Row]) -> Self {
        let objects = |kind: GroupKind| {
            let objects = rows.chunk_by(|a, b| a.group().same_object(b.group()));
            let firsts = objects.filter_map(<[Row]>::first);
            firsts.filter(|row| row.group().kind() == kind).count() as u64
        };
        let rows_where = |test: fn(&Row) -> bool| rows.iter().filter(|row| test(row)).count();
        Self {
            tables: objects(GroupKind::Table),
            zones: objects(GroupKind::Zone),
            own_expirations: rows_where(|row| row.own_expiration().is_some()) as u64,
            candidates: rows_where(|row| row.candidate().is_some()) as u64,
            unaccepted: rows_where(|row| !row.accepted()) as u64,
        }
    }
}

impl Inspect {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (name, bytes, before) = match &self.data {
            None if self.raw || self.revision.is_some() => {
                let message = "--revision and --raw ask a data directory: name it with --data";
                return Err(Failure::Usage(message.to_owned()));
            }
            None => {
                let input = Input::new(self.file);
                (input.name(), input.read()?, None)
            }
            Some(data) => {
                let last = query::last_write(data, self.revision)?;
                let name = format!("revision {}", last.entry.mod_revision);
                (name, last.entry.value.to_vec(), last.before)
            }
        };
        if self.raw {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(&bytes).and_then(|()| out.flush());
            return written.map_err(Failure::output);
        }
        if is_delta(&bytes) {
            let report = delta::Report::of(&name, &bytes, before.as_ref())?;
            return match self.json {
                true => print_json(&report.json()),
                false => print(&report.text()),
            };
        }
        let payload = Payload::of(name, bytes, self.format)?;
        let anatomy = payload.dissect()?;
        let mut parts = Vec::new();
        if payload.header > 0 {
            parts.push(("stored record", payload.header));
        }
        parts.extend(
            anatomy
                .parts
                .iter()
                .map(|(part, size)| (part.name(), *size)),
        );
        let facts = Facts::of(anatomy.decoded.batch.rows());
        if self.json {
            print_json(&json(&payload, &anatomy, &facts, &parts))
        } else {
            print(&text(&payload, &anatomy, &facts, &parts))
        }
    }
}

fn json(
    payload: &Payload,
    anatomy: &Anatomy,
    facts: &Facts,
    parts: &[(&str, usize)],
) -> serde_json::Value {
    let Anatomy { decoded, holes, .. } = anatomy;
    let batch = &decoded.batch;
    let parts: Vec<_> = (parts.iter())
        .map(|(part, bytes)| {
            let mut entry = json!({"part": part, "bytes": bytes});
            if let Some(note) = note(anatomy, part) {
                entry["note"] = note.into();
            }
            entry
        })
        .collect();
    json!({
        "format": decoded.format.name(),
        "version": version(decoded.format),
        "stored_record": payload.header > 0,
        "zones_section": decoded.zones_section,
        "bytes": payload.size(),
        "leases": batch.len(),
        "tables": facts.tables,
        "zones": facts.zones,
        "holes": holes,
        "names": batch.dictionary().names().len(),
        "nodes": batch.dictionary().nodes().len(),
        "common_expiration": batch.common_expiration(),
        "own_expirations": facts.own_expirations,
        "candidates": facts.candidates,
        "unaccepted": facts.unaccepted,
        "ambiguous": decoded.ambiguous,
        "parts": parts,
    })
}

/// How a part is encoded, if the format has a choice.
fn note<'a>(anatomy: &'a Anatomy, part: &str) -> Option<&'a str> {
    let notes = anatomy.notes.iter();
    notes
        .filter(|(of, _)| of.name() == part)
        .map(|(_, note)| note.as_str())
        .next()
}

fn version(format: Format) -> Option<u8> {
    match format {
        Format::CompactV1TablesOnly | Format::CompactV1 => Some(1),
        Format::CompactV2 => Some(2),
        Format::Columnar => Some(1),
        _ => None,
    }
}

fn text(payload: &Payload, anatomy: &Anatomy, facts: &Facts, parts: &[(&str, usize)]) -> String {
    let Anatomy { decoded, holes, .. } = anatomy;
    let batch = &decoded.batch;
    let mut format = decoded.format.to_string();
    if let Some(version) = version(decoded.format) {
        let zones = if decoded.zones_section {
            "with"
        } else {
            "without"
        };
        format.push_str(&format!(
            " (version {version}, {zones} a section for zones)"
        ));
    }
    if payload.header > 0 {
        format.push_str(" in a stored record");
    }
    let number = |number: usize| count(number as u64);
    let dictionary = batch.dictionary();
    let facts = [
        ("leases", number(batch.len())),
        ("tables", count(facts.tables)),
        ("zones", count(facts.zones)),
        ("holes", number(*holes)),
        ("node ids", number(dictionary.nodes().len())),
        ("node names", number(dictionary.names().len())),
        ("with a candidate", count(facts.candidates)),
        ("not accepted", count(facts.unaccepted)),
        ("expiration of their own", count(facts.own_expirations)),
        ("common expiration", batch.common_expiration().to_string()),
    ];
    let facts = facts.map(|(fact, value)| vec![fact.to_owned(), value]);
    let size = payload.size();
    let row = |name: &str, bytes: usize| {
        let share = 100.0 * bytes as f64 / size.max(1) as f64;
        let each = match batch.len() {
            0 => "-".to_owned(),
            leases => decimal(bytes as f64 / leases as f64, 3),
        };
        vec![name.to_owned(), number(bytes), decimal(share, 2), each]
    };
    let rows = (parts.iter().map(|(name, bytes)| row(name, *bytes)))
        .chain([row("all", size)])
        .collect::<Vec<_>>();
    let facts = table(&["", "number"], facts);
    let sizes = table(&["part", "bytes", "share %", "bytes per lease"], rows);
    let mut text = format!("{format}\n\n{facts}\n{sizes}");
    // Lines, not a column: they are long.
    let notes = (parts.iter()).filter_map(|(part, _)| Some((part, note(anatomy, part)?)));
    let notes: String = notes
        .map(|(part, note)| format!("{part}: {note}\n"))
        .collect();
    if !notes.is_empty() {
        text.push_str(&format!("\n{notes}"));
    }
    text
}
