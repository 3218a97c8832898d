//! The scenario files that come with the project, under an observer that checks the invariants.

use std::path::Path;
use std::time::Duration;

use leasehold::cluster::event::Notice;
use leasehold::cluster::scenario::Scenario;
use leasehold::placement::tracker::{TrackerEvent, events};
use leasehold::sim::Simulation;

use crate::invariants::Invariants;

/// Runs a scenario file with fewer tables.
fn run(name: &str, tables: u32, time: Duration) -> (Simulation, Invariants) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sims")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.starts_with("# "), "the first line says what it is for");
    let mut scenario = Scenario::parse(&text).unwrap();
    scenario.cluster.tables = tables;
    let mut simulation = crate::simulate(scenario);
    let mut observer = Invariants::default();
    simulation.run_for(time, &mut observer).unwrap();
    (simulation, observer)
}

fn elections(observer: &Invariants) -> (usize, usize) {
    let all =
        (observer.updates.iter()).flat_map(|(_, update)| events(update.revision, &update.changes));
    let (expired, elected): (Vec<_>, Vec<_>) =
        all.partition(|event| matches!(event, TrackerEvent::Expired { .. }));
    (expired.len(), elected.len())
}

#[test]
fn steady() {
    let (simulation, observer) = run("steady.toml", 10, Duration::from_secs(300));
    assert_eq!(elections(&observer), (0, 250));
    assert_eq!(simulation.cluster().catalog().group_count(), 250);
}

#[test]
fn rolling_restart() {
    let (simulation, observer) = run("rolling-restart.toml", 10, Duration::from_secs(900));
    let ups = observer
        .notices
        .iter()
        .filter(|n| matches!(n, Notice::NodeUp(_)));
    assert!(ups.count() >= 3);
    let (expired, elected) = elections(&observer);
    assert!(expired >= 150, "{expired}");
    assert_eq!(elected - expired, 250);
    assert!(
        simulation
            .cluster()
            .nodes()
            .iter()
            .all(|node| node.up.is_some())
    );
}

#[test]
fn failover() {
    let (simulation, observer) = run("failover.toml", 10, Duration::from_secs(300));
    let (_, last) = observer.updates.last().unwrap();
    assert_eq!(last.batch.len(), 250);
    let down = simulation
        .cluster()
        .nodes()
        .iter()
        .filter(|node| node.up.is_none());
    let down: Vec<_> = down.map(|node| node.name.clone()).collect();
    assert_eq!(down.len(), 1);
    for lease in last.batch.leases() {
        assert!(lease.accepted);
        assert_ne!(lease.holder_name, down[0]);
    }
}

#[test]
fn table_churn() {
    let (simulation, observer) = run("table-churn.toml", 10, Duration::from_secs(600));
    let (_, last) = observer.updates.last().unwrap();
    let created = observer
        .notices
        .iter()
        .filter(|n| matches!(n, Notice::Created(_)));
    assert!(created.count() >= 5);
    let unknown = (last.batch.rows().iter())
        .filter(|row| !simulation.cluster().catalog().contains(row.group()));
    assert!(
        unknown.count() <= 2 * 25,
        "dropped tables leave within two leases"
    );
}

#[test]
fn a_holder_that_resigns_hands_over() {
    let text = "[cluster]\ntables = 4\n[[operation]]\nat = '30s'\ndo = 'resign'\ncount = 10";
    let mut simulation = crate::simulate(Scenario::parse(text).unwrap());
    let mut observer = Invariants::default();
    simulation
        .run_for(Duration::from_secs(60), &mut observer)
        .unwrap();
    let stopped = observer
        .notices
        .iter()
        .filter(|n| **n == Notice::Stopped(true));
    assert_eq!(stopped.count(), 10);
    assert_eq!(elections(&observer), (10, 110));
}

#[test]
fn a_driver_that_crashes_is_replaced_and_no_lease_is_lost() {
    let text = "[cluster]\ntables = 4\ndrivers = 3\n\
                [[operation]]\nat = '30s'\nevery = '40s'\ndo = 'restart-driver'";
    let mut simulation = crate::simulate(Scenario::parse(text).unwrap());
    let mut observer = Invariants::default();
    simulation
        .run_for(Duration::from_secs(200), &mut observer)
        .unwrap();
    assert_eq!(elections(&observer), (0, 100));
}
