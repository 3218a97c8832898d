//! From the store's watch to what driver and nodes understand: each batch is decoded and compared
//! with the one before once, and shared by all who watch.
//!
//! A delta that does not fit what the feed knows (another base, one seen before, a gap, damage) is
//! never guessed at: the leases are read again from the store, snapshot and deltas.

use std::sync::Arc;

use crate::codec::delta::Chain;
use crate::metastorage::contract::{Bytes, Entry, Metastorage, WatchEvent};
use crate::model::diff::{LeaseChange, LeaseUpdate, diff};
use crate::model::hlc::HybridTimestamp;
use crate::model::reads::Reads;

use super::io::Revision;
use super::record::{
    self, BATCH, BEAT, DELTAS, EPOCH, ReadError, RecordError, State, delta_key, time_of,
};

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
    /// What it takes to read the batch.
    pub needs: Reads,
    /// Whether the batch came as a snapshot.
    pub snapshot: bool,
    /// Why the leases were read again, if they were.
    pub read_again: Option<RecordError>,
}

/// Turns the changes of `lease/` into [`Seen`]; remembers the last batch.
#[derive(Debug, Default)]
pub struct Feed {
    revision: Revision,
    chain: Chain,
}

/// A batch as it came.
struct Taken {
    needs: Reads,
    chain: Chain,
    changes: Vec<LeaseChange>,
}

impl Feed {
    /// Begins with what is stored instead of with nothing.
    pub fn starting_from(state: &State) -> Self {
        Self {
            revision: state.revision,
            chain: state.chain.clone(),
        }
    }

    /// Takes the next revision; reads from the store again if it does not fit.
    ///
    /// # Errors
    /// If the store can't be read, or what is there can't be understood.
    pub fn follow(
        &mut self,
        store: &dyn Metastorage,
        event: &WatchEvent,
    ) -> Result<Seen, ReadError> {
        let entry = |key: &[u8]| {
            let change = event.changes.iter().find(|change| *change.key == *key)?;
            change.entry.as_ref()
        };
        let beat = entry(BEAT).or(entry(EPOCH)).map(time_of).transpose()?;
        let mut seen = Seen {
            revision: event.revision,
            epoch: entry(EPOCH).is_some(),
            beat,
            update: None,
            needs: Reads::default(),
            snapshot: entry(BATCH).is_some(),
            read_again: None,
        };
        // After a read the watch still shows what that has found already.
        if event.revision <= self.revision {
            return Ok(seen);
        }
        let taken = match entry(BATCH) {
            Some(snapshot) => self.snapshot(snapshot).map(Some),
            None => self.delta(event),
        };
        let (revision, taken) = match taken {
            Ok(None) => return Ok(seen),
            Ok(Some(taken)) => (event.revision, taken),
            Err(reason) => {
                seen.read_again = Some(reason);
                self.read_again(store)?
            }
        };
        seen.update = Some(Arc::new(LeaseUpdate {
            revision,
            previous: self.revision,
            time: beat.unwrap_or(HybridTimestamp::MIN),
            batch: taken.chain.batch().clone(),
            changes: taken.changes.into(),
        }));
        seen.needs = taken.needs;
        self.revision = revision;
        self.chain = taken.chain;
        Ok(seen)
    }

    fn snapshot(&self, entry: &Entry) -> Result<Taken, RecordError> {
        let state = State::at_snapshot(entry)?;
        if self.chain.step() > 0 {
            // Deltas will follow as they did before: the look at all rows belongs to the snapshot.
            state.chain.digest();
        }
        Ok(self.taken(state))
    }

    /// The state instead of what is known. If only the common expiration differs, the rows stay
    /// shared with those who have them already.
    fn taken(&self, state: State) -> Taken {
        let old = self.chain.batch();
        let new = state.chain.batch();
        if new.has_rows_of(old) {
            return Taken {
                needs: state.needs,
                chain: state.chain.sharing_rows_of(old),
                changes: Vec::new(),
            };
        }
        Taken {
            needs: state.needs,
            changes: diff(old, new),
            chain: state.chain,
        }
    }

    /// The delta of an event, if it has one.
    fn delta(&self, event: &WatchEvent) -> Result<Option<Taken>, RecordError> {
        let is_delta = |key: &Bytes| key.starts_with(DELTAS);
        let mut deltas = (event.changes.iter())
            .filter(|change| is_delta(&change.key))
            .filter_map(|change| change.entry.as_ref());
        let Some(entry) = deltas.next() else {
            return Ok(None);
        };
        let (base, step) = (self.chain.base(), self.chain.step() + 1);
        if base == 0 || deltas.next().is_some() || entry.key != delta_key(step) {
            return Err(RecordError::MissingDelta { base, step });
        }
        let revision = event.revision;
        let (chain, changes) = (self.chain.apply(&entry.value))
            .map_err(|source| RecordError::Delta { revision, source })?;
        Ok(Some(Taken {
            needs: Reads::Deltas,
            chain,
            changes,
        }))
    }

    fn read_again(&self, store: &dyn Metastorage) -> Result<(Revision, Taken), ReadError> {
        let Some(state) = record::read(store, None)? else {
            let (base, step) = (0, 0);
            return Err(RecordError::MissingDelta { base, step }.into());
        };
        Ok((state.revision, self.taken(state)))
    }
}
