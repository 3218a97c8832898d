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

use crate::model::batch::LeaseBatch;
use crate::placement::record::{self, LastWrite};

use super::failure::Failure;

/// The record that was last stored in a directory, now or at a revision.
pub(super) fn last_write(data: &Path, revision: Option<u64>) -> Result<LastWrite, Failure> {
    let store = source::open(data)?;
    let last = record::read_last(&store, revision).map_err(source::unreadable)?;
    last.ok_or_else(|| none(data, revision))
}

/// The leases that are stored in a directory, now or at a revision.
pub(super) fn batch(data: &Path, revision: Option<u64>) -> Result<LeaseBatch, Failure> {
    let store = source::open(data)?;
    let state = record::read(&store, revision).map_err(source::unreadable)?;
    let state = state.ok_or_else(|| none(data, revision))?;
    Ok(state.chain.batch().clone())
}

fn none(data: &Path, revision: Option<u64>) -> Failure {
    let data = data.display();
    Failure::Failed(match revision {
        None => format!("no batch is stored in {data}"),
        Some(revision) => format!("no batch was stored in {data} at or before revision {revision}"),
    })
}
