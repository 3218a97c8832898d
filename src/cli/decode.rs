//! `leasehold decode`

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;

use crate::codec::Format;

use super::failure::Failure;
use super::input::Input;
use super::payload::{Payload, format_parser};

/// Reads a payload in any format, or a stored record around one.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    leasehold decode batch.bin | jq .holder_name | sort | uniq -c")]
pub(super) struct Decode {
    /// The stored batch; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The format, instead of finding it out
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
}

impl Decode {
    pub(super) fn run(self) -> Result<(), Failure> {
        let decoded = Payload::read(&Input::new(self.file), self.format)?.decode()?;
        let mut out = BufWriter::new(io::stdout().lock());
        for lease in decoded.batch.leases() {
            let line = serde_json::to_string(&lease);
            let line = line.map_err(|error| Failure::Failed(error.to_string()))?;
            writeln!(out, "{line}").map_err(Failure::output)?;
        }
        out.flush().map_err(Failure::output)
    }
}
