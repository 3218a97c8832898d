//! What only the store on disk has: directories, locks, damage, and rows that have to go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "store_sled/damage.rs"]
mod damage;
#[path = "store_sled/directory.rs"]
mod directory;
#[path = "store_sled/rows.rs"]
mod rows;
#[path = "store_sled/space.rs"]
mod space;

use std::path::Path;
use std::time::Duration;

use leasehold::metastorage::contract::{Bytes, Metastorage, Op, Revision, Transaction};
use leasehold::metastorage::sled::{SledOptions, SledStore};
use leasehold::model::workload::SplitMix64;

fn options() -> SledOptions {
    SledOptions {
        lock_wait: Duration::from_secs(10),
        ..SledOptions::create()
    }
}

fn open(path: &Path) -> SledStore {
    SledStore::open(path, options()).unwrap()
}

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn put(store: &dyn Metastorage, key: &str, value: impl Into<Bytes>) -> Revision {
    let transaction = Transaction {
        then: vec![Op::Put(bytes(key), value.into())],
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap().revision
}

fn large(seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    (0..50_000).map(|_| random.next() as u8).collect()
}

/// The database beneath a store that is closed.
fn beneath(path: &Path) -> ::sled::Db {
    let config = ::sled::Config::new().path(path).segment_size(512 << 10);
    for _ in 0..500 {
        if let Ok(db) = config.open() {
            return db;
        }
        pause();
    }
    panic!("the lock of {} stays taken", path.display());
}

#[allow(
    clippy::disallowed_methods,
    reason = "the lock of a closed database can come late"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}
