//! Numbers of a fixed width, lowest bit first, packed without gaps.

use super::super::error::{DecodeError, Defect};
use super::super::reader::{Reader, fault, invalid};

/// The widest number: with up to seven bits before it, it lies within eight bytes, not filling
/// them.
pub(super) const MAX_WIDTH: u32 = 56;

/// The eight bytes at an offset; zeros stand for those after the end.
#[inline]
pub(super) fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(whole) => u64::from_le_bytes(*whole),
        None => load_last(bytes, at),
    }
}

#[cold]
fn load_last(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut whole = [0; 8];
    for (slot, byte) in whole.iter_mut().zip(rest) {
        *slot = *byte;
    }
    u64::from_le_bytes(whole)
}

/// The number of `width` bits (at most [`MAX_WIDTH`]) at a bit offset.
#[inline]
pub(super) fn number(bytes: &[u8], bit: usize, width: u32) -> u64 {
    load(bytes, bit >> 3) >> (bit & 7) & mask(width)
}

/// 64 bits at a bit offset.
#[inline]
pub(super) fn word(bytes: &[u8], bit: usize) -> u64 {
    let shift = bit & 7;
    let low = load(bytes, bit >> 3) >> shift;
    if shift == 0 {
        return low;
    }
    let next = bytes.get((bit >> 3) + 8).copied().unwrap_or(0);
    low | u64::from(next) << (64 - shift)
}

/// The lowest `width` bits (below 64).
#[inline]
pub(super) const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

/// Bits that a number needs: none for 0.
#[inline]
pub(super) const fn width(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Passes on the positions of the bits that are set, the lowest first.
#[inline]
pub(super) fn each_bit(mut word: u64, mut found: impl FnMut(usize)) {
    while word != 0 {
        found(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}

/// Takes a field of some bits; those that fill up its last byte must be clear.
pub(super) fn take<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    bits: u128,
) -> Result<&'a [u8], DecodeError> {
    let offset = reader.offset();
    let left = reader.rest().len();
    let len = bits.div_ceil(8);
    let Some(len) = usize::try_from(len).ok().filter(|len| *len <= left) else {
        let missing = usize::try_from(len - left as u128).unwrap_or(usize::MAX);
        return Err(fault(offset + left, field, Defect::Truncated { missing }));
    };
    let taken = reader.take(len, field)?;
    let used = (bits % 8) as u32;
    match taken.last() {
        Some(last) if used > 0 && last >> used != 0 => Err(invalid(
            offset + len - 1,
            field,
            format!("bits after the last number are set ({last:02x})"),
        )),
        _ => Ok(taken),
    }
}

/// Appends numbers of any widths.
#[derive(Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl BitWriter {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes + 16),
            ..Self::default()
        }
    }

    /// Appends numbers of one width (at most [`MAX_WIDTH`]), none of them wider.
    #[inline]
    pub(super) fn extend(&mut self, numbers: impl ExactSizeIterator<Item = u64>, width: u32) {
        if (self.filled, width) == (0, 8) {
            return self.bytes.extend(numbers.map(|number| number as u8));
        }
        let start = self.bytes.len();
        let bits = self.filled as usize + numbers.len() * width as usize;
        // Whole words are written, and cut afterwards.
        self.bytes.resize(start + bits / 8 + 8, 0);
        let slots = self.bytes.get_mut(start..).unwrap_or_default();
        let (mut pending, mut filled, mut at) = (self.pending, self.filled, 0);
        for number in numbers {
            pending |= number << filled;
            if let Some(slot) = slots.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *slot = pending.to_le_bytes();
            }
            filled += width;
            let whole = filled & !7;
            at += (whole >> 3) as usize;
            // At most 63 bits were filled, so at most 56 are passed.
            pending >>= whole;
            filled &= 7;
        }
        self.bytes.truncate(start + at);
        (self.pending, self.filled) = (pending, filled);
    }

    /// Appends one number.
    pub(super) fn put(&mut self, number: u64, width: u32) {
        self.extend(std::iter::once(number), width);
    }

    /// All bytes, the last filled up with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_width_come_back() {
        let numbers: Vec<(u64, u32)> = (0..400u64)
            .map(|i| {
                let width = (i * 7 % 57) as u32;
                (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask(width), width)
            })
            .collect();
        let mut writer = BitWriter::default();
        for (number, width) in &numbers {
            writer.put(*number, *width);
        }
        let bytes = writer.finish();
        let mut bit = 0;
        for (expected, width) in numbers {
            assert_eq!(number(&bytes, bit, width), expected);
            bit += width as usize;
        }
        assert_eq!(bytes.len(), bit.div_ceil(8));
    }
}
