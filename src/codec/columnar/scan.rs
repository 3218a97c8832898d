//! Going through a set of positions: one coded position after the other, block by block, or run
//! by run.

use super::super::error::{DecodeError, Defect};
use super::super::reader::fault;
use super::bits;
use super::set::{ALL, BITMAP, MEMBERS, Mask, NONE, OTHERS, Set, WORDS, each_one, nth_one};

/// A cursor over coded positions. The high bits are in unary: position i with high part h has the
/// bit h + i set.
#[derive(Clone, Debug)]
pub(super) struct Coded<'a> {
    set: Set<'a>,
    /// Coded positions before the next one.
    pub(super) index: u64,
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
    pub(super) fn at_high(set: Set<'a>, high: u64) -> Self {
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
    pub(super) fn at_index(set: Set<'a>, index: u64) -> Self {
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
    pub(super) fn peek(&mut self) -> Result<Option<u64>, DecodeError> {
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

    /// Finds the next positions and passes them; returns how many there were.
    fn ahead(&mut self, out: &mut [u64]) -> Result<usize, DecodeError> {
        let Set {
            low, lows, highs, ..
        } = self.set;
        let (universe, coded) = (self.set.universe, self.set.coded);
        let before = self.clone();
        // Positions ascend as long as none is below the next one that may come.
        let (mut next, mut wrong) = (self.passed.map_or(0, |passed| passed + 1), false);
        let mut count = 0;
        self.next = None;
        for slot in out {
            if self.index == coded {
                break;
            }
            while self.word == 0 && 8 * self.word_at < highs.len() {
                self.word_at += 1;
                self.word = bits::load(highs, 8 * self.word_at);
            }
            // Behind the last word the high part is too large for the universe.
            let bit = 64 * self.word_at as u64 + u64::from(self.word.trailing_zeros());
            let below = bits::number(lows, self.index as usize * low as usize, low);
            let position = bit.wrapping_sub(self.index) << low | below;
            wrong |= position < next || position >= universe;
            (*slot, next) = (position, position.wrapping_add(1));
            self.index += 1;
            self.word &= self.word.wrapping_sub(1);
            count += 1;
        }
        if wrong {
            // One after the other, to tell what is wrong.
            *self = before;
            for _ in 0..count {
                self.peek()?;
                self.step();
            }
        }
        self.passed = next.checked_sub(1);
        Ok(count)
    }

    /// Passes the position that [`peek`](Self::peek) gave.
    #[inline]
    pub(super) fn step(&mut self) {
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

impl<'a> Scan<'a> {
    /// From a position on.
    pub(super) fn new(set: Set<'a>, from: u64) -> Result<Self, DecodeError> {
        let coded = match set.kind {
            MEMBERS | OTHERS => set.coded_from(from)?,
            _ => Coded::at_index(set, 0),
        };
        Ok(Self {
            rank: set.rank(from)?.0,
            at: from,
            coded,
        })
    }

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

    /// Whether all positions were passed.
    #[inline]
    pub(super) fn at_end(&self) -> bool {
        self.at >= self.coded.set.universe || self.coded.set.kind == NONE
    }

    /// Finds the next members, at least one if any is left, and passes them; returns how many.
    pub(super) fn ahead(&mut self, out: &mut [u64]) -> Result<usize, DecodeError> {
        let set = self.coded.set;
        let mut count = 0;
        match set.kind {
            NONE => {}
            MEMBERS => {
                count = self.coded.ahead(out)?;
                self.rank += count as u64;
                let last = out.get(..count).and_then(<[u64]>::last);
                self.at = match last {
                    Some(last) if self.coded.index < set.coded => last + 1,
                    _ => set.universe,
                };
            }
            _ => {
                while count == 0 && self.at < set.universe {
                    let (from, left) = (self.at, set.universe - self.at);
                    let mut mask = [0; WORDS];
                    self.block(out.len().min(left as usize), &mut mask)?;
                    let mut out = out.iter_mut();
                    each_one(&mask, |bit| {
                        if let Some(slot) = out.next() {
                            *slot = from + bit as u64;
                            count += 1;
                        }
                    });
                }
            }
        }
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
