//! Ascending positions of rows: Rice-coded gaps.
//!
//! Positions drawn at random leave gaps of a geometric distribution, for which a Rice code with
//! the right parameter is near the entropy. A run of neighbours takes one bit each.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;

use super::MAX_CHANGES;
use super::bits::{BitReader, BitWriter, bit_length};

/// Bits of the Rice parameter.
const PARAMETER_WIDTH: u32 = 5;

/// Writes a number of positions and the positions; at least one.
pub(super) fn write(bits: &mut BitWriter, positions: &[u32]) {
    let parameter = best_parameter(positions);
    bits.number(positions.len() as u64 - 1);
    bits.bits(parameter.into(), PARAMETER_WIDTH);
    for gap in gaps(positions) {
        bits.unary(u64::from(gap >> parameter));
        bits.bits(u64::from(gap & ((1 << parameter) - 1)), parameter);
    }
}

pub(super) fn read(
    bits: &mut BitReader<'_>,
    count_field: &'static str,
    field: &'static str,
) -> Result<Vec<u32>, DecodeError> {
    let count = bits.count(MAX_CHANGES, 1, count_field)?;
    let parameter = bits.bits(PARAMETER_WIDTH, "Rice parameter")? as u32;
    let mut positions = Vec::with_capacity(count);
    let mut next = 0u64;
    for _ in 0..count {
        let offset = bits.offset();
        let high = bits.unary(u64::from(u32::MAX) >> parameter, field)?;
        let position = next + (high << parameter | bits.bits(parameter, field)?);
        let Ok(narrow) = u32::try_from(position) else {
            return Err(invalid(offset, field, "a position above 2^32 - 1"));
        };
        positions.push(narrow);
        next = position + 1;
    }
    Ok(positions)
}

/// How many rows stand before each position and after the one before it.
fn gaps(positions: &[u32]) -> impl Iterator<Item = u32> {
    let mut next = 0;
    positions.iter().map(move |position| {
        let gap = position - next;
        next = position.saturating_add(1);
        gap
    })
}

/// The parameter that takes the fewest bits, looked for around the mean gap's.
fn best_parameter(positions: &[u32]) -> u32 {
    let span = u64::from(positions.last().copied().unwrap_or(0)) + 1;
    let mean = (span - positions.len() as u64) / positions.len().max(1) as u64;
    let near = bit_length(mean);
    let cost = |parameter: &u32| {
        let low = u64::from(1 + parameter);
        let bits = gaps(positions).map(|gap| u64::from(gap >> parameter) + low);
        bits.sum::<u64>()
    };
    let around = near.saturating_sub(2)..=(near + 1).min(31);
    around.min_by_key(cost).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let max = u32::MAX;
        for positions in [
            vec![0],
            vec![max],
            vec![0, max],
            vec![0, 1, 2, 3, 4, 5],
            vec![7, 8, 4000, 4001, 1 << 30],
        ] {
            let mut bits = BitWriter::default();
            write(&mut bits, &positions);
            let bytes = bits.finish();
            let mut bits = BitReader::at(&bytes, 0);
            assert_eq!(read(&mut bits, "count", "position"), Ok(positions));
            assert_eq!(bits.finish(), Ok(()));
        }
    }

    #[test]
    fn refuses_a_position_beyond_32_bits() {
        let mut bits = BitWriter::default();
        bits.number(1);
        bits.bits(31, PARAMETER_WIDTH);
        for _ in 0..2 {
            bits.unary(1);
            bits.bits(0, 31);
        }
        let bytes = bits.finish();
        assert!(read(&mut BitReader::at(&bytes, 0), "count", "position").is_err());
    }
}
