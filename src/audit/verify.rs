//! Reading everything that is stored, to find out whether it is whole and makes sense.
//!
//! Nothing is written. After damage the reading goes on with the next revision or key.

mod rows;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Serialize;

use crate::codec::delta::{Chain, Delta};
use crate::metastorage::contract::{Change, Entry, Metastorage, Range, StoreError, WatchEvent};
use crate::model::batch::LeaseBatch;
use crate::model::hlc::HybridTimestamp;

use super::chain::{Audit, check_size_row};
use crate::placement::io::Revision;
use crate::placement::record::{
    self, BATCH, BEAT, DELTA, DELTAS, EPOCH, ReadError, RecordError, SIZES, SizeRow, batch_of,
    delta_key, time_of,
};

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
    /// Those of them that were stored as deltas.
    pub deltas: u64,
    /// Deltas whose leases can't be told, because the snapshot or a delta before is damaged.
    pub unchecked: u64,
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
        chain: None,
        report: Report {
            revision: store.revision()?,
            compacted: store.compacted()?,
            ..Report::default()
        },
    };
    let base = verifier.base()?;
    verifier.history()?;
    verifier.present()?;
    verifier.size_rows(base)?;
    Ok(verifier.report)
}

/// A batch that could be read.
struct Checked {
    entry: Entry,
    batch: LeaseBatch,
    format: &'static str,
}

fn is_batch(key: &[u8]) -> bool {
    key == BATCH || key.starts_with(DELTAS)
}

struct Verifier<'a> {
    store: &'a dyn Metastorage,
    audit: Audit,
    /// The leases as of the last snapshot or delta, unless what led to them is damaged.
    chain: Option<Chain>,
    report: Report,
}

impl Verifier<'_> {
    /// The snapshot and deltas that were the newest when the history was last compacted, and the
    /// oldest beat and epoch.
    fn base(&mut self) -> Result<Vec<Checked>, StoreError> {
        let Report {
            revision,
            compacted,
            ..
        } = self.report;
        let first = (compacted < revision).then(|| compacted.saturating_add(1));
        let mut base = Vec::new();
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
            base.extend(self.check_entry(&entry));
        }
        for entry in self.deltas(first)? {
            if entry.mod_revision <= compacted {
                base.extend(self.check_entry(&entry));
            }
        }
        Ok(base)
    }

    /// The deltas that are there at a revision.
    fn deltas(&mut self, at: Option<Revision>) -> Result<Vec<Entry>, StoreError> {
        let range = Range {
            at,
            ..Range::prefix(DELTAS)
        };
        match self.store.range(&range) {
            Err(StoreError::Damaged(what)) => {
                self.found_row(at, Some(DELTAS), what);
                self.chain = None;
                Ok(Vec::new())
            }
            read => read,
        }
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
                Ok(Some(entry)) if entry.mod_revision == revision => {
                    self.check_entry(&entry);
                }
                Ok(_) => {}
                Err(StoreError::Damaged(what)) => {
                    self.found_row(Some(revision), Some(key), what);
                    if key == BATCH {
                        self.chain = None;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        for entry in self.deltas(Some(revision))? {
            if entry.mod_revision == revision {
                self.check_entry(&entry);
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
        let mut written = None;
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
            if is_batch(&change.key) {
                written = Some((entry.key.clone(), self.check_entry(entry)));
            } else {
                self.check_entry(entry);
            }
        }
        match (row, written) {
            (None, Some((key, _))) => {
                let what = "the batch has no size row".to_owned();
                self.found(Some(revision), Some(&key), what);
            }
            (Some(row), None) => {
                let what = "the size row has no batch".to_owned();
                self.found(Some(revision), Some(&row.key), what);
            }
            (Some(row), Some((_, Some(checked)))) => self.check_pair(&checked, row),
            _ => {}
        }
    }

    /// Checks a value by itself; a batch also against those before it. What is known of a batch
    /// that could be read.
    fn check_entry(&mut self, entry: &Entry) -> Option<Checked> {
        let key = &*entry.key;
        let revision = Some(entry.mod_revision);
        if key == BEAT || key == EPOCH {
            if let Err(error) = time_of(entry) {
                self.found(revision, Some(key), error.to_string());
            }
            return None;
        }
        if !is_batch(key) {
            return None;
        }
        self.report.batches += 1;
        let read = if key == BATCH {
            self.snapshot(entry)
        } else {
            self.report.deltas += 1;
            self.delta(entry)
        };
        let checked = match read {
            Ok(checked) => checked?,
            Err(error) => {
                // Up to the next snapshot nobody can tell what the leases were.
                self.chain = None;
                self.found(revision, Some(key), error.to_string());
                return None;
            }
        };
        for violation in self.audit.next(&checked.batch) {
            self.found(revision, Some(key), violation.to_string());
        }
        Some(checked)
    }

    fn snapshot(&mut self, entry: &Entry) -> Result<Option<Checked>, RecordError> {
        let decoded = batch_of(entry)?;
        let batch = decoded.batch.clone();
        self.chain = Some(Chain::new(entry.mod_revision, batch));
        Ok(Some(Checked {
            entry: entry.clone(),
            batch: decoded.batch,
            format: decoded.format.name(),
        }))
    }

    /// `None` where what the delta is based on could not be read: then only its bytes are checked.
    fn delta(&mut self, entry: &Entry) -> Result<Option<Checked>, RecordError> {
        let revision = entry.mod_revision;
        let damaged = |source| RecordError::Delta { revision, source };
        let Some(chain) = &self.chain else {
            self.report.unchecked += 1;
            Delta::read(&entry.value).map_err(damaged)?;
            return Ok(None);
        };
        let step = chain.step() + 1;
        if entry.key != delta_key(step) {
            let base = chain.base();
            return Err(RecordError::MissingDelta { base, step });
        }
        let (chain, _) = chain.apply(&entry.value).map_err(damaged)?;
        let batch = chain.batch().clone();
        self.chain = Some(chain);
        Ok(Some(Checked {
            entry: entry.clone(),
            batch,
            format: DELTA,
        }))
    }

    fn check_pair(&mut self, checked: &Checked, row: &Entry) {
        // A row that can't be read is reported where it is read.
        let Ok(size) = SizeRow::from_entry(row) else {
            return;
        };
        let stored = checked.entry.value.len() as u64;
        for violation in check_size_row(&size, &checked.batch, checked.format, stored) {
            self.found(
                Some(checked.entry.mod_revision),
                Some(&row.key),
                violation.to_string(),
            );
        }
    }

    /// What a reader finds now.
    fn present(&mut self) -> Result<(), StoreError> {
        match record::read(self.store, None) {
            Ok(_) => {}
            Err(ReadError::Store(StoreError::Damaged(what))) => self.found_row(None, None, what),
            Err(ReadError::Store(error)) => return Err(error),
            Err(error) => self.found(None, None, error.to_string()),
        }
        Ok(())
    }

    /// All size rows, those without history as well; `base` are batches that some of them are
    /// about.
    fn size_rows(&mut self, mut base: Vec<Checked>) -> Result<(), StoreError> {
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
                let same = |base: &Checked| base.entry.mod_revision == last;
                if let Some(position) = base.iter().position(same) {
                    let base = base.remove(position);
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
        for Checked { entry, .. } in base {
            if oldest.is_none_or(|oldest| oldest < entry.mod_revision) {
                let what = "the batch has no size row".to_owned();
                self.found(Some(entry.mod_revision), Some(&entry.key), what);
            }
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

    /// Notes what the store says of a damaged row, once: it is met at every later revision too.
    fn found_row(&mut self, revision: Option<Revision>, key: Option<&[u8]>, what: String) {
        if self.report.damage.iter().all(|known| known.what != what) {
            self.found(revision, key, what);
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
