//! Killed with SIGKILL at random points a hundred times while it writes and compacts, the sled
//! store opens again with every acknowledged revision and no half of another.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold::metastorage::contract::{Bytes, Metastorage, Op, Range, Revision, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};
use leasehold::model::workload::SplitMix64;

/// Where the child writes; without it the child's test does nothing.
const DIRECTORY: &str = "LEASEHOLD_TEST_KILL_DIRECTORY";
const KILLS: u64 = 100;
/// Another number of kills, and so another course of events.
const MORE: &str = "LEASEHOLD_TEST_KILLS";
/// Revisions of history that the child keeps.
const KEPT: Revision = 30;
const BATCH: usize = 190_000;

fn open(path: &Path) -> SledStore {
    let options = SledOptions {
        lock_wait: Duration::from_secs(20),
        ..SledOptions::create()
    };
    SledStore::open(path, options).unwrap()
}

/// What a revision writes: a large value, rows that only this revision has, one that all have, and
/// the deletion of an earlier row.
fn writes(revision: Revision) -> Vec<Op> {
    let mut random = SplitMix64::new(revision);
    let large = random.below(2) == 0;
    let size = if large {
        BATCH + random.below(5000) as usize
    } else {
        100
    };
    let batch: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
    let number = Bytes::from(revision.to_le_bytes().as_slice());
    let mut ops = vec![
        Op::Put(Bytes::from(b"leases".as_slice()), batch.into()),
        Op::Put(Bytes::from(b"last".as_slice()), number.clone()),
    ];
    ops.extend(rows(revision).map(|row| Op::Put(row, number.clone())));
    if revision > 20 {
        let old = revision - 20;
        ops.push(Op::Delete(row_key(old, 0)));
    }
    ops
}

/// The rows that only this revision writes.
fn rows(revision: Revision) -> impl Iterator<Item = Bytes> {
    (0..=revision % 3).map(move |row| row_key(revision, row))
}

fn row_key(revision: Revision, row: u64) -> Bytes {
    format!("rows/{revision:08}/{row}").into_bytes().into()
}

/// Not a test of its own: the process that is killed.
#[test]
fn child_writer() {
    let Some(path) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = open(Path::new(&path));
    let mut out = std::io::stdout();
    loop {
        let revision = store.revision().unwrap() + 1;
        let transaction = Transaction {
            then: writes(revision),
            ..Transaction::default()
        };
        assert_eq!(store.invoke(transaction).unwrap().revision, revision);
        // One write call: the parent never sees half a line as a whole one.
        out.write_all(format!("\nacknowledged {revision}\n").as_bytes())
            .unwrap();
        out.flush().unwrap();
        if revision.is_multiple_of(5) && revision > KEPT {
            store.compact(revision - KEPT).unwrap();
            out.write_all(format!("\ncompacted {}\n", revision - KEPT).as_bytes())
                .unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_half_written_shows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let kills = std::env::var(MORE).map_or(KILLS, |kills| kills.parse().unwrap());
    let mut random = SplitMix64::new(kills);
    let mut before = Seen::default();
    let mut without_progress = 0;
    for _ in 0..kills {
        let seen = run_and_kill(&path, Duration::from_micros(random.below(150_000)), before);
        without_progress += u64::from(seen == before);
        let store = open(&path);
        let (revision, compacted) = (store.revision().unwrap(), store.compacted().unwrap());
        assert!(revision >= seen.acknowledged, "{revision} of {seen:?}");
        assert!(compacted >= seen.compacted, "{compacted} of {seen:?}");
        // At most the one transaction, and the one compaction, in flight.
        assert!(revision <= seen.acknowledged + 1, "{revision} of {seen:?}");
        check(&store, revision, compacted);
        before = Seen {
            acknowledged: revision,
            compacted,
        };
    }
    println!("{kills} kills, {without_progress} before the first write, last: {before:?}");
    assert!(
        without_progress < kills / 2,
        "killed too early to show anything"
    );
    assert!(before.acknowledged > kills, "{before:?}");
    assert!(before.compacted > 0);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    acknowledged: Revision,
    compacted: Revision,
}

/// Lets the child write, kills it some time after its first sign of life, and tells what it said.
fn run_and_kill(path: &Path, after: Duration, before: Seen) -> Seen {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_writer", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let reader = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(out, before));
        pause(after);
        child.kill().unwrap();
        reader.join().unwrap()
    });
    child.wait().unwrap();
    reader
}

#[allow(clippy::disallowed_methods, reason = "it kills at a random time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn read(out: impl std::io::Read, before: Seen) -> Seen {
    let mut seen = before;
    let mut lines = BufReader::new(out);
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        // Without its end a line may have been cut.
        if let Some(whole) = line.strip_suffix('\n') {
            if let Some(revision) = whole.strip_prefix("acknowledged ") {
                let revision = revision.parse().unwrap();
                assert_eq!(revision, seen.acknowledged + 1);
                seen.acknowledged = revision;
            } else if let Some(revision) = whole.strip_prefix("compacted ") {
                seen.compacted = revision.parse().unwrap();
            }
        }
        line.clear();
    }
    seen
}

/// Every uncompacted revision is there, whole, with the right content, and the state is theirs.
fn check(store: &SledStore, revision: Revision, compacted: Revision) {
    let mut watch = store.watch(b"", compacted + 1).unwrap();
    for expected in compacted + 1..=revision {
        let event = watch.next(Duration::ZERO).unwrap().unwrap();
        assert_eq!(event.revision, expected, "a hole");
        let mut ops = writes(expected);
        ops.sort_by(|one, other| key(one).cmp(key(other)));
        assert_eq!(event.changes.len(), ops.len(), "revision {expected}");
        for (change, op) in event.changes.iter().zip(&ops) {
            let value = change.entry.as_ref().map(|entry| &entry.value);
            let (key, wanted) = match op {
                Op::Put(key, value) => (key, Some(value)),
                Op::Delete(key) | Op::Get(key) | Op::GetPrefix(key) => (key, None),
            };
            assert!(&change.key == key && value == wanted, "revision {expected}");
        }
    }
    assert_eq!(watch.next(Duration::ZERO), Ok(None));
    let found = store.range(&Range::prefix(b"rows/")).unwrap();
    let mut wanted: Vec<Bytes> = Vec::new();
    for written in 1..=revision {
        let deleted = written + 20 <= revision;
        wanted.extend(rows(written).skip(usize::from(deleted)));
    }
    assert_eq!(found.len(), wanted.len());
    assert!(found.iter().zip(&wanted).all(|(row, key)| row.key == *key));
    let last = store.get(b"last", None).unwrap().map(|entry| entry.value);
    let expected = (revision > 0).then(|| Bytes::from(revision.to_le_bytes().as_slice()));
    assert_eq!(last, expected);
}

fn key(op: &Op) -> &Bytes {
    let (Op::Put(key, _) | Op::Delete(key) | Op::Get(key) | Op::GetPrefix(key)) = op;
    key
}
