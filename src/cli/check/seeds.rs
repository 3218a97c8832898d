//! Ranges of seeds on the command line.

use std::ops::Range;

/// `A..B` without B, `A..=B` with it, or one seed.
pub(super) fn parse(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|_| format!("`{text}` is not a seed: write for example 0..1000, 7..=9 or 42"))
    };
    let (first, end) = match text.split_once("..") {
        None => {
            let seed = number(text)?;
            (seed, seed.checked_add(1))
        }
        Some((first, last)) => match last.strip_prefix('=') {
            Some(last) => (number(first)?, number(last)?.checked_add(1)),
            None => (number(first)?, Some(number(last)?)),
        },
    };
    match end {
        Some(end) if end > first => Ok(first..end),
        Some(_) => Err("the range holds no seed".to_owned()),
        None => Err("the last seed is too large".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!(parse("3..7"), Ok(3..7));
        assert_eq!(parse("3..=7"), Ok(3..8));
        assert_eq!(parse("3"), Ok(3..4));
        for text in [
            "",
            "..",
            "7..3",
            "3..3",
            "a..4",
            "-1..4",
            "1...4",
            "18446744073709551615",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
