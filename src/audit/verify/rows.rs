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
    let Some(key) = damaged_key(store, &range)? else {
        return Ok(Page {
            entries: Vec::new(),
            next: None,
            damage: Some((SIZES.to_vec(), what)),
        });
    };
    let before = Range {
        end: Some(key.clone()),
        ..range
    };
    Ok(Page {
        entries: store.range(&before)?,
        next: Some(successor(&key)),
        damage: Some((key, what)),
    })
}

/// The first key of a damaged range whose row is damaged, found by halving: the error says
/// which row of the backend it was, not which key.
fn damaged_key(store: &dyn Metastorage, range: &Range) -> Result<Option<Vec<u8>>, StoreError> {
    let fails_below = |time: u64| {
        let part = Range {
            end: Some(key_at(time)),
            ..range.clone()
        };
        match store.range(&part) {
            Ok(_) => Ok(false),
            Err(StoreError::Damaged(_)) => Ok(true),
            Err(error) => Err(error),
        }
    };
    let (mut good, mut bad) = (0, u64::MAX);
    if !fails_below(bad)? {
        return Ok(None);
    }
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fails_below(middle)? {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Ok(Some(key_at(good)))
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
