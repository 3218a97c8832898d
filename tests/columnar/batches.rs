//! Batches of every kind: holes, zones, negative ids, extremes of all ranges, events.

use std::collections::BTreeMap;

use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use leasehold::model::ids::{GroupId, GroupKind, NodeId, NodeName};
use leasehold::model::lease::Lease;
use proptest::prelude::*;
use proptest::sample::select;

const NOW: u64 = 1_774_000_000_000;

fn physical() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => NOW..NOW + 60,
        2 => NOW - 3_600_000..NOW - 3_599_500,
        2 => NOW - 864_000_000..NOW,
        1 => 0..3u64,
        1 => 0..=MAX_PHYSICAL,
        1 => MAX_PHYSICAL - 2..=MAX_PHYSICAL,
    ]
}

/// Times of a batch are from few sources, so that some batches are regular.
fn times() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        prop::collection::vec(physical(), 1..6),
        prop::collection::vec(physical(), 20..60),
    ]
}

fn logical() -> impl Strategy<Value = u16> {
    prop_oneof![6 => Just(0u16), 1 => 1..20u16, 1 => any::<u16>()]
}

fn timestamp(times: Vec<u64>) -> impl Strategy<Value = HybridTimestamp> {
    let spread = prop_oneof![3 => 0..50u64, 1 => Just(0u64)];
    (select(times), spread, logical()).prop_map(|(time, spread, logical)| {
        let physical = (time + spread).min(MAX_PHYSICAL);
        HybridTimestamp::new(physical, logical).unwrap_or(HybridTimestamp::MIN)
    })
}

fn groups() -> impl Strategy<Value = Vec<GroupId>> {
    let kind = prop_oneof![4 => Just(GroupKind::Table), 1 => Just(GroupKind::Zone)];
    let object = prop_oneof![
        8 => 1..30i32,
        2 => (0..40i32).prop_map(|step| 100 + 7 * step),
        1 => any::<i32>(),
        1 => select(vec![i32::MIN, i32::MIN + 1, -1, 0, i32::MAX - 1, i32::MAX]),
    ];
    let partitions = prop_oneof![
        6 => Just(25u32),
        2 => 1..60u32,
        1 => Just(600u32),
    ];
    let hole = prop_oneof![5 => Just(0u32), 1 => Just(3u32), 1 => Just(60u32), 1 => Just(97u32)];
    let extremes = prop::collection::vec(
        prop_oneof![
            Just(0),
            Just(GroupId::MAX_PARTITION - 1),
            Just(GroupId::MAX_PARTITION)
        ],
        0..2,
    );
    let one = (kind, object, partitions, hole, any::<u64>(), extremes);
    prop::collection::vec(one, 0..40).prop_map(|objects| {
        let mut groups = Vec::new();
        for (kind, object, partitions, hole, seed, extremes) in objects {
            let first = GroupId::first_of(kind, object);
            let mut random = leasehold::model::workload::SplitMix64::new(seed);
            let kept = (0..partitions).filter(|_| random.below(100) >= u64::from(hole));
            groups.extend(kept.map(|partition| first.with_partition(partition)));
            groups.extend(
                extremes
                    .iter()
                    .map(|partition| first.with_partition(*partition)),
            );
        }
        groups.sort();
        groups.dedup();
        groups
    })
}

/// How many leases in a hundred are not quiet.
fn unrest() -> impl Strategy<Value = u32> {
    select(vec![0, 0, 1, 5, 30, 70, 100])
}

fn names() -> impl Strategy<Value = Vec<NodeName>> {
    let name = prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter);
    prop::collection::btree_set(name, 1..24)
        .prop_map(|names| names.into_iter().map(NodeName::from).collect())
}

/// A batch of any shape.
pub fn batch() -> impl Strategy<Value = LeaseBatch> {
    (
        groups(),
        names(),
        times(),
        unrest(),
        1..40usize,
        any::<bool>(),
    )
        .prop_flat_map(|(groups, names, times, unrest, ids, skewed)| {
            let lease = (
                0..1000usize,
                select(names.clone()),
                timestamp(times.clone()),
                timestamp(times.clone()),
                (0..100u32, 0..100u32, 0..100u32, 0..100u32),
            );
            let count = groups.len();
            let leases = prop::collection::vec(lease, count);
            (leases, timestamp(times)).prop_map(move |(leases, common)| {
                let leases = groups.iter().zip(leases).map(|(group, drawn)| {
                    let (holder, candidate, start, own, odds) = drawn;
                    let candidate = (odds.2 < unrest).then_some(candidate);
                    let own = (odds.3 < unrest).then_some(own);
                    let holder = if skewed && holder > 30 {
                        holder % 2
                    } else {
                        holder % ids
                    };
                    let regular = candidate.is_none();
                    Lease {
                        group: *group,
                        holder_name: names[holder % names.len()].clone(),
                        holder_id: NodeId::from_halves(7, holder as u64),
                        start,
                        expiration: own.unwrap_or(common),
                        accepted: odds.0 >= unrest,
                        prolongable: regular == (odds.1 >= unrest / 2),
                        proposed_candidate: candidate,
                    }
                });
                let leases: BTreeMap<GroupId, Lease> =
                    leases.map(|lease| (lease.group, lease)).collect();
                LeaseBatch::from_leases(leases.values()).unwrap()
            })
        })
        .no_shrink()
}
