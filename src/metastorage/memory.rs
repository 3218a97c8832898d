//! A metastorage in memory: nothing outlives the process. Values are shared, never copied; it has
//! no hidden order, so that a simulation on it gives the same run for the same seed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use super::contract::{
    Bytes, Entry, Metastorage, Outcome, Range, Revision, StoreError, Transaction, Watch, WatchEvent,
};
use super::mvcc::limits::Limits;
use super::mvcc::watch::Cursor;
use super::mvcc::{History, Position, Version, Visit, compaction, read, transaction};
use super::waiting::{Patience, Watched};

/// The store. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    shared: Arc<Watched<State>>,
    limits: Limits,
}

impl MemoryStore {
    /// An empty store with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }
}

impl Metastorage for MemoryStore {
    fn revision(&self) -> Result<Revision, StoreError> {
        Ok(self.shared.lock()?.position.revision)
    }

    fn compacted(&self) -> Result<Revision, StoreError> {
        Ok(self.shared.lock()?.position.compacted)
    }

    fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Option<Entry>, StoreError> {
        let state = self.shared.lock()?;
        let at = state.position.read_at(at)?;
        read::get(&*state, key, at)
    }

    fn range(&self, range: &Range) -> Result<Vec<Entry>, StoreError> {
        let state = self.shared.lock()?;
        let at = state.position.read_at(range.at)?;
        read::range(&*state, range, at)
    }

    fn invoke(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        self.limits.check(&transaction)?;
        let mut state = self.shared.lock()?;
        let decision = transaction::decide(&*state, state.position.revision, &transaction)?;
        if !decision.writes.is_empty() {
            state.apply(decision.outcome.revision, decision.writes);
            drop(state);
            self.shared.notify();
        }
        Ok(decision.outcome)
    }

    fn watch(&self, prefix: &[u8], from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let position = self.shared.lock()?.position;
        Ok(Box::new(MemoryWatch {
            cursor: Cursor::new(prefix, from, position)?,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let mut state = self.shared.lock()?;
        if state.position.compacts(revision)? {
            state.compact(revision)?;
            drop(state);
            self.shared.notify();
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct State {
    position: Position,
    /// Versions of each key, oldest first; never empty.
    versions: BTreeMap<Bytes, VecDeque<Version<Bytes>>>,
    /// Keys that each uncompacted revision changed.
    changed: BTreeMap<Revision, Arc<[Bytes]>>,
}

impl State {
    fn apply(&mut self, revision: Revision, writes: BTreeMap<Bytes, Version<Bytes>>) {
        self.changed
            .insert(revision, writes.keys().cloned().collect());
        for (key, version) in writes {
            self.versions.entry(key).or_default().push_back(version);
        }
        self.position.revision = revision;
    }

    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        while let Some(oldest) = self.changed.first_key_value().map(|(&oldest, _)| oldest)
            && oldest <= revision
        {
            for (key, gone) in compaction::superseded(self, oldest)? {
                let Some(versions) = self.versions.get_mut(&key) else {
                    continue;
                };
                // It is the oldest left: those before it went with earlier revisions.
                if versions
                    .front()
                    .is_some_and(|oldest| oldest.mod_revision == gone)
                {
                    versions.pop_front();
                }
                if versions.is_empty() {
                    self.versions.remove(&key);
                }
            }
            self.changed.remove(&oldest);
        }
        self.position.compacted = revision;
        Ok(())
    }
}

impl History for State {
    type Value = Bytes;

    fn newest(&self, key: &[u8], at: Revision) -> Result<Option<Version<Bytes>>, StoreError> {
        Ok(self
            .versions
            .get(key)
            .and_then(|versions| newest(versions, at)))
    }

    fn load(&self, _: &[u8], _: Revision, value: &Bytes) -> Result<Bytes, StoreError> {
        Ok(Arc::clone(value))
    }

    fn scan(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        at: Revision,
        reverse: bool,
        visit: &mut Visit<'_, Bytes>,
    ) -> Result<(), StoreError> {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let mut keys = self
            .versions
            .range::<[u8], _>((Bound::Included(start), end));
        while let Some((key, versions)) = if reverse {
            keys.next_back()
        } else {
            keys.next()
        } {
            if let Some(version) = newest(versions, at)
                && let ControlFlow::Break(()) = visit(Arc::clone(key), version)?
            {
                break;
            }
        }
        Ok(())
    }

    fn changed(&self, revision: Revision) -> Result<Arc<[Bytes]>, StoreError> {
        Ok(self
            .changed
            .get(&revision)
            .cloned()
            .unwrap_or_else(|| Arc::new([])))
    }
}

fn newest(versions: &VecDeque<Version<Bytes>>, at: Revision) -> Option<Version<Bytes>> {
    let older = versions.partition_point(|version| version.mod_revision <= at);
    versions.get(older.checked_sub(1)?).cloned()
}

struct MemoryWatch {
    cursor: Cursor,
    shared: Arc<Watched<State>>,
}

impl Watch for MemoryWatch {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, StoreError> {
        let patience = Patience::new(wait);
        loop {
            let state = self.shared.lock()?;
            while self.cursor.is_behind(state.position) {
                let event = self.cursor.step(&*state, state.position)?;
                if event.is_some() {
                    return Ok(event);
                }
            }
            drop(state);
            let cursor = &self.cursor;
            let news = |state: &State| cursor.is_behind(state.position);
            if !self.shared.wait(patience.left(), news)? {
                return Ok(None);
            }
        }
    }
}
