//! The stream of bits that the body of a frame is: the lowest bit of each byte first.
//!
//! Numbers of no known size are in the Elias delta code, a difference is zigzag first. Each
//! number has exactly one form.

use crate::codec::error::{DecodeError, Defect};
use crate::codec::reader::{fault, invalid};

/// Appends bits.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    out: Vec<u8>,
    pending: u128,
    filled: u32,
}

impl BitWriter {
    /// Goes on after whole bytes.
    pub(super) fn after(out: Vec<u8>) -> Self {
        Self {
            out,
            ..Self::default()
        }
    }

    /// The low `width` bits (at most 64) of a value that has no others.
    pub(super) fn bits(&mut self, value: u64, width: u32) {
        debug_assert!(width >= bit_length(value) && width <= 64);
        self.pending |= u128::from(value) << self.filled;
        self.filled += width;
        while self.filled >= 8 {
            self.out.push(self.pending as u8);
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    pub(super) fn bit(&mut self, value: bool) {
        self.bits(value.into(), 1);
    }

    /// So many zeros and a one.
    pub(super) fn unary(&mut self, mut zeros: u64) {
        while zeros >= 64 {
            self.bits(0, 64);
            zeros -= 64;
        }
        self.bits(0, zeros as u32);
        self.bit(true);
    }

    /// A number below 2^63, in the Elias delta code of the number plus one.
    pub(super) fn number(&mut self, value: u64) {
        let value = value + 1;
        let len = bit_length(value);
        let prefix = bit_length(len.into());
        self.unary(u64::from(prefix - 1));
        self.bits(low(len.into(), prefix - 1), prefix - 1);
        self.bits(low(value, len - 1), len - 1);
    }

    /// A difference.
    pub(super) fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    /// The bytes, the last filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.out.push(self.pending as u8);
        }
        self.out
    }
}

/// Reads bits and knows where it is.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Position in bits.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// From a byte offset on.
    pub(super) fn at(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            bytes,
            at: 8 * offset,
        }
    }

    /// Offset of the byte that holds the next bit.
    pub(super) fn offset(&self) -> usize {
        self.at / 8
    }

    /// Bits left.
    fn left(&self) -> usize {
        (8 * self.bytes.len()).saturating_sub(self.at)
    }

    /// The next 64 bits, zeros after the end.
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let mut window = [0; 16];
        for (to, from) in window.iter_mut().zip(rest.iter().take(9)) {
            *to = *from;
        }
        (u128::from_le_bytes(window) >> (self.at % 8)) as u64
    }

    /// `width` bits (at most 64).
    pub(super) fn bits(&mut self, width: u32, field: &'static str) -> Result<u64, DecodeError> {
        if width as usize > self.left() {
            return Err(self.truncated(width as usize, field));
        }
        let value = low(self.peek(), width);
        self.at += width as usize;
        Ok(value)
    }

    pub(super) fn bit(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.bits(1, field).map(|bit| bit == 1)
    }

    /// Zeros before a one, of which at most `limit` are allowed.
    pub(super) fn unary(&mut self, limit: u64, field: &'static str) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let mut zeros = 0u64;
        loop {
            let run = self.peek().trailing_zeros() as usize;
            let left = self.left();
            if run.min(64) >= left {
                self.at += left;
                return Err(self.truncated(1, field));
            }
            zeros += run as u64;
            if zeros > limit {
                return Err(invalid(
                    offset,
                    field,
                    format!("more than {limit} zeros before a one"),
                ));
            }
            self.at += run;
            if run < 64 {
                self.at += 1;
                return Ok(zeros);
            }
        }
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let prefix = self.unary(6, field)? as u32;
        let len = 1 << prefix | self.bits(prefix, field)?;
        if len > 64 {
            return Err(invalid(offset, field, "a number of more than 64 bits"));
        }
        let top = 1u64 << (len - 1);
        Ok((top | self.bits(len as u32 - 1, field)?) - 1)
    }

    /// A number of at most `limit`.
    pub(super) fn ranged(&mut self, limit: u64, field: &'static str) -> Result<u64, DecodeError> {
        let offset = self.offset();
        let value = self.number(field)?;
        within(offset, field, value, limit)
    }

    pub(super) fn signed(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.number(field).map(unzigzag)
    }

    /// One more than the number that stands here: how many things follow, of at least `size`
    /// bits each and at most `limit`. Never more than the rest can carry.
    pub(super) fn count(
        &mut self,
        limit: usize,
        size: usize,
        field: &'static str,
    ) -> Result<usize, DecodeError> {
        let offset = self.offset();
        let count = self.number(field)?.saturating_add(1);
        self.carries(offset, field, count, size)?;
        within(offset, field, count, limit as u64).map(|count| count as usize)
    }

    /// Refuses a count of things of at least `size` bits each that the rest can't carry.
    pub(super) fn carries(
        &self,
        offset: usize,
        field: &'static str,
        count: u64,
        size: usize,
    ) -> Result<usize, DecodeError> {
        if count > (self.left() / size) as u64 {
            let left = self.left() / 8;
            return Err(fault(offset, field, Defect::CountTooLarge { count, left }));
        }
        Ok(count as usize)
    }

    /// Refuses other bits than the zeros that fill up the last byte.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        let offset = self.offset();
        match self.left() {
            0 => Ok(()),
            1..=7 if self.peek() == 0 => Ok(()),
            1..=7 => Err(invalid(offset, "end", "unused bits that are not zero")),
            _ => {
                let left = self.bytes.len() - self.at.div_ceil(8);
                let what = format!("{left} trailing byte(s) after the end");
                Err(invalid(self.at.div_ceil(8), "end", what))
            }
        }
    }

    fn truncated(&self, width: usize, field: &'static str) -> DecodeError {
        let missing = (width - self.left().min(width)).div_ceil(8).max(1);
        fault(self.bytes.len(), field, Defect::Truncated { missing })
    }
}

/// Refuses a number above a limit.
pub(super) fn within(
    offset: usize,
    field: &'static str,
    value: u64,
    limit: u64,
) -> Result<u64, DecodeError> {
    if value <= limit {
        return Ok(value);
    }
    let defect = Defect::OutOfRange {
        value: value.into(),
        low: 0,
        high: limit.into(),
    };
    Err(fault(offset, field, defect))
}

/// Number of bits of a value without its leading zeros.
pub(super) const fn bit_length(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Bits that an index among so many entries takes.
pub(super) const fn index_width(entries: u64) -> u32 {
    bit_length(entries.saturating_sub(1))
}

const fn low(value: u64, width: u32) -> u64 {
    if width >= 64 {
        value
    } else {
        value & ((1 << width) - 1)
    }
}

pub(super) const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
