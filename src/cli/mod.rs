//! Floor 9: the command line. Each command has a file of its own.
//!
//! Exit codes: 0 done, 1 failed, 2 used wrongly. Results go to standard output, everything else
//! to standard error; a reader that closes standard output early (`| head`) ends a command
//! quietly.

mod check;
mod compare;
mod decode;
mod encode;
mod failure;
mod input;
mod inspect;
mod live;
mod output;
mod payload;
mod query;
mod run;
mod scenarios;
mod signals;
mod timing;

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
    Run(run::Run),
    Check(check::Check),
    Sizes(query::sizes::Sizes),
    Leases(query::leases::Leases),
    Verify(query::verify::Verify),
    /// Print the leases of a stored batch, one JSON object per line
    Decode(decode::Decode),
    /// Write a batch from leases, one JSON object per line
    Encode(encode::Encode),
    /// Show what a stored batch holds and where its bytes go
    Inspect(inspect::Inspect),
    /// Compare the formats by size and time on one batch
    Compare(compare::Compare),
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.run(),
            Self::Check(command) => command.run(),
            Self::Sizes(command) => command.run(),
            Self::Leases(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Decode(command) => command.run(),
            Self::Encode(command) => command.run(),
            Self::Inspect(command) => command.run(),
            Self::Compare(command) => command.run(),
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
