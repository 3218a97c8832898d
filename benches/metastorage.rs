//! What a put costs until it is acknowledged, in memory and on disk.
#![allow(
    missing_docs,
    reason = "criterion's macros write undocumented functions"
)]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use leasehold::metastorage::contract::{Bytes, Metastorage, Op, Range, Transaction};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::metastorage::sled::{SledOptions, SledStore};

/// A beat, and the reference and the steady workload in compact-v1.
const SIZES: [(&str, usize); 3] = [("small", 16), ("reference", 126_503), ("steady", 193_636)];

fn puts(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let sled = SledStore::open(directory.path(), SledOptions::create()).unwrap();
    let memory = MemoryStore::new();
    let stores: [(&str, &dyn Metastorage); 2] = [("memory", &memory), ("sled", &sled)];
    let mut group = criterion.benchmark_group("put");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(2));
    for (size_name, size) in SIZES {
        let value = Bytes::from(vec![7; size]);
        group.throughput(Throughput::Bytes(size as u64));
        for (store_name, store) in stores {
            group.bench_function(format!("{store_name}/{size_name}"), |bencher| {
                bencher.iter_batched(
                    || {
                        // The history is kept short, outside of what is measured.
                        let revision = store.revision().unwrap();
                        if revision % 32 == 0 {
                            store.compact(revision).unwrap();
                        }
                        value.clone()
                    },
                    |value| put(store, value),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

fn reads(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let sled = SledStore::open(directory.path(), SledOptions::create()).unwrap();
    let memory = MemoryStore::new();
    let stores: [(&str, &dyn Metastorage); 2] = [("memory", &memory), ("sled", &sled)];
    let mut group = criterion.benchmark_group("get");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(1));
    for (size_name, size) in SIZES {
        for (store_name, store) in stores {
            put(store, vec![7; size].into());
            group.bench_function(format!("{store_name}/{size_name}"), |bencher| {
                bencher.iter(|| store.range(&Range::prefix(b"leases")).unwrap());
            });
        }
    }
    group.finish();
}

fn put(store: &dyn Metastorage, value: Bytes) {
    let transaction = Transaction {
        then: vec![Op::Put(Bytes::from(b"leases".as_slice()), value)],
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap();
}

criterion_group!(benches, puts, reads);
criterion_main!(benches);
