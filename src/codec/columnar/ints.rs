//! A column of integers: the smallest of them, and the others relative to it as digits.

use std::ops::RangeInclusive;

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid, out_of_range};
use super::super::varint;
use super::bits::{self, BitWriter};
use super::digits::{Digits, Lane, MAX_GROUP};

/// Leases, or objects, that are read at once.
pub(super) const BLOCK: usize = 512;

/// Room for a block of a column.
pub(super) type Buffer<T> = [T; BLOCK + 2 * MAX_GROUP];

/// An empty buffer.
pub(super) const fn buffer<T: Copy>(zero: T) -> Buffer<T> {
    [zero; BLOCK + 2 * MAX_GROUP]
}

/// A column that was found in some bytes.
#[derive(Clone, Debug)]
pub(super) struct Ints<'a> {
    field: &'static str,
    /// Offset of the digits.
    offset: usize,
    len: usize,
    least: u64,
    digits: Digits,
    /// The digits and what follows them, so that whole words can be loaded.
    bytes: &'a [u8],
}

impl<'a> Ints<'a> {
    /// Finds a column of `len` numbers, all of them within a range. A column without numbers
    /// takes no bytes.
    pub(super) fn find(
        reader: &mut Reader<'a>,
        field: &'static str,
        len: usize,
        range: RangeInclusive<u64>,
    ) -> Result<Self, DecodeError> {
        let signed = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX);
        let (low, high) = (*range.start(), *range.end());
        let mut column = Self {
            field,
            offset: reader.offset(),
            len,
            least: low,
            digits: Digits::smallest(1, 0),
            bytes: &[],
        };
        if len == 0 {
            return Ok(column);
        }
        column.least = reader.ranged(field, signed(low)..=signed(high))? as u64;
        let room = signed(high - column.least);
        let offset = reader.offset();
        let spread = reader.ranged(field, 0..=room)? as u64;
        if spread > 0 {
            let offset = reader.offset();
            let group = reader.u8(field)?;
            let digits = Digits::new(spread + 1, group.into());
            column.digits = digits.ok_or_else(|| {
                let what = format!("{group} digits of radix {} to a number", spread + 1);
                invalid(offset, field, what)
            })?;
        }
        if spread > 0 && len == 1 {
            let what = "one number, and a distance between the smallest and the largest";
            return Err(invalid(offset, field, what));
        }
        column.offset = reader.offset();
        column.bytes = reader.rest();
        bits::take(reader, field, column.digits.bits(len as u64))?;
        Ok(column)
    }

    /// Number of numbers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// No number is below it.
    pub(super) fn least(&self) -> u64 {
        self.least
    }

    /// No number is above it.
    pub(super) fn most(&self) -> u64 {
        self.least + self.digits.radix() - 1
    }

    /// How it is packed.
    pub(super) fn digits(&self) -> &Digits {
        &self.digits
    }

    /// Whether all numbers are the same, and take no bits.
    pub(super) fn constant(&self) -> Option<u64> {
        (self.digits.radix() == 1).then_some(self.least)
    }

    /// Reads the numbers `from..to`, at most a block of them.
    #[inline]
    pub(super) fn read<'b, T: Lane>(
        &self,
        from: usize,
        to: usize,
        out: &'b mut Buffer<T>,
    ) -> Result<&'b mut [T], DecodeError> {
        let skip = self.read_at(from, to, out)?;
        Ok(out.get_mut(skip..skip + (to - from)).unwrap_or_default())
    }

    /// The same, as many as there is room for and twice the largest group less; returns where in
    /// the buffer they start.
    #[inline]
    pub(super) fn read_at<T: Lane>(
        &self,
        from: usize,
        to: usize,
        out: &mut [T],
    ) -> Result<usize, DecodeError> {
        if from > to || to > self.len || to - from + 2 * MAX_GROUP > out.len() {
            let (field, count) = (self.field, self.len);
            let what = format!("numbers {from} to {to} of {count} are asked for");
            return Err(invalid(self.offset, field, what));
        }
        self.digits
            .read(self.bytes, from, to, self.least, out)
            .map_err(|number| self.excess(number))?;
        let group = self.digits.group() as usize;
        if to == self.len && !to.is_multiple_of(group) {
            self.check_padding(to % group)?;
        }
        Ok(from % group)
    }

    /// The digits that fill up the last number must be 0.
    #[cold]
    fn check_padding(&self, digits: usize) -> Result<(), DecodeError> {
        let last = self.len / self.digits.group() as usize;
        let width = self.digits.width();
        let bit = last * width as usize;
        let limit = self.digits.radix().pow(digits as u32);
        if bits::number(self.bytes, bit, width) < limit {
            return Ok(());
        }
        let what = "digits after the last number are not 0";
        Err(invalid(self.offset + bit / 8, self.field, what))
    }

    #[cold]
    fn excess(&self, number: usize) -> DecodeError {
        let width = self.digits.width();
        let bit = number * width as usize;
        let found = bits::number(self.bytes, bit, width) as i64;
        let high = self.digits.radix().pow(self.digits.group()) as i64 - 1;
        out_of_range(self.offset + bit / 8, self.field, found, 0..=high)
    }

    /// One number.
    pub(super) fn get(&self, index: usize) -> Result<u64, DecodeError> {
        let mut out = buffer(0);
        let read = self.read(index, index + 1, &mut out)?;
        Ok(read.first().copied().unwrap_or(self.least))
    }

    /// Calls `visit` with each of the numbers `from..to`.
    pub(super) fn each(
        &self,
        mut from: usize,
        to: usize,
        mut visit: impl FnMut(u64),
    ) -> Result<(), DecodeError> {
        let mut out = buffer(0);
        while from < to {
            let end = to.min(from + BLOCK);
            let read = self.read(from, end, &mut out)?;
            read.iter().copied().for_each(&mut visit);
            from = end;
        }
        Ok(())
    }

    /// Offset of its digits, for errors about a number that is in range but wrong.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }
}

/// What stands before digits.
pub(super) fn write_head(out: &mut Vec<u8>, least: u64, digits: &Digits) {
    varint::put(out, least as i64);
    varint::put(out, digits.radix() as i64 - 1);
    if digits.radix() > 1 {
        out.push(digits.group() as u8);
    }
}

/// Appends a column in which all numbers are the same.
pub(super) fn write_constant(out: &mut Vec<u8>, number: u64) {
    write_head(out, number, &Digits::smallest(1, 1));
}

/// Appends a column.
pub(super) fn write(out: &mut Vec<u8>, numbers: &[u64]) {
    let (Some(least), Some(most)) = (numbers.iter().min(), numbers.iter().max()) else {
        return;
    };
    let digits = Digits::smallest(most - least + 1, numbers.len() as u64);
    write_head(out, *least, &digits);
    let relative: Vec<u64> = numbers.iter().map(|number| number - least).collect();
    let mut packed = BitWriter::with_capacity(digits.size(numbers.len() as u64) as usize);
    digits.write(&relative, &mut packed);
    out.extend_from_slice(&packed.finish());
}
