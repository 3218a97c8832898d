//! The commonest lease as one 64-bit word.
//!
//! Common expiration, nodes of one byte, period of one to five, start without logical part: four
//! to eight bytes, most often the same number as the lease before. Both ways branch on the
//! length instead of computing with it: predicted, the branch does not hold up the next lease.
//! What is not recognised here, sound or not, is left to the careful path.

use crate::model::batch::Row;
use crate::model::dictionary::Dictionary;
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use crate::model::ids::GroupId;

use super::element::Elements;
use super::{HAS_CANDIDATE, LOGICAL, PACKED_MAX, PACKED_SHIFT};

/// Numbers below this take one byte.
const ONE_BYTE: u64 = 0x7F;
/// Position of the first byte of the period: after flags and nodes.
const PERIOD_BIT: u32 = 16;

/// Reads such leases.
pub(super) struct Reading {
    /// Physical part of the common expiration, plus one as periods are stored.
    common: u64,
    /// Holder (low half) and candidate by the byte of the nodes and, above it, whether there is
    /// a candidate.
    nodes: [u64; 256],
}

/// No row has this holder.
const UNKNOWN: u64 = u64::MAX;

/// What the eight bytes are masked with, and what then is left, for a period of `len` bytes:
/// flags of a common expiration, nodes without continuation, the period's continuation bits, and
/// a start logical of 0 (`01`).
const fn shape(len: u32) -> (u64, u64) {
    let mut mask = 0x80_E8;
    let mut left = 0;
    let mut at = PERIOD_BIT;
    while at < PERIOD_BIT + 8 * len {
        mask |= 0x80 << at;
        left |= 0x80 << at;
        at += 8;
    }
    left &= !(0x80 << (at - 8));
    (mask | 0xFF << at, left | 1 << at)
}

impl Reading {
    pub(super) fn new(elements: &Elements, dictionary: &Dictionary) -> Self {
        let (names, ids) = (dictionary.names().len(), dictionary.nodes().len());
        let mut nodes = [UNKNOWN; 256];
        for number in 0..ONE_BYTE as usize {
            let mut enter = |slot: usize, holder: usize, candidate: u32| {
                if holder < ids {
                    nodes[slot] = holder as u64 | u64::from(candidate) << 32;
                }
            };
            enter(number + 1, number, Row::NO_CANDIDATE);
            // With more ids a number may be ambiguous, which is counted elsewhere.
            let (holder, candidate) = (number % PACKED_MAX, number >> PACKED_SHIFT);
            if elements.packed && ids <= PACKED_MAX && candidate < names {
                enter(0x80 + number + 1, holder, candidate as u32);
            }
        }
        Self {
            common: elements.common.physical() + 1,
            nodes,
        }
    }

    /// The lease in the next eight bytes and its length.
    #[inline(always)]
    pub(super) fn read(&self, word: u64, group: GroupId) -> Option<(Row, usize)> {
        const ONE: (u64, u64) = shape(1);
        const TWO: (u64, u64) = shape(2);
        const THREE: (u64, u64) = shape(3);
        const FOUR: (u64, u64) = shape(4);
        const FIVE: (u64, u64) = shape(5);
        let bits = |byte: u32| word >> (PERIOD_BIT + byte) & 0x7F << (7 * byte);
        if word & TWO.0 == TWO.1 {
            self.row(word, bits(0) | bits(1), 1 << 7, group, 5)
        } else if word & FIVE.0 == FIVE.1 {
            let period = bits(0) | bits(1) | bits(2) | bits(3) | bits(4);
            self.row(word, period, 1 << 28, group, 8)
        } else if word & FOUR.0 == FOUR.1 {
            let period = bits(0) | bits(1) | bits(2) | bits(3);
            self.row(word, period, 1 << 21, group, 7)
        } else if word & THREE.0 == THREE.1 {
            self.row(word, bits(0) | bits(1) | bits(2), 1 << 14, group, 6)
        } else if word & ONE.0 == ONE.1 {
            self.row(word, bits(0), 0, group, 4)
        } else {
            None
        }
    }

    /// The row of a recognised lease; `least` is the smallest period of this length.
    #[inline(always)]
    fn row(
        &self,
        word: u64,
        period: u64,
        least: u64,
        group: GroupId,
        len: usize,
    ) -> Option<(Row, usize)> {
        let flags = word as u8;
        let nodes = self.nodes[usize::from((word >> 8) as u8 | (flags & HAS_CANDIDATE) << 5)];
        let start = self.common.wrapping_sub(period);
        // Overlong, a start before 0 or at 0.0, or a holder out of range.
        if period < least || start.wrapping_sub(1) >= MAX_PHYSICAL || nodes == UNKNOWN {
            return None;
        }
        let row = Row::from_words(
            group,
            start << 16,
            nodes as u32,
            (nodes >> 32) as u32,
            flags,
        );
        Some((row, len))
    }
}

/// Writes such leases.
pub(super) struct Writing {
    /// Physical part of the common expiration, plus one as periods are stored.
    common: u64,
    /// What each holder adds to the word.
    holders: Vec<u64>,
    /// What each candidate adds to the word; at the end, what none does.
    candidates: Vec<u64>,
}

/// Marks nodes that do not fit one byte; two of these can be added.
const TOO_LARGE: u64 = 1 << 62;

impl Writing {
    /// `nodes` and `names` are the written indexes of the rows' holders and candidates.
    pub(super) fn new(common: HybridTimestamp, packed: bool, nodes: &[u32], names: &[u32]) -> Self {
        let base = if common.logical() == 0 { 0 } else { LOGICAL };
        let holder = |node: &u32| match u64::from(*node) + 1 {
            number @ 0..=ONE_BYTE => u64::from(base) | number << 8,
            _ => TOO_LARGE,
        };
        let candidate = |name: &u32| {
            if packed {
                u64::from(HAS_CANDIDATE) | u64::from(*name << PACKED_SHIFT) << 8
            } else {
                TOO_LARGE
            }
        };
        Self {
            common: common.physical() + 1,
            holders: nodes.iter().map(holder).collect(),
            candidates: names.iter().map(candidate).chain([0]).collect(),
        }
    }

    /// The bytes of a lease and how many they are. The caller has checked that the lease has the
    /// common expiration.
    #[inline(always)]
    pub(super) fn word(&self, row: &Row) -> Option<(u64, usize)> {
        let (holder, candidate, flags) = row.words();
        // A branch on whether there is a candidate could not be predicted.
        let none = self.candidates.len() - 1;
        let candidate = self.candidates[none.min(candidate as usize)];
        let head = u64::from(flags) + self.holders[holder as usize] + candidate;
        let start = row.packed_start();
        if start & 0xFFFF != 0 || head >= TOO_LARGE {
            return None;
        }
        let period = self.common.wrapping_sub(start >> 16);
        // The bits from 7 × byte on, at the byte's place.
        let bits = |byte: u32| period << (PERIOD_BIT + byte) & 0x7F << (PERIOD_BIT + 8 * byte);
        if (1 << 7..1 << 14).contains(&period) {
            Some(Self::close(head | bits(0) | bits(1), 2))
        } else if period < 1 << 28 {
            if period >= 1 << 21 {
                let period = bits(0) | bits(1) | bits(2) | bits(3);
                Some(Self::close(head | period, 4))
            } else if period >= 1 << 14 {
                Some(Self::close(head | bits(0) | bits(1) | bits(2), 3))
            } else {
                Some(Self::close(head | bits(0), 1))
            }
        } else if period < 1 << 35 {
            let period = bits(0) | bits(1) | bits(2) | bits(3) | bits(4);
            Some(Self::close(head | period, 5))
        } else {
            None
        }
    }

    /// Adds to flags, nodes and a period of `len` bytes what is the same in all such leases: the
    /// continuation bits of the period and the start logical of 0.
    #[inline(always)]
    const fn close(word: u64, len: u32) -> (u64, usize) {
        let logical = 1 << (PERIOD_BIT + 8 * len);
        let more = 0x8080_8080 & ((1 << (8 * (len - 1))) - 1);
        (word | more << PERIOD_BIT | logical, 3 + len as usize)
    }
}
