//! `compact-v1` and `compact-v2`: per object, delta- and dictionary-coded.
//!
//! docs/FORMATS.md has the byte tables. [`encode`] and [`decode`] each have a fast path
//! ([`quick`]) that handles the commonest lease as one 64-bit word, and a careful one for
//! everything else.

pub(crate) mod decode;
mod dictionary;
pub(crate) mod element;
pub(crate) mod encode;
mod header;
mod quick;
mod tally;

pub(crate) use tally::tally;

/// Bytes 1 to 3 of the magic; byte 0 is the version.
pub(crate) const MAGIC: [u8; 3] = [0xEF, 0xBE, 0x43];

/// The last version; the first is 1.
const LAST_VERSION: u8 = 2;

/// The holder has agreed.
pub(crate) const ACCEPTED: u8 = 0x01;
/// The driver may prolong the lease.
pub(crate) const PROLONGABLE: u8 = 0x02;
/// A candidate follows.
pub(crate) const HAS_CANDIDATE: u8 = 0x04;
/// The expiration is not the common one and follows.
pub(crate) const UNCOMMON: u8 = 0x08;
/// The expiration has a logical part (which follows if the expiration does).
pub(crate) const LOGICAL: u8 = 0x10;
/// No lease for this partition; nothing follows.
pub(crate) const HOLE: u8 = 0x20;

/// The most names, and the most ids that one packed number has room for.
pub(crate) const PACKED_MAX: usize = 8;
/// How far the candidate is shifted in a packed number.
pub(crate) const PACKED_SHIFT: u32 = 3;

/// Smallest sizes, for the checks of counts.
const NAME_SIZE: usize = 1;
const NODE_SIZE: usize = 17;
const OBJECT_SIZE: usize = 3;
const ELEMENT_SIZE: usize = 1;

/// Whether holder and candidate share one number. Version 1 forgot the ids.
pub(crate) fn packed(version: u8, names: usize, ids: usize) -> bool {
    names <= PACKED_MAX && (version == 1 || ids <= PACKED_MAX)
}
