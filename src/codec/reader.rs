//! A cursor over bytes that knows where it is, so that every error can say it.

use std::ops::RangeInclusive;

use super::error::{DecodeError, Defect};
use super::varint::{self, VarintError};

pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// An error at an offset.
pub(crate) fn fault(offset: usize, field: &'static str, defect: Defect) -> DecodeError {
    DecodeError {
        offset,
        field,
        defect,
    }
}

/// An error that a text describes.
pub(crate) fn invalid(offset: usize, field: &'static str, what: impl Into<String>) -> DecodeError {
    fault(offset, field, Defect::Invalid(what.into()))
}

/// A number outside its range.
pub(crate) fn out_of_range(
    offset: usize,
    field: &'static str,
    value: i64,
    range: RangeInclusive<i64>,
) -> DecodeError {
    let defect = Defect::OutOfRange {
        value: value.into(),
        low: (*range.start()).into(),
        high: (*range.end()).into(),
    };
    fault(offset, field, defect)
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Goes on at an offset.
    pub(crate) fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes on at an offset that was reached otherwise.
    pub(crate) fn seek(&mut self, offset: usize) {
        self.at = offset;
    }

    /// What is still to be read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn take(
        &mut self,
        len: usize,
        field: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let Some(taken) = rest.get(..len) else {
            return Err(self.truncated(len - rest.len(), field));
        };
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let rest = self.rest();
        let Some(taken) = rest.first_chunk::<N>() else {
            return Err(self.truncated(N - rest.len(), field));
        };
        self.at += N;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.array(field).map(i32::from_le_bytes)
    }

    pub(crate) fn varint(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        match varint::read(self.rest()) {
            Ok((value, len)) => {
                self.at += len;
                Ok(value)
            }
            Err(VarintError::Truncated) => Err(self.truncated(1, field)),
            Err(VarintError::Overflow) => Err(invalid(
                self.at,
                field,
                "a variable-length integer of more than 64 bits",
            )),
            Err(VarintError::Overlong) => Err(invalid(
                self.at,
                field,
                "a variable-length integer that is longer than its value needs",
            )),
        }
    }

    /// A variable-length integer within a range.
    pub(crate) fn ranged(
        &mut self,
        field: &'static str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, DecodeError> {
        let offset = self.at;
        let value = self.varint(field)?;
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(out_of_range(offset, field, value, range))
        }
    }

    /// A number of things of at least `size` bytes each: never more than the rest can carry.
    pub(crate) fn count(
        &mut self,
        field: &'static str,
        range: RangeInclusive<i64>,
        size: usize,
    ) -> Result<usize, DecodeError> {
        let offset = self.at;
        let count = self.ranged(field, range)? as u64;
        self.check_count(offset, field, count, size)
    }

    /// Refuses a count that the rest can't carry.
    pub(crate) fn check_count(
        &self,
        offset: usize,
        field: &'static str,
        count: u64,
        size: usize,
    ) -> Result<usize, DecodeError> {
        let left = self.rest().len();
        if count > (left / size) as u64 {
            return Err(fault(offset, field, Defect::CountTooLarge { count, left }));
        }
        Ok(count as usize)
    }

    /// Refuses what follows the last field.
    pub(crate) fn finish(&self, field: &'static str) -> Result<(), DecodeError> {
        match self.rest().len() {
            0 => Ok(()),
            left => Err(invalid(
                self.at,
                field,
                format!("{left} trailing byte(s) after the end"),
            )),
        }
    }

    fn truncated(&self, missing: usize, field: &'static str) -> DecodeError {
        fault(self.bytes.len(), field, Defect::Truncated { missing })
    }
}
