//! Rows from a block of the dense columns.

use crate::model::batch::Row;
use crate::model::hlc::MAX_PHYSICAL;

use super::super::error::DecodeError;
use super::super::reader::out_of_range;
use super::groups::Groups;
use super::ints::Buffer;
use super::set::Mask;

/// Bit 0 of a row's flags.
pub(super) const ACCEPTED: u8 = 0b01;
/// Bit 1.
pub(super) const PROLONGABLE: u8 = 0b10;

/// A block of the dense columns.
pub(super) struct Dense<'b> {
    pub(super) holders: &'b [u32],
    pub(super) candidates: &'b [u32],
    pub(super) starts: &'b [u64],
    /// Whether no sum of a base and an offset can be out of range.
    pub(super) checked: bool,
    /// Where the offsets stand.
    pub(super) offset: usize,
}

impl Dense<'_> {
    #[inline]
    pub(super) fn rows<const CANDIDATES: bool>(
        &self,
        len: usize,
        groups: &mut Groups<'_, '_>,
        out: &mut Vec<Row>,
    ) -> Result<(), DecodeError> {
        let (mut at, mut failed) = (0, None);
        groups.segments(len, |segment| {
            let end = at + segment.len;
            let holders = segment_of(self.holders, at, end);
            let starts = segment_of(self.starts, at, end);
            let candidates = match CANDIDATES {
                true => segment_of(self.candidates, at, end),
                false => holders,
            };
            at = end;
            if !self.checked {
                failed = failed.take().or(self.check(segment.base, starts));
            }
            let columns = holders.iter().zip(starts).zip(candidates);
            let (first, base) = (segment.first, segment.base);
            out.extend(
                (0..)
                    .zip(columns)
                    .map(move |(partition, ((holder, start), candidate))| {
                        let candidate = match CANDIDATES {
                            true => *candidate,
                            false => Row::NO_CANDIDATE,
                        };
                        let regular = u8::from(candidate == Row::NO_CANDIDATE) << 1;
                        Row::from_words(
                            first.partitions_on(partition),
                            (base + start) << 16,
                            *holder,
                            candidate,
                            ACCEPTED | regular,
                        )
                    }),
            );
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// A start out of range.
    #[cold]
    fn check(&self, base: u64, starts: &[u64]) -> Option<DecodeError> {
        let physicals = starts.iter().map(|start| base + start);
        let found = physicals.max().filter(|found| *found > MAX_PHYSICAL)?;
        let (found, high) = (found as i64, MAX_PHYSICAL as i64);
        Some(out_of_range(self.offset, "start offsets", found, 0..=high))
    }
}

#[inline]
fn segment_of<T>(column: &[T], from: usize, to: usize) -> &[T] {
    column.get(from..to).unwrap_or_default()
}

/// Candidates at their rows.
pub(super) fn expand(mask: &Mask, names: &[u32], out: &mut Buffer<u32>) {
    out.fill(Row::NO_CANDIDATE);
    scatter(mask, names, out);
}

/// Offsets at their rows, and none where a start belongs to the event.
pub(super) fn spread(eventful: &Mask, offsets: &[u64], out: &mut Buffer<u64>) {
    out.fill(0);
    scatter(&eventful.map(|word| !word), offsets, out);
}

/// Writes numbers at the places of a mask.
#[inline]
fn scatter<T: Copy>(mask: &Mask, numbers: &[T], out: &mut Buffer<T>) {
    let mut numbers = numbers.iter();
    for (slots, word) in out.as_chunks_mut::<64>().0.iter_mut().zip(mask) {
        let mut word = *word;
        while word != 0 {
            let Some(number) = numbers.next() else { return };
            slots[(word.trailing_zeros() & 63) as usize] = *number;
            word &= word - 1;
        }
    }
}
