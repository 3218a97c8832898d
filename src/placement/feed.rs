//! From the store's watch to what driver and nodes understand: each batch is decoded and compared
//! with the one before once, and shared by all who watch.

use std::sync::Arc;

use crate::metastorage::contract::{Entry, WatchEvent};
use crate::model::batch::LeaseBatch;
use crate::model::diff::{LeaseUpdate, diff};
use crate::model::hlc::HybridTimestamp;

use super::io::Revision;
use super::record::{BATCH, BEAT, EPOCH, RecordError, batch_of, time_of};

/// What one revision means.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The revision.
    pub revision: Revision,
    /// Whether a driver took over.
    pub epoch: bool,
    /// Time of a new beat, on the active driver's clock.
    pub beat: Option<HybridTimestamp>,
    /// A new batch.
    pub update: Option<Arc<LeaseUpdate>>,
}

/// Turns the changes of `lease/` into [`Seen`]; remembers the last batch.
#[derive(Debug, Default)]
pub struct Feed {
    revision: Revision,
    batch: LeaseBatch,
}

impl Feed {
    /// Begins with a stored batch instead of an empty one.
    pub fn starting_from(revision: Revision, batch: LeaseBatch) -> Self {
        Self { revision, batch }
    }

    /// Takes the next revision.
    pub fn take(&mut self, event: &WatchEvent) -> Result<Seen, RecordError> {
        let entry = |key: &[u8]| -> Option<&Entry> {
            let change = event.changes.iter().find(|change| *change.key == *key)?;
            change.entry.as_ref()
        };
        let beat = entry(BEAT).or(entry(EPOCH)).map(time_of).transpose()?;
        let mut update = None;
        if let Some(entry) = entry(BATCH) {
            let batch = batch_of(entry)?.batch;
            update = Some(Arc::new(LeaseUpdate {
                revision: event.revision,
                previous: self.revision,
                time: beat.unwrap_or(HybridTimestamp::MIN),
                changes: diff(&self.batch, &batch).into(),
                batch: batch.clone(),
            }));
            self.revision = event.revision;
            self.batch = batch;
        }
        Ok(Seen {
            revision: event.revision,
            epoch: entry(EPOCH).is_some(),
            beat,
            update,
        })
    }
}
