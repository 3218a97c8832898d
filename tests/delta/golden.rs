//! Frames that were written once are read for ever, and are written the same.

use std::fs;
use std::path::PathBuf;

use leasehold::codec::{Chain, Delta};
use leasehold::model::workload::{SplitMix64, Workload};

use crate::support::{Changes, advance, grant, incarnation, nodes, table, ts};

const BASE: u64 = 123_456;

fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/delta");
    folder.join(format!("v1-{name}.bin"))
}

/// A chain of four steps, each of another kind, from 100 leases of `churn`.
fn chain() -> (Chain, Vec<(&'static str, Vec<u8>)>) {
    let start = Chain::new(BASE, Workload::Churn.with_tables(4));
    let mut random = SplitMix64::new(2);
    let nodes = nodes(start.batch());
    let common = start.batch().common_expiration();
    let now = common.physical() - 2500;
    let mut frames = Vec::new();
    let mut chain = start.clone();
    let mut step = |name, common, changes: &Changes| {
        let frame;
        (chain, frame) = advance(&chain, common, changes);
        frames.push((name, frame));
        chain.batch().clone()
    };

    step("quiet", common.plus_millis(2500), &Changes::new());

    let mut changes = Changes::new();
    for (object, partition) in [(1, 4), (2, 0), (2, 1), (4, 24)] {
        let lease = grant(&mut random, &nodes, now);
        changes.insert(table(object, partition), Some(lease));
    }
    let batch = step("grants", common.plus_millis(2500), &changes);

    let mut changes = Changes::new();
    for (object, accepted) in [(1, true), (2, false)] {
        let partition = if object == 1 { 4 } else { 1 };
        let group = table(object, partition);
        let lease = batch.lease(batch.get(group).unwrap());
        let draft = leasehold::model::batch::LeaseDraft {
            holder: lease.holder(),
            start: lease.start,
            expiration: if accepted {
                None
            } else {
                Some(lease.start.tick())
            },
            accepted,
            prolongable: accepted,
            candidate: (!accepted).then(|| "node2".into()),
        };
        changes.insert(group, Some(draft));
    }
    step("answers", common.plus_millis(5000), &changes);

    let mut changes = Changes::new();
    for partition in 0..25 {
        changes.insert(table(3, partition), None);
    }
    for partition in 0..3 {
        let mut lease = grant(&mut random, &[incarnation(9, 9)], now);
        lease.candidate = (partition == 1).then(|| "ein längerer Name".into());
        lease.start = ts(now).tick();
        changes.insert(table(100, 2 * partition), Some(lease));
    }
    step("objects", common.plus_millis(5000).tick(), &changes);
    (start, frames)
}

#[test]
fn golden_frames_are_read_and_written_the_same() {
    let (start, frames) = chain();
    let mut reader = start;
    for (name, written) in frames {
        let golden = fs::read(path(name)).unwrap();
        assert_eq!(hex::encode(&golden), hex::encode(&written), "{name}");
        Delta::read(&golden).unwrap();
        reader = reader.apply(&golden).unwrap().0;
    }
    assert_eq!(reader.step(), 4);
}

/// The worked frame of docs/FORMATS.md.
#[test]
fn the_documentation_shows_the_quiet_frame() {
    let text = include_str!("../../docs/FORMATS.md");
    let section = text
        .split("### A quiet frame, byte by byte")
        .nth(1)
        .unwrap();
    let section = section.split("\n##").next().unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'));
    let bytes = rows.map(|row| row.split('`').nth(1).unwrap().replace(' ', ""));
    let golden = fs::read(path("quiet")).unwrap();
    assert_eq!(bytes.collect::<String>(), hex::encode(golden));
}

#[test]
#[ignore = "writes the golden files anew; only for a new version of the layout"]
fn regenerate() {
    for (name, frame) in chain().1 {
        fs::write(path(name), frame).unwrap();
    }
}
