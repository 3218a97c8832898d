//! A whole cluster in simulated time.

mod invariants;
mod renewals;
mod scenarios;
mod trace;
