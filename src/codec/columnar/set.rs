//! A set of positions: none, all, a bitmap, or the few members (or the few others) in the code of
//! Elias and Fano, which takes about 2 + log2(distance) bits each and is searched as it stands.

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid};
use super::bits;
use super::ints::BLOCK;
use super::scan::{Coded, Scan};

/// No position.
pub(super) const NONE: u8 = 0;
/// Every position.
pub(super) const ALL: u8 = 1;
/// A bit for every position.
pub(super) const BITMAP: u8 = 2;
/// The members, coded.
pub(super) const MEMBERS: u8 = 3;
/// The positions that are no members, coded.
pub(super) const OTHERS: u8 = 4;

/// The most low bits of a coded position: positions of objects span 32 bits.
pub(super) const MAX_LOW: u32 = 32;

/// 64-bit words of a block's mask.
pub(super) const WORDS: usize = BLOCK / 64;

/// Which positions of a block are members.
pub(super) type Mask = [u64; WORDS];

/// A set that was found in some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set<'a> {
    pub(super) field: &'static str,
    pub(super) offset: usize,
    pub(super) universe: u64,
    pub(super) kind: u8,
    /// Members, but in [`OTHERS`] the positions that are none.
    pub(super) coded: u64,
    pub(super) low: u32,
    /// The bits of a bitmap, or the low bits of coded positions and what follows them.
    pub(super) lows: &'a [u8],
    /// The high bits of coded positions.
    pub(super) highs: &'a [u8],
}

impl<'a> Set<'a> {
    /// Every position.
    pub(super) fn all(universe: u64) -> Self {
        Self {
            kind: ALL,
            ..Self::none(universe)
        }
    }

    fn none(universe: u64) -> Self {
        Self {
            field: "",
            offset: 0,
            universe,
            kind: NONE,
            coded: 0,
            low: 0,
            lows: &[],
            highs: &[],
        }
    }

    /// Finds a set of positions below `universe`.
    pub(super) fn find(
        reader: &mut Reader<'a>,
        field: &'static str,
        universe: u64,
    ) -> Result<Self, DecodeError> {
        let offset = reader.offset();
        let kind = reader.u8(field)?;
        let mut set = Self {
            field,
            offset,
            kind,
            ..Self::none(universe)
        };
        match kind {
            NONE | ALL => {}
            BITMAP => {
                set.coded = set.count(reader)?;
                set.lows = bits::take(reader, field, universe.into())?;
            }
            MEMBERS | OTHERS => {
                set.coded = set.count(reader)?;
                let at = reader.offset();
                set.low = reader.u8(field)?.into();
                if set.low > MAX_LOW {
                    let what = format!("{} low bits of a position, at most 32", set.low);
                    return Err(invalid(at, field, what));
                }
                let count = u128::from(set.coded);
                set.lows = reader.rest();
                bits::take(reader, field, count * u128::from(set.low))?;
                let highest = universe.saturating_sub(1) >> set.low;
                set.highs = bits::take(reader, field, count + u128::from(highest))?;
            }
            other => {
                let what = format!("no kind of position set has the number {other}");
                return Err(invalid(offset, field, what));
            }
        }
        Ok(set)
    }

    /// Some positions, but not all: those are other kinds.
    fn count(&self, reader: &mut Reader<'a>) -> Result<u64, DecodeError> {
        let most = i64::try_from(self.universe.saturating_sub(1)).unwrap_or(i64::MAX);
        reader
            .ranged(self.field, 1..=most)
            .map(|count| count as u64)
    }

    /// Number of positions.
    pub(super) fn universe(&self) -> u64 {
        self.universe
    }

    /// Number of members.
    pub(super) fn len(&self) -> u64 {
        match self.kind {
            NONE => 0,
            ALL => self.universe,
            OTHERS => self.universe - self.coded,
            _ => self.coded,
        }
    }

    /// Whether there is no member.
    pub(super) fn is_empty(&self) -> bool {
        self.kind == NONE
    }

    /// Whether there are few members, each of them coded, or none.
    pub(super) fn is_few(&self) -> bool {
        matches!(self.kind, MEMBERS | NONE)
    }

    /// Whether every position is a member.
    pub(super) fn is_all(&self) -> bool {
        self.kind == ALL
    }

    /// Its kind and its low bits, for reports.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            NONE => "none".to_owned(),
            ALL => "all".to_owned(),
            BITMAP => format!("bitmap of {}", self.coded),
            MEMBERS => format!("{} coded, {} low bits", self.coded, self.low),
            _ => format!("all but {} coded, {} low bits", self.coded, self.low),
        }
    }

    /// Number of members below a position, and whether the position is one.
    pub(super) fn rank(&self, position: u64) -> Result<(u64, bool), DecodeError> {
        match self.kind {
            NONE => Ok((0, false)),
            ALL => Ok((position.min(self.universe), position < self.universe)),
            BITMAP => {
                let position = position.min(self.universe);
                let whole = (position / 64) as usize;
                let before = (self.lows.chunks_exact(8).take(whole))
                    .map(|word| u64::from(bits::load(word, 0).count_ones()))
                    .sum::<u64>();
                let word = bits::load(self.lows, 8 * whole);
                let below = word & bits::mask((position % 64) as u32);
                let within = position < self.universe && word >> (position % 64) & 1 == 1;
                Ok((before + u64::from(below.count_ones()), within))
            }
            _ => {
                let mut coded = self.coded_from(position)?;
                let before = coded.index;
                let within = coded.peek()? == Some(position);
                Ok(match self.kind {
                    MEMBERS => (before, within),
                    _ => {
                        let position = position.min(self.universe);
                        let inside = position < self.universe;
                        (position.saturating_sub(before), inside && !within)
                    }
                })
            }
        }
    }

    /// The member that has `index` members before it.
    pub(super) fn select(&self, index: u64) -> Result<Option<u64>, DecodeError> {
        if index >= self.len() {
            return Ok(None);
        }
        match self.kind {
            NONE => Ok(None),
            ALL => Ok(Some(index)),
            BITMAP => {
                let mut before = 0;
                for (at, word) in (0u64..).zip(self.lows.chunks(8)) {
                    let word = bits::load(word, 0);
                    let ones = u64::from(word.count_ones());
                    if before + ones > index {
                        return Ok(Some(64 * at + nth_one(word, index - before)));
                    }
                    before += ones;
                }
                Ok(None)
            }
            MEMBERS => Coded::at_index(*self, index).peek(),
            _ => {
                let mut others = Coded::at_index(*self, 0);
                let mut position = index;
                while let Some(other) = others.peek()?.filter(|other| *other <= position) {
                    position += 1;
                    let _ = other;
                    others.step();
                }
                Ok((position < self.universe).then_some(position))
            }
        }
    }

    /// The coded positions from one on.
    pub(super) fn coded_from(&self, position: u64) -> Result<Coded<'a>, DecodeError> {
        let mut coded = Coded::at_high(*self, position >> self.low);
        while coded.peek()?.is_some_and(|next| next < position) {
            coded.step();
        }
        Ok(coded)
    }

    /// Goes through the set from a position on.
    pub(super) fn scan(&self, from: u64) -> Result<Scan<'a>, DecodeError> {
        Scan::new(*self, from)
    }

    /// Offset of its first byte.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    #[cold]
    pub(super) fn wrong(&self, what: impl Into<String>) -> DecodeError {
        invalid(self.offset, self.field, what)
    }
}

/// Position of the one that has `n` ones below it.
pub(super) fn nth_one(mut word: u64, n: u64) -> u64 {
    for _ in 0..n {
        word &= word.wrapping_sub(1);
    }
    word.trailing_zeros().into()
}

/// Whether a bit of a mask is set.
#[inline]
pub(super) fn is_in(mask: &Mask, at: usize) -> bool {
    mask.get(at / 64)
        .is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// Calls `visit` with the position of each one in a mask, ascending.
#[inline]
pub(super) fn each_one(mask: &Mask, mut visit: impl FnMut(usize)) {
    for (at, word) in mask.iter().enumerate() {
        bits::each_bit(*word, |bit| visit(64 * at + bit));
    }
}
