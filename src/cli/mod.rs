//! Floor 9: the command line. Each command has a file of its own.
//!
//! Exit codes: 0 done, 1 failed, 2 used wrongly. Results go to standard output, everything else
//! to standard error; a reader that closes standard output early (`| head`) ends a command
//! quietly.

mod failure;
#[allow(dead_code, reason = "each command uses a part")]
mod output;
mod query;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// A lease manager for a cluster's metadata that you can simulate, run and measure.
#[derive(Debug, Parser)]
#[command(
    name = "leasehold",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how large the stored batches are
    Sizes(query::sizes::Sizes),
    /// Show who holds which lease
    Leases(query::leases::Leases),
    /// Check everything that is stored
    Verify(query::verify::Verify),
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            Self::Sizes(command) => command.run(),
            Self::Leases(command) => command.run(),
            Self::Verify(command) => command.run(),
        }
    }
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way too. A closed pipe is nobody's failure.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(failure::USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match arguments.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
