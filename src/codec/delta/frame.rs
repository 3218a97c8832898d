//! A frame as such: its parts, from bytes and to bytes, without a state.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::dictionary::Node;
use crate::model::digest::Digest;
use crate::model::ids::{GroupId, NodeName};

use super::bits::{BitReader, BitWriter};
use super::columns::{self, Entries};
use super::error::DeltaError;
use super::header::{self, ADDED, BODY, ENTRIES, Header, REMOVED, REPLACED, reseal};
use super::values::DeltaLease;
use super::{MAX_CHANGES, groups, growth, positions};

/// What a frame says, without the state that it applies to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Delta {
    /// Revision of the snapshot that the chain starts from.
    pub base: u64,
    /// Number of this delta in the chain, from 1.
    pub step: u64,
    /// By how much the common expiration's physical part moves (milliseconds).
    pub common_change: i64,
    /// The new common expiration's logical part.
    pub common_logical: u16,
    /// Digest of the state that it leads to.
    pub digest: Digest,
    /// Names that the chain's dictionary gets at its end.
    pub new_names: Vec<NodeName>,
    /// Nodes that it gets at its end.
    pub new_nodes: Vec<Node>,
    /// Positions of the removed leases in the state before, ascending.
    pub removed: Vec<u32>,
    /// Positions of the replaced leases in the state before, ascending, none of them removed.
    pub replaced: Vec<(u32, DeltaLease)>,
    /// The added leases, ascending by group.
    pub added: Vec<(GroupId, DeltaLease)>,
    /// How many entries the dictionary has then, as far as the frame says it.
    pub(super) entries: Entries,
    pub(super) offsets: Offsets,
}

/// Where in the bytes the parts begin that only a state can refute.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Offsets {
    pub(super) common: usize,
    pub(super) entries: usize,
    pub(super) removed: usize,
    pub(super) replaced: usize,
    pub(super) added: usize,
    pub(super) columns: usize,
}

impl Delta {
    /// Reads a frame: the bytes must be one and nothing else.
    pub fn read(bytes: &[u8]) -> Result<Self, DeltaError> {
        Header::read(bytes)?.read_rest(bytes, MAX_CHANGES)
    }

    /// A delta that moves the common expiration and nothing else.
    pub(super) fn quiet(base: u64, step: u64, common_change: i64, digest: Digest) -> Self {
        Self {
            base,
            step,
            common_change,
            common_logical: 0,
            digest,
            new_names: Vec::new(),
            new_nodes: Vec::new(),
            removed: Vec::new(),
            replaced: Vec::new(),
            added: Vec::new(),
            entries: Entries::default(),
            offsets: Offsets::default(),
        }
    }

    /// Whether nothing but the common expiration changes.
    pub fn is_quiet(&self) -> bool {
        self.new_names.is_empty()
            && self.new_nodes.is_empty()
            && self.removed.is_empty()
            && self.replaced.is_empty()
            && self.added.is_empty()
    }

    /// Number of names in the chain's dictionary afterwards, where the frame says it.
    pub fn name_count(&self) -> Option<u32> {
        self.entries.names
    }

    /// Number of nodes in the chain's dictionary afterwards, where the frame says it.
    pub fn node_count(&self) -> Option<u32> {
        self.entries.nodes
    }

    pub(super) fn read_body(
        &mut self,
        flags: u8,
        bits: &mut BitReader<'_>,
        limit: usize,
    ) -> Result<(), DecodeError> {
        self.offsets.entries = bits.offset();
        if flags & ENTRIES != 0 {
            let grown = growth::read(bits)?;
            (self.new_names, self.new_nodes) = (grown.names, grown.nodes);
            self.entries = grown.entries;
        }
        self.offsets.removed = bits.offset();
        if flags & REMOVED != 0 {
            self.removed = positions::read(bits, limit, "removed count", "removed position")?;
        }
        let at = bits.offset();
        self.offsets.replaced = at;
        let mut replaced = Vec::new();
        if flags & REPLACED != 0 {
            replaced = positions::read(bits, limit, "replaced count", "replaced position")?;
            if let Some(both) = first_common(&self.removed, &replaced) {
                let what = format!("position {both} is removed as well");
                return Err(invalid(at, "replaced position", what));
            }
        }
        self.offsets.added = bits.offset();
        let mut added = Vec::new();
        if flags & ADDED != 0 {
            added = groups::read(bits)?;
        }
        self.offsets.columns = bits.offset();
        if replaced.len() + added.len() > 0 {
            let (first, second) = (replaced.len(), added.len());
            let mut leases = columns::read(bits, first, second, &mut self.entries)?.into_iter();
            // Takes from the leases only as many as there are positions.
            self.replaced = replaced
                .into_iter()
                .zip(leases.by_ref().take(first))
                .collect();
            self.added = added.into_iter().zip(leases).collect();
        }
        Ok(())
    }

    /// The frame's bytes. `names` and `nodes` are how many the chain's dictionary has before.
    pub(super) fn write(&self, names: u32, nodes: u32) -> Vec<u8> {
        let (mut out, flags) = header::write(self);
        if flags & BODY != 0 {
            let mut bits = BitWriter::after(out);
            self.write_body(&mut bits, flags, names, nodes);
            out = bits.finish();
        }
        reseal(&mut out);
        out
    }

    fn write_body(&self, bits: &mut BitWriter, flags: u8, names: u32, nodes: u32) {
        let total = |before: u32, new: usize| before + new as u32;
        let entries = (
            total(names, self.new_names.len()),
            total(nodes, self.new_nodes.len()),
        );
        let mut said = Entries::default();
        if flags & ENTRIES != 0 {
            growth::write(bits, (names, nodes), &self.new_names, &self.new_nodes);
            said = Entries {
                names: Some(entries.0),
                nodes: Some(entries.1),
            };
        }
        if !self.removed.is_empty() {
            positions::write(bits, &self.removed);
        }
        if !self.replaced.is_empty() {
            let replaced: Vec<u32> = self.replaced.iter().map(|(at, _)| *at).collect();
            positions::write(bits, &replaced);
        }
        if !self.added.is_empty() {
            groups::write(bits, self.added.iter().map(|(group, _)| group));
        }
        let replaced = self.replaced.iter().map(|(_, lease)| lease);
        let added = self.added.iter().map(|(_, lease)| lease);
        let leases: Vec<&DeltaLease> = replaced.chain(added).collect();
        if !leases.is_empty() {
            columns::write(bits, &leases, self.replaced.len(), entries, said);
        }
    }
}

/// The first position that stands in two ascending lists.
fn first_common(a: &[u32], b: &[u32]) -> Option<u32> {
    let mut b = b.iter().peekable();
    let found = a.iter().find(|position| {
        while b.next_if(|other| other < position).is_some() {}
        b.peek() == Some(position)
    });
    found.copied()
}
