//! The `columnar` format: what goes in comes out, in the size that was promised, a part can be
//! read without the rest, and no bytes crash or stall a reader.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod golden;
mod hostile;
mod mutations;
mod round_trips;
mod sizes;
mod view;

/// Puts length and checksum right, so that what is behind them is read.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < 13 {
        return;
    }
    let len = bytes.len() as u32;
    bytes[5..9].copy_from_slice(&len.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..9]);
    hasher.update(&bytes[13..]);
    let crc = hasher.finalize();
    bytes[9..13].copy_from_slice(&crc.to_le_bytes());
}
