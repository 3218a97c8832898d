use super::rows::key_at;
use super::*;
use crate::codec::{Format, encode, frame, naive_size};
use crate::metastorage::contract::{Op, Outcome, Transaction, Watch};
use crate::metastorage::memory::MemoryStore;
use crate::model::batch::LeaseBatch;

const FORMAT: Format = Format::CompactV2;

fn record() -> Vec<u8> {
    let batch = LeaseBatch::default();
    frame::wrap(FORMAT, &encode(FORMAT, &batch).unwrap()).unwrap()
}

fn row(time: u64) -> SizeRow {
    SizeRow {
        revision: 0,
        time,
        cause: "renewal".to_owned(),
        leases: 0,
        changed: 0,
        format: FORMAT.to_string(),
        stored_bytes: record().len() as u64,
        naive_bytes: naive_size(&LeaseBatch::default()) as u64,
    }
}

fn row_put(row: &SizeRow) -> Op {
    let key = key_at(row.time << 16);
    Op::Put(key.into(), serde_json::to_vec(row).unwrap().into())
}

fn store(store: &MemoryStore, then: Vec<Op>) {
    let transaction = Transaction {
        then,
        ..Transaction::default()
    };
    store.invoke(transaction).unwrap();
}

fn batch_put(record: &[u8]) -> Op {
    Op::Put(BATCH.into(), record.into())
}

/// Ten batches with their rows.
fn ten() -> MemoryStore {
    let ten = MemoryStore::new();
    for time in 1..=10 {
        store(&ten, vec![batch_put(&record()), row_put(&row(time))]);
    }
    ten
}

fn findings(store: &MemoryStore) -> Vec<(Option<Revision>, String, String)> {
    let report = verify(store, 500).unwrap();
    assert_eq!(report.damaged, report.damage.len() as u64);
    let finding = |damage: Damage| (damage.revision, damage.key.unwrap_or_default(), damage.what);
    report.damage.into_iter().map(finding).collect()
}

#[test]
fn nothing_is_wrong_with_a_good_store() {
    assert_eq!(findings(&MemoryStore::new()), []);
    let good = ten();
    assert_eq!(findings(&good), []);
    good.compact(7).unwrap();
    let report = verify(&good, 500).unwrap();
    assert_eq!(
        (report.batches, report.size_rows, report.damaged),
        (3, 10, 0)
    );
    good.compact(10).unwrap();
    let report = verify(&good, 500).unwrap();
    assert_eq!(
        (report.batches, report.size_rows, report.damaged),
        (1, 10, 0)
    );
}

#[test]
fn a_damaged_record_is_found_and_what_follows_is_read() {
    let bad = ten();
    let mut damaged = record();
    *damaged.last_mut().unwrap() ^= 1;
    store(&bad, vec![batch_put(&damaged), row_put(&row(11))]);
    store(&bad, vec![batch_put(&record())]);
    let [damage, rowless] = &findings(&bad)[..] else {
        panic!("{:?}", findings(&bad));
    };
    assert_eq!((damage.0, &*damage.1), (Some(11), "lease/batch"));
    assert!(damage.2.contains("checksum"), "{}", damage.2);
    assert_eq!(rowless.0, Some(12));
    assert_eq!(rowless.2, "the batch has no size row");
}

#[test]
fn rows_that_do_not_fit_are_found() {
    let bad = ten();
    let lies = SizeRow {
        leases: 3,
        ..row(11)
    };
    store(&bad, vec![batch_put(&record()), row_put(&lies)]);
    store(&bad, vec![row_put(&row(12))]);
    store(&bad, vec![Op::Put(key_at(13 << 16).into(), (*b"{").into())]);
    let whats: Vec<_> = findings(&bad)
        .into_iter()
        .map(|(at, _, what)| (at, what))
        .collect();
    assert_eq!(
        whats[..3],
        [
            (
                Some(11),
                "the size row says leases = 3, but it is 0".to_owned()
            ),
            (Some(12), "the size row has no batch".to_owned()),
            (Some(13), "the size row has no batch".to_owned()),
        ]
    );
    assert!(
        whats[3].1.starts_with("size row of revision 13:"),
        "{whats:?}"
    );
    // An older row, written late.
    store(&bad, vec![batch_put(&record()), row_put(&row(0))]);
    let late = "the size row is later than that of revision 14".to_owned();
    assert!(findings(&bad).iter().any(|(_, _, what)| *what == late));
}

#[test]
fn the_batch_before_the_history_has_a_row_too() {
    let bad = ten();
    store(&bad, vec![batch_put(&record())]);
    bad.compact(11).unwrap();
    let whats = findings(&bad);
    assert_eq!(whats[0].0, Some(11));
    assert_eq!(whats[0].2, "the batch has no size row");
}

/// A store that lost a page of its backend: whatever touches the rows in it fails.
struct WithoutPage {
    inner: MemoryStore,
    lost: std::ops::Range<u64>,
}

impl Metastorage for WithoutPage {
    fn revision(&self) -> Result<Revision, StoreError> {
        self.inner.revision()
    }

    fn compacted(&self) -> Result<Revision, StoreError> {
        self.inner.compacted()
    }

    fn get(&self, key: &[u8], at: Option<Revision>) -> Result<Option<Entry>, StoreError> {
        self.inner.get(key, at)
    }

    fn range(&self, range: &Range) -> Result<Vec<Entry>, StoreError> {
        let [from, to] = [self.lost.start, self.lost.end].map(|time| key_at(time << 16));
        let read = self.inner.range(range)?;
        let end = range.end.clone().unwrap_or_else(|| vec![255]);
        let reaches = match read.last() {
            Some(last) if Some(read.len()) == range.limit => *last.key >= *from,
            _ => end > from,
        };
        if range.start < end && range.start < to && reaches {
            return Err(StoreError::Damaged("a page".to_owned()));
        }
        Ok(read)
    }

    fn invoke(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        self.inner.invoke(transaction)
    }

    fn watch(&self, prefix: &[u8], from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.inner.watch(prefix, from)
    }

    fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.inner.compact(revision)
    }
}

#[test]
fn a_page_of_rows_that_is_lost_is_one_finding() {
    for (lost, read) in [(4..8, 6), (1..3, 8), (8..1 << 40, 7), (0..1 << 47, 0)] {
        let store = WithoutPage {
            inner: ten(),
            lost: lost.clone(),
        };
        let report = verify(&store, 500).unwrap();
        let damage = &report.damage;
        assert_eq!((report.damaged, report.size_rows), (1, read), "{damage:?}");
        let what = &damage[0].what;
        assert!(what.starts_with("a page; neither this row nor"), "{what}");
    }
}
