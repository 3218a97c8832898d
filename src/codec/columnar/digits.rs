//! A column of numbers below a radix: several of them, as the digits of one number, in as many
//! bits as that needs. Every digit is found without reading the others.

use super::bits;

/// Digits that may share a number. Three or five of them waste little for any radix.
const GROUPS: [u32; 4] = [1, 2, 3, 5];

/// The number as a fraction of all numbers is exact enough: see [`Digits::unpack`].
const FRACTION: u8 = 0;
/// A 64-bit reciprocal is.
const LONG: u8 = 1;
/// Neither is.
const DIVIDES: u8 = 2;

/// Bytes in which eight numbers are found: where each starts is a byte, so that no load needs a
/// check.
const WINDOW: usize = 256 + 8;
type Window = [u8; WINDOW];

/// The most digits that are read together, and the most that [`Digits::read`] may write beyond the end of
/// what was asked for, before and after.
pub(super) const MAX_GROUP: usize = 8;

/// How digits below a radix are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digits {
    radix: u64,
    group: u32,
    width: u32,
    reciprocal: u64,
}

impl Digits {
    /// Digits of a radix, `group` to a number. `None` if the number would be too wide, or if
    /// there is no such grouping.
    pub(super) fn new(radix: u64, group: u32) -> Option<Self> {
        if radix == 0 || !GROUPS.contains(&group) || radix == 1 && group != 1 {
            return None;
        }
        let largest = u128::from(radix).checked_pow(group)?.checked_sub(1)?;
        let width = u128::BITS - largest.leading_zeros();
        (width <= bits::MAX_WIDTH).then_some(Self {
            radix,
            group,
            width,
            reciprocal: (u64::MAX / radix).wrapping_add(1),
        })
    }

    /// The smallest packing of `len` digits; of equally small ones the simplest.
    pub(super) fn smallest(radix: u64, len: u64) -> Self {
        let all = GROUPS
            .into_iter()
            .filter_map(|group| Self::new(radix, group));
        let best = all.min_by_key(|digits| (digits.size(len), digits.group));
        best.unwrap_or(Self {
            radix: 1,
            group: 1,
            width: 0,
            reciprocal: 0,
        })
    }

    /// Digits are below it.
    pub(super) fn radix(&self) -> u64 {
        self.radix
    }

    /// Digits to a number.
    pub(super) fn group(&self) -> u32 {
        self.group
    }

    /// Bits of a number.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Bits of `len` digits.
    pub(super) fn bits(&self, len: u64) -> u128 {
        u128::from(len.div_ceil(self.group.into())) * u128::from(self.width)
    }

    /// Bytes of `len` digits.
    pub(super) fn size(&self, len: u64) -> u64 {
        u64::try_from(self.bits(len).div_ceil(8)).unwrap_or(u64::MAX)
    }

    /// How to divide a number of this width. As a fraction it needs room for what rounding adds,
    /// multiplied with each digit; the product with a rounded reciprocal is exact as long as the
    /// reciprocal has so many more bits.
    fn division(&self) -> u8 {
        let others = bits::width(self.radix.pow(self.group - 1));
        if self.width + others <= u64::BITS {
            FRACTION
        } else if self.width + bits::width(self.radix) <= 63 {
            LONG
        } else {
            DIVIDES
        }
    }

    /// Reads the numbers that hold the digits `from..to`, adds `base` to each digit and writes
    /// them to the front of `out`: the digit `from` comes at `from % group`. Returns the first
    /// number that is no group of digits below the radix.
    pub(super) fn read<T: Lane>(
        &self,
        bytes: &[u8],
        from: usize,
        to: usize,
        base: u64,
        out: &mut [T],
    ) -> Result<(), usize> {
        let group = self.group as usize;
        let first = from / group;
        let numbers = to.div_ceil(group) - first;
        if self.width == 0 {
            out.iter_mut()
                .take(to - from)
                .for_each(|slot| *slot = T::of(base));
            return Ok(());
        }
        let sound = match (self.group, self.division()) {
            (1, _) if self.width == 1 => binary(bytes, first, numbers, out),
            (1, _) => self.unpack::<1, LONG, T>(bytes, first, numbers, out),
            (2, FRACTION) => self.unpack::<2, FRACTION, T>(bytes, first, numbers, out),
            (2, LONG) => self.unpack::<2, LONG, T>(bytes, first, numbers, out),
            (2, _) => self.unpack::<2, DIVIDES, T>(bytes, first, numbers, out),
            (3, FRACTION) => self.unpack::<3, FRACTION, T>(bytes, first, numbers, out),
            (3, LONG) => self.unpack::<3, LONG, T>(bytes, first, numbers, out),
            (3, _) => self.unpack::<3, DIVIDES, T>(bytes, first, numbers, out),
            _ if self.radix == 3 => ternary(bytes, first, numbers, out),
            (_, FRACTION) => self.unpack::<5, FRACTION, T>(bytes, first, numbers, out),
            (_, LONG) => self.unpack::<5, LONG, T>(bytes, first, numbers, out),
            _ => self.unpack::<5, DIVIDES, T>(bytes, first, numbers, out),
        };
        if sound {
            if base > 0 {
                for digit in out.iter_mut().take(numbers * group) {
                    *digit = T::of(base + digit.number());
                }
            }
            return Ok(());
        }
        let limit = self.radix.pow(self.group);
        let number = |at: usize| bits::number(bytes, at * self.width as usize, self.width);
        let bad = (first..first + numbers).find(|at| number(*at) >= limit);
        Err(bad.unwrap_or(first))
    }

    /// Splits numbers into digits, the lowest first.
    ///
    /// As a fraction: a number divided by the weight of its highest digit has that digit before
    /// the point; what is behind it, times the radix, has the next one there. The division is a
    /// multiplication with the rounded up inverse of the weight, 64 bits behind the point, so
    /// that the upper half of each product is a digit and the lower one what is behind the point.
    /// That is too much by less than the number, in units of the last place, and is multiplied by
    /// the radix for each further digit: it stays below one unit of the lowest digit.
    #[inline]
    fn unpack<const GROUP: usize, const DIVISION: u8, T: Lane>(
        &self,
        bytes: &[u8],
        first: usize,
        numbers: usize,
        out: &mut [T],
    ) -> bool {
        let Self {
            radix,
            width,
            reciprocal,
            ..
        } = *self;
        let weight = radix.pow(GROUP as u32 - 1);
        let inverse = (u64::MAX / weight).wrapping_add(1);
        let mask = bits::mask(width);
        let width = width as usize;
        let (mut at, shift) = (first * width / 8, first * width % 8);
        // The bytes in a window where eight numbers start, and how many bits are before them.
        let starts: [(u8, u8); 8] = std::array::from_fn(|number| {
            let bit = shift + number * width;
            ((bit >> 3) as u8, bit as u8 & 7)
        });
        let mut most = 0;
        let split = |window: &Window, groups: &mut [[T; GROUP]]| {
            let mut most = 0;
            for (slots, (start, down)) in groups.iter_mut().zip(&starts) {
                let at = usize::from(*start);
                let mut word = [0; 8];
                word.copy_from_slice(&window[at..at + 8]);
                let mut number = u64::from_le_bytes(word) >> (down & 7) & mask;
                most = most.max(number);
                if GROUP == 1 {
                    slots[0] = T::of(number);
                    continue;
                }
                if DIVISION == FRACTION {
                    let mut factor = inverse;
                    for slot in slots.iter_mut().rev() {
                        let product = u128::from(number) * u128::from(factor);
                        *slot = T::of((product >> 64) as u64);
                        (number, factor) = (product as u64, radix);
                    }
                    continue;
                }
                for slot in slots.iter_mut().take(GROUP - 1) {
                    let quotient = match DIVISION {
                        LONG => ((u128::from(number) * u128::from(reciprocal)) >> 64) as u64,
                        _ => number / radix,
                    };
                    *slot = T::of(number - quotient * radix);
                    number = quotient;
                }
                slots[GROUP - 1] = T::of(number);
            }
            most
        };
        let (groups, _) = out.as_chunks_mut::<GROUP>();
        let groups = groups.get_mut(..numbers).unwrap_or_default();
        for groups in groups.chunks_mut(8) {
            let bytes = bytes.get(at..).unwrap_or_default();
            at += width;
            most = most.max(match (bytes.first_chunk(), groups.first_chunk_mut::<8>()) {
                (Some(window), Some(groups)) => split(window, groups),
                (Some(window), None) => split(window, groups),
                _ => split(&last_window(bytes), groups),
            });
        }
        most < radix.pow(GROUP as u32)
    }

    /// Packs digits; all calls but the last one for a writer bring whole groups.
    pub(super) fn write<T: Lane>(&self, digits: &[T], out: &mut bits::BitWriter) {
        match self.group {
            _ if self.width == 0 => {}
            1 if self.width == 1 => self.pack_bits(digits, out),
            1 => self.pack::<1, T>(digits, |_| 0, out),
            2 => self.pack::<2, T>(digits, |number| number * self.radix, out),
            3 => self.pack::<3, T>(digits, |number| number * self.radix, out),
            // Three nodes are the commonest radix: a sum costs less than a product.
            _ if self.radix == 3 => self.pack::<5, T>(digits, |number| number * 3, out),
            _ => self.pack::<5, T>(digits, |number| number * self.radix, out),
        }
    }

    fn pack_bits<T: Lane>(&self, digits: &[T], out: &mut bits::BitWriter) {
        let join = |bits: &[T]| {
            let bits = bits.iter().rev();
            bits.fold(0, |word, bit| word << 1 | bit.number())
        };
        let (words, rest) = digits.as_chunks::<32>();
        let word = |bits: &[T; 32]| {
            let (bytes, _) = bits.as_chunks::<8>();
            let bytes = bytes.iter().rev();
            bytes.fold(0, |word, bits| word << 8 | join(bits))
        };
        out.extend(words.iter().map(word), 32);
        out.put(join(rest), rest.len() as u32);
    }

    /// Joins digits to numbers, and where they are narrow several numbers to one: the writer's
    /// steps wait for each other, those here do not.
    fn pack<const GROUP: usize, T: Lane>(
        &self,
        digits: &[T],
        raised: impl Fn(u64) -> u64,
        out: &mut bits::BitWriter,
    ) {
        let width = self.width;
        let join = |digits: &[T]| {
            let digits = digits.iter().rev();
            digits.fold(0, |number, digit| raised(number) + digit.number())
        };
        // A multiplication is a single step, a shift by a variable takes several.
        let (one, two) = (1u64.wrapping_shl(width), 1u64.wrapping_shl(2 * width));
        let (groups, rest) = digits.as_chunks::<GROUP>();
        let (fours, single) = match 4 * width <= bits::MAX_WIDTH {
            true => groups.as_chunks::<4>(),
            false => (&[][..], groups),
        };
        let four = fours.iter().map(|[a, b, c, d]| {
            let (low, high) = (join(a) + join(b) * one, join(c) + join(d) * one);
            low + high * two
        });
        out.extend(four, 4 * width);
        let (pairs, single) = match 2 * width <= bits::MAX_WIDTH {
            true => single.as_chunks::<2>(),
            false => (&[][..], single),
        };
        let pair = pairs.iter().map(|[a, b]| join(a) + join(b) * one);
        out.extend(pair, 2 * width);
        out.extend(single.iter().map(|group| join(group)), width);
        if !rest.is_empty() {
            out.put(join(rest), width);
        }
    }

    /// The largest radix that is packed in as many bits.
    pub(super) fn widest(&self) -> u64 {
        if self.group == 1 {
            return 1 << self.width;
        }
        let fits = |radix| Self::new(radix, self.group).is_some_and(|d| d.width == self.width);
        let mut radix = self.radix;
        let mut step = radix;
        while step > 0 {
            while fits(radix + step) {
                radix += step;
            }
            step /= 2;
        }
        radix
    }
}

/// What digits are read into.
pub(super) trait Lane: Copy + Sized + 'static {
    /// The five ternary digits of each byte below 243.
    const TERNARY: &'static [[Self; 5]; 256];
    /// The eight bits of each byte.
    const BINARY: &'static [[Self; 8]; 256];
    /// From a number that fits.
    fn of(number: u64) -> Self;
    /// The number.
    fn number(self) -> u64;
}

impl Lane for u64 {
    const TERNARY: &'static [[Self; 5]; 256] = &{
        let mut wide = [[0; 5]; 256];
        let mut at = 0;
        while at < 5 * 256 {
            wide[at / 5][at % 5] = TERNARY[at / 5][at % 5] as Self;
            at += 1;
        }
        wide
    };

    const BINARY: &'static [[Self; 8]; 256] = &{
        let mut wide = [[0; 8]; 256];
        let mut at = 0;
        while at < 8 * 256 {
            wide[at / 8][at % 8] = BINARY[at / 8][at % 8] as Self;
            at += 1;
        }
        wide
    };

    #[inline]
    fn of(number: u64) -> Self {
        number
    }

    #[inline]
    fn number(self) -> u64 {
        self
    }
}

impl Lane for u32 {
    const TERNARY: &'static [[Self; 5]; 256] = &TERNARY;
    const BINARY: &'static [[Self; 8]; 256] = &BINARY;

    #[inline]
    fn of(number: u64) -> Self {
        number as Self
    }

    #[inline]
    fn number(self) -> u64 {
        self.into()
    }
}

const BINARY: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut at = 0;
    while at < 8 * 256 {
        table[at / 8][at % 8] = (at / 8) as u32 >> (at % 8) & 1;
        at += 1;
    }
    table
};

const TERNARY: [[u32; 5]; 256] = {
    let mut table = [[0; 5]; 256];
    let mut at = 0;
    while at < 5 * 256 {
        table[at / 5][at % 5] = (at / 5) as u32 / 3u32.pow(at as u32 % 5) % 3;
        at += 1;
    }
    table
};

/// One bit each, eight of them by a table.
fn binary<T: Lane>(bytes: &[u8], first: usize, numbers: usize, out: &mut [T]) -> bool {
    let (groups, _) = out.as_chunks_mut::<8>();
    let groups = groups.get_mut(..numbers.div_ceil(8)).unwrap_or_default();
    for (groups, at) in groups.chunks_mut(8).zip(0..) {
        let word = bits::word(bytes, first + 64 * at).to_le_bytes();
        for (slots, byte) in groups.iter_mut().zip(word) {
            *slots = T::BINARY[usize::from(byte)];
        }
    }
    true
}

/// Three nodes are the commonest radix: five digits to a byte, by a table.
fn ternary<T: Lane>(bytes: &[u8], first: usize, numbers: usize, out: &mut [T]) -> bool {
    let bytes = bytes.get(first..).unwrap_or_default();
    let (groups, _) = out.as_chunks_mut::<5>();
    let groups = groups.get_mut(..numbers).unwrap_or_default();
    let mut most = 0;
    for (slots, byte) in groups.iter_mut().zip(bytes) {
        *slots = T::TERNARY[usize::from(*byte)];
        most = most.max(*byte);
    }
    most < 243
}

/// A copy of what is left, less than a window.
#[cold]
fn last_window(bytes: &[u8]) -> Window {
    let mut window = [0; WINDOW];
    for (slot, byte) in window.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(radix: u64, len: u64) -> Vec<u64> {
        let mut random = crate::model::workload::SplitMix64::new(radix);
        let mut digits: Vec<_> = (0..len).map(|_| random.below(radix)).collect();
        digits.extend([radix - 1; 7]);
        digits
    }

    #[test]
    fn digits_of_every_packing_come_back_from_anywhere() {
        let mut radices: Vec<u64> = (1..140).collect();
        radices.extend((7..48).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
        for radix in radices {
            let expected = sample(radix, 40);
            for group in GROUPS {
                let Some(digits) = Digits::new(radix, group) else {
                    continue;
                };
                let mut writer = bits::BitWriter::default();
                digits.write(&expected, &mut writer);
                let bytes = writer.finish();
                assert_eq!(bytes.len() as u64, digits.size(expected.len() as u64));
                for (from, to) in [(0, 47), (0, 1), (13, 13), (13, 14), (4, 40), (46, 47)] {
                    let mut out = [0; 60];
                    digits.read(&bytes, from, to, 0, &mut out).unwrap();
                    let skip = if radix == 1 { 0 } else { from % group as usize };
                    let read = &out[skip..][..to - from];
                    assert_eq!(read, &expected[from..to], "{digits:?} {from}..{to}");
                }
            }
        }
    }

    #[test]
    fn a_group_out_of_range_is_found() {
        for (radix, group) in [(3, 5), (3, 1), (50, 3), (5, 2), (7, 5)] {
            let digits = Digits::new(radix, group).unwrap();
            let mut writer = bits::BitWriter::default();
            for number in [0, radix.pow(group) - 1, radix.pow(group), 0] {
                writer.put(number, digits.width);
            }
            let bytes = writer.finish();
            let read = |from, to| digits.read(&bytes, from, to, 0, &mut [0u64; 30]);
            let group = group as usize;
            assert_eq!(read(0, 2 * group), Ok(()));
            assert_eq!(read(group, 4 * group), Err(2));
        }
    }
}
