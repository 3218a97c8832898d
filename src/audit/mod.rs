//! Floor 5: what is stored, looked at from outside the protocol that wrote it. Writes nothing.
//!
//! * [`sizes`] reads and sums up what each batch took;
//! * [`verify`] reads everything and goes on after damage; [`chain`] says what must hold from one
//!   batch to the next;
//! * [`state`] is how a lease stands at a time, in one word.

pub mod chain;
pub mod sizes;
pub mod state;
pub mod verify;
