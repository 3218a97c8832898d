//! A set of positions: none, all, a bitmap, or the few members (or the few others) in the code of
//! Elias and Fano, which takes about 2 + log2(distance) bits each and is searched as it stands.

use super::super::error::{DecodeError, Defect};
use super::super::reader::{Reader, fault, invalid};
use super::bits;
use super::ints::BLOCK;

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
    field: &'static str,
    offset: usize,
    universe: u64,
    kind: u8,
    /// Members, but in [`OTHERS`] the positions that are none.
    coded: u64,
    low: u32,
    /// The bits of a bitmap, or the low bits of coded positions and what follows them.
    lows: &'a [u8],
    /// The high bits of coded positions.
    highs: &'a [u8],
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
    fn coded_from(&self, position: u64) -> Result<Coded<'a>, DecodeError> {
        let mut coded = Coded::at_high(*self, position >> self.low);
        while coded.peek()?.is_some_and(|next| next < position) {
            coded.step();
        }
        Ok(coded)
    }

    /// Goes through the set from a position on.
    pub(super) fn scan(&self, from: u64) -> Result<Scan<'a>, DecodeError> {
        let coded = match self.kind {
            MEMBERS | OTHERS => self.coded_from(from)?,
            _ => Coded::at_index(*self, 0),
        };
        Ok(Scan {
            rank: self.rank(from)?.0,
            at: from,
            coded,
        })
    }

    /// Offset of its first byte.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    #[cold]
    fn wrong(&self, what: impl Into<String>) -> DecodeError {
        invalid(self.offset, self.field, what)
    }
}

/// Position of the one that has `n` ones below it.
fn nth_one(mut word: u64, n: u64) -> u64 {
    for _ in 0..n {
        word &= word.wrapping_sub(1);
    }
    word.trailing_zeros().into()
}

/// A cursor over coded positions. The high bits are in unary: position i with high part h has the
/// bit h + i set.
#[derive(Clone, Debug)]
struct Coded<'a> {
    set: Set<'a>,
    /// Coded positions before the next one.
    index: u64,
    /// Word of the high bits, with the bits of what was passed cleared.
    word: u64,
    /// Number of that word.
    word_at: usize,
    /// The position passed last.
    passed: Option<u64>,
    next: Option<u64>,
}

impl<'a> Coded<'a> {
    fn new(set: Set<'a>, index: u64, word_at: usize, clear: u32) -> Self {
        let word = bits::load(set.highs, 8 * word_at);
        Self {
            set,
            index,
            word: if clear < 64 {
                word >> clear << clear
            } else {
                0
            },
            word_at,
            passed: None,
            next: None,
        }
    }

    /// Before the first position whose high part is at least `high`: behind `high` zeros.
    fn at_high(set: Set<'a>, high: u64) -> Self {
        if high == 0 {
            return Self::new(set, 0, 0, 0);
        }
        let (mut zeros, mut ones) = (0, 0);
        let words = set.highs.len().div_ceil(8);
        for at in 0..words {
            let word = bits::load(set.highs, 8 * at);
            let here = u64::from(word.count_zeros());
            if zeros + here >= high {
                let bit = nth_one(!word, high - zeros - 1) as u32;
                let below = word & bits::mask(bit);
                return Self::new(set, ones + u64::from(below.count_ones()), at, bit + 1);
            }
            zeros += here;
            ones += u64::from(word.count_ones());
        }
        Self::new(set, ones, words, 0)
    }

    /// Before the position that has `index` coded ones before it.
    fn at_index(set: Set<'a>, index: u64) -> Self {
        let mut before = 0;
        let words = set.highs.len().div_ceil(8);
        for at in 0..words {
            let word = bits::load(set.highs, 8 * at);
            let ones = u64::from(word.count_ones());
            if before + ones > index {
                return Self::new(set, index, at, nth_one(word, index - before) as u32);
            }
            before += ones;
        }
        Self::new(set, before, words, 0)
    }

    /// The next position.
    #[inline]
    fn peek(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.next.is_none() && self.index < self.set.coded {
            self.next = Some(self.find()?);
        }
        Ok(self.next)
    }

    fn find(&mut self) -> Result<u64, DecodeError> {
        while self.word == 0 {
            self.word_at += 1;
            if 8 * self.word_at >= self.set.highs.len() {
                return Err(self.set.wrong(format!(
                    "{} positions, but the high parts of {} only",
                    self.set.coded, self.index
                )));
            }
            self.word = bits::load(self.set.highs, 8 * self.word_at);
        }
        let bit = 64 * self.word_at as u64 + u64::from(self.word.trailing_zeros());
        let low = self.set.low;
        let at = self.index as usize * low as usize;
        let position = (bit - self.index) << low | bits::number(self.set.lows, at, low);
        if self.passed.is_some_and(|passed| passed >= position) {
            let what = format!("position {position} does not ascend");
            return Err(self.set.wrong(what));
        }
        if position >= self.set.universe {
            let what = format!("position {position} of {} positions", self.set.universe);
            return Err(self.set.wrong(what));
        }
        Ok(position)
    }

    /// Passes the position that [`peek`](Self::peek) gave.
    #[inline]
    fn step(&mut self) {
        self.passed = self.next.take();
        self.index += 1;
        self.word &= self.word.wrapping_sub(1);
    }

    /// Checks that nothing is left.
    fn finish(&mut self) -> Result<(), DecodeError> {
        if self.peek()?.is_some() {
            return Err(self.set.wrong("positions are left"));
        }
        let more = (self
            .set
            .highs
            .get(8 * self.word_at + 8..)
            .unwrap_or_default())
        .iter()
        .any(|byte| *byte != 0);
        if self.word != 0 || more {
            let what = format!("high parts of more than {} positions", self.set.coded);
            return Err(self.set.wrong(what));
        }
        Ok(())
    }
}

/// A cursor over a set, block by block or run by run.
#[derive(Clone, Debug)]
pub(super) struct Scan<'a> {
    at: u64,
    rank: u64,
    coded: Coded<'a>,
}

impl Scan<'_> {
    /// Number of members passed.
    pub(super) fn rank(&self) -> u64 {
        self.rank
    }

    /// Which of the next `len` positions (at most a block) are members, and how many; passes them.
    pub(super) fn block(&mut self, len: usize, mask: &mut Mask) -> Result<usize, DecodeError> {
        let set = self.coded.set;
        if set.kind == NONE {
            return Ok(0);
        }
        *mask = [0; WORDS];
        let from = self.at;
        self.at += len as u64;
        let count = match set.kind {
            ALL => {
                fill(mask, len);
                len
            }
            BITMAP => {
                let mut count = 0;
                for (at, word) in mask.iter_mut().enumerate().take(len.div_ceil(64)) {
                    *word = bits::word(set.lows, from as usize + 64 * at);
                    let left = len - 64 * at;
                    if left < 64 {
                        *word &= bits::mask(left as u32);
                    }
                    count += word.count_ones() as usize;
                }
                count
            }
            _ => {
                let mut coded = 0;
                while let Some(next) = self.coded.peek()?.filter(|next| *next < self.at) {
                    let bit = (next - from) as usize;
                    if let Some(word) = mask.get_mut(bit / 64) {
                        *word |= 1 << (bit % 64);
                    }
                    coded += 1;
                    self.coded.step();
                }
                if set.kind == OTHERS {
                    let others = *mask;
                    fill(mask, len);
                    for (word, others) in mask.iter_mut().zip(others) {
                        *word &= !others;
                    }
                    len - coded
                } else {
                    coded
                }
            }
        };
        self.rank += count as u64;
        Ok(count)
    }

    /// The next members without a gap between them: the first one, and how many (more may
    /// follow directly). Passes them.
    pub(super) fn run(&mut self) -> Result<Option<(u64, u64)>, DecodeError> {
        let set = self.coded.set;
        let (start, len) = match set.kind {
            NONE => return Ok(None),
            ALL => (self.at, set.universe.saturating_sub(self.at)),
            BITMAP => loop {
                if self.at >= set.universe {
                    return Ok(None);
                }
                let word = bits::word(set.lows, self.at as usize);
                if word == 0 {
                    self.at += 64;
                    continue;
                }
                let gap = word.trailing_zeros();
                let len = u64::from((word >> gap).trailing_ones());
                let start = self.at + u64::from(gap);
                break (start, len.min(set.universe.saturating_sub(start)));
            },
            MEMBERS => match self.coded.peek()? {
                None => return Ok(None),
                Some(next) => {
                    self.coded.step();
                    (next, 1)
                }
            },
            _ => loop {
                match self.coded.peek()? {
                    Some(next) if next == self.at => {
                        self.at += 1;
                        self.coded.step();
                    }
                    next => {
                        let end = next.unwrap_or(set.universe);
                        break (self.at, end.saturating_sub(self.at));
                    }
                }
            },
        };
        self.at = start + len;
        self.rank += len;
        Ok((len > 0).then_some((start, len)))
    }

    /// Checks that a set that was passed to its end has the members that it says it has.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        let set = self.coded.set;
        if matches!(set.kind, MEMBERS | OTHERS) {
            self.coded.finish()?;
        }
        if self.rank == set.len() || set.kind == NONE {
            return Ok(());
        }
        let (offset, field) = (set.offset, set.field);
        let what = format!("{} positions, but {} are stored", set.len(), self.rank);
        Err(fault(offset, field, Defect::Invalid(what)))
    }
}

fn fill(mask: &mut Mask, len: usize) {
    for (at, word) in mask.iter_mut().enumerate().take(len.div_ceil(64)) {
        let left = len - 64 * at;
        *word = if left < 64 {
            bits::mask(left as u32)
        } else {
            u64::MAX
        };
    }
}

/// Calls `visit` with the position of each one in a mask, ascending.
#[inline]
pub(super) fn each_one(mask: &Mask, mut visit: impl FnMut(usize)) {
    for (at, word) in mask.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            visit(64 * at + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}
