//! What frames take.

use leasehold::codec::{Chain, Delta};
use leasehold::model::ids::GroupId;
use leasehold::model::workload::{SplitMix64, Workload};

use crate::support::{Changes, advance, grant, nodes, pick, table};

fn renewed(chain: &Chain) -> leasehold::model::hlc::HybridTimestamp {
    chain.batch().common_expiration().plus_millis(2500)
}

#[test]
fn a_quiet_frame_takes_at_most_32_bytes_wherever_it_stands() {
    let batch = Workload::Steady.with_tables(1);
    for (base, typical) in [(1 << 20, 24), (1 << 35, 27), (i64::MAX as u64, 30)] {
        let chain = Chain::new(base, batch.clone());
        let (_, frame) = advance(&chain, renewed(&chain), &Changes::new());
        assert_eq!(frame.len(), typical);
    }
    // The largest base, and more deltas than anybody leaves between two snapshots.
    let mut chain = Chain::new(i64::MAX as u64, batch);
    let mut largest = 0;
    for _ in 0..(1 << 14) - 1 {
        let frame;
        (chain, frame) = advance(&chain, renewed(&chain), &Changes::new());
        largest = largest.max(frame.len());
    }
    assert!(largest <= 31, "{largest}");
}

#[test]
fn a_new_lease_takes_three_bytes() {
    let batch = Workload::Steady.generate();
    let nodes = nodes(&batch);
    for base in [1, 1 << 21, (1 << 28) - 1] {
        for count in [1, 2, 3, 25, 1000, 8333, 25_000] {
            let mut random = SplitMix64::new(count as u64);
            let chain = Chain::new(base, batch.clone());
            let now = batch.common_expiration().physical() - 2500;
            let groups = pick(&mut random, &batch, count);
            let leases = |group: &GroupId| (*group, Some(grant(&mut random, &nodes, now)));
            let changes: Changes = groups.iter().map(leases).collect();
            let (writer, frame) = advance(&chain, renewed(&chain), &changes);
            println!("base {base}: {count} new leases: {} bytes", frame.len());
            assert!(frame.len() <= 3 * count + 32, "{count}: {}", frame.len());
            let (reader, told) = chain.apply(&frame).unwrap();
            assert_eq!(reader.batch(), writer.batch());
            assert_eq!(told.len(), count);
        }
    }
}

#[test]
fn renewals_with_25_changed_rows_take_185_bytes() {
    let mut random = SplitMix64::new(99);
    let batch = Workload::Steady.generate();
    let nodes = nodes(&batch);
    let mut chain = Chain::new(123_456, batch);
    let (mut total, mut largest) = (0, 0);
    let mut waiting: Vec<GroupId> = Vec::new();
    for _ in 0..64 {
        let common = renewed(&chain);
        let now = common.physical() - 5000;
        let mut changes = Changes::new();
        // What was granted before the last renewal is accepted now.
        for group in waiting.drain(..) {
            let lease = chain.batch().lease(chain.batch().get(group).unwrap());
            let draft = leasehold::model::batch::LeaseDraft {
                holder: lease.holder(),
                start: lease.start,
                expiration: None,
                accepted: true,
                prolongable: true,
                candidate: None,
            };
            changes.insert(group, Some(draft));
        }
        for group in pick(&mut random, chain.batch(), 25) {
            changes.insert(group, Some(grant(&mut random, &nodes, now)));
            waiting.push(group);
        }
        let (next, frame) = advance(&chain, common, &changes);
        assert_eq!(chain.apply(&frame).unwrap().0.batch(), next.batch());
        total += frame.len();
        largest = largest.max(frame.len());
        chain = next;
    }
    println!("64 renewals, 25 granted and 25 accepted: {total} bytes, largest {largest}");
    assert!(total <= 64 * 185, "{total}");
    let mut chain = Chain::new(123_456, Workload::Steady.generate());
    let mut total = 0;
    for _ in 0..64 {
        let common = renewed(&chain);
        let now = common.physical() - 5000;
        let groups = pick(&mut random, chain.batch(), 25);
        let leases = |group: &GroupId| (*group, Some(grant(&mut random, &nodes, now)));
        let changes: Changes = groups.iter().map(leases).collect();
        let frame;
        (chain, frame) = advance(&chain, common, &changes);
        total += frame.len();
    }
    println!("64 renewals, 25 granted: {total} bytes");
    assert!(total <= 64 * 107, "{total}");
}

#[test]
fn tables_come_and_go_cheaply() {
    let mut random = SplitMix64::new(5);
    let batch = Workload::Steady.generate();
    let nodes = nodes(&batch);
    let chain = Chain::new(1, batch);
    let now = renewed(&chain).physical() - 5000;
    let mut changes = Changes::new();
    for object in 1001..=1010 {
        for partition in 0..25 {
            let lease = grant(&mut random, &nodes, now);
            changes.insert(table(object, partition), Some(lease));
        }
    }
    let (made, frame) = advance(&chain, renewed(&chain), &changes);
    println!("10 new tables of 25 partitions: {} bytes", frame.len());
    assert!(frame.len() <= 32 + 250 * 5 / 4 + 32, "{}", frame.len());
    let dropped = changes.keys().map(|group| (*group, None)).collect();
    let (_, frame) = advance(&made, renewed(&made), &dropped);
    println!("the same dropped: {} bytes", frame.len());
    assert!(frame.len() <= 64, "{}", frame.len());
    assert_eq!(Delta::read(&frame).unwrap().removed.len(), 250);
}
