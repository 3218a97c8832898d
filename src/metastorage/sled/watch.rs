//! Watching, from the stored events.

use std::sync::Arc;
use std::time::Duration;

use crate::metastorage::contract::{StoreError, Watch, WatchEvent};
use crate::metastorage::mvcc::watch::Cursor;
use crate::metastorage::waiting::Patience;

use super::Inner;
use super::guard::guarded;

pub struct SledWatch {
    cursor: Cursor,
    inner: Arc<Inner>,
}

impl SledWatch {
    pub const fn new(cursor: Cursor, inner: Arc<Inner>) -> Self {
        Self { cursor, inner }
    }

    /// The next event that is there already. Deletion gets its turn between two revisions.
    fn there(&mut self) -> Result<Option<WatchEvent>, StoreError> {
        loop {
            let _pinned = self.inner.pin()?;
            let position = self.inner.position()?;
            if !self.cursor.is_behind(position) {
                return Ok(None);
            }
            let event = self.cursor.step(&self.inner.rows(), position)?;
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

impl Watch for SledWatch {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, StoreError> {
        let patience = Patience::new(wait);
        loop {
            let event = guarded(|| self.there())?;
            if event.is_some() {
                return Ok(event);
            }
            let cursor = &self.cursor;
            let news = |position: &_| cursor.is_behind(*position);
            if !self.inner.position.wait(patience.left(), news)? {
                return Ok(None);
            }
        }
    }
}
