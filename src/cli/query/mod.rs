//! Commands that read what is stored: from a running instance, or else from its directory.
//!
//! `source` finds out which; `http` asks an instance; `print` and `table` write. No
//! command here makes a directory or writes to a store.

mod http;
pub(super) mod leases;
mod print;
pub(super) mod sizes;
mod source;
mod table;
pub(super) mod verify;
mod watch;

use std::path::Path;

use crate::placement::record::{self, LastWrite};

use super::failure::Failure;

/// The record that was last stored in a directory, now or at a revision.
pub(super) fn last_write(data: &Path, revision: Option<u64>) -> Result<LastWrite, Failure> {
    let store = source::open(data)?;
    let last = record::read_last(&store, revision).map_err(source::unreadable)?;
    last.ok_or_else(|| Failure::Failed(format!("no batch is stored in {}", data.display())))
}
