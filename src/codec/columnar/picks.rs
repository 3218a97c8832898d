//! What few rows are or have: a cursor that finds some positions ahead, with their numbers, so
//! that a block without any costs a comparison.

use super::super::error::DecodeError;
use super::digits::MAX_GROUP;
use super::ints::Ints;
use super::layout::Sparse;
use super::scan::Scan;
use super::set::Set;

/// The most positions that are found ahead.
const ROOM: usize = 64;
/// How many are at first: who asks for a few rows does not want more.
const FIRST: usize = 8;

/// A cursor over a set of positions, and over the numbers that stand there.
pub(super) struct Picks<'a, 'c> {
    scan: Scan<'a>,
    numbers: Option<&'c Ints<'a>>,
    room: usize,
    positions: Vec<u64>,
    values: Vec<u64>,
    /// Where in `values` the number of the first position stands.
    skip: usize,
    /// Positions that were passed on, and that were found.
    passed: usize,
    found: usize,
}

impl<'a, 'c> Picks<'a, 'c> {
    /// From a position on.
    pub(super) fn at(column: &'c Sparse<'a>, position: u64) -> Result<Self, DecodeError> {
        let picks = Self::of(&column.set, position)?;
        Ok(Self {
            numbers: Some(&column.numbers),
            ..picks
        })
    }

    /// From a position of a set on; all numbers are 0.
    pub(super) fn of(set: &Set<'a>, position: u64) -> Result<Self, DecodeError> {
        Ok(Self {
            scan: set.scan(position)?,
            numbers: None,
            room: FIRST,
            positions: Vec::new(),
            values: Vec::new(),
            skip: 0,
            passed: 0,
            found: 0,
        })
    }

    /// Number of members passed on.
    pub(super) fn rank(&self) -> u64 {
        self.scan.rank() - (self.found - self.passed) as u64
    }

    /// Passes on the positions below `end`, and their numbers.
    #[inline]
    pub(super) fn each(
        &mut self,
        end: u64,
        mut visit: impl FnMut(u64, u64),
    ) -> Result<(), DecodeError> {
        loop {
            let positions = self.positions.get(self.passed..self.found);
            let values = self.values.get(self.skip + self.passed..);
            let (positions, values) = (positions.unwrap_or_default(), values.unwrap_or_default());
            for (position, value) in positions.iter().zip(values) {
                if *position >= end {
                    return Ok(());
                }
                visit(*position, *value);
                self.passed += 1;
            }
            if self.scan.at_end() || !self.look_ahead()? {
                return Ok(());
            }
        }
    }

    /// The number at a position, if there is one; passes it. Positions must ascend from call to
    /// call.
    #[inline]
    pub(super) fn take(&mut self, position: u64) -> Result<Option<u64>, DecodeError> {
        let mut taken = None;
        self.each(position + 1, |at, number| {
            if at == position {
                taken = Some(number);
            }
        })?;
        Ok(taken)
    }

    /// Finds the next positions; false if there are none.
    #[inline(never)]
    fn look_ahead(&mut self) -> Result<bool, DecodeError> {
        if self.positions.is_empty() {
            self.positions = vec![0; ROOM];
            self.values = vec![0; ROOM + 2 * MAX_GROUP];
        }
        let rank = self.scan.rank() as usize;
        let room = self.positions.get_mut(..self.room).unwrap_or_default();
        (self.passed, self.found) = (0, 0);
        let found = self.scan.ahead(room)?;
        if let Some(numbers) = self.numbers
            && found > 0
        {
            self.skip = numbers.read_at(rank, rank + found, &mut self.values)?;
        }
        self.found = found;
        self.room = ROOM.min(8 * self.room);
        Ok(found > 0)
    }

    /// Checks that nothing is left.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        self.scan.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::reader::Reader;
    use super::super::super::varint;
    use super::super::set::{MEMBERS, WORDS, each_one};
    use super::*;

    /// All positions of a set whose coded positions have two low bits, as they are found ahead
    /// and as they are found block by block.
    fn read(universe: u64, count: i64, lows: u8, highs: u8) -> [Result<Vec<u64>, DecodeError>; 2] {
        let mut bytes = vec![MEMBERS];
        varint::put(&mut bytes, count);
        bytes.extend([2, lows, highs]);
        let set = Set::find(&mut Reader::new(&bytes), "positions", universe).unwrap();
        let ahead = || {
            let (mut picks, mut found) = (Picks::of(&set, 0)?, Vec::new());
            picks.each(universe, |position, _| found.push(position))?;
            picks.finish().map(|()| found)
        };
        let block = || {
            let (mut scan, mut mask) = (set.scan(0)?, [0; WORDS]);
            scan.block(universe as usize, &mut mask)?;
            let mut found = Vec::new();
            each_one(&mask, |bit| found.push(bit as u64));
            scan.finish().map(|()| found)
        };
        [ahead(), block()]
    }

    #[test]
    fn positions_are_found_ahead() {
        for found in read(16, 2, 0b01_00, 0b0_0110) {
            assert_eq!(found, Ok(vec![4, 5]));
        }
    }

    #[test]
    fn wrong_positions_are_refused_ahead_as_well() {
        let wrong = [
            (16, 2, 0b00_01, 0b0_0110, "position 4 does not ascend"),
            (16, 2, 0b01_01, 0b0_0110, "position 5 does not ascend"),
            (14, 2, 0b11_01, 0b1_0001, "position 15 of 14 positions"),
            (
                16,
                2,
                0b01_00,
                0b0_0010,
                "2 positions, but the high parts of 1 only",
            ),
            (
                16,
                2,
                0b01_00,
                0b0_1110,
                "high parts of more than 2 positions",
            ),
        ];
        for (universe, count, lows, highs, expected) in wrong {
            for found in read(universe, count, lows, highs) {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(expected), "{error}");
            }
        }
    }
}
