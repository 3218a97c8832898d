//! A whole cluster in simulated time.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod invariants;
mod renewals;
mod scenarios;
mod trace;
