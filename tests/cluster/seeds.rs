//! Many seeds: what happens is drawn, the invariants are the same.

use std::fmt::Write;
use std::time::Duration;

use leasehold::cluster::scenario::Scenario;
use leasehold::model::workload::SplitMix64;

use crate::invariants::Invariants;

/// A scenario drawn from a seed: clocks apart by up to the skew, slow and fast networks, three
/// drivers, and operations of every kind.
fn draw(seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut text = format!(
        "seed = {seed}\n[cluster]\ntables = {}\npartitions = 6\nnodes = {}\ndrivers = {}\n\
         [clocks]\nmax_offset_ms = {}\n[network]\nmax_us = {}\nstore_us = {}\n",
        1 + random.below(4),
        3 + random.below(3),
        1 + random.below(3),
        random.below(500),
        1_000 + random.below(400_000),
        random.below(300_000),
    );
    let formats = ["compact-v2", "columnar", "naive"];
    let format = formats[random.below(formats.len() as u64) as usize];
    let layout = ["full", "delta", "delta"][random.below(3) as usize];
    let every = 2 + random.below(20);
    let _ = write!(
        text,
        "[store]\nformat = '{format}'\nlayout = '{layout}'\nsnapshot_every = {every}\n",
    );
    let actions = [
        "restart-node",
        "crash-node",
        "start-node",
        "create-tables",
        "drop-tables",
        "resign",
        "restart-driver",
    ];
    for _ in 0..1 + random.below(6) {
        let action = actions[random.below(actions.len() as u64) as usize];
        let _ = write!(
            text,
            "[[operation]]\nat = '{}ms'\nevery = '{}ms'\ndo = '{action}'\n",
            random.below(60_000),
            1_000 + random.below(40_000),
        );
        let down = random.below(15_000);
        if action.starts_with("restart") {
            let _ = writeln!(text, "down = '{down}ms'");
        }
    }
    text
}

#[test]
fn the_invariants_hold_for_every_seed() {
    let seeds = std::env::var("LEASEHOLD_TEST_SEEDS");
    let seeds: u64 = seeds.map_or(25, |seeds| seeds.parse().unwrap());
    let mut stored = 0;
    for seed in 0..seeds {
        let text = draw(seed);
        let mut simulation = crate::simulate(Scenario::parse(&text).unwrap());
        let mut observer = Invariants::default();
        let run = std::panic::AssertUnwindSafe(|| {
            simulation
                .run_for(Duration::from_secs(180), &mut observer)
                .unwrap();
        });
        assert!(std::panic::catch_unwind(run).is_ok(), "scenario:\n{text}");
        stored += observer.updates.len() as u64;
    }
    assert!(
        stored > 30 * seeds,
        "only {stored} batches in {seeds} seeds"
    );
}
