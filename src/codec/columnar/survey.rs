//! What is found in the rows before their columns are written: objects, and what is rare.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::hlc::HybridTimestamp;

use super::bits::each_bit;
use super::column::CHUNK;

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

/// For each row of a chunk a bit, the first row's lowest.
pub(super) type Mask = [u64; CHUNK.div_ceil(64)];

/// What was found.
pub(super) struct Survey<'r> {
    /// Rows of the objects that were not looked at yet.
    rest: &'r [Row],
    common: HybridTimestamp,
    /// Number of rows of the objects that were.
    rows: usize,
    /// Number of rows of the last object.
    last: usize,
    /// The row after the last object that is not quiet.
    unquiet_end: usize,
    /// Whether something was rare in the last chunk: then it will be in the next one, and objects
    /// are not looked at twice.
    busy: bool,
    /// Number of rows of the chunks that were looked at.
    chunks_end: usize,
    /// Position and properties of the leases that have some: one word each, see [`RARE_BITS`].
    rare: Vec<u64>,
    pub(super) objects: Vec<Object>,
    /// Leases and partitions without one.
    pub(super) slots: u64,
}

/// What few leases are or have.
#[derive(Clone, Copy)]
pub(super) enum Rare {
    Unaccepted,
    Irregular,
    OwnExpiration,
    LogicalStart,
}

/// Bits that such properties take, below a position.
const RARE_BITS: u32 = 4;

impl<'r> Survey<'r> {
    pub(super) fn new(batch: &'r LeaseBatch) -> Self {
        Self {
            rest: batch.rows(),
            common: batch.common_expiration(),
            rows: 0,
            last: 0,
            unquiet_end: 0,
            busy: false,
            chunks_end: 0,
            rare: Vec::new(),
            objects: Vec::new(),
            slots: 0,
        }
    }

    /// Takes the next rows, at most a chunk, and looks at the objects up to the last of them;
    /// returns which of the rows have a candidate.
    #[inline(never)]
    pub(super) fn chunk(&mut self, rows: &[Row]) -> Mask {
        let from = self.chunks_end;
        self.chunks_end += rows.len();
        self.advance(self.chunks_end);
        let mut candidates = Mask::default();
        self.busy =
            self.unquiet_end > from && self.look_for_rare(rows, from as u64, &mut candidates);
        candidates
    }

    fn advance(&mut self, end: usize) {
        while self.rows < end && !self.rest.is_empty() {
            self.last = object_len(self.rest, self.last);
            let (rows, others) = self.rest.split_at(self.last);
            self.rows += rows.len();
            self.object(rows);
            self.rest = others;
            if self.objects.len() == 1 {
                // Most objects have the same number of partitions.
                self.objects.reserve(others.len() / self.last.max(1));
            }
        }
    }

    fn object(&mut self, rows: &[Row]) {
        let Some(last) = rows.last() else { return };
        let mut unquiet = u64::from(self.busy);
        let earliest = match self.busy {
            true => fold_starts(rows, |_| {}),
            // Most objects are quiet as a whole: then nothing is in here.
            false => fold_starts(rows, |row| unquiet |= row.unquiet()),
        };
        if unquiet != 0 {
            self.unquiet_end = self.rows;
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

    /// Returns whether there was anything.
    fn look_for_rare(&mut self, rows: &[Row], from: u64, candidates: &mut Mask) -> bool {
        let mut found = 0;
        let blocks = rows.chunks(64).zip((from..).step_by(64));
        for ((rows, from), with_candidate) in blocks.zip(candidates) {
            let mut rare = 0;
            for row in rows.iter().rev() {
                let (_, candidate, flags) = row.words();
                let own = row.own_expiration().map_or(0, HybridTimestamp::composite);
                let logical = u64::from(row.logical_start());
                let any = own | logical | u64::from(odd(candidate, flags));
                rare = rare << 1 | u64::from(any != 0);
                *with_candidate = *with_candidate << 1 | u64::from(has_candidate(candidate));
            }
            found |= rare | *with_candidate;
            each_bit(rare, |at| {
                if let Some(row) = rows.get(at) {
                    self.rare
                        .push((from + at as u64) << RARE_BITS | self.properties(row));
                }
            });
        }
        found != 0
    }

    /// A bit for each property that a lease has.
    #[inline]
    fn properties(&self, row: &Row) -> u64 {
        let (_, candidate, flags) = row.words();
        let own = row.own_expiration().is_some_and(|own| own != self.common);
        u64::from(odd(candidate, flags))
            | u64::from(own) << Rare::OwnExpiration as u32
            | u64::from(row.logical_start() != 0) << Rare::LogicalStart as u32
    }

    /// Positions of the leases with a property.
    pub(super) fn with(&self, property: Rare) -> Vec<u64> {
        let mut found = vec![0; self.rare.len()];
        let mut count = 0;
        for rare in &self.rare {
            // Noted in any case and kept only if it counts: no branch to mispredict.
            if let Some(slot) = found.get_mut(count) {
                *slot = rare >> RARE_BITS;
            }
            count += (rare >> property as u32 & 1) as usize;
        }
        found.truncate(count);
        found
    }
}

/// The earliest start of some rows, packed; shows each row to `look_at`.
#[inline]
fn fold_starts(rows: &[Row], mut look_at: impl FnMut(&Row)) -> u64 {
    // Minima of every fourth row: one after another they would wait for each other.
    let mut earliest = [u64::MAX; 4];
    let (fours, rest) = rows.as_chunks::<4>();
    for rows in fours {
        for (earliest, row) in earliest.iter_mut().zip(rows) {
            *earliest = row.packed_start().min(*earliest);
            look_at(row);
        }
    }
    let [a, b, c, d] = earliest;
    let earliest = a.min(b).min(c.min(d));
    rest.iter().fold(earliest, |earliest, row| {
        look_at(row);
        row.packed_start().min(earliest)
    })
}

/// Whether the word for a candidate is one: they are below a limit, so that only the mark for
/// none has the highest bit.
#[inline]
fn has_candidate(candidate: u32) -> bool {
    const _: () = assert!(Row::INDEX_LIMIT <= 1 << 31 && Row::NO_CANDIDATE == u32::MAX);
    candidate >> 31 == 0
}

/// Flags that are not what they usually are: accepted, and prolongable unless there is a
/// candidate.
#[inline]
fn odd(candidate: u32, flags: u8) -> u8 {
    flags ^ (1 | u8::from(!has_candidate(candidate)) << 1)
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
