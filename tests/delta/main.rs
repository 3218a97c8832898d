//! Delta frames: chains of stored changes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod agreement;
mod digest;
mod golden;
mod hostile;
mod refusal;
mod sizes;
mod support;
