//! A data directory of any format and layout is opened with any other setting, and goes on in it.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use leasehold::audit::verify::verify;
use leasehold::cluster::scenario::{Layout, Scenario};
use leasehold::codec::Format;
use leasehold::daemon::boot::{Given, OpenStore, boot};
use leasehold::daemon::crank::Crank;
use leasehold::daemon::pace::Speed;
use leasehold::daemon::view::{Status, View};
use leasehold::metastorage::contract::Range;
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::lease::Lease;
use leasehold::placement::record::{self, DELTAS, SizeRow, batch_of, size_range};

const SNAPSHOT_EVERY: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct Setting {
    format: Format,
    layout: Layout,
}

fn settings() -> impl Iterator<Item = Setting> {
    let with = |format| Layout::ALL.map(|layout| Setting { format, layout });
    Format::ALL.into_iter().flat_map(with)
}

/// Lets a daemon run for a while.
fn run(store: &OpenStore, setting: Setting, seconds: u64) -> Status {
    let mut scenario = Scenario::parse("[cluster]\ntables = 3\npartitions = 4").unwrap();
    scenario.store.format = setting.format;
    scenario.store.layout = setting.layout;
    scenario.store.snapshot_every = SNAPSHOT_EVERY;
    let booted = boot(&*store.store, scenario, Given::default()).unwrap();
    let view = Arc::new(View::new(store.store.clone(), Status::default()));
    let run_for = Some(Duration::from_secs(seconds));
    let mut crank = Crank::new(booted, store.clone(), view.clone(), Speed::Max, run_for).unwrap();
    let (_keep, commands) = mpsc::channel();
    crank.turn(&commands).expect("it goes on");
    view.status()
}

fn leases(store: &OpenStore) -> Vec<Lease> {
    let state = record::read(&*store.store, None).unwrap().unwrap();
    state.chain.batch().leases().collect()
}

fn memory() -> OpenStore {
    OpenStore {
        store: Arc::new(MemoryStore::new()),
        sled: None,
    }
}

/// The formats of the size rows after a revision.
fn forms(store: &OpenStore, after: u64) -> Vec<String> {
    let rows = store.store.range(&size_range(None)).unwrap();
    rows.iter()
        .map(|row| SizeRow::from_entry(row).unwrap())
        .filter(|row| row.revision > after)
        .map(|row| row.format)
        .collect()
}

#[test]
fn every_pair_of_settings() {
    let mut pairs = 0;
    for from in settings() {
        for to in settings() {
            pairs += 1;
            let store = memory();
            run(&store, from, 18);
            let before = leases(&store);
            let revision = store.store.revision().unwrap();
            let status = run(&store, to, 31);
            assert_eq!(
                (status.accepted, status.expired),
                (12, 0),
                "{from:?} to {to:?}"
            );
            let after = leases(&store);
            assert_eq!(before.len(), 12);
            for (old, new) in before.iter().zip(&after) {
                assert_eq!((old.start, old.holder_id), (new.start, new.holder_id));
                assert!(old.expiration < new.expiration);
            }

            // The next snapshot is in the new format, and from it on all is in the new layout.
            let snapshot = store.store.get(record::BATCH, None).unwrap().unwrap();
            assert!(snapshot.mod_revision > revision);
            let format = batch_of(&snapshot).unwrap().format;
            assert_eq!(format, to.format, "{from:?} to {to:?}");
            let deltas = store.store.range(&Range::prefix(DELTAS)).unwrap();
            let forms = forms(&store, revision);
            let first = forms.iter().position(|form| form == to.format.name());
            assert!(first.unwrap() < SNAPSHOT_EVERY as usize, "{forms:?}");
            match to.layout {
                Layout::Full => {
                    assert_eq!(first, Some(0), "{forms:?}");
                    assert!(deltas.is_empty() && forms.iter().all(|form| form != "delta"));
                }
                Layout::Delta => {
                    assert!(forms.iter().any(|form| form == "delta"), "{forms:?}");
                }
            }
            let report = verify(&*store.store, 500).unwrap();
            assert_eq!(report.damage, [], "{from:?} to {to:?}");
        }
    }
    assert_eq!(pairs, settings().count().pow(2));
}
