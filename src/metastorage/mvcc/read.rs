//! Reading keys as they are, or were.

use std::ops::ControlFlow;

use crate::metastorage::contract::{Bytes, Entry, Range, Revision, StoreError};

use super::{History, Version};

/// A key's state at a revision that can be read.
///
/// # Errors
/// Those of the history.
pub fn get<H: History>(history: &H, key: &[u8], at: Revision) -> Result<Option<Entry>, StoreError> {
    match history.newest(key, at)? {
        Some(version) => entry(history, key.into(), version),
        None => Ok(None),
    }
}

/// The keys of a range at a revision that can be read; that of `range` itself is not looked at.
///
/// # Errors
/// Those of the history.
pub fn range<H: History>(
    history: &H,
    range: &Range,
    at: Revision,
) -> Result<Vec<Entry>, StoreError> {
    let end = range.end.as_deref();
    let limit = range.limit.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    if limit == 0 || end.is_some_and(|end| end <= range.start.as_slice()) {
        return Ok(found);
    }
    history.scan(&range.start, end, at, range.reverse, &mut |key, version| {
        found.extend(entry(history, key, version)?);
        Ok(if found.len() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(found)
}

/// A version as the caller sees it; none if it is a tombstone.
pub(super) fn entry<H: History>(
    history: &H,
    key: Bytes,
    version: Version<H::Value>,
) -> Result<Option<Entry>, StoreError> {
    let Some(value) = version.value else {
        return Ok(None);
    };
    let value = history.load(&key, version.mod_revision, &value)?;
    Ok(Some(Entry {
        key,
        value,
        create_revision: version.create_revision,
        mod_revision: version.mod_revision,
        version: version.version,
    }))
}
