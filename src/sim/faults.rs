//! What only a simulated store can suffer: a crash that loses what was not synced, somebody else's
//! write, damage to what is read.

use crate::cluster::heap::MILLI;
use crate::metastorage::contract::{
    Entry, Metastorage, Outcome, Range, Revision, StoreError, Transaction, Watch, WatchEvent,
};
use crate::model::hlc::HybridTimestamp;
use crate::model::reads::Reads;
use crate::placement::feed::Feed;
use crate::placement::io::{BatchWrite, Cause, Form, StoreReply, StoreRequest};
use crate::placement::record::{self, BATCH, DELTAS, EPOCH, PREFIX};

use super::Observer;
use super::crank::{Simulation, SimulationError};

impl Simulation {
    /// The store has crashed: what came after a revision is gone, and whoever watched begins anew
    /// from what is there.
    pub(super) fn lose_after(
        &mut self,
        kept: Revision,
        observer: &mut impl Observer,
    ) -> Result<(), SimulationError> {
        self.store.roll_back(kept)?;
        self.watch = self.store.watch(PREFIX, kept + 1)?;
        let state = record::read(&*self.store, None)?;
        self.feed = state.as_ref().map(Feed::starting_from).unwrap_or_default();
        observer.crashed(&self.cluster, &*self.store, kept);
        Ok(())
    }

    /// Somebody else stores the same leases again, as a snapshot.
    pub(super) fn rewrite(&mut self, observer: &mut impl Observer) -> Result<(), SimulationError> {
        let epoch = self.store.get(EPOCH, None)?;
        let state = record::read(&*self.store, None)?;
        let time = HybridTimestamp::new(self.cluster.now() / MILLI, 0);
        let (Some(epoch), Some(state), Ok(time)) = (epoch, state, time) else {
            return Ok(());
        };
        let settings = self.cluster.scenario();
        // Whoever can read what is there can read that, too.
        let storing = settings.store.storing().readable_with(state.needs);
        let batch = state.chain.batch().clone();
        let write = BatchWrite {
            epoch: epoch.mod_revision,
            naive_bytes: crate::codec::naive_size(&batch) as u64,
            chain: state.chain,
            batch,
            changed: Vec::new(),
            form: match storing.snapshot_every {
                1 => Form::Full,
                _ => Form::Snapshot,
            },
            format: storing.format,
            substitute: storing.substitute(state.needs),
            time,
            cause: Cause::default(),
        };
        let took = settings.network.store_us;
        let request = StoreRequest::Write(Box::new(write));
        let reply = record::execute(&*self.store, Reads::default(), request, None);
        if let StoreReply::Written { revision, .. } = reply {
            observer.rewritten(&self.cluster, &*self.store);
            let done = self.cluster.occupied(took, Some(revision));
            self.show(done, None, observer)?;
        }
        Ok(())
    }

    /// What a driver gets that reads what is stored and gets it damaged.
    pub(super) fn damaged_read(
        &self,
        seed: u64,
        reads: Reads,
        request: StoreRequest,
    ) -> StoreReply {
        let damaged = Damaged {
            store: &*self.store,
            seed,
        };
        record::execute(&damaged, reads, request, None)
    }
}

/// Flips a bit of a stored record as a watcher sees it.
pub(super) fn damage_event(event: &mut WatchEvent, seed: u64) {
    for change in &mut event.changes {
        if let (true, Some(entry)) = (is_record(&change.key), &mut change.entry) {
            flip(entry, seed);
        }
    }
}

/// Snapshots and deltas have checksums; of a beat a reader can't tell.
fn is_record(key: &[u8]) -> bool {
    key == BATCH || key.starts_with(DELTAS)
}

fn flip(entry: &mut Entry, seed: u64) {
    let mut value = entry.value.to_vec();
    let bit = seed as usize % (value.len() * 8).max(1);
    if let Some(byte) = value.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
    entry.value = value.into();
}

/// A store of which one record is read with a flipped bit.
struct Damaged<'a> {
    store: &'a dyn Metastorage,
    seed: u64,
}

impl Metastorage for Damaged<'_> {
    fn revision(&self) -> Result<Revision, StoreError> {
        self.store.revision()
    }

    fn compacted(&self) -> Result<Revision, StoreError> {
        self.store.compacted()
    }

    fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Option<Entry>, StoreError> {
        self.store.get(key, at)
    }

    fn range(&self, range: &Range) -> Result<Vec<Entry>, StoreError> {
        self.store.range(range)
    }

    fn invoke(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        let mut outcome = self.store.invoke(transaction)?;
        let records = (outcome.reads.iter_mut().flatten()).filter(|entry| is_record(&entry.key));
        let mut records: Vec<_> = records.collect();
        let chosen = self.seed as usize % records.len().max(1);
        if let Some(entry) = records.get_mut(chosen) {
            flip(entry, self.seed / 64);
        }
        Ok(outcome)
    }

    fn watch(&self, prefix: &[u8], from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch(prefix, from)
    }

    fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.store.compact(revision)
    }
}
