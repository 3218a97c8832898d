//! A metastorage in memory: nothing outlives the process. Values are shared, never copied; it has
//! no hidden order, so that a simulation on it gives the same run for the same seed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use super::contract::{
    Bytes, Entry, Metastorage, Outcome, Range, Revision, StoreError, Transaction, Volatile, Watch,
    WatchEvent,
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

impl Volatile for MemoryStore {
    fn roll_back(&self, revision: Revision) -> Result<(), StoreError> {
        let mut state = self.shared.lock()?;
        let compacted = state.position.compacted;
        if revision < compacted {
            let wanted = revision;
            return Err(StoreError::Compacted { wanted, compacted });
        }
        while state.position.revision > revision {
            state.take_back();
        }
        Ok(())
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

    /// Takes back the last revision.
    fn take_back(&mut self) {
        let last = self.position.revision;
        for key in self
            .changed
            .remove(&last)
            .iter()
            .flat_map(|keys| keys.iter())
        {
            let Some(versions) = self.versions.get_mut(key) else {
                continue;
            };
            if versions
                .back()
                .is_some_and(|newest| newest.mod_revision == last)
            {
                versions.pop_back();
            }
            if versions.is_empty() {
                self.versions.remove(key);
            }
        }
        self.position.revision = last.saturating_sub(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metastorage::contract::Op;

    #[test]
    fn a_crash_takes_back_what_was_not_synced() {
        let store = MemoryStore::new();
        let write = |ops: Vec<Op>| {
            let transaction = Transaction {
                then: ops,
                ..Transaction::default()
            };
            store.invoke(transaction).unwrap()
        };
        let put = |key: &[u8], value: &[u8]| Op::Put(key.into(), value.into());
        write(vec![put(b"a", b"1"), put(b"b", b"1")]);
        let before = store.range(&Range::default()).unwrap();
        write(vec![
            put(b"a", b"2"),
            Op::Delete(b"b".as_slice().into()),
            put(b"c", b"1"),
        ]);
        write(vec![put(b"c", b"2")]);
        store.roll_back(1).unwrap();
        assert_eq!(store.revision().unwrap(), 1);
        assert_eq!(store.range(&Range::default()).unwrap(), before);
        assert_eq!(write(vec![put(b"c", b"3")]).revision, 2);
        let entry = store.get(b"c", None).unwrap().unwrap();
        assert_eq!((entry.create_revision, entry.version), (2, 1));
        store.compact(2).unwrap();
        assert!(store.roll_back(1).is_err());
    }
}
