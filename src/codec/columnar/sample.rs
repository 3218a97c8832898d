//! Some rows of a batch, by which a writer decides how to write all.

use crate::model::batch::Row;

use super::survey::object_len;

/// Rows that are looked at, about as many at most.
const ROWS: usize = 1024;

/// Rows that are taken of one object, unless the batch is small.
const OF_OBJECT: usize = 64;

/// A row with the earliest start of its object.
pub(super) struct Sample<'r> {
    pub(super) row: &'r Row,
    earliest: u64,
}

impl Sample<'_> {
    /// Physical part of its start.
    pub(super) fn start(&self) -> u64 {
        self.row.physical_start()
    }

    /// How much later that is than the earliest of its object.
    pub(super) fn offset(&self) -> u64 {
        self.start() - self.earliest
    }
}

/// Some rows, and what was seen of the objects.
pub(super) struct Sampled<'r> {
    pub(super) rows: Vec<Sample<'r>>,
    /// Number of rows of the batch, and about how many objects it has.
    pub(super) all: usize,
    pub(super) objects: u64,
    /// The latest of the objects' earliest starts.
    pub(super) last_base: u64,
}

impl Sampled<'_> {
    /// Whether no row is missing.
    pub(super) fn is_all(&self) -> bool {
        self.rows.len() == self.all
    }
}

/// All rows of a small batch; of a large one, those of some objects all over it.
pub(super) fn sample(rows: &[Row]) -> Sampled<'_> {
    let all = rows.len();
    let mut found = Vec::with_capacity(all.min(ROWS + ROWS / 8));
    let (mut objects, mut last_base, mut seen) = (0, 0, 0);
    let (mut next, mut len) = (0, 0);
    while let Some(row) = rows.get(next) {
        let first = rows
            .get(..next)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|other| other.group().same_object(row.group()))
            .count();
        let own = rows.get(next - first..).unwrap_or_default();
        len = object_len(own, len);
        let own = own.get(..len).unwrap_or_default();
        let starts = own.iter().map(|row| row.physical_start());
        let earliest = starts.min().unwrap_or(0);
        last_base = earliest.max(last_base);
        let step = if all <= 2 * ROWS {
            1
        } else {
            own.len().div_ceil(OF_OBJECT)
        };
        let before = found.len();
        found.extend(own.iter().step_by(step).map(|row| Sample { row, earliest }));
        objects += 1;
        seen += own.len() as u64;
        let end = next - first + own.len();
        let taken = found.len() - before;
        next = if all <= 2 * ROWS {
            end
        } else {
            end.max(next + taken * all / ROWS)
        };
    }
    Sampled {
        rows: found,
        all,
        objects: objects * all as u64 / seen.max(1),
        last_base,
    }
}
