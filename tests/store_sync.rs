//! A sync precedes each acknowledgement, shown by the system calls: killing a process keeps the
//! page cache, so that the other test would not notice a missing one.
//!
//! The child's values carry their revision. In the trace, the write of the one that is
//! acknowledged must have ended before an `fdatasync` or `fsync` of the same file began, which must
//! have ended before the acknowledgement was written. `sync_file_range`, where sled's own flush
//! stops, does not count. Needs `strace`; without it the test says so and passes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use leasehold::metastorage::contract::{Bytes, Metastorage, Op, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};

/// Where the child writes; without it the child's test does nothing.
const DIRECTORY: &str = "LEASEHOLD_TEST_SYNC_DIRECTORY";
/// Set for a child that acknowledges without syncing.
const SKIP: &str = "LEASEHOLD_TEST_SYNC_SKIP";
const TRANSACTIONS: u64 = 12;

fn marker(revision: u64) -> String {
    format!("<value of revision {revision}>")
}

/// Not a test of its own: the process that is traced.
#[test]
fn child_writer() {
    let Some(path) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let options = SledOptions {
        skip_sync: std::env::var_os(SKIP).is_some(),
        ..SledOptions::create()
    };
    let store = SledStore::open(Path::new(&path), options).unwrap();
    for revision in 1..=TRANSACTIONS {
        // Every other value is large; its last chunk has the marker.
        let mut value = vec![b'.'; if revision % 2 == 0 { 20_000 } else { 0 }];
        value.extend(marker(revision).bytes());
        let transaction = Transaction {
            then: vec![Op::Put(Bytes::from(b"key".as_slice()), value.into())],
            ..Transaction::default()
        };
        let revision = store.invoke(transaction).unwrap().revision;
        let mut out = std::io::stdout();
        out.write_all(format!("\nacknowledged {revision}.\n").as_bytes())
            .unwrap();
        out.flush().unwrap();
    }
    // Closing would sync.
    std::process::exit(0);
}

#[test]
fn a_sync_precedes_each_acknowledgement() {
    let Ok(probe) = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
    else {
        println!("skipped: there is no strace here");
        return;
    };
    if !probe.success() {
        println!("skipped: strace may not trace here");
        return;
    }
    let synced = acknowledgements(&trace(false));
    assert_eq!(synced.len() as u64, TRANSACTIONS);
    assert!(synced.values().all(|synced| *synced), "{synced:?}");
    // The check can fail: it does for a store that does not sync.
    let unsynced = acknowledgements(&trace(true));
    assert_eq!(unsynced.len() as u64, TRANSACTIONS);
    assert!(unsynced.values().any(|synced| !*synced), "{unsynced:?}");
}

fn trace(skip_sync: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-s", "2000000", "-o"])
        .arg(&file)
        .args(["-e", "trace=write,pwrite64,fsync,fdatasync,sync_file_range"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_writer", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory.path().join("store"))
        .stdout(Stdio::null());
    if skip_sync {
        command.env(SKIP, "1");
    }
    assert!(command.status().unwrap().success());
    std::fs::read_to_string(file).unwrap()
}

/// Of each revision acknowledged in the trace: whether its value was synced before.
fn acknowledgements(trace: &str) -> BTreeMap<u64, bool> {
    let mut written: BTreeMap<u64, usize> = BTreeMap::new();
    let mut syncs: Vec<(usize, usize)> = Vec::new();
    let mut acknowledged = BTreeMap::new();
    // What each thread is in the midst of: the beginning of the line, and its number.
    let mut unfinished: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for (now, line) in trace.lines().enumerate() {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        if call.ends_with("<unfinished ...>") {
            if let Some(revision) = acknowledges(call) {
                // It counts from its beginning.
                acknowledged.insert(revision, is_synced(revision, &written, &syncs));
            }
            unfinished.insert(thread, (call, now));
            continue;
        }
        let (call, began) = match unfinished.remove(thread) {
            Some(begun) if call.starts_with("<...") => begun,
            _ => (call, now),
        };
        if call.starts_with("pwrite64(") && call.contains("/db>") {
            for revision in 1..=TRANSACTIONS {
                if call.contains(&marker(revision)) {
                    // sled may write it again later: what counts is the first time.
                    written.entry(revision).or_insert(now);
                }
            }
        } else if call.starts_with("fdatasync(") || call.starts_with("fsync(") {
            if call.contains("/db>") && line.ends_with("= 0") {
                syncs.push((began, now));
            }
        } else if let Some(revision) = acknowledges(call) {
            let synced = is_synced(revision, &written, &syncs);
            acknowledged.entry(revision).or_insert(synced);
        }
    }
    acknowledged
}

fn is_synced(revision: u64, written: &BTreeMap<u64, usize>, syncs: &[(usize, usize)]) -> bool {
    let Some(written) = written.get(&revision) else {
        return false;
    };
    syncs.iter().any(|(began, _)| began > written)
}

fn acknowledges(call: &str) -> Option<u64> {
    let (_, rest) = call.strip_prefix("write(1")?.split_once("acknowledged ")?;
    rest.split_once('.')?.0.parse().ok()
}
