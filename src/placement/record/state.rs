//! The leases as they are stored: a snapshot and the deltas after it.

use thiserror::Error;

use crate::codec::delta::Chain;
use crate::metastorage::contract::{Entry, Metastorage, Op, Range, StoreError, Transaction};
use crate::model::reads::Reads;
use crate::placement::io::Revision;
use crate::placement::storing::needed_for;

use super::{BATCH, DELTAS, RecordError, batch_of, delta_key};

/// The stored leases at some revision.
#[derive(Clone, Debug)]
pub struct State {
    /// Revision of the last write of a batch, snapshot or delta.
    pub revision: Revision,
    /// The leases, and where the next delta fits.
    pub chain: Chain,
    /// Bytes of the record last written.
    pub record_bytes: u64,
    /// What it takes to read it.
    pub needs: Reads,
}

/// Reads the leases, now or at a revision; `None` if there are none yet.
///
/// # Errors
/// If the store can't be read, or if what is stored can't: a gap in the deltas, or one that does
/// not fit, is never skipped.
pub fn read(store: &dyn Metastorage, at: Option<Revision>) -> Result<Option<State>, ReadError> {
    Ok(State::of(&read_entries(store, at)?)?)
}

/// The record that was stored last.
#[derive(Clone, Debug)]
pub struct LastWrite {
    /// The record: a snapshot or a delta.
    pub entry: Entry,
    /// The state that a delta was made for.
    pub before: Option<State>,
}

/// Reads the record that was stored last, now or at a revision; `None` if there is none.
///
/// # Errors
/// As [`read`], but the record itself may be damaged.
pub fn read_last(
    store: &dyn Metastorage,
    at: Option<Revision>,
) -> Result<Option<LastWrite>, ReadError> {
    let mut entries = read_entries(store, at)?;
    let Some(Some(entry)) = entries.pop() else {
        return Ok(None);
    };
    let before = match entries.is_empty() {
        true => None,
        false => State::of(&entries)?,
    };
    Ok(Some(LastWrite { entry, before }))
}

/// The snapshot, if there is one, and all deltas that are there, by key.
pub(super) fn read_entries(
    store: &dyn Metastorage,
    at: Option<Revision>,
) -> Result<Vec<Option<Entry>>, StoreError> {
    let Some(revision) = at else {
        let transaction = Transaction {
            then: vec![Op::Get(BATCH.into()), Op::GetPrefix(DELTAS.into())],
            ..Transaction::default()
        };
        return Ok(store.invoke(transaction)?.reads);
    };
    let mut reads = vec![store.get(BATCH, Some(revision))?];
    let deltas = store.range(&Range {
        at,
        ..Range::prefix(DELTAS)
    })?;
    reads.extend(deltas.into_iter().map(Some));
    Ok(reads)
}

impl State {
    /// Of the snapshot, if there is one, and all deltas that are there, by key.
    pub fn of(reads: &[Option<Entry>]) -> Result<Option<Self>, RecordError> {
        let (snapshot, deltas) = match reads {
            [] => return Err(RecordError::Reads(0)),
            [None] => return Ok(None),
            [None, ..] => return Err(RecordError::MissingDelta { base: 0, step: 0 }),
            [Some(snapshot), deltas @ ..] => (snapshot, deltas),
        };
        let mut state = Self::at_snapshot(snapshot)?;
        for delta in deltas.iter().flatten() {
            state.follow(delta)?;
        }
        Ok(Some(state))
    }

    /// Of a snapshot alone.
    pub fn at_snapshot(snapshot: &Entry) -> Result<Self, RecordError> {
        let decoded = batch_of(snapshot)?;
        Ok(Self {
            revision: snapshot.mod_revision,
            chain: Chain::new(snapshot.mod_revision, decoded.batch),
            record_bytes: snapshot.value.len() as u64,
            needs: needed_for(decoded.format),
        })
    }

    /// Goes on with the next delta; on an error the state is as it was.
    fn follow(&mut self, delta: &Entry) -> Result<(), RecordError> {
        let step = self.chain.step() + 1;
        if delta.key != delta_key(step) {
            let base = self.chain.base();
            return Err(RecordError::MissingDelta { base, step });
        }
        let revision = delta.mod_revision;
        let (chain, _) = (self.chain.apply(&delta.value))
            .map_err(|source| RecordError::Delta { revision, source })?;
        self.chain = chain;
        self.revision = revision;
        self.record_bytes = delta.value.len() as u64;
        self.needs = Reads::Deltas;
        Ok(())
    }
}

/// Why the stored leases could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored can't be understood.
    #[error(transparent)]
    Record(#[from] RecordError),
}
