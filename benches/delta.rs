//! Delta frames: a quiet renewal at any number of leases, changed rows, and where a chain starts.
//!
//! `cargo bench --bench delta`; `-- quiet` for a part.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark, not a library"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold::codec::Chain;
use leasehold::model::batch::{LeaseBatch, LeaseDraft};
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, Incarnation};
use leasehold::model::workload::{SplitMix64, Workload};

/// Tables of 25 partitions: 1,000, 25,000 and 1,000,000 leases.
const TABLES: [u32; 3] = [40, 1000, 40_000];

/// The batch with so many leases granted anew, in random places, and their groups.
fn granted(batch: &LeaseBatch, count: usize) -> (LeaseBatch, Vec<GroupId>) {
    let mut random = SplitMix64::new(count as u64);
    let common = batch.common_expiration().plus_millis(2500);
    let now = common.physical() - 5000;
    let timestamp = |physical| HybridTimestamp::new(physical, 0).unwrap();
    let mut changes = BTreeMap::new();
    while changes.len() < count {
        let row = &batch.rows()[random.below(batch.len() as u64) as usize];
        let nodes = batch.dictionary().nodes().len() as u64;
        let (id, name) = batch.dictionary().node(random.below(nodes) as u32);
        let name = name.clone();
        let start = now + random.below(50);
        let draft = LeaseDraft {
            holder: Incarnation { name, id },
            start: timestamp(start),
            expiration: Some(timestamp(start + 120_000)),
            accepted: false,
            prolongable: true,
            candidate: None,
        };
        changes.insert(row.group(), Some(draft));
    }
    let mut next = batch.clone();
    next.set_common_expiration(common);
    next.apply(&changes);
    (next, changes.into_keys().collect())
}

fn delta(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("quiet");
    group.sample_size(20);
    group.measurement_time(Duration::from_millis(500));
    group.warm_up_time(Duration::from_millis(200));
    for tables in TABLES {
        let chain = Chain::new(7, Workload::Steady.with_tables(tables));
        let leases = chain.batch().len();
        let mut next = chain.batch().clone();
        next.set_common_expiration(next.common_expiration().plus_millis(2500));
        let (_, frame) = chain.advance(next.clone(), &[]).unwrap();
        group.bench_function(BenchmarkId::new("advance", leases), |bencher| {
            bencher.iter(|| black_box(&chain).advance(next.clone(), &[]).unwrap());
        });
        group.bench_function(BenchmarkId::new("apply", leases), |bencher| {
            bencher.iter(|| black_box(&chain).apply(&frame).unwrap());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("changed/25000");
    group.sample_size(20);
    group.measurement_time(Duration::from_millis(500));
    group.warm_up_time(Duration::from_millis(200));
    let chain = Chain::new(7, Workload::Steady.generate());
    for count in [25, 1000] {
        let (next, changed) = granted(chain.batch(), count);
        let (_, frame) = chain.advance(next.clone(), &changed).unwrap();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("advance", count), |bencher| {
            bencher.iter(|| black_box(&chain).advance(next.clone(), &changed).unwrap());
        });
        group.bench_function(BenchmarkId::new("apply", count), |bencher| {
            bencher.iter(|| black_box(&chain).apply(&frame).unwrap());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("start");
    group.sample_size(10);
    group.measurement_time(Duration::from_millis(600));
    group.warm_up_time(Duration::from_millis(200));
    for tables in TABLES {
        let batch = Workload::Steady.with_tables(tables);
        group.throughput(Throughput::Elements(batch.len() as u64));
        group.bench_function(BenchmarkId::new("new", batch.len()), |bencher| {
            bencher.iter(|| Chain::new(7, black_box(batch.clone())));
        });
    }
    group.finish();
}

criterion_group!(benches, delta);
criterion_main!(benches);
