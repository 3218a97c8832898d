//! Some rows of a batch, by which a writer decides how to write all.

use crate::model::batch::Row;

use super::survey::Object;

/// Rows that are looked at, about as many at most.
const ROWS: usize = 2048;

/// A row with the earliest start of its object.
pub(super) struct Sample<'r> {
    pub(super) row: &'r Row,
    earliest: u64,
}

impl Sample<'_> {
    /// Physical part of its start.
    pub(super) fn start(&self) -> u64 {
        self.row.start().physical()
    }

    /// How much later that is than the earliest of its object.
    pub(super) fn offset(&self) -> u64 {
        self.start() - self.earliest
    }
}

/// All rows of a small batch, some of a large one.
pub(super) fn sample<'r>(rows: &'r [Row], objects: &[Object]) -> Vec<Sample<'r>> {
    // An odd step meets all partitions in turn.
    let step = rows.len() / ROWS | 1;
    let mut found = Vec::with_capacity(rows.len() / step + 1);
    let (mut next, mut end) = (0, 0);
    for object in objects {
        end += object.rows as usize;
        while let Some(row) = rows.get(next).filter(|_| next < end) {
            let earliest = object.earliest;
            found.push(Sample { row, earliest });
            next += step;
        }
    }
    found
}
