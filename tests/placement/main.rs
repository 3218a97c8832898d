//! The life of a lease, driven by hand: each test feeds a driver inputs and reads its outputs.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod activity;
mod life;
mod negotiation;
mod stage;
mod store_outcomes;
