//! Writing a set of positions in its smallest kind.

use super::super::varint;
use super::bits::{self, BitWriter};
use super::column::CHUNK;
use super::set::{ALL, BITMAP, MAX_LOW, MEMBERS, NONE, OTHERS};
use super::survey::Mask;

/// How many bits members take in Elias and Fano's code, and with how many low bits.
fn coded(universe: u64, members: u64) -> (u64, u32) {
    let size = |low: u32| members * u64::from(low) + members + ((universe - 1) >> low);
    let middle = (universe / members).max(1).ilog2().min(MAX_LOW);
    let lows = middle.saturating_sub(1)..=(middle + 1).min(MAX_LOW);
    let sizes = lows.map(|low| (size(low).div_ceil(8), low));
    sizes.min().unwrap_or((u64::MAX, 0))
}

/// Kind, bytes of the positions, low bits: the smallest of each, the simplest of equally small
/// ones.
fn choose(universe: u64, members: u64) -> (u8, u64, u32) {
    if members == 0 {
        return (NONE, 0, 0);
    }
    if members == universe {
        return (ALL, 0, 0);
    }
    let others = universe - members;
    let (member_bytes, member_low) = coded(universe, members);
    let (other_bytes, other_low) = coded(universe, others);
    let kinds = [
        (BITMAP, universe.div_ceil(8), 0),
        (MEMBERS, member_bytes + 1, member_low),
        (OTHERS, other_bytes + 1, other_low),
    ];
    let smallest = kinds.into_iter().min_by_key(|(_, bytes, _)| *bytes);
    smallest.unwrap_or((BITMAP, 0, 0))
}

/// About how many bytes a set takes.
pub(super) fn size(universe: u64, members: u64) -> u64 {
    choose(universe, members).1 + 1
}

/// Appends the set of some ascending positions.
pub(super) fn write(out: &mut Vec<u8>, universe: u64, members: &[u64]) {
    let (kind, _, low) = choose(universe, members.len() as u64);
    out.push(kind);
    match kind {
        NONE | ALL => {}
        BITMAP => {
            varint::put(out, members.len() as i64);
            let start = out.len();
            out.resize(start + universe.div_ceil(8) as usize, 0);
            for member in members {
                if let Some(byte) = out.get_mut(start + (member / 8) as usize) {
                    *byte |= 1 << (member % 8);
                }
            }
        }
        MEMBERS => write_coded(out, universe, members, low),
        _ => {
            let mut next = members.iter().copied().peekable();
            let others: Vec<u64> = (0..universe)
                .filter(|position| next.next_if_eq(position).is_none())
                .collect();
            write_coded(out, universe, &others, low);
        }
    }
}

fn write_coded(out: &mut Vec<u8>, universe: u64, positions: &[u64], low: u32) {
    varint::put(out, positions.len() as i64);
    out.push(low as u8);
    let mut lows = BitWriter::with_capacity(positions.len() * low as usize / 8);
    let mask = bits::mask(low);
    lows.extend(positions.iter().map(|position| position & mask), low);
    out.extend_from_slice(&lows.finish());
    let start = out.len();
    let bits = positions.len() as u64 + ((universe - 1) >> low);
    out.resize(start + bits.div_ceil(8) as usize, 0);
    for (index, position) in (0u64..).zip(positions) {
        let bit = (position >> low) + index;
        if let Some(byte) = out.get_mut(start + (bit / 8) as usize) {
            *byte |= 1 << (bit % 8);
        }
    }
}

/// Positions that are collected as a bitmap.
pub(super) struct Bitmap {
    halves: Vec<u32>,
    len: u64,
    members: u64,
}

impl Bitmap {
    /// Of no positions so far, with room for a chunk more than `expected` positions.
    pub(super) fn new(len: usize, expected: usize) -> Self {
        Self {
            halves: Vec::with_capacity(expected / 32 + CHUNK),
            len: len as u64,
            members: 0,
        }
    }

    /// Members among the positions from `from` (a multiple of 32, ascending from call to call).
    pub(super) fn put(&mut self, from: u64, mask: &Mask, members: usize) {
        self.members += members as u64;
        self.halves.resize(from as usize / 32, 0);
        for word in mask {
            self.halves
                .extend_from_slice(&[*word as u32, (word >> 32) as u32]);
        }
    }

    /// Appends the set.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        if self.members == 0 {
            return out.push(NONE);
        }
        self.halves.resize(self.len.div_ceil(32) as usize, 0);
        if choose(self.len, self.members).0 != BITMAP {
            let mut members = Vec::with_capacity(self.members as usize);
            for (at, word) in (0u64..).zip(&self.halves) {
                let mut word = *word;
                while word != 0 {
                    members.push(32 * at + u64::from(word.trailing_zeros()));
                    word &= word - 1;
                }
            }
            return write(out, self.len, &members);
        }
        out.push(BITMAP);
        varint::put(out, self.members as i64);
        let end = out.len() + self.len.div_ceil(8) as usize;
        for word in &self.halves {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::reader::Reader;
    use super::super::ints::BLOCK;
    use super::super::set::{Set, WORDS, each_one};
    use super::*;
    use crate::model::workload::SplitMix64;

    fn check(universe: u64, members: &[u64]) {
        let mut bytes = Vec::new();
        write(&mut bytes, universe, members);
        let mut words = vec![0u32; universe.div_ceil(32).min(2000) as usize];
        if universe <= 64_000 {
            members
                .iter()
                .for_each(|m| words[(m / 32) as usize] |= 1 << (m % 32));
            let mut bitmap = Bitmap {
                halves: words,
                len: universe,
                members: members.len() as u64,
            };
            let mut same = Vec::new();
            bitmap.write(&mut same);
            assert_eq!(bytes, same);
        }
        let mut reader = Reader::new(&bytes);
        let set = Set::find(&mut reader, "set", universe).unwrap();
        reader.finish("end").unwrap();
        assert_eq!(set.len(), members.len() as u64);
        let step = (universe / 300).max(1) as usize;
        for position in (0..universe + 2)
            .step_by(step)
            .chain(members.iter().copied().take(50))
        {
            let below = members.partition_point(|member| *member < position) as u64;
            let within = members.binary_search(&position).is_ok();
            assert_eq!(set.rank(position).unwrap(), (below, within), "{position}");
        }
        for (index, member) in members.iter().enumerate().step_by(7) {
            assert_eq!(set.select(index as u64).unwrap(), Some(*member));
        }
        assert_eq!(set.select(members.len() as u64).unwrap(), None);
        let start = universe / 3;
        for from in [0, start] {
            let tail: Vec<_> = members.iter().copied().filter(|m| *m >= from).collect();
            let mut scan = set.scan(from).unwrap();
            let mut found = Vec::new();
            while let Some((first, len)) = scan.run().unwrap() {
                found.extend(first..first + len);
            }
            assert_eq!(found, tail);
            scan.finish().unwrap();
            if universe > 64_000 {
                continue;
            }
            let mut scan = set.scan(from).unwrap();
            let mut found = Vec::new();
            let mut at = from;
            while at < universe {
                let len = (universe - at).min(BLOCK as u64);
                let mut mask = [0; WORDS];
                let count = scan.block(len as usize, &mut mask).unwrap();
                let before = found.len();
                each_one(&mask, |bit| found.push(at + bit as u64));
                assert_eq!(found.len() - before, count);
                at += len;
            }
            assert_eq!(found, tail);
            scan.finish().unwrap();
        }
    }

    #[test]
    fn sets_of_every_kind_come_back() {
        let mut random = SplitMix64::new(5);
        for universe in [1, 2, 63, 64, 65, 511, 512, 513, 3000, 40_000] {
            for percent in [0, 1, 3, 20, 50, 80, 97, 99, 100] {
                let members: Vec<u64> = (0..universe)
                    .filter(|_| random.below(100) < percent)
                    .collect();
                check(universe, &members);
            }
            check(universe, &[universe - 1]);
            check(universe, &[0]);
        }
        check(1 << 50, &[0, 1 << 49, (1 << 50) - 1]);
        check(1 << 32, &[(1 << 32) - 1]);
    }
}
