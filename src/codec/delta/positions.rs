//! Ascending positions of rows: Rice-coded gaps.
//!
//! Positions drawn at random leave gaps of a geometric distribution, for which a Rice code with
//! the right parameter is near the entropy. Runs of neighbours, as when a table goes, have a
//! form of their own. Each position takes a bit or more, so that a count can be checked.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;

use super::bits::{BitReader, BitWriter, bit_length};

/// Bits of the Rice parameter.
const PARAMETER_WIDTH: u32 = 5;

/// How the gaps between positions are written.
#[derive(Clone, Copy, Debug)]
struct Coding {
    /// Whether a bit says first that a position follows directly on the one before. Then whole
    /// runs cost a bit a position, wherever they are.
    runs: bool,
    parameter: u32,
}

/// Writes a number of positions and the positions; at least one.
pub(super) fn write(bits: &mut BitWriter, positions: &[u32]) {
    let coding = Coding::best(positions);
    bits.number(positions.len() as u64 - 1);
    bits.bit(coding.runs);
    bits.bits(coding.parameter.into(), PARAMETER_WIDTH);
    for mut gap in gaps(positions) {
        if coding.runs {
            bits.bit(gap > 0);
            if gap == 0 {
                continue;
            }
            gap -= 1;
        }
        bits.unary(u64::from(gap >> coding.parameter));
        bits.bits(u64::from(gap & coding.mask()), coding.parameter);
    }
}

/// At most `limit` positions.
pub(super) fn read(
    bits: &mut BitReader<'_>,
    limit: usize,
    count_field: &'static str,
    field: &'static str,
) -> Result<Vec<u32>, DecodeError> {
    let count = bits.count(limit, 1, count_field)?;
    let runs = bits.bit("runs")?;
    let parameter = bits.bits(PARAMETER_WIDTH, "Rice parameter")? as u32;
    let mut positions = Vec::with_capacity(count);
    let mut next = 0u64;
    for _ in 0..count {
        let offset = bits.offset();
        let mut position = next;
        if !runs || bits.bit(field)? {
            let high = bits.unary(u64::from(u32::MAX) >> parameter, field)?;
            let gap = high << parameter | bits.bits(parameter, field)?;
            position += gap + u64::from(runs);
        }
        let Ok(narrow) = u32::try_from(position) else {
            return Err(invalid(offset, field, "a position above 2^32 - 1"));
        };
        positions.push(narrow);
        next = position + 1;
    }
    Ok(positions)
}

/// How many rows stand before each position and after the one before it.
fn gaps(positions: &[u32]) -> impl Iterator<Item = u32> + Clone {
    let mut next = 0;
    positions.iter().map(move |position| {
        let gap = position - next;
        next = position.saturating_add(1);
        gap
    })
}

impl Coding {
    /// What takes the fewest bits.
    fn best(positions: &[u32]) -> Self {
        let apart = gaps(positions).filter_map(|gap| gap.checked_sub(1));
        let (plain, plain_cost) = Self::best_parameter(gaps(positions));
        let (in_runs, runs_cost) = Self::best_parameter(apart);
        let runs = runs_cost + positions.len() as u64 <= plain_cost;
        let parameter = if runs { in_runs } else { plain };
        Self { runs, parameter }
    }

    /// The best parameter and what the gaps take with it; looked for around the mean gap's.
    fn best_parameter(gaps: impl Iterator<Item = u32> + Clone) -> (u32, u64) {
        let (count, sum) = (gaps.clone()).fold((0, 0), |(count, sum), gap| {
            (count + 1, sum + u64::from(gap))
        });
        let near = bit_length(sum / 1.max(count));
        let cost = |parameter: u32| {
            let high: u64 = gaps.clone().map(|gap| u64::from(gap >> parameter)).sum();
            (parameter, high + count * u64::from(1 + parameter))
        };
        let around = near.saturating_sub(2)..=(near + 1).min(31);
        let best = around.map(cost).min_by_key(|(_, cost)| *cost);
        best.unwrap_or_default()
    }

    fn mask(self) -> u32 {
        (1 << self.parameter) - 1
    }
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
            assert_eq!(read(&mut bits, 6, "count", "position"), Ok(positions));
            assert_eq!(bits.finish(), Ok(()));
        }
    }

    #[test]
    fn refuses_a_position_beyond_32_bits() {
        let mut bits = BitWriter::default();
        bits.number(1);
        bits.bit(false);
        bits.bits(31, PARAMETER_WIDTH);
        for _ in 0..2 {
            bits.unary(1);
            bits.bits(0, 31);
        }
        let bytes = bits.finish();
        assert!(read(&mut BitReader::at(&bytes, 0), 6, "count", "position").is_err());
    }
}
