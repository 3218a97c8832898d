//! A process can end after any revision. Whoever comes next, or joins late, finds the leases that
//! were stored there, with a snapshot and contiguous deltas and nothing that history held.

use leasehold::metastorage::contract::{Metastorage, Range};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::diff::diff;
use leasehold::placement::record::{self, BATCH, DELTAS, delta_key};

use super::support::{self, run, run_into_deltas};

#[test]
fn every_revision_can_be_recovered() {
    let (store, updates) = run(120);
    assert!(updates.len() > 50, "{}", updates.len());
    for (index, update) in updates.iter().enumerate() {
        let end = updates
            .get(index + 1)
            .map_or(update.revision, |next| next.revision - 1);
        for revision in update.revision..=end {
            let state = record::read(&store, Some(revision)).unwrap().unwrap();
            assert_eq!(state.revision, update.revision);
            assert_eq!(*state.chain.batch(), update.batch, "revision {revision}");
        }
    }
    let last = updates.last().unwrap();
    let state = record::read(&store, None).unwrap().unwrap();
    assert_eq!(*state.chain.batch(), last.batch);
}

#[test]
fn what_changed_is_what_differs() {
    let (_, updates) = run(120);
    let mut kinds = (0, 0);
    for pair in updates.windows(2) {
        assert_eq!(pair[1].previous, pair[0].revision);
        assert_eq!(*pair[1].changes, *diff(&pair[0].batch, &pair[1].batch));
        match pair[1].changes.is_empty() {
            true => kinds.0 += u32::from(pair[1].batch.shares_rows(&pair[0].batch)),
            false => kinds.1 += 1,
        }
    }
    assert!(kinds.0 > 3 && kinds.1 > 10, "quiet and other: {kinds:?}");
}

#[test]
fn deltas_go_with_the_next_snapshot_in_the_same_revision() {
    let (store, _) = run(60);
    let mut snapshots = 0;
    for event in support::events(&store) {
        let revision = event.revision;
        let deltas = store
            .range(&Range {
                at: Some(revision),
                ..Range::prefix(DELTAS)
            })
            .unwrap();
        let keys: Vec<_> = deltas.iter().map(|entry| entry.key.clone()).collect();
        let contiguous: Vec<_> = (1..=keys.len() as u64).map(delta_key).collect();
        assert_eq!(keys, contiguous);
        assert!(keys.len() < 5, "a snapshot comes every 5 batches");
        if event.changes.iter().any(|change| *change.key == *BATCH) {
            snapshots += 1;
            assert_eq!(keys.len(), 0);
        }
    }
    assert!(snapshots > 5);
}

#[test]
fn nothing_depends_on_history() {
    let (store, updates) = run_into_deltas();
    let revision = store.revision().unwrap();
    store.compact(revision).unwrap();
    let state = record::read(&store, None).unwrap().unwrap();
    assert!(state.chain.step() > 0, "there are deltas");
    assert_eq!(*state.chain.batch(), updates.last().unwrap().batch);
}

#[test]
fn an_empty_store_has_no_leases() {
    assert!(record::read(&MemoryStore::new(), None).unwrap().is_none());
}

#[test]
fn a_quiet_cluster_shares_its_rows_over_snapshots_too() {
    let quiet = "[cluster]\ntables = 6\n[store]\nlayout = 'delta'\nsnapshot_every = 4";
    let (_, updates) = support::run_scenario(quiet, 60);
    let settled = updates
        .iter()
        .rposition(|update| !update.changes.is_empty());
    let rest = &updates[settled.unwrap()..];
    assert!(rest.len() > 15, "{}", rest.len());
    // The first one may still have aligned expirations.
    for pair in rest[1..].windows(2) {
        assert!(pair[1].batch.shares_rows(&pair[0].batch));
    }
}
