//! Floor 5: the whole simulated cluster around the protocol: drivers, nodes, network and clocks,
//! on a heap of events. Pure: one seed decides everything, and time is what the events say.
//!
//! ```text
//!            ┌──────────────── crank: the simulator or the daemon ───────────────┐
//!            │   next_at / step ─► Effect::Store ─► the metastorage ─► complete  │
//!            │                                          watch ─► observed        │
//!            └────────────────────────────────────────────────────────────────────┘
//!   Cluster:  drivers ◄─ network ─► nodes (replica + tracker)      heap of (time, sequence)
//! ```
//!
//! * [`world`] is the cluster; [`heap`] orders its events and hashes the trace; messages go by
//!   `post`, and `operations` are what a scenario has happen;
//! * [`scenario`] says what it is made of and what happens to it;
//! * [`catalog`] knows the tables and replicas; [`leadership`] stands in for their consensus.

pub mod catalog;
pub mod event;
pub mod heap;
pub mod leadership;
pub mod member;
mod operations;
mod post;
pub mod scenario;
pub mod world;
