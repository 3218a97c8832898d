//! `leasehold encode`

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::codec::{self, Format, frame};
use crate::model::batch::{BatchError, LeaseBatch};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::model::lease::Lease;

use super::failure::Failure;
use super::input::Input;
use super::payload::format_parser;

/// Reads what `leasehold decode` prints. The dictionary follows the order of the lines.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    leasehold decode old.bin | leasehold encode --format compact-v2 -o new.bin")]
pub(super) struct Encode {
    /// The leases, one JSON object per line; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The format to write
    #[arg(long, value_parser = format_parser())]
    format: Format,
    /// Where to write: replaced as a whole or not at all; `-` is standard output
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// Write a stored record (format, length and checksum before the payload)
    #[arg(long)]
    record: bool,
}

impl Encode {
    pub(super) fn run(self) -> Result<(), Failure> {
        let standard = self.output == Path::new("-");
        if standard && io::stdout().is_terminal() {
            let message = "binary output would garble the terminal: use -o FILE or a pipe";
            return Err(Failure::Usage(message.to_owned()));
        }
        let input = Input::new(self.file);
        let batch = read_leases(&input)?;
        let encoded = codec::encode(self.format, &batch);
        let mut bytes = encoded.map_err(|error| Failure::about(&input.name(), error))?;
        if self.record {
            let record = frame::wrap(self.format, &bytes);
            bytes = record.map_err(|error| Failure::about(&input.name(), error))?;
        }
        if standard {
            let mut out = io::stdout().lock();
            (out.write_all(&bytes).and_then(|()| out.flush())).map_err(Failure::output)
        } else {
            replace(&self.output, &bytes)
                .map_err(|error| Failure::about(&self.output.display().to_string(), error))
        }
    }
}

fn read_leases(input: &Input) -> Result<LeaseBatch, Failure> {
    let bytes = input.read()?;
    let at = |line: usize, why: String| {
        Failure::Failed(format!("{}: line {}, {why}", input.name(), line + 1))
    };
    let mut leases = Vec::new();
    let mut lines = Vec::new();
    for (line, text) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // An array would do for the deserializer, but is not what `decode` prints.
        if text.trim_ascii_start().first() != Some(&b'{') {
            let why = match text.starts_with(b"\xEF\xBB\xBF") {
                true => "a byte order mark before the JSON object: remove it",
                false => "not a JSON object",
            };
            return Err(at(line, why.to_owned()));
        }
        match serde_json::from_slice::<Lease>(text) {
            Ok(lease) => leases.push(lease),
            Err(error) => return Err(at(line, diagnose(text, &error))),
        }
        lines.push(line);
    }
    LeaseBatch::from_leases(&leases).map_err(|BatchError::DuplicateGroup(group)| {
        let twice = leases.iter().zip(&lines).filter(|(l, _)| l.group == group);
        let numbers: Vec<_> = twice.map(|(_, line)| *line).take(2).collect();
        let [first, second] = numbers[..] else {
            return Failure::about(&input.name(), BatchError::DuplicateGroup(group));
        };
        let why = format!("group: {group} has a lease on line {} already", first + 1);
        at(second, why)
    })
}

/// Which field of a line is at fault, and why.
fn diagnose(text: &[u8], error: &serde_json::Error) -> String {
    type Fault = fn(&Value) -> Option<String>;
    const FIELDS: [(&str, Fault); 8] = [
        ("group", fault::<GroupId>),
        ("holder_name", fault::<String>),
        ("holder_id", fault::<NodeId>),
        ("start", fault::<HybridTimestamp>),
        ("expiration", fault::<HybridTimestamp>),
        ("accepted", fault::<bool>),
        ("prolongable", fault::<bool>),
        ("proposed_candidate", fault::<Option<String>>),
    ];
    let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(text) else {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        return format!("column {}: {what}", error.column());
    };
    for (name, fault) in FIELDS {
        if let Some(why) = fields.get(name).and_then(fault) {
            return format!("{name}: {why}");
        }
    }
    let missing = FIELDS.iter().find(|(name, _)| !fields.contains_key(*name));
    if let Some((name, _)) = missing {
        return format!("{name}: missing");
    }
    let unknown = |name: &&String| FIELDS.iter().all(|(known, _)| known != name);
    match fields.keys().find(unknown) {
        Some(name) => format!("{name}: no such field"),
        None => error.to_string(),
    }
}

fn fault<T: DeserializeOwned>(value: &Value) -> Option<String> {
    let error = serde_json::from_value::<T>(value.clone()).err()?;
    Some(error.to_string())
}

/// Writes a file beside another, then puts it in its place: nothing half-written is ever there.
/// A link stays what it is. What is no file, such as a device or a pipe, is written to.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let write = || {
        let mut file = std::fs::File::create_new(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().inspect_err(|error| {
        if error.kind() != io::ErrorKind::AlreadyExists {
            // The first error is the one to report.
            let _ = std::fs::remove_file(&beside);
        }
    })
}
