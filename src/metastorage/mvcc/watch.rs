//! What a watcher sees.

use crate::metastorage::contract::{Bytes, Change, Revision, StoreError, WatchEvent};

use super::{History, Position, read};

/// A watcher's place in the history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    prefix: Bytes,
    next: Revision,
}

impl Cursor {
    /// Before the changes of revision `from`, which may lie in the future.
    ///
    /// # Errors
    /// If it has been compacted.
    pub fn new(prefix: &[u8], from: Revision, position: Position) -> Result<Self, StoreError> {
        let cursor = Self {
            prefix: prefix.into(),
            next: from.max(1),
        };
        position.not_compacted(cursor.next)?;
        Ok(cursor)
    }

    /// Whether there is a revision that it has not looked at.
    pub const fn is_behind(&self, position: Position) -> bool {
        self.next <= position.revision
    }

    /// Looks at one revision and passes it: the event, if the revision changed a watched key.
    /// Without a new revision it stays where it is.
    ///
    /// # Errors
    /// If the revision has been compacted, and those of the history; it stays where it is.
    pub fn step<H: History>(
        &mut self,
        history: &H,
        position: Position,
    ) -> Result<Option<WatchEvent>, StoreError> {
        position.not_compacted(self.next)?;
        if !self.is_behind(position) {
            return Ok(None);
        }
        let changes = self.changes(history)?;
        let event = WatchEvent {
            revision: self.next,
            changes,
        };
        self.next += 1;
        Ok((!event.changes.is_empty()).then_some(event))
    }

    fn changes<H: History>(&self, history: &H) -> Result<Vec<Change>, StoreError> {
        let mut changes = Vec::new();
        for key in &*history.changed(self.next)? {
            if !key.starts_with(&self.prefix) {
                continue;
            }
            let entry = read::get(history, key, self.next)?;
            changes.push(Change {
                key: key.clone(),
                entry,
            });
        }
        Ok(changes)
    }
}
