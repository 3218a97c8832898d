//! What renewals take in the layout of snapshots and deltas.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use leasehold::codec::{self, Chain, Format};
use leasehold::model::renewals::Renewals;
use leasehold::model::workload::Workload;

/// Bytes of the snapshot and of the deltas of a course of renewals.
fn course(workload: Workload, changed: usize, renewals: usize) -> (usize, Vec<usize>) {
    let batch = workload.generate();
    let snapshot = codec::encode(Format::Columnar, &batch).unwrap();
    let batch = codec::decode(&snapshot).unwrap().batch;
    // A revision as a store has it after weeks.
    let mut writer = Chain::new(100_000_000, batch.clone());
    let mut reader = Chain::new(100_000_000, batch.clone());
    let mut deltas = Vec::new();
    for renewal in Renewals::new(64, batch, changed).take(renewals) {
        let (next, frame) = writer
            .advance(renewal.batch.clone(), &renewal.changed)
            .unwrap();
        (reader, _) = reader.apply(&frame).unwrap();
        assert_eq!(*reader.batch(), renewal.batch);
        deltas.push(frame.len());
        writer = next;
    }
    (snapshot.len(), deltas)
}

#[test]
fn a_quiet_renewal_takes_less_than_32_bytes_at_any_size() {
    for workload in [Workload::Steady, Workload::Large] {
        let (_, deltas) = course(workload, 0, 100);
        assert!(deltas.iter().all(|bytes| *bytes <= 32), "{deltas:?}");
    }
}

#[test]
fn sixty_four_renewals_of_25_changes_take_600_bytes_each() {
    let (snapshot, deltas) = course(Workload::Steady, 25, 63);
    let all = snapshot + deltas.iter().sum::<usize>();
    assert!(all / 64 <= 600, "{} bytes on average", all / 64);
    // Three bytes a lease that was granted anew, and 32.
    assert!(
        deltas.iter().all(|bytes| *bytes <= 25 * 3 + 32),
        "{deltas:?}"
    );
}

#[test]
fn a_lease_granted_anew_takes_three_bytes() {
    for changed in [1, 1000, 8333, 25_000] {
        let (_, deltas) = course(Workload::Steady, changed, 3);
        let limit = 3 * changed + 32;
        assert!(
            deltas.iter().all(|bytes| *bytes <= limit),
            "{changed}: {deltas:?}"
        );
    }
}
