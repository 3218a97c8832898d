//! Reading what a command is about: a file or standard input.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// The most bytes that a command reads: more than five million leases in the largest format.
const LIMIT: u64 = 1 << 30;

/// A file, or standard input if the name is `-`.
#[derive(Debug, Clone)]
pub(super) struct Input {
    path: PathBuf,
}

impl Input {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> String {
        if self.is_standard() {
            "standard input".to_owned()
        } else {
            self.path.display().to_string()
        }
    }

    fn is_standard(&self) -> bool {
        self.path == Path::new("-")
    }

    /// All of it.
    pub(super) fn read(&self) -> Result<Vec<u8>, Failure> {
        let fail = |error: io::Error| Failure::about(&self.name(), error);
        let mut bytes = Vec::new();
        if self.is_standard() {
            let standard = io::stdin();
            if standard.is_terminal() {
                let message = "no input: name a file, or pipe one into standard input";
                return Err(Failure::Usage(message.to_owned()));
            }
            standard.lock().take(LIMIT + 1).read_to_end(&mut bytes)
        } else {
            let file = File::open(&self.path).map_err(fail)?;
            file.take(LIMIT + 1).read_to_end(&mut bytes)
        }
        .map_err(fail)?;
        if bytes.len() as u64 > LIMIT {
            let why = format!("more than {LIMIT} bytes, the limit of this command");
            return Err(Failure::about(&self.name(), why));
        }
        Ok(bytes)
    }
}
