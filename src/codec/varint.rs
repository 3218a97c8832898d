//! Variable-length integers of the compact formats: x + 1 as an unsigned 64-bit LEB128.
//!
//! Small non-negative numbers and −1 take one byte. `integer-encoding` reads and writes the
//! bytes; it accepts overlong forms and drops overflowing bits, so this module checks that a
//! number has exactly one form.

use integer_encoding::VarInt;

/// The most bytes that a number takes.
pub(crate) const MAX_LEN: usize = 10;

/// Why bytes are not a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VarintError {
    /// They end before the number does.
    Truncated,
    /// They go on after 64 bits.
    Overflow,
    /// A shorter form of the same number exists.
    Overlong,
}

/// Appends `x`.
pub(crate) fn put(out: &mut Vec<u8>, x: i64) {
    let mut buffer = [0; MAX_LEN];
    let len = write(&mut buffer, x);
    out.extend_from_slice(buffer.get(..len).unwrap_or_default());
}

/// Writes `x` at the start of a buffer and returns its length.
pub(crate) fn write(buffer: &mut [u8; MAX_LEN], x: i64) -> usize {
    (x.wrapping_add(1) as u64).encode_var(buffer)
}

/// Reads the number at the start of `bytes`; returns it with its length.
pub(crate) fn read(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let window = bytes.get(..MAX_LEN).unwrap_or(bytes);
    let Some(end) = window.iter().position(|byte| byte & 0x80 == 0) else {
        return Err(if window.len() < MAX_LEN {
            VarintError::Truncated
        } else {
            VarintError::Overflow
        });
    };
    let Some((value, len)) = u64::decode_var(window) else {
        return Err(VarintError::Overflow);
    };
    // The tenth byte holds the 64th bit and no more.
    if end == MAX_LEN - 1 && window.last().is_some_and(|last| *last > 1) {
        return Err(VarintError::Overflow);
    }
    if value.required_space() != len {
        return Err(VarintError::Overlong);
    }
    Ok(((value as i64).wrapping_sub(1), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_forms() {
        for (x, bytes) in [
            (0i64, "01"),
            (-1, "00"),
            (126, "7f"),
            (127, "8001"),
            (-2, "ffffffffffffffffff01"),
            (i64::MAX, "80808080808080808001"),
            (-(1 << 47) + 1, "828080808080e0ffff01"),
        ] {
            let mut out = Vec::new();
            put(&mut out, x);
            assert_eq!(hex::encode(&out), bytes, "{x}");
            assert_eq!(read(&out), Ok((x, out.len())), "{x}");
            for cut in 0..out.len() {
                assert_eq!(read(&out[..cut]), Err(VarintError::Truncated));
            }
        }
    }

    #[test]
    fn refuses_all_but_the_one_form() {
        for (bytes, error) in [
            ("8000", VarintError::Overlong),
            ("828000", VarintError::Overlong),
            ("8080808080808080807e", VarintError::Overflow),
            ("80808080808080808003", VarintError::Overflow),
            ("8080808080808080808001", VarintError::Overflow),
            ("80808080808080808000", VarintError::Overlong),
        ] {
            assert_eq!(read(&hex::decode(bytes).unwrap()), Err(error), "{bytes}");
        }
    }
}
