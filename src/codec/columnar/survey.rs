//! One pass over the rows, which finds what the columns need to know before they are written.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::hlc::HybridTimestamp;

/// The rows of a table or zone.
pub(super) struct Object {
    /// Kind and id, in the order of groups.
    pub(super) key: u64,
    /// Number of rows.
    pub(super) rows: u32,
    /// Highest partition plus one.
    pub(super) partitions: u32,
    /// The earliest start, physical part.
    pub(super) earliest: u64,
    /// The latest.
    pub(super) latest: u64,
}

/// Bits of a packed group below kind and id.
pub(super) const PARTITION_BITS: u32 = 31;

/// Accepted and prolongable.
const QUIET: u8 = 0b11;

/// What was found.
pub(super) struct Survey {
    pub(super) objects: Vec<Object>,
    /// Leases and partitions without one.
    pub(super) slots: u64,
    /// Leases with a candidate.
    pub(super) candidates: u64,
    /// The lowest and the highest index of a candidate; the wrong way round if there is none.
    pub(super) candidate_names: (u32, u32),
    /// Positions of the leases with these properties.
    pub(super) unaccepted: Vec<u64>,
    pub(super) irregular: Vec<u64>,
    pub(super) own_expirations: Vec<u64>,
    pub(super) logical_starts: Vec<u64>,
}

impl Survey {
    pub(super) fn of(batch: &LeaseBatch) -> Self {
        let mut survey = Self {
            objects: Vec::new(),
            slots: 0,
            candidates: 0,
            candidate_names: (u32::MAX, 0),
            unaccepted: Vec::new(),
            irregular: Vec::new(),
            own_expirations: Vec::new(),
            logical_starts: Vec::new(),
        };
        let mut rest = batch.rows();
        let mut guess = 0;
        let mut at = 0;
        while !rest.is_empty() {
            guess = object_len(rest, guess);
            let (rows, others) = rest.split_at(guess);
            survey.object(rows, at, batch.common_expiration());
            at += rows.len();
            rest = others;
            if survey.objects.len() == 1 {
                // Most objects have the same number of partitions.
                survey.objects.reserve(rest.len() / guess);
            }
        }
        survey
    }

    fn object(&mut self, rows: &[Row], from: usize, common: HybridTimestamp) {
        let Some(last) = rows.last() else { return };
        let (mut earliest, mut latest) = (u64::MAX, 0);
        // What all rows have, and what any has: most objects are quiet as a whole.
        let (mut flags, mut candidates) = (QUIET, Row::NO_CANDIDATE);
        let (mut starts, mut own) = (0, 0);
        for row in rows {
            let start = row.start().composite();
            earliest = earliest.min(start);
            latest = latest.max(start);
            starts |= start;
            let words = row.words();
            candidates &= words.1;
            flags &= words.2;
            own |= row.own_expiration().map_or(0, HybridTimestamp::composite);
        }
        let logical = starts & 0xFFFF;
        if flags != QUIET || candidates != Row::NO_CANDIDATE || logical | own != 0 {
            self.unquiet(rows, from as u64, common);
        }
        let group = last.group();
        let partitions = group.partition() + 1;
        self.slots += u64::from(partitions);
        self.objects.push(Object {
            key: group.packed() >> PARTITION_BITS,
            rows: rows.len() as u32,
            partitions,
            earliest: earliest >> 16,
            latest: latest >> 16,
        });
    }

    /// Looks at rows of which some are not quiet.
    fn unquiet(&mut self, rows: &[Row], from: u64, common: HybridTimestamp) {
        let mut candidates = 0;
        let (mut lowest, mut highest) = (u32::MAX, 0);
        for (at, row) in (from..).zip(rows) {
            let (_, candidate, flags) = row.words();
            let has_candidate = candidate != Row::NO_CANDIDATE;
            candidates += u64::from(has_candidate);
            lowest = lowest.min(candidate);
            // One more, so that none is the lowest here.
            highest = highest.max(candidate.wrapping_add(1));
            let odd_flags = flags ^ (1 | u8::from(!has_candidate) << 1);
            let own = row.own_expiration().is_some();
            let logical = row.start().logical();
            if u32::from(logical) | u32::from(odd_flags) | u32::from(own) != 0 {
                self.rare(row, at, odd_flags, common);
            }
        }
        if candidates > 0 {
            self.candidates += candidates;
            let (low, high) = self.candidate_names;
            self.candidate_names = (low.min(lowest), high.max(highest - 1));
        }
    }

    #[inline(never)]
    fn rare(&mut self, row: &Row, at: u64, odd_flags: u8, common: HybridTimestamp) {
        if odd_flags & 1 != 0 {
            self.unaccepted.push(at);
        }
        if odd_flags & 2 != 0 {
            self.irregular.push(at);
        }
        if row.own_expiration().is_some_and(|own| own != common) {
            self.own_expirations.push(at);
        }
        if row.start().logical() != 0 {
            self.logical_starts.push(at);
        }
    }
}

/// Number of rows of the first object; most objects have as many as the one before.
fn object_len(rows: &[Row], guess: usize) -> usize {
    let Some(first) = rows.first() else { return 0 };
    let same = |row: &Row| row.group().same_object(first.group());
    let same_at = |at: usize| rows.get(at).is_some_and(same);
    if guess > 0 && same_at(guess - 1) && !same_at(guess) {
        guess
    } else {
        rows.partition_point(same)
    }
}
