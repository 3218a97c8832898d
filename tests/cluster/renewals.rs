//! The quiet life: one write every 2.5 s.

use std::time::Duration;

use leasehold::cluster::scenario::Scenario;
use leasehold::placement::record::{SizeRow, size_range};

use crate::invariants::Invariants;

#[test]
fn all_leases_are_accepted_and_renewed_every_2500_ms_none_missing() {
    let scenario = Scenario::parse("[cluster]\ntables = 20").unwrap();
    let mut simulation = crate::simulate(scenario);
    let mut observer = Invariants::default();
    simulation
        .run_for(Duration::from_secs(600), &mut observer)
        .unwrap();

    let store = simulation.store();
    let rows: Vec<_> = (store.range(&size_range(None)).unwrap().iter())
        .map(|entry| SizeRow::from_entry(entry).unwrap())
        .collect();
    let last = rows.last().unwrap();
    assert_eq!((last.leases, last.changed), (500, 0));
    assert!(last.stored_bytes * 20 < last.naive_bytes);
    let renewals: Vec<_> = rows
        .iter()
        .filter(|row| row.cause.contains("renewal"))
        .collect();
    assert!((235..=240).contains(&renewals.len()), "{}", renewals.len());
    for pair in renewals.windows(2) {
        assert_eq!(pair[1].time - pair[0].time, 2500);
    }
    let (_, update) = observer.updates.last().unwrap();
    assert!(update.batch.rows().iter().all(|row| row.accepted()));
}

#[test]
fn old_batches_go_and_their_size_rows_stay() {
    let text = "[cluster]\ntables = 4\n[store]\nretain = '60s'";
    let mut simulation = crate::simulate(Scenario::parse(text).unwrap());
    simulation
        .run_for(Duration::from_secs(600), &mut ())
        .unwrap();
    let store = simulation.store();
    let compacted = store.compacted().unwrap();
    let rows = store.range(&size_range(None)).unwrap();
    let kept = rows
        .iter()
        .filter(|entry| entry.mod_revision > compacted)
        .count();
    assert!(
        (24..=40).contains(&kept),
        "{kept} batches of a minute and up to 30 s more"
    );
    assert!(rows.len() >= 238);
}
