//! Writing which node holds a lease, and which one is its candidate.

use std::cmp::Reverse;

use crate::model::batch::Row;

use super::bits::each_bit;
use super::column::{DigitColumn, ROOM};
use super::digits::Digits;
use super::ints;
use super::sample::Sampled;
use super::set::ALL;
use super::set_write::{self, Bitmap};
use super::survey::Mask;

/// Stands for a node that has no digit.
const RARE: u32 = u32::MAX;

/// The column of holders while it is written.
pub(super) struct HolderColumn {
    nodes: usize,
    /// The nodes that have a digit, unless all have one.
    frequent: Option<Vec<u64>>,
    digit_of: Vec<u32>,
    digits: DigitColumn<u32>,
    row: u64,
    rare: Vec<u64>,
    rare_nodes: Vec<u64>,
}

impl HolderColumn {
    pub(super) fn new(nodes: usize, sampled: &Sampled<'_>) -> Self {
        let (rows, sample) = (sampled.all, &sampled.rows);
        let mut counts: Vec<(u64, u32)> = (0..nodes as u32).map(|node| (0, node)).collect();
        for one in sample {
            if let Some((count, _)) = counts.get_mut(one.row.holder() as usize) {
                *count += 1;
            }
        }
        counts.sort_unstable_by_key(|(count, node)| (Reverse(*count), *node));
        let radix = best_radix(&counts, sample.len() as u64, rows as u64);
        let mut digit_of = Vec::new();
        let frequent = (radix < nodes).then(|| {
            let frequent = counts.iter().take(radix);
            let mut frequent: Vec<u64> = frequent.map(|(_, node)| (*node).into()).collect();
            frequent.sort_unstable();
            digit_of = vec![RARE; nodes];
            for (digit, node) in (0u32..).zip(&frequent) {
                if let Some(slot) = digit_of.get_mut(*node as usize) {
                    *slot = digit;
                }
            }
            frequent
        });
        let digits = Digits::smallest(radix as u64, rows as u64);
        Self {
            nodes,
            frequent,
            digit_of,
            digits: DigitColumn::new(digits, 0, rows),
            row: 0,
            rare: Vec::new(),
            rare_nodes: Vec::new(),
        }
    }

    /// Takes the next rows, at most a chunk.
    #[inline(never)]
    pub(super) fn chunk(&mut self, rows: &[Row]) {
        let Some(room) = self.digits.room() else {
            return;
        };
        if self.frequent.is_none() {
            for (slot, row) in room.iter_mut().zip(rows) {
                *slot = row.holder();
            }
        } else {
            let digit_of = self.digit_of.as_slice();
            let mut any = 0;
            for (slot, row) in room.iter_mut().zip(rows) {
                let digit = digit_of.get(row.holder() as usize).copied();
                let digit = digit.unwrap_or(RARE);
                *slot = digit;
                any |= digit;
            }
            // All bits are set in no digit, for indexes have fewer.
            if any == RARE {
                for ((slot, row), at) in room.iter_mut().zip(rows).zip(self.row..) {
                    if *slot == RARE {
                        *slot = 0;
                        self.rare.push(at);
                        self.rare_nodes.push(row.holder().into());
                    }
                }
            }
        }
        self.digits.advance(rows.len());
        self.row += rows.len() as u64;
    }

    /// Appends the column.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        match &self.frequent {
            None => out.push(ALL),
            Some(frequent) => set_write::write(out, self.nodes as u64, frequent),
        }
        self.digits.finish(out);
        if self.frequent.is_some() {
            set_write::write(out, self.row, &self.rare);
            ints::write(out, &self.rare_nodes);
        }
    }
}

/// How many of the most frequent nodes get a digit, so that the column is smallest: `counts` are
/// those of `sampled` rows of `all`, the most frequent first.
fn best_radix(counts: &[(u64, u32)], sampled: u64, all: u64) -> usize {
    let nodes = counts.len() as u64;
    let mut within = 0;
    let mut best = (u64::MAX, counts.len());
    for (radix, (count, _)) in (1u64..).zip(counts) {
        within += count;
        let looked_at = radix <= 64 || radix.is_multiple_of(16) || radix == nodes;
        // Where half of the leases were rare, more digits are better.
        if !looked_at || 2 * within < sampled {
            continue;
        }
        let mut size = Digits::smallest(radix, all).size(all);
        if radix < nodes {
            let rare = ((sampled - within) * all).div_ceil(sampled.max(1));
            size += set_write::size(nodes, radix) + set_write::size(all, rare);
            size += Digits::smallest(nodes, rare).size(rare);
        }
        best = best.min((size, radix as usize));
        if within == sampled {
            break;
        }
    }
    best.1
}

/// The column of candidates while it is written.
pub(super) struct CandidateColumn {
    row: u64,
    set: Bitmap,
    names: DigitColumn<u32>,
}

impl CandidateColumn {
    pub(super) fn new(names: usize, sampled: &Sampled<'_>) -> Self {
        let candidates = sampled
            .rows
            .iter()
            .filter(|one| one.row.candidate().is_some());
        let expected = candidates.count() * sampled.all / sampled.rows.len().max(1);
        let digits = Digits::smallest(names.max(1) as u64, expected as u64);
        Self {
            row: 0,
            set: Bitmap::new(sampled.all, sampled.all),
            names: DigitColumn::new(digits, 0, expected),
        }
    }

    /// Takes the next rows, at most a chunk, of which these have a candidate.
    #[inline(never)]
    pub(super) fn chunk(&mut self, rows: &[Row], mask: &Mask) {
        if *mask != Mask::default() {
            let Some(names) = self.names.room() else {
                return;
            };
            let mut next = 0;
            for (rows, word) in rows.chunks(64).zip(mask) {
                each_bit(*word, |at| {
                    names[next % ROOM] = rows.get(at).map_or(0, |row| row.words().1);
                    next += 1;
                });
            }
            self.names.advance(next);
            self.set.put(self.row, mask, next);
        }
        self.row += rows.len() as u64;
    }

    /// Appends the column.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        self.set.write(out);
        self.names.finish(out);
    }
}
