//! Modified UTF-8, as Java's data streams write it: U+0000 is `c0 80`, and a character beyond
//! the basic plane is its two surrogates, three bytes each.

/// Appends a text.
pub(crate) fn encode(text: &str, out: &mut Vec<u8>) {
    let mut utf8 = [0; 4];
    let mut utf16 = [0; 2];
    for character in text.chars() {
        match character {
            '\0' => out.extend_from_slice(&[0xC0, 0x80]),
            '\u{1}'..='\u{FFFF}' => {
                out.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes());
            }
            _ => {
                for unit in character.encode_utf16(&mut utf16) {
                    let unit = *unit;
                    out.push(0xE0 | (unit >> 12) as u8);
                    out.push(0x80 | (unit >> 6 & 0x3F) as u8);
                    out.push(0x80 | (unit & 0x3F) as u8);
                }
            }
        }
    }
}

/// Number of bytes that [`encode`] appends.
pub(crate) fn len(text: &str) -> usize {
    let extra = |character| match character {
        '\0' => 1,
        '\u{1}'..='\u{FFFF}' => 0,
        _ => 2,
    };
    text.len() + text.chars().map(extra).sum::<usize>()
}

/// Why bytes are not a text, and the position of the first that is not.
pub(crate) type Malformed = (usize, &'static str);

/// Reads a text in its one canonical form.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, Malformed> {
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let (unit, len) = unit(rest).map_err(|what| (at, what))?;
        let (point, len) = match unit {
            0xD800..=0xDBFF => {
                let low = bytes.get(at + len..).map(self::unit);
                let Some(Ok((low @ 0xDC00..=0xDFFF, more))) = low else {
                    return Err((at, "a high surrogate without a low one after it"));
                };
                (
                    0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00),
                    len + more,
                )
            }
            0xDC00..=0xDFFF => return Err((at, "a low surrogate without a high one before it")),
            _ => (unit, len),
        };
        text.extend(char::from_u32(point));
        at += len;
    }
    Ok(text)
}

/// One UTF-16 unit of one to three bytes.
fn unit(bytes: &[u8]) -> Result<(u32, usize), &'static str> {
    let tail = |position: usize| match bytes.get(position) {
        Some(byte) if byte & 0xC0 == 0x80 => Ok(u32::from(byte & 0x3F)),
        _ => Err("a character without its continuation bytes"),
    };
    let first = u32::from(*bytes.first().ok_or("nothing")?);
    match first {
        0 => Err("U+0000 in one byte instead of c0 80"),
        0x01..=0x7F => Ok((first, 1)),
        0xC0..=0xDF => match (first & 0x1F) << 6 | tail(1)? {
            0x01..=0x7F => Err("an overlong character"),
            unit => Ok((unit, 2)),
        },
        0xE0..=0xEF => match (first & 0x0F) << 12 | tail(1)? << 6 | tail(2)? {
            0..=0x7FF => Err("an overlong character"),
            unit => Ok((unit, 3)),
        },
        0x80..=0xBF => Err("a continuation byte where a character starts"),
        _ => Err("a byte that modified UTF-8 has no use for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (text, bytes) in [
            ("", ""),
            ("a\0b", "61c08062"),
            (
                "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}",
                "7fc280dfbfe0a080efbfbf",
            ),
            ("😀", "eda0bdedb880"),
        ] {
            let mut out = Vec::new();
            encode(text, &mut out);
            assert_eq!(hex::encode(&out), bytes);
            assert_eq!(len(text), out.len());
            assert_eq!(decode(&out).unwrap(), text);
        }
    }

    #[test]
    fn refuses_and_says_where() {
        for (bytes, position) in [
            ("6100", 1),
            ("61c1a1", 1),
            ("e08181", 0),
            ("c3", 0),
            ("c341", 0),
            ("e88a", 0),
            ("80", 0),
            ("f09f9880", 0),
            ("eda080", 0),
            ("61edb880", 1),
            ("edb880eda0bd", 0),
            ("eda0bdeda0bd", 0),
            ("eda0bd61", 0),
        ] {
            let error = decode(&hex::decode(bytes).unwrap()).unwrap_err();
            assert_eq!(error.0, position, "{bytes}: {}", error.1);
        }
    }
}
