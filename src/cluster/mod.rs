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
//! * [`world`] is the cluster; [`heap`] orders its events ([`event`]) and hashes the trace
//!   (`digest`); [`effect`] is what it wants of the crank;
//! * its processes are `drivers`, `nodes` and the `storage`, which may stand still (`pauses`) and
//!   whose clocks are off ([`clock`]); messages and streams go by `post`, as `network` lets them;
//! * `operations` are what a scenario has happen, `upgrades` those that change releases;
//! * [`scenario`] says what it is made of and what happens to it;
//! * [`catalog`] knows the tables and replicas; [`leadership`] stands in for their consensus.

pub mod catalog;
pub mod clock;
mod digest;
mod drivers;
pub mod effect;
pub mod event;
pub mod heap;
pub mod leadership;
pub mod member;
mod network;
mod nodes;
mod operations;
mod pauses;
mod post;
pub mod scenario;
mod storage;
mod upgrades;
pub mod world;
