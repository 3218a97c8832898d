//! Delta frames: what changed from one stored state of the leases to the next.
//!
//! Renewing the leases of a quiet cluster changes one number, the common expiration, so storing
//! all of them again would be a waste. A **chain** is a stored snapshot, a whole batch in any
//! format, and the deltas 1, 2, 3, … after it. Writer and readers each keep a [`Chain`]: the
//! writer [advances](Chain::advance) it and stores the frame, a reader [applies](Chain::apply)
//! the frame. A frame fits exactly one state: it names the revision of its snapshot and its
//! number in the chain, and carries the digest of the state that it leads to. Whatever else
//! happens to it is a typed error, and the reader's state stays what it was.
//!
//! A frame is the stored record itself, with a magic and a checksum of its own. After a header
//! of bytes all of its body is one stream of bits (`bits`), as most of its numbers take a few
//! bits each; see docs/FORMATS.md.

mod advance;
mod apply;
mod bits;
mod chain;
mod columns;
mod edit;
mod entries;
mod error;
mod frame;
mod groups;
mod growth;
mod header;
mod packing;
mod positions;
mod values;

pub use chain::Chain;
pub use error::DeltaError;
pub use frame::Delta;
pub use header::{is_delta, reseal};
pub use values::{DeltaLease, Grant, OwnExpiration};

/// The first four bytes. No batch and no other record starts with them.
pub const MAGIC: [u8; 4] = *b"\x89LHD";

/// The version of the layout.
pub const VERSION: u8 = 1;

/// Leases that a frame can replace, add and remove at most, each: 16 Mi. It bounds what a reader
/// allocates for columns that take no bits; a writer that has more to say writes a snapshot.
pub const MAX_CHANGES: usize = 1 << 24;
