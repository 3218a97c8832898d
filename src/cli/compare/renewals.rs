//! What renewals take in the layout `delta`, for `leasehold compare`.

use std::hint::black_box;
use std::time::Duration;

use serde_json::{Value, json};

use crate::codec::delta::Chain;
use crate::codec::{self, Format};
use crate::model::batch::LeaseBatch;
use crate::model::renewals::{Renewal, Renewals};

use crate::cli::output::{count, decimal, table};
use crate::cli::timing::{self, work};

/// How long measuring a course may take.
const BUDGET: Duration = Duration::from_millis(500);

/// Draws the leases that are granted anew.
const SEED: u64 = 64;

/// A course of renewals, of each of which some leases are granted anew.
pub(super) struct Course {
    changed: usize,
    snapshot_bytes: usize,
    delta_bytes: Vec<usize>,
    /// Seconds.
    make: f64,
    /// Seconds.
    apply: f64,
}

impl Course {
    /// From a batch to just before the next snapshot, which is `columnar`.
    fn of(batch: &LeaseBatch, changed: usize, snapshot_every: u32) -> Result<Self, String> {
        let snapshot = codec::encode(Format::Columnar, batch).map_err(|error| error.to_string())?;
        // Deltas begin at what a reader of the snapshot has.
        let batch = codec::decode(&snapshot)
            .map_err(|error| error.to_string())?
            .batch;
        let mut chain = Chain::new(1, batch.clone());
        let mut frames = Vec::new();
        let renewals = Renewals::new(SEED, batch, changed);
        let mut last = None;
        for renewal in renewals.take(snapshot_every as usize - 1) {
            let Renewal { batch, changed } = &renewal;
            let (next, frame) =
                (chain.advance(batch.clone(), changed)).map_err(|error| error.to_string())?;
            last = Some((chain, renewal, frame.clone()));
            frames.push(frame);
            chain = next;
        }
        let medians = match &last {
            None => Vec::new(),
            Some((chain, Renewal { batch, changed }, frame)) => timing::medians(
                &[
                    work(|| black_box(chain).advance(batch.clone(), changed)),
                    work(|| black_box(chain).apply(frame)),
                ],
                BUDGET,
            ),
        };
        let mut medians = medians.into_iter();
        Ok(Self {
            changed: last.map_or(0, |(_, renewal, _)| renewal.changed.len()),
            snapshot_bytes: snapshot.len(),
            delta_bytes: frames.iter().map(Vec::len).collect(),
            make: medians.next().unwrap_or(0.0),
            apply: medians.next().unwrap_or(0.0),
        })
    }

    /// Bytes of a delta, on average.
    fn delta(&self) -> f64 {
        let deltas = self.delta_bytes.len().max(1);
        self.delta_bytes.iter().sum::<usize>() as f64 / deltas as f64
    }

    /// Bytes of a renewal, its share of the snapshot included.
    fn renewal(&self) -> f64 {
        let all = self.snapshot_bytes + self.delta_bytes.iter().sum::<usize>();
        all as f64 / (self.delta_bytes.len() + 1) as f64
    }
}

/// A quiet course, and one with so many leases granted anew in each renewal.
pub(super) struct Courses {
    snapshot_every: u32,
    per_day: f64,
    courses: Result<Vec<Course>, String>,
}

impl Courses {
    pub(super) fn of(
        batch: &LeaseBatch,
        changed: usize,
        snapshot_every: u32,
        per_day: f64,
    ) -> Self {
        let mut numbers = vec![0, changed.min(batch.len())];
        numbers.dedup();
        let courses = numbers.into_iter();
        Self {
            snapshot_every,
            per_day,
            courses: courses
                .map(|changed| Course::of(batch, changed, snapshot_every))
                .collect(),
        }
    }

    pub(super) fn json(&self) -> Value {
        let courses = match &self.courses {
            Ok(courses) => courses,
            Err(error) => return json!({"error": error}),
        };
        let courses: Vec<_> = (courses.iter())
            .map(|course| {
                json!({
                    "changed": course.changed,
                    "snapshot_bytes": course.snapshot_bytes,
                    "mean_delta_bytes": course.delta(),
                    "mean_renewal_bytes": course.renewal(),
                    "make_us": course.make * 1e6,
                    "apply_us": course.apply * 1e6,
                    "bytes_per_day": (course.renewal() * self.per_day).round() as u64,
                })
            })
            .collect();
        json!({
            "snapshot_format": Format::Columnar.name(),
            "snapshot_every": self.snapshot_every,
            "renewals": courses,
        })
    }

    pub(super) fn text(&self) -> String {
        let courses = match &self.courses {
            Ok(courses) => courses,
            Err(error) => return format!("layout delta: {error}\n"),
        };
        let rows = courses.iter().map(|course| {
            let name = match course.changed {
                0 => "quiet".to_owned(),
                changed => format!("{} changed", count(changed as u64)),
            };
            vec![
                name,
                decimal(course.delta(), 1),
                decimal(course.make * 1e6, 2),
                decimal(course.apply * 1e6, 2),
                count(course.snapshot_bytes as u64),
                decimal(course.renewal(), 1),
                decimal(course.renewal() * self.per_day / 1e6, 1),
            ]
        });
        let head = [
            "renewal",
            "bytes of\na delta",
            "make\nµs",
            "apply\nµs",
            "bytes of\na snapshot",
            "bytes of a renewal,\non average",
            "MB\nper day",
        ];
        format!(
            "layout delta, one snapshot (columnar) in {} renewals\n\n{}",
            self.snapshot_every,
            table(&head, rows),
        )
    }
}
