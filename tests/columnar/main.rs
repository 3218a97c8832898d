//! The `columnar` format: what goes in comes out, in the size that was promised, and a part can
//! be read without the rest.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod round_trips;
mod sizes;
mod view;
