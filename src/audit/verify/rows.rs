//! Reading size rows of which some may be damaged.

use crate::metastorage::contract::{Entry, Metastorage, Range, StoreError};
use crate::placement::record::SIZES;

/// Size rows read at once.
const PAGE: usize = 1_000;

/// Some size rows.
pub(super) struct Page {
    pub entries: Vec<Entry>,
    /// Where to go on.
    pub next: Option<Vec<u8>>,
    /// The damaged row behind them.
    pub damage: Option<(Vec<u8>, String)>,
}

/// The size rows from a key on, at most [`PAGE`] of them and none beyond a damaged one.
pub(super) fn page(store: &dyn Metastorage, start: &[u8]) -> Result<Page, StoreError> {
    let range = Range {
        start: start.to_vec(),
        limit: Some(PAGE),
        ..Range::prefix(SIZES)
    };
    let what = match store.range(&range) {
        Ok(entries) => {
            let last = entries.last().filter(|_| entries.len() == PAGE);
            return Ok(Page {
                next: last.map(|last| successor(&last.key)),
                entries,
                damage: None,
            });
        }
        Err(StoreError::Damaged(what)) => what,
        Err(error) => return Err(error),
    };
    let Some(time) = damaged_time(store, &range)? else {
        return Ok(Page {
            entries: Vec::new(),
            next: None,
            damage: Some((SIZES.to_vec(), what)),
        });
    };
    let before = Range {
        end: Some(key_at(time)),
        ..range
    };
    let next = readable_from(store, time)?.map(key_at);
    Ok(Page {
        entries: store.range(&before)?,
        damage: Some((key_at(time), lost(what, time, next.as_deref()))),
        next,
    })
}

/// What is said of damage that may reach farther than one row.
fn lost(what: String, time: u64, next: Option<&[u8]>) -> String {
    match next {
        Some(next) if next == key_at(time + 1) => what,
        Some(next) => {
            let next = next.escape_ascii();
            format!("{what}; neither this row nor what follows can be read, up to {next}")
        }
        None => format!("{what}; neither this row nor any that follows can be read"),
    }
}

/// The first time of a damaged range whose row is damaged, found by halving: the error says
/// which row of the backend it was, not which key.
fn damaged_time(store: &dyn Metastorage, range: &Range) -> Result<Option<u64>, StoreError> {
    let fails_below = |time: u64| {
        let part = Range {
            end: Some(key_at(time)),
            ..range.clone()
        };
        Ok(!reads(store, &part)?)
    };
    match fails_below(u64::MAX)? {
        true => last_without(fails_below, 0, u64::MAX).map(Some),
        false => Ok(None),
    }
}

/// Whether nothing in a range is damaged.
fn reads(store: &dyn Metastorage, range: &Range) -> Result<bool, StoreError> {
    match store.range(range) {
        Ok(_) => Ok(true),
        Err(StoreError::Damaged(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The last time without a property, between one that lacks it and a later one that has it.
fn last_without(
    has: impl Fn(u64) -> Result<bool, StoreError>,
    mut without: u64,
    mut with: u64,
) -> Result<u64, StoreError> {
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        if has(middle)? {
            with = middle;
        } else {
            without = middle;
        }
    }
    Ok(without)
}

/// The first time after a damaged row from which on something can be read, or nothing is there:
/// a page of the backend may be lost, with all rows in it. Found by doubling the step, then by
/// halving it.
fn readable_from(store: &dyn Metastorage, damaged: u64) -> Result<Option<u64>, StoreError> {
    let reads_from = |time: u64| {
        let part = Range {
            start: key_at(time),
            limit: Some(1),
            ..Range::prefix(SIZES)
        };
        reads(store, &part)
    };
    let (mut bad, mut step) = (damaged, 1u64);
    while let Some(time) = damaged.checked_add(step) {
        if reads_from(time)? {
            return Ok(Some(last_without(reads_from, bad, time)? + 1));
        }
        bad = time;
        step = step.saturating_mul(2);
    }
    Ok(None)
}

pub(super) fn key_at(composite: u64) -> Vec<u8> {
    let mut key = SIZES.to_vec();
    key.extend_from_slice(format!("{composite:016x}").as_bytes());
    key
}

fn successor(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}
