//! A batch's digest: 64 bits that tell whether two batches hold the same rows.
//!
//! It is a sum over the rows, so that neither the order of the rows nor that of the dictionary
//! matters and that it is kept up at the cost of what changed. The common expiration is a summand
//! of its own: renewing a million leases changes one term. It guards against applying a change to
//! the wrong state, not against an adversary. The function is part of the format of delta frames;
//! docs/FORMATS.md defines it, and it never changes within a version of theirs.

use std::fmt;

use super::batch::{LeaseBatch, Row};
use super::dictionary::Dictionary;
use super::hlc::HybridTimestamp;
use super::ids::NodeId;

/// Digest of a batch: the wrapping sum of a hash of each row without the common expiration, and
/// of the common expiration's.
///
/// A row's own expiration is taken as the row has it. So a row that names the common expiration
/// as its own is another row than one that has none, although both mean the same lease;
/// [`LeaseBatch::apply`] and every reader of a batch leave none of the former kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digest(u64);

impl Digest {
    /// Digest of a batch, from all of its rows.
    pub fn of(batch: &LeaseBatch) -> Self {
        Self::with(&EntryHashes::of(batch.dictionary()), batch)
    }

    /// The same with the hashes of the batch's dictionary at hand.
    pub(crate) fn with(hashes: &EntryHashes, batch: &LeaseBatch) -> Self {
        let rows = batch.rows().iter().map(|row| hashes.row(row));
        let sum = rows.fold(0, u64::wrapping_add);
        Self(sum.wrapping_add(common(batch.common_expiration())))
    }

    /// From its number.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its number.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// With a summand replaced.
    #[must_use]
    pub(crate) const fn replace(self, old: u64, new: u64) -> Self {
        Self(self.0.wrapping_sub(old).wrapping_add(new))
    }

    /// After the common expiration has moved.
    #[must_use]
    pub(crate) fn recommon(self, old: HybridTimestamp, new: HybridTimestamp) -> Self {
        self.replace(common(old), common(new))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

// Where each kind of hash starts from, so that equal words of different kinds differ.
const ROW: u64 = 0x9E37_79B9_7F4A_7C15;
const NAME: u64 = 0xD1B5_4A32_D192_ED03;
const NODE: u64 = 0x8CB9_2BA7_2F3D_8DD7;
const COMMON: u64 = 0xAEF1_7502_108E_F2D9;

/// The finalizer of splitmix64, a bijection: of two chains that differ in one word the results
/// differ for certain.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn common(expiration: HybridTimestamp) -> u64 {
    mix(COMMON ^ expiration.composite())
}

fn name(name: &str) -> u64 {
    let words = name.as_bytes().chunks(8).map(|chunk| {
        let byte = |word: u64, byte: &u8| word << 8 | u64::from(*byte);
        chunk.iter().rev().fold(0, byte)
    });
    words.fold(mix(NAME ^ name.len() as u64), |hash, word| mix(hash ^ word))
}

/// One hash for each name and each node of a dictionary, so that a row costs a few steps,
/// however long the names are.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryHashes {
    names: Vec<u64>,
    nodes: Vec<u64>,
}

impl EntryHashes {
    pub(crate) fn of(dictionary: &Dictionary) -> Self {
        let mut hashes = Self::default();
        for name in dictionary.names() {
            hashes.push_name(name);
        }
        for node in dictionary.nodes() {
            hashes.push_node(node.id, node.name);
        }
        hashes
    }

    pub(crate) fn push_name(&mut self, text: &str) {
        self.names.push(name(text));
    }

    /// A node under a name that was pushed before.
    pub(crate) fn push_node(&mut self, id: NodeId, name: u32) {
        let (most, least) = id.halves();
        let hash = mix(mix(NODE ^ most) ^ least);
        self.nodes.push(mix(hash ^ self.names[name as usize]));
    }

    /// Hash of a row over this dictionary.
    #[inline]
    pub(crate) fn row(&self, row: &Row) -> u64 {
        let (holder, candidate, flags) = row.words();
        let own = row.own_expiration().map_or(0, HybridTimestamp::composite);
        let candidate = match candidate {
            Row::NO_CANDIDATE => 0,
            index => self.names[index as usize],
        };
        let mut hash = mix(ROW ^ row.group().packed());
        hash = mix(hash ^ row.packed_start());
        hash = mix(hash ^ own);
        hash = mix(hash ^ self.nodes[holder as usize]);
        mix(hash ^ (candidate << 2 | u64::from(flags)))
    }
}
