//! One group's lease as it is stored, without reading the others where that is possible.
//!
//! In a `columnar` snapshot the group's row is found and read by itself; deltas are followed by
//! where they leave that row. If one of them touches it, or the snapshot is in another format,
//! everything is read. The quick way trusts the checksums of the records; that the deltas fit the
//! snapshot's leases, which their digests tell, only a full reading proves.

use crate::codec::columnar::Position;
use crate::codec::delta::{Delta, DeltaError};
use crate::codec::frame;
use crate::metastorage::contract::{Entry, Metastorage};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::placement::io::Revision;

use super::state::{ReadError, State, read_entries};
use super::{RecordError, delta_key};

/// What is stored about a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// Revision of the last write of a batch, snapshot or delta.
    pub revision: Revision,
    /// The group's lease, if it has one.
    pub lease: Option<Lease>,
    /// Whether it was found without reading the other leases.
    pub quick: bool,
}

/// Looks a group up, now or at a revision; `None` if nothing is stored.
///
/// # Errors
/// As [`read`](super::read).
pub fn lookup(
    store: &dyn Metastorage,
    at: Option<Revision>,
    group: GroupId,
) -> Result<Option<Lookup>, ReadError> {
    let entries = read_entries(store, at)?;
    if let [Some(snapshot), deltas @ ..] = entries.as_slice()
        && let Some(found) = quick(snapshot, deltas, group)?
    {
        return Ok(Some(found));
    }
    let state = State::of(&entries)?;
    Ok(state.map(|state| {
        let batch = state.chain.batch();
        Lookup {
            revision: state.revision,
            lease: batch.get(group).map(|row| batch.lease(row)),
            quick: false,
        }
    }))
}

/// `None` if everything has to be read.
fn quick(
    snapshot: &Entry,
    deltas: &[Option<Entry>],
    group: GroupId,
) -> Result<Option<Lookup>, RecordError> {
    let revision = snapshot.mod_revision;
    let damaged = |source| RecordError::Batch { revision, source };
    let record =
        frame::open(&snapshot.value).map_err(|source| RecordError::Frame { revision, source })?;
    let Some(view) = record.view() else {
        return Ok(None);
    };
    let view = view.map_err(damaged)?;
    let mut trail = Trail {
        group,
        position: view.position(group).map_err(damaged)?,
        common: view.common_expiration(),
    };
    let mut last = revision;
    for (entry, step) in deltas.iter().flatten().zip(1..) {
        if entry.key != delta_key(step) {
            let base = revision;
            return Err(RecordError::MissingDelta { base, step });
        }
        let delta = read_delta(entry, revision, step)?;
        if !trail.follow(&delta) {
            return Ok(None);
        }
        last = entry.mod_revision;
    }
    let lease = match trail.position {
        Position::WouldBe(_) => None,
        Position::Found(_) => view.row(group).map_err(damaged)?.map(|row| Lease {
            expiration: row.expiration(trail.common),
            ..view.to_lease(&row)
        }),
    };
    Ok(Some(Lookup {
        revision: last,
        lease,
        quick: true,
    }))
}

/// A frame that must be a certain one.
fn read_delta(entry: &Entry, base: Revision, step: u64) -> Result<Delta, RecordError> {
    let revision = entry.mod_revision;
    let damaged = |source| RecordError::Delta { revision, source };
    let delta = Delta::read(&entry.value).map_err(damaged)?;
    let found = delta.base;
    if found != base {
        let expected = base;
        return Err(damaged(DeltaError::WrongBase { expected, found }));
    }
    let found = delta.step;
    if found != step {
        let expected = step;
        return Err(damaged(DeltaError::WrongStep { expected, found }));
    }
    Ok(delta)
}

/// Where a group's row is after each delta.
struct Trail {
    group: GroupId,
    position: Position,
    common: HybridTimestamp,
}

impl Trail {
    /// Goes on; false if the delta has something to say about the group, or does not fit.
    fn follow(&mut self, delta: &Delta) -> bool {
        let physical = (self.common.physical() as i64).checked_add(delta.common_change);
        let physical = physical.and_then(|physical| u64::try_from(physical).ok());
        let common = physical.map(|physical| HybridTimestamp::new(physical, delta.common_logical));
        let Some(Ok(common)) = common else {
            return false;
        };
        self.common = common;
        let (Position::Found(at) | Position::WouldBe(at)) = self.position;
        let touches =
            |position: u32| matches!(self.position, Position::Found(at) if at == position as usize);
        let adds_it = |added: &[(GroupId, _)]| {
            added
                .binary_search_by_key(&self.group, |(group, _)| *group)
                .is_ok()
        };
        if delta.removed.iter().any(|position| touches(*position))
            || delta
                .replaced
                .iter()
                .any(|(position, _)| touches(*position))
            || adds_it(&delta.added)
        {
            return false;
        }
        let removed = delta
            .removed
            .partition_point(|position| (*position as usize) < at);
        let added = delta
            .added
            .partition_point(|(group, _)| *group < self.group);
        let moved = (at + added).saturating_sub(removed);
        self.position = match self.position {
            Position::Found(_) => Position::Found(moved),
            Position::WouldBe(_) => Position::WouldBe(moved),
        };
        true
    }
}
