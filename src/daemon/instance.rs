//! The note that a running daemon leaves in its data directory, so that queries find it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the note.
const FILE: &str = "instance.json";

/// Name of the store's directory within the data directory.
const STORE: &str = "store";

/// Where the store is within a data directory.
pub fn store_path(data: &Path) -> PathBuf {
    data.join(STORE)
}

/// Who is running on a data directory. It may be out of date: the process may have been killed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Process id.
    pub pid: u32,
    /// Where it listens, `http://127.0.0.1:7117`.
    pub url: String,
}

impl Instance {
    /// Reads the note, if there is one.
    pub fn read(data: &Path) -> Option<Self> {
        let text = fs::read(data.join(FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Leaves the note, whole or not at all.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let temporary = data.join(format!("{FILE}.new"));
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.write_all(b"\n")?;
        drop(file);
        fs::rename(temporary, data.join(FILE))
    }

    /// Takes the note away.
    pub fn remove(data: &Path) {
        let _ = fs::remove_file(data.join(FILE));
    }
}
