//! Writing answers to standard output.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::model::hlc::MAX_PHYSICAL;

/// Runs something that writes to standard output.
pub(super) fn printing(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(Failure::output)
}

/// Whether a person looks at it.
pub(super) fn to_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a JSON document in one line.
pub(super) fn json(out: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, document)?;
    writeln!(out)
}

/// Writes a JSON array, one element a line.
pub(super) fn json_lines<T: Serialize>(
    out: &mut impl Write,
    elements: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write!(out, "[")?;
    for (index, element) in elements.into_iter().enumerate() {
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, &element)?;
    }
    write!(out, "\n]")
}

/// A time in milliseconds since the Unix epoch, for people, UTC.
pub(super) fn utc(time: u64) -> String {
    if time > MAX_PHYSICAL {
        return format!("{time} ms");
    }
    let time = UNIX_EPOCH + Duration::from_millis(time);
    let text = humantime::format_rfc3339_millis(time).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

/// A number of bytes, for people: `4.71 MB`.
pub(super) fn bytes(number: f64) -> String {
    let mut number = number;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if number < 1000.0 {
            let digits = if unit == "bytes" { 0 } else { 2 };
            return format!("{number:.digits$} {unit}");
        }
        number /= 1000.0;
    }
    format!("{number:.2} PB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        assert_eq!(utc(1_774_000_000_123), "2026-03-20 09:46:40.123");
        assert_eq!(utc(MAX_PHYSICAL).len(), "6429-10-17 02:45:55.327".len());
        assert_eq!(utc(u64::MAX), "18446744073709551615 ms");
        assert_eq!(bytes(999.0), "999 bytes");
        assert_eq!(bytes(4_712_658.0), "4.71 MB");
        assert_eq!(bytes(2e18), "2000.00 PB");
    }
}
