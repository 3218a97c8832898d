//! A daemon whose disk is full: it goes on without storing, and stores again when it can.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use leasehold::cluster::scenario::Scenario;
use leasehold::daemon::boot::{Given, OpenStore, boot};
use leasehold::daemon::crank::Crank;
use leasehold::daemon::identity::Identity;
use leasehold::daemon::pace::Speed;
use leasehold::daemon::view::{Status, View};
use leasehold::metastorage::sled::{FreeSpace, SledOptions, SledStore};

const SCENARIO: &str = "[cluster]\ntables = 2\npartitions = 5\n\
    [[operation]]\nat = '5s'\ndo = 'restart-node'\nnode = 'node1'\ndown = '1s'";

/// Lets a daemon run for a time of the cluster; what it shows at the end.
fn run(store: &OpenStore, speed: Speed, seconds: u64) -> (Status, Identity) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let booted = boot(&*store.store, scenario, Given::default()).unwrap();
    let view = Arc::new(View::new(store.store.clone(), Status::default()));
    let run_for = Some(Duration::from_secs(seconds));
    let mut crank = Crank::new(booted, store.clone(), view.clone(), speed, run_for).unwrap();
    let (_keep, commands) = mpsc::channel();
    crank.turn(&commands).expect("it goes on");
    let stored = Identity::read(&*store.store).unwrap().unwrap();
    (view.status(), stored)
}

#[test]
fn a_node_may_restart_while_nothing_can_be_stored() {
    let folder = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let probe = free.clone();
    let options = SledOptions {
        free_space: FreeSpace::from_fn(move |_| Ok(probe.load(Ordering::Relaxed))),
        ..SledOptions::create()
    };
    let sled = Arc::new(SledStore::open(folder.path().join("store"), options).unwrap());
    let store = OpenStore {
        store: sled.clone(),
        sled: Some(sled),
    };
    let (status, before) = run(&store, Speed::Max, 4);
    assert_eq!((status.accepted, status.trouble), (10, None));
    let revision = store.store.revision().unwrap();

    free.store(0, Ordering::Relaxed);
    let (status, during) = run(&store, Speed::Times(20.0), 10);
    assert!(status.trouble.unwrap().contains("no space"));
    assert_eq!(store.store.revision().unwrap(), revision);
    assert_eq!(during, before);

    free.store(u64::MAX, Ordering::Relaxed);
    let (status, after) = run(&store, Speed::Max, 60);
    assert_eq!((status.accepted, status.trouble), (10, None));
    assert_ne!(
        after.nodes[0].id, before.nodes[0].id,
        "the restart is stored"
    );
    assert_eq!(after.nodes[1..], before.nodes[1..]);
}
