//! `leasehold decode`

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;

use crate::codec::Format;

use super::failure::Failure;
use super::input::Input;
use super::payload::{Payload, format_parser};
use super::query;

/// Reads a payload in any format, a stored record around one, or the leases of a data directory on
/// which no instance runs.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    leasehold decode batch.bin | jq .holder_name | sort | uniq -c
    leasehold decode --data leasehold-data | leasehold encode --format columnar -o batch.bin")]
pub(super) struct Decode {
    /// The stored batch; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The format, instead of finding it out
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
    /// Directory of the data, instead of a file: the leases that its snapshot and deltas lead to
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "format"])]
    data: Option<PathBuf>,
    /// The leases as they were at this revision [default: the newest]
    #[arg(long, value_name = "R", conflicts_with_all = ["file", "format"])]
    revision: Option<u64>,
}

impl Decode {
    pub(super) fn run(self) -> Result<(), Failure> {
        let batch = match (&self.data, self.revision) {
            (Some(data), revision) => query::batch(data, revision)?,
            (None, Some(_)) => {
                let message = "--revision asks a data directory: name it with --data";
                return Err(Failure::Usage(message.to_owned()));
            }
            (None, None) => {
                let payload = Payload::read(&Input::new(self.file), self.format)?;
                payload.decode()?.batch
            }
        };
        let mut out = BufWriter::new(io::stdout().lock());
        for lease in batch.leases() {
            let line = serde_json::to_string(&lease);
            let line = line.map_err(|error| Failure::Failed(error.to_string()))?;
            writeln!(out, "{line}").map_err(Failure::output)?;
        }
        out.flush().map_err(Failure::output)
    }
}
