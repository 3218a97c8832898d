//! What a compaction forgets.

use crate::metastorage::contract::{Bytes, Revision, StoreError};

use super::History;

/// The versions that nobody can read any more once `revision` and all before it are compacted,
/// provided that those before it have been dealt with: the predecessors of what it changed, and
/// its tombstones. Afterwards the record of what it changed can go too.
///
/// # Errors
/// Those of the history.
pub fn superseded<H: History>(
    history: &H,
    revision: Revision,
) -> Result<Vec<(Bytes, Revision)>, StoreError> {
    let mut gone = Vec::new();
    for key in &*history.changed(revision)? {
        if let Some(before) = history.newest(key, revision.saturating_sub(1))? {
            gone.push((key.clone(), before.mod_revision));
        }
        if let Some(version) = history.newest(key, revision)?
            && version.value.is_none()
        {
            gone.push((key.clone(), version.mod_revision));
        }
    }
    Ok(gone)
}
