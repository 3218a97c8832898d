//! `leasehold inspect`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::codec::Format;
use crate::codec::anatomy::Anatomy;
use crate::model::batch::Row;
use crate::model::ids::GroupKind;

use super::failure::Failure;
use super::input::Input;
use super::output::{count, decimal, print, print_json, table};
use super::payload::{Payload, format_parser};

/// Reads a payload in any format, or a stored record around one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leasehold inspect batch.bin")]
pub(super) struct Inspect {
    /// The stored batch; `-` is standard input
    file: PathBuf,
    /// The format, instead of finding it out
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
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
        let payload = Payload::read(&Input::new(self.file), self.format)?;
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
