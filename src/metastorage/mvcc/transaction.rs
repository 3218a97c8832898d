//! What a transaction does.

use std::collections::BTreeMap;

use crate::metastorage::contract::{
    Bytes, Condition, Entry, Op, Outcome, Range, Revision, StoreError, Transaction,
};

use super::{History, Version, read};

/// The outcome of a transaction, and what is to be stored before it may be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What to answer.
    pub outcome: Outcome,
    /// The versions to append at the outcome's revision, by key; none if nothing changes.
    pub writes: BTreeMap<Bytes, Version<Bytes>>,
}

/// Decides a transaction that passed [`Limits::check`](super::limits::Limits::check) on a store
/// whose last revision is `revision`.
///
/// # Errors
/// Those of the history.
pub fn decide<H: History>(
    history: &H,
    revision: Revision,
    transaction: &Transaction,
) -> Result<Decision, StoreError> {
    let mut won = true;
    for condition in &transaction.conditions {
        won = won && holds(history, revision, condition)?;
    }
    let branch = if won {
        &transaction.then
    } else {
        &transaction.or_else
    };
    let next = revision + 1;
    let mut reads = Vec::new();
    let mut writes = BTreeMap::new();
    for op in branch {
        match op {
            Op::Put(key, value) => {
                let before = history.newest(key, revision)?;
                writes.insert(key.clone(), put(before.as_ref(), next, value));
            }
            Op::Delete(key) => {
                if let Some(before) = history.newest(key, revision)?
                    && before.value.is_some()
                {
                    writes.insert(key.clone(), tombstone(next));
                }
            }
            Op::Get(key) => reads.push(match writes.get(key) {
                Some(written) => written_entry(key, written),
                None => read::get(history, key, revision)?,
            }),
            Op::GetPrefix(prefix) => {
                let stored = read::range(history, &Range::prefix(prefix), revision)?;
                let stored = stored.into_iter().map(|entry| (entry.key.clone(), entry));
                let mut found: BTreeMap<_, _> = stored.collect();
                for (key, written) in writes.iter().filter(|(key, _)| key.starts_with(prefix)) {
                    match written_entry(key, written) {
                        Some(entry) => found.insert(key.clone(), entry),
                        None => found.remove(key),
                    };
                }
                reads.extend(found.into_values().map(Some));
            }
        }
    }
    let revision = if writes.is_empty() { revision } else { next };
    let outcome = Outcome {
        won,
        revision,
        reads,
    };
    Ok(Decision { outcome, writes })
}

fn holds<H: History>(
    history: &H,
    revision: Revision,
    condition: &Condition,
) -> Result<bool, StoreError> {
    let live = |key: &[u8]| {
        let newest = history.newest(key, revision)?;
        Ok(newest.filter(|version| version.value.is_some()))
    };
    Ok(match condition {
        Condition::Exists(key) => live(key)?.is_some(),
        Condition::Absent(key) => live(key)?.is_none(),
        Condition::ModRevision(key, wanted) => {
            live(key)?.map_or(0, |version| version.mod_revision) == *wanted
        }
        Condition::Value(key, wanted) => {
            read::get(history, key, revision)?.is_some_and(|entry| entry.value == *wanted)
        }
    })
}

fn put<V>(before: Option<&Version<V>>, next: Revision, value: &Bytes) -> Version<Bytes> {
    let (create_revision, version) = match before {
        Some(before) if before.value.is_some() => (before.create_revision, before.version + 1),
        _ => (next, 1),
    };
    Version {
        create_revision,
        mod_revision: next,
        version,
        value: Some(value.clone()),
    }
}

const fn tombstone(next: Revision) -> Version<Bytes> {
    Version {
        create_revision: 0,
        mod_revision: next,
        version: 0,
        value: None,
    }
}

fn written_entry(key: &Bytes, written: &Version<Bytes>) -> Option<Entry> {
    Some(Entry {
        key: key.clone(),
        value: written.value.clone()?,
        create_revision: written.create_revision,
        mod_revision: written.mod_revision,
        version: written.version,
    })
}
