//! Whether the bytes in the store mean what the driver meant: they are read back and both are
//! compared as naive records, so that a mistake made alike in writing and in reading can't hide.

use crate::codec::{self, Format};
use crate::metastorage::contract::Metastorage;
use crate::model::batch::LeaseBatch;
use crate::model::ids::GroupKind;
use crate::model::lease::Lease;
use crate::model::reads::Reads;
use crate::placement::io::Revision;
use crate::placement::record;
use crate::placement::storing::needed_for;

use super::stored::State;
use super::{Invariant, Verdict, Wrong, wrong};

/// What is stored now, which must be readable.
pub(super) fn read_back(store: &dyn Metastorage, revision: Revision) -> Result<State, Wrong> {
    let unreadable = |reason: String| Wrong {
        invariant: Invariant::StoredAsMeant,
        group: None,
        first: format!("revision {revision} was written"),
        second: format!("what is stored can't be read: {reason}"),
    };
    match record::read(store, None) {
        Ok(Some(state)) => Ok(state),
        Ok(None) => Err(unreadable("nothing is there".to_owned())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// What it takes to read what is stored, by the looks of it.
pub(super) fn needs(store: &dyn Metastorage, revision: Revision) -> Result<Reads, Wrong> {
    let unreadable = |reason: String| Wrong {
        invariant: Invariant::StoredAsMeant,
        group: None,
        first: format!("revision {revision} was written"),
        second: format!("the record of the leases is {reason}"),
    };
    let get = |key: &[u8]| {
        let found = store.get(key, None);
        found.map_err(|error| unreadable(format!("out of reach: {error}")))
    };
    if get(&record::delta_key(1))?.is_some() {
        return Ok(Reads::Deltas);
    }
    let snapshot = get(record::BATCH)?.ok_or_else(|| unreadable("not there".to_owned()))?;
    match codec::frame::open(&snapshot.value) {
        Ok(found) => Ok(needed_for(found.format)),
        Err(error) => Err(unreadable(format!("damaged: {error}"))),
    }
}

/// Both must be the same leases.
pub(super) fn compare(revision: Revision, meant: &LeaseBatch, found: &LeaseBatch) -> Verdict {
    // The naive record carries tables only; where there are zones, the leases are compared.
    let tables = |batch: &LeaseBatch| {
        let mut kinds = batch.rows().iter().map(|row| row.group().kind());
        kinds.all(|kind| kind == GroupKind::Table)
    };
    if tables(meant) && tables(found) {
        let naive = |batch| codec::encode(Format::Naive, batch);
        if let (Ok(meant), Ok(found)) = (naive(meant), naive(found))
            && meant == found
        {
            return Ok(());
        }
    }
    let (mut meant, mut found) = (meant.leases(), found.leases());
    loop {
        let (meant, found) = (meant.next(), found.next());
        if meant != found {
            let group = meant.as_ref().or(found.as_ref()).map(|lease| lease.group);
            return wrong(
                Invariant::StoredAsMeant,
                group,
                format!("revision {revision} is to be {}", in_words(meant.as_ref())),
                format!("it reads as {}", in_words(found.as_ref())),
            );
        }
        if meant.is_none() {
            return Ok(());
        }
    }
}

/// A lease for a report.
pub(super) fn in_words(lease: Option<&Lease>) -> String {
    let Some(lease) = lease else {
        return "no lease".to_owned();
    };
    let state = match (lease.accepted, lease.prolongable) {
        (true, true) => "accepted",
        (true, false) => "accepted, denied",
        (false, true) => "granted",
        (false, false) => "granted, denied",
    };
    format!(
        "the lease of {} with {} ({}), {state}, from {} to {}",
        lease.group, lease.holder_name, lease.holder_id, lease.start, lease.expiration
    )
}
