//! What is found in the rows before their columns are written: objects, and what is rare.

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
}

/// Bits of a packed group below kind and id.
pub(super) const PARTITION_BITS: u32 = 31;

/// What was found.
pub(super) struct Survey<'r> {
    /// Rows that were not looked at yet.
    rest: &'r [Row],
    common: HybridTimestamp,
    /// Number of rows that were.
    rows: usize,
    /// Number of rows of the last object.
    last: usize,
    pub(super) objects: Vec<Object>,
    /// Leases and partitions without one.
    pub(super) slots: u64,
    /// The row after the last object that has a candidate.
    pub(super) candidates_end: usize,
    /// Positions of the leases with these properties.
    pub(super) unaccepted: Vec<u64>,
    pub(super) irregular: Vec<u64>,
    pub(super) own_expirations: Vec<u64>,
    pub(super) logical_starts: Vec<u64>,
}

impl<'r> Survey<'r> {
    pub(super) fn new(batch: &'r LeaseBatch) -> Self {
        Self {
            rest: batch.rows(),
            common: batch.common_expiration(),
            rows: 0,
            last: 0,
            objects: Vec::new(),
            slots: 0,
            candidates_end: 0,
            unaccepted: Vec::new(),
            irregular: Vec::new(),
            own_expirations: Vec::new(),
            logical_starts: Vec::new(),
        }
    }

    /// Goes on to the end of the object that has the row before `end`.
    #[inline(never)]
    pub(super) fn advance(&mut self, end: usize) {
        while self.rows < end && !self.rest.is_empty() {
            self.last = object_len(self.rest, self.last);
            let (rows, others) = self.rest.split_at(self.last);
            self.object(rows);
            self.rows += rows.len();
            self.rest = others;
            if self.objects.len() == 1 {
                // Most objects have the same number of partitions.
                self.objects.reserve(others.len() / self.last.max(1));
            }
        }
    }

    fn object(&mut self, rows: &[Row]) {
        let Some(last) = rows.last() else { return };
        // Minima of every fourth row: one after another they would wait for each other.
        let mut earliest = [u64::MAX; 4];
        // Most objects are quiet as a whole: then nothing is in here.
        let mut unquiet = [0; 4];
        let (fours, rest) = rows.as_chunks::<4>();
        let mut look_at = |rows: &[Row]| {
            for ((earliest, unquiet), row) in earliest.iter_mut().zip(&mut unquiet).zip(rows) {
                *earliest = row.start().composite().min(*earliest);
                *unquiet |= row.unquiet();
            }
        };
        fours.iter().for_each(|rows| look_at(rows));
        look_at(rest);
        let [a, b, c, d] = earliest;
        let earliest = a.min(b).min(c.min(d));
        if unquiet != [0; 4] {
            self.unquiet(rows);
        }
        let group = last.group();
        let partitions = group.partition() + 1;
        self.slots += u64::from(partitions);
        self.objects.push(Object {
            key: group.packed() >> PARTITION_BITS,
            rows: rows.len() as u32,
            partitions,
            earliest: earliest >> 16,
        });
    }

    /// Looks at rows of which some are not quiet.
    fn unquiet(&mut self, rows: &[Row]) {
        let mut candidates = Row::NO_CANDIDATE;
        for (block, rows) in rows.chunks(64).enumerate() {
            // Rare ones as bits, the last row's first: no branch to mispredict.
            let mut rare = 0u64;
            for row in rows.iter().rev() {
                let (_, candidate, flags) = row.words();
                candidates &= candidate;
                let own = row.own_expiration().map_or(0, HybridTimestamp::composite);
                let logical = u64::from(row.start().logical());
                let any = own | logical | u64::from(odd(candidate, flags));
                rare = rare << 1 | u64::from(any != 0);
            }
            while rare != 0 {
                let at = rare.trailing_zeros() as usize;
                rare &= rare - 1;
                let Some(row) = rows.get(at) else { continue };
                let (_, candidate, flags) = row.words();
                let at = (self.rows + 64 * block + at) as u64;
                self.rare(row, at, odd(candidate, flags));
            }
        }
        if candidates != Row::NO_CANDIDATE {
            self.candidates_end = self.rows + rows.len();
        }
    }

    #[inline]
    fn rare(&mut self, row: &Row, at: u64, odd_flags: u8) {
        if odd_flags & 1 != 0 {
            self.unaccepted.push(at);
        }
        if odd_flags & 2 != 0 {
            self.irregular.push(at);
        }
        if row.own_expiration().is_some_and(|own| own != self.common) {
            self.own_expirations.push(at);
        }
        if row.start().logical() != 0 {
            self.logical_starts.push(at);
        }
    }
}

/// Flags that are not what they usually are: accepted, and prolongable unless there is a
/// candidate.
#[inline]
fn odd(candidate: u32, flags: u8) -> u8 {
    // Candidates are indexes below a limit, so that only the mark for none has the highest bit.
    const _: () = assert!(Row::INDEX_LIMIT <= 1 << 31 && Row::NO_CANDIDATE == u32::MAX);
    flags ^ (1 | ((candidate >> 31) as u8) << 1)
}

/// Number of rows of the first object; most objects have as many as the one before.
pub(super) fn object_len(rows: &[Row], guess: usize) -> usize {
    let Some(first) = rows.first() else { return 0 };
    let same = |row: &Row| row.group().same_object(first.group());
    let same_at = |at: usize| rows.get(at).is_some_and(same);
    if guess > 0 && same_at(guess - 1) && !same_at(guess) {
        guess
    } else {
        rows.partition_point(same)
    }
}
