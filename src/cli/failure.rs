//! How a command ends when it does not succeed.

use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code of a command that was used wrongly.
pub(super) const USAGE: u8 = 2;

/// Why a command stops.
#[derive(Debug)]
pub(super) enum Failure {
    /// It was used wrongly.
    Usage(String),
    /// It could not do what it was asked for.
    Failed(String),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Failure {
    /// A failure about something that has a name.
    pub(super) fn about(what: &str, why: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{what}: {why}"))
    }

    /// From an error while writing standard output.
    pub(super) fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::about("standard output", error)
        }
    }

    /// Says why on standard error; the exit code to end with.
    pub(super) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::OutputClosed => return ExitCode::SUCCESS,
            Self::Usage(message) => (message, USAGE),
            Self::Failed(message) => (message, 1),
        };
        // Nothing is left to do if standard error is closed as well.
        let _ = writeln!(io::stderr(), "error: {}", printable(&message));
        ExitCode::from(code)
    }
}

/// Says something on standard error that is no failure.
pub(super) fn warn(message: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "warning: {}", printable(&message.to_string()));
}

/// Names of files may hold what a terminal would obey.
fn printable(message: &str) -> String {
    let shown = |c: char| match c {
        '\n' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    message.chars().map(shown).collect()
}
