//! The forms that a column of a frame takes, and their short cases.

use std::ops::RangeInclusive;

use crate::codec::error::DecodeError;
use crate::codec::reader::out_of_range;

use super::bits::{BitReader, BitWriter, bit_length};

/// The most bits of an offset from the smallest of some times.
const MAX_WIDTH: u64 = 48;

/// Yes or no for each lease: 0 if all no, 10 if all yes, or 11 and a bit each.
pub(super) fn write_choices(bits: &mut BitWriter, choices: impl Iterator<Item = bool> + Clone) {
    let yes = choices.clone().any(|choice| choice);
    bits.bit(yes);
    if yes {
        let no = choices.clone().any(|choice| !choice);
        bits.bit(no);
        if no {
            choices.for_each(|choice| bits.bit(choice));
        }
    }
}

pub(super) fn read_choices(
    bits: &mut BitReader<'_>,
    count: usize,
    field: &'static str,
) -> Result<Vec<bool>, DecodeError> {
    if !bits.bit(field)? {
        Ok(vec![false; count])
    } else if !bits.bit(field)? {
        Ok(vec![true; count])
    } else {
        (0..count).map(|_| bits.bit(field)).collect()
    }
}

/// Two bits for each lease, or once for all.
pub(super) fn write_pairs(bits: &mut BitWriter, pairs: impl Iterator<Item = u64> + Clone) {
    let first = pairs.clone().next().unwrap_or(0);
    if pairs.clone().all(|pair| pair == first) {
        bits.bit(false);
        bits.bits(first, 2);
    } else {
        bits.bit(true);
        pairs.for_each(|pair| bits.bits(pair, 2));
    }
}

pub(super) fn read_pairs(
    bits: &mut BitReader<'_>,
    count: usize,
    field: &'static str,
) -> Result<Vec<u8>, DecodeError> {
    if bits.bit(field)? {
        let pair = |_| bits.bits(2, field).map(|pair| pair as u8);
        (0..count).map(pair).collect()
    } else {
        Ok(vec![bits.bits(2, field)? as u8; count])
    }
}

/// Numbers as offsets from the smallest, in as many bits as the largest needs.
pub(super) fn write_packed(bits: &mut BitWriter, values: impl Iterator<Item = i64> + Clone) {
    let min = values.clone().min().unwrap_or(0);
    let max = values.clone().max().unwrap_or(0);
    let width = bit_length((max - min) as u64);
    bits.signed(min);
    bits.number(width.into());
    values.for_each(|value| bits.bits((value - min) as u64, width));
}

/// Such numbers, all within a range.
pub(super) fn read_packed(
    bits: &mut BitReader<'_>,
    count: usize,
    range: RangeInclusive<i64>,
    field: &'static str,
) -> Result<Vec<i64>, DecodeError> {
    let offset = bits.offset();
    let min = in_range(offset, field, bits.signed(field)?, range.clone())?;
    let width = bits.ranged(MAX_WIDTH, field)? as u32;
    let value = |_| {
        let offset = bits.offset();
        let value = min + bits.bits(width, field)? as i64;
        in_range(offset, field, value, range.clone())
    };
    (0..count).map(value).collect()
}

pub(super) fn in_range(
    offset: usize,
    field: &'static str,
    value: i64,
    range: RangeInclusive<i64>,
) -> Result<i64, DecodeError> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(out_of_range(offset, field, value, range))
    }
}

/// The most frequent of some values; of equally frequent ones the smallest.
pub(super) fn most_frequent<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = values.collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b);
    let best = runs.reduce(|best, run| if run.len() > best.len() { run } else { best });
    best.and_then(|run| run.first().copied())
}
