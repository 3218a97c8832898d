//! A column of digits while it is written, a few hundred rows at a time.

use super::bits::BitWriter;
use super::digits::{Digits, Lane};
use super::ints;

/// Rows that are packed at once: whole groups of digits of any grouping, and whole bytes of a
/// bitmap.
pub(super) const CHUNK: usize = 480;

/// Room for a chunk, and a power of two: an index modulo it needs no check.
pub(super) const ROOM: usize = CHUNK.next_power_of_two();

/// Digits that are collected, and packed when there are enough.
pub(super) struct DigitColumn<T> {
    digits: Digits,
    least: u64,
    len: u64,
    filled: usize,
    chunk: Vec<T>,
    packed: BitWriter,
}

impl<T: Lane> DigitColumn<T> {
    /// A column of about `expected` numbers that are stored relative to `least`.
    pub(super) fn new(digits: Digits, least: u64, expected: usize) -> Self {
        Self {
            digits,
            least,
            len: 0,
            filled: 0,
            chunk: vec![T::of(0); CHUNK + ROOM],
            packed: BitWriter::with_capacity(digits.size(expected as u64) as usize),
        }
    }

    /// Room for the digits of a chunk of rows; what was written there counts after
    /// [`advance`](Self::advance).
    #[inline]
    pub(super) fn room(&mut self) -> Option<&mut [T; ROOM]> {
        self.chunk.get_mut(self.filled..)?.first_chunk_mut()
    }

    /// So many digits were written, at most a chunk of them.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.filled += count;
        self.len += count as u64;
        if self.filled >= CHUNK {
            let whole = self.chunk.get(..CHUNK).unwrap_or_default();
            self.digits.write(whole, &mut self.packed);
            self.chunk.copy_within(CHUNK..self.filled, 0);
            self.filled -= CHUNK;
        }
    }

    /// Appends the column.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        if self.len <= 1 {
            // A single number has a form of its own.
            let numbers = self.chunk.get(..self.filled).unwrap_or_default();
            let numbers = numbers.iter().map(|digit| self.least + digit.number());
            return ints::write(out, &numbers.collect::<Vec<_>>());
        }
        let rest = self.chunk.get(..self.filled).unwrap_or_default();
        self.digits.write(rest, &mut self.packed);
        ints::write_head(out, self.least, &self.digits);
        out.extend_from_slice(&self.packed.finish());
    }
}
