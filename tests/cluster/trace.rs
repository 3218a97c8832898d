//! The same seed gives the same trace.

use std::time::Duration;

use leasehold::cluster::scenario::Scenario;

fn hash(text: &str) -> u64 {
    let scenario = Scenario::parse(text).unwrap();
    let mut simulation = crate::simulate(scenario);
    simulation
        .run_for(Duration::from_secs(120), &mut ())
        .unwrap();
    simulation.cluster().trace_hash()
}

#[test]
fn twice_the_same_seed_and_another() {
    let text = |seed: u64| {
        format!(
            "seed = {seed}\n[cluster]\ntables = 10\ndrivers = 2\n[clocks]\nmax_offset_ms = 200\n\
             [[operation]]\nat = '20s'\nevery = '30s'\ndo = 'restart-node'\n\
             [[operation]]\nat = '33s'\ndo = 'create-tables'\n"
        )
    };
    assert_eq!(hash(&text(1)), hash(&text(1)));
    assert_ne!(hash(&text(1)), hash(&text(2)));
}
