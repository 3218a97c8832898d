//! Snapshots and deltas in a store: written atomically, read at any point, never guessed at.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conditions;
mod crash_points;
mod feed;
mod lookup;
mod migration;
mod support;
