//! An hour of a cluster's life on the sled store: what it takes in time, disk and memory.
//!
//! 1,440 renewals of 193,636 bytes, each with a row for its size, five beats of the driver between
//! two of them; 240 renewals of history kept, compacted every 12.
//!
//! `cargo bench --bench store_size [-- DIRECTORY [CHUNK_BYTES [CLEAN_EVERY_MS [RENEWALS]]]]`; with
//! `ROWS` in the environment also a store with a million small rows.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold::metastorage::contract::{Bytes, Metastorage, Op, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore, disk_size};
use leasehold::model::workload::SplitMix64;

const RENEWALS: usize = 1440;
const BEATS: u64 = 5;
const KEPT: usize = 240;
const COMPACT_EVERY: usize = 12;
const BATCH: usize = 193_636;
/// Small rows, as after a month of life.
const ROWS: u64 = 1_000_000;

#[allow(clippy::disallowed_methods, reason = "it measures time")]
fn now() -> Instant {
    Instant::now()
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let scratch = tempfile::tempdir().unwrap();
    let path = arguments
        .next()
        .map_or(scratch.path().to_owned(), PathBuf::from);
    let mut options = SledOptions::create();
    if let Some(chunk) = arguments.next() {
        options.chunk_bytes = chunk.parse().unwrap();
    }
    if let Some(every) = arguments.next() {
        options.clean_every = Duration::from_millis(every.parse().unwrap());
    }
    let renewals = arguments
        .next()
        .map_or(RENEWALS, |renewals| renewals.parse().unwrap());
    println!("chunks of {} bytes", options.chunk_bytes);
    let store = SledStore::open(path.join("hour"), options.clone()).unwrap();
    hour(&store, renewals);
    println!("peak memory {} MB", peak_memory());
    drop(store);
    let began = now();
    drop(SledStore::open(path.join("hour"), options.clone()).unwrap());
    println!("opened and closed in {:?}", began.elapsed());
    if std::env::var_os("ROWS").is_some() {
        rows(&SledStore::open(path.join("rows"), options.clone()).unwrap());
        let began = now();
        let store = SledStore::open(path.join("rows"), options).unwrap();
        println!("{ROWS} rows: opened in {:?}", began.elapsed());
        println!(
            "{ROWS} rows: {} MB on disk",
            store.disk_size().unwrap() >> 20
        );
        println!("peak memory {} MB", peak_memory());
    }
}

fn hour(store: &SledStore, count: usize) {
    let mut random = SplitMix64::new(1);
    let mut batch: Vec<u8> = (0..BATCH).map(|_| random.next() as u8).collect();
    let mut revisions = Vec::new();
    let mut largest = 0;
    let mut slowest = Duration::ZERO;
    let mut beats = Vec::new();
    let mut renewals = Vec::new();
    let mut compactions = Vec::new();
    let began = now();
    for renewal in 0..count {
        batch[..8].copy_from_slice(&random.next().to_le_bytes());
        let ops = vec![
            put(b"leases", &batch),
            put(
                format!("sizes/{renewal:08}").as_bytes(),
                b"{\"bytes\":193636,\"format\":1}",
            ),
        ];
        let one = now();
        revisions.push(run(store, ops));
        renewals.push(one.elapsed());
        for _ in 0..BEATS {
            let one = now();
            run(store, vec![put(b"beat", &random.next().to_le_bytes())]);
            beats.push(one.elapsed());
        }
        if renewal >= KEPT && renewal % COMPACT_EVERY == 0 {
            let one = now();
            store.compact(revisions[renewal - KEPT]).unwrap();
            compactions.push(one.elapsed());
        }
        if renewal % 60 == 0 {
            let size = disk_size(store.path()).unwrap();
            largest = largest.max(size);
            if renewal % 1440 == 0 {
                println!("after {renewal}: {} MB", size >> 20);
            }
        }
        slowest = slowest.max(one.elapsed());
    }
    println!(
        "{count} renewals and {} beats: {:?}",
        beats.len(),
        began.elapsed()
    );
    for (what, mut times) in [
        ("renewal", renewals),
        ("beat", beats),
        ("compaction", compactions),
    ] {
        times.sort();
        let at = |share: usize| times[(times.len() - 1) * share / 1000];
        println!(
            "{what}: median {:?}, p99 {:?}, largest {:?}",
            at(500),
            at(990),
            at(1000)
        );
    }
    let last = disk_size(store.path()).unwrap();
    println!(
        "on disk {} MB, at most {} MB",
        last >> 20,
        largest.max(last) >> 20
    );
    let blobs = std::fs::read_dir(store.path().join("blobs"))
        .unwrap()
        .count();
    println!("{blobs} files in blobs/");
}

fn rows(store: &SledStore) {
    let began = now();
    for first in (0..ROWS).step_by(1000) {
        let rows = first..first + 1000;
        let ops = rows.map(|row| put(format!("sizes/{row:08}").as_bytes(), b"{\"bytes\":193636}"));
        let revision = run(store, ops.collect());
        if first % 10_000 == 0 {
            store.compact(revision).unwrap();
        }
    }
    println!("{ROWS} rows: written in {:?}", began.elapsed());
}

fn put(key: &[u8], value: &[u8]) -> Op {
    Op::Put(Bytes::from(key), Bytes::from(value))
}

fn run(store: &SledStore, then: Vec<Op>) -> u64 {
    let transaction = Transaction {
        then,
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap().revision
}

/// The most memory this process has had, MB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}
