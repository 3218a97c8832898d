//! Serializing and deserializing a batch: every format, what one would otherwise use, and the
//! yardstick, one copy of the rows.
//!
//! `cargo bench --bench codec`; `-- reference/25000` for a part.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark, not a library"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leasehold::codec::{self, Format, LeaseBatchView};
use leasehold::model::ids::GroupKind;
use leasehold::model::lease::Lease;
use leasehold::model::workload::Workload;

const WORKLOADS: [Workload; 3] = [Workload::Reference, Workload::Steady, Workload::Churn];
/// Tables of 25 partitions: 1,000, 25,000 and 1,000,000 leases.
const TABLES: [u32; 3] = [40, 1000, 40_000];
const FORMATS: [Format; 4] = [
    Format::Naive,
    Format::CompactV1,
    Format::CompactV2,
    Format::Columnar,
];

fn codec(criterion: &mut Criterion) {
    for workload in WORKLOADS {
        for tables in TABLES {
            let batch = workload.with_tables(tables);
            let leases = batch.len();
            let mut group = criterion.benchmark_group(format!("{workload}/{leases}"));
            group.throughput(Throughput::Elements(leases as u64));
            group.sample_size(10);
            let milliseconds = if leases > 100_000 { 600 } else { 300 };
            group.measurement_time(Duration::from_millis(milliseconds));
            group.warm_up_time(Duration::from_millis(100));
            let id = |way: &str, step: &str| BenchmarkId::new(way, step);

            group.bench_function(id("rows", "to_vec"), |bencher| {
                bencher.iter(|| black_box(batch.rows()).to_vec());
            });
            for format in FORMATS {
                let bytes = codec::encode(format, &batch).unwrap();
                group.bench_function(id(format.name(), "serialize"), |bencher| {
                    bencher.iter(|| codec::encode(format, black_box(&batch)).unwrap());
                });
                group.bench_function(id(format.name(), "deserialize"), |bencher| {
                    bencher.iter(|| codec::decode_as(format, black_box(&bytes)).unwrap());
                });
            }

            // A million leases of a general format only take longer, not differently.
            if leases > 100_000 {
                continue;
            }
            let list: Vec<Lease> = batch.leases().collect();
            let json = serde_json::to_vec(&list).unwrap();
            group.bench_function(id("serde_json", "serialize"), |bencher| {
                bencher.iter(|| serde_json::to_vec(black_box(&list)).unwrap());
            });
            group.bench_function(id("serde_json", "deserialize"), |bencher| {
                bencher.iter(|| serde_json::from_slice::<Vec<Lease>>(black_box(&json)).unwrap());
            });
            let postcard = postcard::to_allocvec(&list).unwrap();
            group.bench_function(id("postcard", "serialize"), |bencher| {
                bencher.iter(|| postcard::to_allocvec(black_box(&list)).unwrap());
            });
            group.bench_function(id("postcard", "deserialize"), |bencher| {
                bencher.iter(|| postcard::from_bytes::<Vec<Lease>>(black_box(&postcard)).unwrap());
            });
            println!(
                "{workload}/{leases}: serde_json {} bytes, postcard {} bytes",
                json.len(),
                postcard.len()
            );
        }
    }
}

/// One table of 25,000 leases, the batch opened for it.
fn view(criterion: &mut Criterion) {
    for workload in [
        Workload::Reference,
        Workload::Steady,
        Workload::Churn,
        Workload::Failover,
    ] {
        let bytes = codec::encode(Format::Columnar, &workload.generate()).unwrap();
        let mut group = criterion.benchmark_group(format!("{workload}/25000"));
        group.measurement_time(Duration::from_millis(300));
        group.warm_up_time(Duration::from_millis(100));
        let mut table = 0;
        group.bench_function(BenchmarkId::new("columnar", "one table"), |bencher| {
            bencher.iter(|| {
                table = table % 1000 + 1;
                let view = LeaseBatchView::open(black_box(&bytes)).unwrap();
                view.leases_of(GroupKind::Table, table).unwrap()
            });
        });
    }
}

criterion_group!(benches, codec, view);
criterion_main!(benches);
