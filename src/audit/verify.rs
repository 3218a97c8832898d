//! Reading everything that is stored, to find out whether it is whole and makes sense.
//!
//! Nothing is written. After damage the reading goes on with the next revision or key.

mod rows;

use std::time::Duration;

use serde::Serialize;

use crate::metastorage::contract::{Change, Entry, Metastorage, StoreError, WatchEvent};
use crate::model::hlc::HybridTimestamp;

use super::chain::{Audit, check_size_row};
use crate::placement::io::Revision;
use crate::placement::record::{BATCH, BEAT, EPOCH, SIZES, SizeRow, batch_of, time_of};

/// Most findings that are listed; further ones are only counted.
const LISTED: usize = 1_000;

/// After so many revisions in a row of which nothing can be read, the rest is given up.
const LOST: u64 = 10_000;

/// What was read, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Report {
    /// Revision of the store.
    pub revision: Revision,
    /// History up to this revision is gone.
    pub compacted: Revision,
    /// Batches read.
    pub batches: u64,
    /// Size rows read.
    pub size_rows: u64,
    /// Number of findings.
    pub damaged: u64,
    /// The findings, at most 1,000 of them.
    pub damage: Vec<Damage>,
}

/// Something that is damaged, missing or must not be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Damage {
    /// Revision, as far as it is known.
    pub revision: Option<Revision>,
    /// Key, as far as it is known.
    pub key: Option<String>,
    /// What is wrong.
    pub what: String,
}

/// Reads and checks everything in a store that no one writes to meanwhile. `max_skew`, in
/// milliseconds, has to lie between the accepted leases of a group. May block.
///
/// # Errors
/// If the store can't be read for another reason than damage.
pub fn verify(store: &dyn Metastorage, max_skew: u64) -> Result<Report, StoreError> {
    let mut verifier = Verifier {
        store,
        audit: Audit::new(max_skew),
        report: Report {
            revision: store.revision()?,
            compacted: store.compacted()?,
            ..Report::default()
        },
    };
    let base = verifier.base()?;
    verifier.history()?;
    verifier.size_rows(base)?;
    Ok(verifier.report)
}

struct Verifier<'a> {
    store: &'a dyn Metastorage,
    audit: Audit,
    report: Report,
}

impl Verifier<'_> {
    /// The batch that was the newest when the history was last compacted, and the oldest beat
    /// and epoch.
    fn base(&mut self) -> Result<Option<Entry>, StoreError> {
        let Report {
            revision,
            compacted,
            ..
        } = self.report;
        let first = (compacted < revision).then(|| compacted.saturating_add(1));
        let mut base = None;
        for key in [EPOCH, BEAT, BATCH] {
            let entry = match self.store.get(key, first) {
                Ok(entry) => entry.filter(|entry| entry.mod_revision <= compacted),
                Err(StoreError::Damaged(what)) => {
                    self.found(None, Some(key), what);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(entry) = entry else { continue };
            self.check_entry(&entry, None);
            if key == BATCH {
                base = Some(entry);
            }
        }
        Ok(base)
    }

    /// All revisions whose history is kept.
    fn history(&mut self) -> Result<(), StoreError> {
        let mut next = self.report.compacted.saturating_add(1);
        let mut lost = 0;
        let mut watch = self.store.watch(b"", next)?;
        while lost < LOST {
            match watch.next(Duration::ZERO) {
                Ok(None) => {
                    self.missing(next, self.report.revision.saturating_add(1));
                    return Ok(());
                }
                Ok(Some(event)) => {
                    self.missing(next, event.revision);
                    next = event.revision.saturating_add(1);
                    lost = 0;
                    self.check_event(&event);
                }
                Err(StoreError::Damaged(what)) => {
                    self.pick_up(next, what)?;
                    next = next.saturating_add(1);
                    lost += 1;
                    watch = self.store.watch(b"", next)?;
                }
                Err(error) => return Err(error),
            }
        }
        let what = format!(
            "given up after {LOST} damaged revisions in a row; the last would be {}",
            self.report.revision
        );
        self.found(Some(next), None, what);
        Ok(())
    }

    /// Every revision changes something: one that shows nothing has lost it.
    fn missing(&mut self, from: Revision, to: Revision) {
        let last = to.saturating_sub(1);
        if from <= last && to > 0 {
            let what = format!("what revisions {from} to {last} changed is missing");
            self.found(Some(from), None, what);
        }
    }

    /// What can still be read of a revision that can't be read as a whole.
    fn pick_up(&mut self, revision: Revision, what: String) -> Result<(), StoreError> {
        let before = self.report.damaged;
        for key in [EPOCH, BEAT, BATCH] {
            match self.store.get(key, Some(revision)) {
                Ok(Some(entry)) if entry.mod_revision == revision => self.check_entry(&entry, None),
                Ok(_) => {}
                Err(StoreError::Damaged(what)) => self.found(Some(revision), Some(key), what),
                Err(error) => return Err(error),
            }
        }
        if self.report.damaged == before {
            self.found(Some(revision), None, what);
        }
        Ok(())
    }

    fn check_event(&mut self, event: &WatchEvent) {
        let revision = event.revision;
        let is_row = |change: &&Change| change.key.starts_with(SIZES) && change.entry.is_some();
        let row = event.changes.iter().find(is_row);
        let row = row.and_then(|change| change.entry.as_ref());
        let mut batch = false;
        for change in &event.changes {
            let Some(entry) = &change.entry else { continue };
            if entry.mod_revision != revision {
                let what = format!(
                    "the value of this revision is missing, the newest before it is of revision {}",
                    entry.mod_revision
                );
                self.found(Some(revision), Some(&change.key), what);
                continue;
            }
            batch |= *change.key == *BATCH;
            self.check_entry(entry, row);
        }
        match row {
            None if batch => {
                let what = "the batch has no size row".to_owned();
                self.found(Some(revision), Some(BATCH), what);
            }
            Some(row) if !batch => {
                let what = "the size row has no batch".to_owned();
                self.found(Some(revision), Some(&row.key), what);
            }
            _ => {}
        }
    }

    /// Checks a value by itself; a batch also against those before it and its size row.
    fn check_entry(&mut self, entry: &Entry, row: Option<&Entry>) {
        let key = &*entry.key;
        let revision = Some(entry.mod_revision);
        if key == BEAT || key == EPOCH {
            if let Err(error) = time_of(entry) {
                self.found(revision, Some(key), error.to_string());
            }
        } else if key == BATCH {
            self.report.batches += 1;
            match batch_of(entry) {
                Ok(decoded) => {
                    for violation in self.audit.next(&decoded.batch) {
                        self.found(revision, Some(key), violation.to_string());
                    }
                }
                Err(error) => self.found(revision, Some(key), error.to_string()),
            }
            if let Some(row) = row {
                self.check_pair(entry, row);
            }
        }
    }

    fn check_pair(&mut self, entry: &Entry, row: &Entry) {
        // Either that can't be read is reported where it is read.
        let (Ok(decoded), Ok(size)) = (batch_of(entry), SizeRow::from_entry(row)) else {
            return;
        };
        let stored = entry.value.len() as u64;
        for violation in check_size_row(&size, &decoded.batch, decoded.format, stored) {
            self.found(
                Some(entry.mod_revision),
                Some(&row.key),
                violation.to_string(),
            );
        }
    }

    /// All size rows, those without history as well; `base` is a batch that one of them is about.
    fn size_rows(&mut self, mut base: Option<Entry>) -> Result<(), StoreError> {
        let mut start = SIZES.to_vec();
        let mut last = 0;
        let mut oldest = None;
        loop {
            let page = rows::page(self.store, &start)?;
            for entry in &page.entries {
                self.report.size_rows += 1;
                oldest = oldest.or(Some(entry.mod_revision));
                self.check_row(entry, last);
                last = entry.mod_revision;
                let same = |base: &mut Entry| base.mod_revision == last;
                if let Some(base) = base.take_if(same) {
                    self.check_pair(&base, entry);
                }
            }
            if let Some((key, what)) = page.damage {
                self.found(None, Some(&key), what);
            }
            match page.next {
                Some(next) => start = next,
                None => break,
            }
        }
        // Old rows are pruned: only one in the midst of others, or alone, is surely missing.
        if let Some(base) = base
            && oldest.is_none_or(|oldest| oldest < base.mod_revision)
        {
            let what = "the batch has no size row".to_owned();
            self.found(Some(base.mod_revision), Some(BATCH), what);
        }
        Ok(())
    }

    fn check_row(&mut self, entry: &Entry, last: Revision) {
        let revision = Some(entry.mod_revision);
        let row = match SizeRow::from_entry(entry) {
            Ok(row) => row,
            Err(error) => return self.found(revision, Some(&entry.key), error.to_string()),
        };
        let digits = entry.key.strip_prefix(SIZES).unwrap_or_default();
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let time = u64::from_str_radix(digits, 16).ok();
        let time = time.and_then(|composite| HybridTimestamp::from_composite(composite).ok());
        if time.map(HybridTimestamp::physical) != Some(row.time) {
            let what = format!("the size row says time = {}, but not its key", row.time);
            self.found(revision, Some(&entry.key), what);
        }
        if entry.mod_revision <= last {
            let what = format!("the size row is later than that of revision {last}");
            self.found(revision, Some(&entry.key), what);
        }
    }

    /// Notes a finding, once: the same damaged row may be met on several ways.
    fn found(&mut self, revision: Option<Revision>, key: Option<&[u8]>, what: String) {
        let key = key.map(|key| key.escape_ascii().to_string());
        let listed = &mut self.report.damage;
        if let Some(known) = listed
            .iter_mut()
            .find(|known| known.what == what && (known.revision.is_none() || revision.is_none()))
        {
            known.revision = known.revision.or(revision);
            known.key = known.key.take().or(key);
            return;
        }
        self.report.damaged += 1;
        if listed.len() < LISTED {
            listed.push(Damage {
                revision,
                key,
                what,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rows::key_at;
    use super::*;
    use crate::codec::{Format, encode, frame, naive_size};
    use crate::metastorage::contract::{Op, Transaction};
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
        let finding =
            |damage: Damage| (damage.revision, damage.key.unwrap_or_default(), damage.what);
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
}
