//! Floor 7: the daemon: turns the cluster at the pace of the real clock, against a real store.
//!
//! * [`boot`] opens the store and goes on where it stopped ([`identity`] says whose it is);
//! * [`crank`] turns the cluster, [`pace`] maps real time to cluster time;
//! * [`view`] is what others may see, kept up to date by `tally`;
//! * [`instance`] is the note by which queries find a running daemon.

pub mod boot;
pub mod crank;
pub mod identity;
pub mod instance;
pub mod pace;
mod tally;
pub mod view;

use std::path::PathBuf;

use thiserror::Error;

use crate::cluster::scenario::ScenarioError;
use crate::metastorage::contract::StoreError;
use crate::placement::record::{ReadError, RecordError};

impl From<ReadError> for DaemonError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => Self::Store(error),
            ReadError::Record(error) => Self::Record(error),
        }
    }
}

/// Why the daemon can't begin or go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something stored can't be read; it is not overwritten.
    #[error("{0}; nothing was changed (`leasehold verify` says more)")]
    Record(#[from] RecordError),
    /// The data directory can't be made.
    #[error("can't make the data directory {}: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another process runs on the data directory.
    #[error("{0}")]
    InUse(String),
    /// The data directory belongs to another cluster.
    #[error(
        "the data directory belongs to a cluster whose {what} is {stored}, not {wanted}: leave \
         the setting out to go on with that cluster, or choose another directory with --data"
    )]
    OtherCluster {
        /// Seed or number of nodes.
        what: &'static str,
        /// What was asked for.
        wanted: u64,
        /// What is stored.
        stored: u64,
    },
    /// The stored identity can't be read.
    #[error("the identity of the cluster in the data directory can't be read: {0}")]
    Identity(String),
    /// The batch can't be written in the chosen format.
    #[error("the leases can't be stored in the chosen format: {0}")]
    Unencodable(String),
    /// The driver met something that it can't read and must not overwrite.
    #[error("the driver has stopped: {0}; nothing was changed")]
    Halted(String),
    /// The store failed in a way that only a fresh process can mend.
    #[error("the store has failed and nothing more is written: {0}")]
    StoreFailed(StoreError),
}
