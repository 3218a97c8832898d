//! Writing results: tables, JSON and numbers.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::Value;

use super::failure::Failure;

/// Writes text to standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    (out.write_all(text.as_bytes()).and_then(|()| out.flush())).map_err(Failure::output)
}

/// Writes a JSON document to standard output.
pub(super) fn print_json(document: &Value) -> Result<(), Failure> {
    print(&format!("{document:#}\n"))
}

/// Rows under a head; the first column is text, the others are numbers.
pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cells = |row: Vec<String>| -> Vec<Cell> {
        let cells = row.into_iter().enumerate();
        let align = |column| match column {
            0 => CellAlignment::Left,
            _ => CellAlignment::Right,
        };
        cells
            .map(|(column, text)| Cell::new(text).set_alignment(align(column)))
            .collect()
    };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if head.iter().any(|text| !text.is_empty()) {
        table.set_header(cells(head.iter().map(|text| (*text).to_owned()).collect()));
    }
    for row in rows {
        table.add_row(cells(row));
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// A whole number with thousands separators: `4,712,658`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with some digits after the point and thousands separators.
pub(super) fn decimal(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.split_once('.') {
        Some((whole, fraction)) => match whole.parse() {
            Ok(whole) => format!("{}.{fraction}", count(whole)),
            Err(_) => text,
        },
        None => text.parse().map_or(text, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (4712658, "4,712,658"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(decimal(1234.567, 1), "1,234.6");
        assert_eq!(decimal(0.5, 2), "0.50");
    }
}
