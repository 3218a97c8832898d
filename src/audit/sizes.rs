//! What the stored batches took: reading their size rows, and summing them up.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::metastorage::contract::{Metastorage, StoreError};
use crate::model::hlc::HybridTimestamp;

use crate::placement::record::{RecordError, SizeRow, size_range};

/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;

/// The newest `last` size rows (all if not said) of those written at `since` or later, oldest
/// first. May block.
///
/// # Errors
/// If the store can't be read, or a row in it.
pub fn read(
    store: &dyn Metastorage,
    since: Option<HybridTimestamp>,
    last: Option<usize>,
) -> Result<Vec<SizeRow>, SizesError> {
    let mut range = size_range(since);
    range.reverse = true;
    range.limit = last;
    let entries = store.range(&range)?;
    let rows = entries.iter().rev().map(SizeRow::from_entry);
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The oldest rows written at `since` or later, about `limit` of them at most, and the time to go
/// on from if there are more. May block.
///
/// # Errors
/// As [`read`].
pub fn page(
    store: &dyn Metastorage,
    since: Option<HybridTimestamp>,
    limit: usize,
) -> Result<(Vec<SizeRow>, Option<u64>), SizesError> {
    let mut range = size_range(since);
    range.limit = Some(limit + 1);
    let entries = store.range(&range)?;
    let rows = entries.iter().map(SizeRow::from_entry);
    let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
    let next = rows.get(limit).map(|row| row.time);
    if let Some(next) = next {
        // A page ends between two times, so that no row is on two pages.
        rows.retain(|row| row.time < next);
    }
    Ok((rows, next))
}

/// As [`read`], but the rows of the last `span_ms` milliseconds up to the newest row.
///
/// # Errors
/// As [`read`].
pub fn read_span(store: &dyn Metastorage, span_ms: u64) -> Result<Vec<SizeRow>, SizesError> {
    let newest = read(store, None, Some(1))?;
    match newest.first() {
        Some(row) => read(store, at(row.time.saturating_sub(span_ms)), None),
        None => Ok(newest),
    }
}

/// A time in milliseconds since the Unix epoch as the bound of [`read`]; none is before all.
pub fn at(time: u64) -> Option<HybridTimestamp> {
    HybridTimestamp::new(time, 0).ok()
}

/// What some size rows come to.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Number of rows, one a stored batch.
    pub rows: u64,
    /// Those of them that prolonged leases.
    pub renewals: u64,
    /// Time of the first row, milliseconds since the Unix epoch.
    pub first_time: Option<u64>,
    /// Time of the last row, milliseconds since the Unix epoch.
    pub last_time: Option<u64>,
    /// Longest time from one renewal to the next, milliseconds.
    pub longest_renewal_gap_ms: Option<u64>,
    /// Bytes of all stored records.
    pub stored_bytes: u64,
    /// Batches stored in full.
    pub snapshots: u64,
    /// Bytes of their records.
    pub snapshot_bytes: u64,
    /// Batches stored as deltas.
    pub deltas: u64,
    /// Bytes of their records.
    pub delta_bytes: u64,
    /// Bytes beside the records: keys, size rows and beats.
    pub bookkeeping_bytes: u64,
    /// Bytes that naive would have taken for them.
    pub naive_bytes: u64,
    /// Bytes of a batch that prolonged leases, snapshot or delta, on average.
    pub mean_renewal_bytes: Option<f64>,
    /// Bytes of a stored record, on average.
    pub mean_stored_bytes: Option<f64>,
    /// How many times as many bytes naive would have taken.
    pub ratio: Option<f64>,
    /// Bytes stored in a day at the rate between the first row and the last.
    pub stored_bytes_per_day: Option<f64>,
    /// Bytes that naive would have stored in a day at that rate.
    pub naive_bytes_per_day: Option<f64>,
}

impl Summary {
    /// Sums up rows that come oldest first.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a SizeRow>) -> Self {
        let mut summary = Self::default();
        let mut renewed = None;
        let mut renewal_bytes: u64 = 0;
        // The first row begins the time that the rate is taken over: its bytes are not in it.
        let mut first = (0, 0);
        for row in rows {
            if summary.rows == 0 {
                summary.first_time = Some(row.time);
                first = (row.stored_bytes, row.naive_bytes);
            }
            summary.rows += 1;
            summary.last_time = Some(row.time);
            summary.stored_bytes = summary.stored_bytes.saturating_add(row.stored_bytes);
            summary.naive_bytes = summary.naive_bytes.saturating_add(row.naive_bytes);
            let (number, bytes) = if row.is_delta() {
                (&mut summary.deltas, &mut summary.delta_bytes)
            } else {
                (&mut summary.snapshots, &mut summary.snapshot_bytes)
            };
            *number += 1;
            *bytes = bytes.saturating_add(row.stored_bytes);
            summary.bookkeeping_bytes += row.bookkeeping_bytes();
            if is_renewal(row) {
                renewal_bytes = renewal_bytes.saturating_add(row.stored_bytes);
                summary.renewals += 1;
                let gap = renewed.map(|before| row.time.saturating_sub(before));
                summary.longest_renewal_gap_ms = summary.longest_renewal_gap_ms.max(gap);
                renewed = Some(row.time);
            }
        }
        let part = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
        summary.mean_stored_bytes = part(summary.stored_bytes, summary.rows);
        summary.mean_renewal_bytes = part(renewal_bytes, summary.renewals);
        summary.ratio = part(summary.naive_bytes, summary.stored_bytes);
        if let (Some(from), Some(to)) = (summary.first_time, summary.last_time) {
            let span = to.saturating_sub(from);
            let rate = |total: u64, first| part(total.saturating_sub(first), span);
            summary.stored_bytes_per_day =
                rate(summary.stored_bytes, first.0).map(|rate| rate * DAY_MS);
            summary.naive_bytes_per_day =
                rate(summary.naive_bytes, first.1).map(|rate| rate * DAY_MS);
        }
        summary
    }
}

/// Whether the batch prolonged leases, whatever else it did.
fn is_renewal(row: &SizeRow) -> bool {
    row.cause.split('+').any(|cause| cause == "renewal")
}

/// Why size rows can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizesError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row.
    #[error(transparent)]
    Record(#[from] RecordError),
}

#[cfg(test)]
mod tests {
    use crate::metastorage::contract::{Op, Transaction};
    use crate::metastorage::memory::MemoryStore;
    use crate::placement::record::size_key;

    use super::*;

    fn row(time: u64, cause: &str, stored_bytes: u64) -> SizeRow {
        SizeRow {
            revision: time,
            time,
            cause: cause.to_owned(),
            leases: 3,
            changed: 0,
            format: "compact-v2".to_owned(),
            stored_bytes,
            naive_bytes: 10 * stored_bytes,
        }
    }

    #[test]
    fn nothing_comes_to_nothing() {
        assert_eq!(Summary::of([]), Summary::default());
        let one = Summary::of(&[row(7, "grant", 100)]);
        assert_eq!(one.mean_stored_bytes, Some(100.0));
        assert_eq!(one.stored_bytes_per_day, None, "no time has passed");
    }

    #[test]
    fn renewals_are_found_among_other_causes() {
        let rows = [
            row(1_000, "renewal", 100),
            row(2_000, "grant", 100),
            row(3_500, "renewal+deny", 100),
            row(4_000, "publish", 100),
            row(5_000, "renewal", 200),
        ];
        let summary = Summary::of(&rows);
        assert_eq!((summary.rows, summary.renewals), (5, 3));
        assert_eq!(summary.longest_renewal_gap_ms, Some(2_500));
        assert_eq!((summary.stored_bytes, summary.naive_bytes), (600, 6_000));
        assert_eq!(summary.ratio, Some(10.0));
        let per_day = summary.stored_bytes_per_day.unwrap();
        assert!(
            (per_day - 500.0 / 4_000.0 * DAY_MS).abs() < 1.0,
            "{per_day}"
        );
    }

    #[test]
    fn absurd_rows_do_no_harm() {
        let rows = [
            row(9, "renewal", u64::MAX / 10),
            row(3, "renewal", u64::MAX / 10),
        ];
        let summary = Summary::of(&rows);
        assert_eq!(summary.longest_renewal_gap_ms, Some(0));
        assert_eq!(summary.stored_bytes_per_day, None);
    }

    #[test]
    fn pages_hold_every_row_once() {
        let store = MemoryStore::new();
        // Two rows of one millisecond, at each place of a page in turn.
        for (physical, logical) in [(10, 0), (20, 0), (20, 1), (30, 0), (40, 0), (50, 0)] {
            let time = HybridTimestamp::new(physical, logical).expect("in range");
            let row = SizeRow {
                revision: 0,
                time: physical,
                cause: "renewal".into(),
                leases: u64::from(logical),
                changed: 0,
                format: "naive".into(),
                stored_bytes: 1,
                naive_bytes: 1,
            };
            let value = serde_json::to_vec(&row).expect("plain");
            let put = Op::Put(size_key(time), value.into());
            let transaction = Transaction {
                then: vec![put],
                ..Transaction::default()
            };
            store.invoke(transaction).expect("stored");
        }
        let all = read(&store, None, None).expect("read");
        assert_eq!(all.len(), 6);
        for limit in 2..8 {
            let (mut rows, mut next) = page(&store, None, limit).expect("read");
            while let Some(since) = next {
                let (more, further) = page(&store, at(since), limit).expect("read");
                assert!(!more.is_empty());
                rows.extend(more);
                next = further;
            }
            assert_eq!(rows, all, "{limit} at a time");
        }
    }
}
