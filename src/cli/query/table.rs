//! Tables of which the rows are written one by one, since there may be a million of them.

use std::io::{self, Write};

/// On which side the cells of a column stand.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// Writes rows under a head, columns two spaces apart.
pub(super) fn write<const N: usize>(
    out: &mut impl Write,
    head: [(&str, Side); N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let mut widths = head.map(|(name, _)| name.len());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let sides = head.map(|(_, side)| side);
    let mut line = String::new();
    let head = head.map(|(name, _)| name.to_owned());
    for row in std::iter::once(&head).chain(rows) {
        line.clear();
        for ((cell, width), side) in row.iter().zip(widths).zip(sides) {
            let pad = width.saturating_sub(cell.chars().count());
            let pad = " ".repeat(pad);
            match side {
                Side::Left => line.extend([cell, &pad, "  "]),
                Side::Right => line.extend([&pad, cell, "  "]),
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
