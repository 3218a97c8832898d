//! Floor 4: the placement driver, which grants and renews the leases. No I/O here: a driver is a
//! state machine, `step(now, input) -> outputs`; the store, the nodes and the clocks are its
//! surroundings.
//!
//! ```text
//! none ─grant─► granted ──accepted──► published ──prolong──► published (same start, later expiration)
//!               │ exp = start + 120 s   │ exp = now + 5 s        │
//!               │                       │                        ├─ stop prolongation ─► denied (keeps its expiration)
//!               └─ declined/cancelled ──┴────────── expired ◄────┘
//!                         └► a new lease, new start, maybe another holder
//! ```
//!
//! * [`driver`] takes the inputs; [`activity`] says whether this driver is the active one.
//! * [`leases`] is its copy of the stored batch and knows which groups need attention;
//!   [`renewal`] decides what the next batch is; [`candidate`] chooses holders;
//!   [`negotiation`] is the talk with a chosen one; [`retention`] says which history may go;
//!   [`storing`] in which form batches are stored, so that all can read them.
//! * [`io`] lists inputs and outputs; [`record`] is how they look in the metastorage,
//!   [`feed`] is how they come back from its watch.
//! * [`tracker`] is the other side, on every node: who holds what, from the store's watch.

pub mod activity;
pub mod candidate;
pub mod driver;
pub mod feed;
pub mod io;
pub mod leases;
pub mod negotiation;
pub mod record;
pub mod renewal;
pub mod retention;
pub mod storing;
pub mod tracker;
mod writing;
