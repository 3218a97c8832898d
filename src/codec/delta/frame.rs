//! A frame as such: its parts, from bytes and to bytes, without a state.

use crate::codec::error::DecodeError;
use crate::codec::reader::{Reader, fault, invalid, out_of_range};
use crate::codec::{Defect, varint};
use crate::model::batch::Row;
use crate::model::dictionary::Node;
use crate::model::digest::Digest;
use crate::model::hlc::MAX_PHYSICAL;
use crate::model::ids::{GroupId, NodeId, NodeName};

use super::bits::{BitReader, BitWriter, index_width, unzigzag, within, zigzag};
use super::columns::{self, Entries};
use super::error::DeltaError;
use super::values::DeltaLease;
use super::{MAGIC, MAX_CHANGES, VERSION, groups, positions};

/// Bytes before the checksum: magic and version.
const CHECKED_SIZE: usize = 5;

/// Bytes up to and with the checksum.
const PREFIX_SIZE: usize = CHECKED_SIZE + 4;

// What a frame has, in its flags.
const LOGICAL: u8 = 0x01;
const ENTRIES: u8 = 0x02;
const REMOVED: u8 = 0x04;
const REPLACED: u8 = 0x08;
const ADDED: u8 = 0x10;
const BODY: u8 = ENTRIES | REMOVED | REPLACED | ADDED;

/// The longest name of a node, in bytes.
pub(super) const MAX_NAME: usize = i32::MAX as usize;

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

/// A frame of which the body is still to be read.
pub(super) struct Header {
    pub(super) delta: Delta,
    flags: u8,
    body: usize,
}

impl Header {
    /// Reads the rest, in which at most `limit` leases are removed or replaced each.
    pub(super) fn read_rest(self, bytes: &[u8], limit: usize) -> Result<Delta, DeltaError> {
        let mut delta = self.delta;
        if self.flags & BODY == 0 {
            Reader::at(bytes, self.body).finish("end")?;
        } else {
            let mut bits = BitReader::at(bytes, self.body);
            delta.read_body(self.flags, &mut bits, limit.min(MAX_CHANGES))?;
            bits.finish()?;
        }
        Ok(delta)
    }
}

/// Whether bytes claim to be a delta frame.
pub fn is_delta(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Sets the checksum of altered bytes right, so that a test gets past it.
#[doc(hidden)]
pub fn reseal(frame: &mut [u8]) {
    let crc = checksum(frame).to_le_bytes();
    if let Some(stored) = frame.get_mut(CHECKED_SIZE..PREFIX_SIZE) {
        stored.copy_from_slice(&crc);
    }
}

/// Of all bytes but the checksum's own.
fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(frame.get(..CHECKED_SIZE).unwrap_or_default());
    hasher.update(frame.get(PREFIX_SIZE..).unwrap_or_default());
    hasher.finalize()
}

impl Delta {
    /// Reads a frame: the bytes must be one and nothing else.
    pub fn read(bytes: &[u8]) -> Result<Self, DeltaError> {
        Self::read_header(bytes)?.read_rest(bytes, MAX_CHANGES)
    }

    /// Reads what says where the frame belongs, and more.
    pub(super) fn read_header(bytes: &[u8]) -> Result<Header, DeltaError> {
        let mut reader = check_prefix(bytes)?;
        let base = unsigned(&mut reader, "base")?;
        let at = reader.offset();
        let step = unsigned(&mut reader, "step")?;
        if step == 0 {
            return Err(invalid(at, "step", "0 is the snapshot itself").into());
        }
        let at = reader.offset();
        let flags = reader.u8("flags")?;
        if flags & !(LOGICAL | BODY) != 0 {
            let what = format!("{flags:02x} has bits that are unknown");
            return Err(invalid(at, "flags", what).into());
        }
        let common = reader.offset();
        let common_change = unzigzag(unsigned(&mut reader, "common expiration")?);
        let limit = MAX_PHYSICAL as i64;
        let range = -limit..=limit;
        if !range.contains(&common_change) {
            return Err(out_of_range(common, "common expiration", common_change, range).into());
        }
        let common_logical = if flags & LOGICAL == 0 {
            0
        } else {
            read_logical(&mut reader)?
        };
        let digest = Digest::from_bits(reader.u64("digest")?);
        let delta = Self {
            common_logical,
            offsets: Offsets {
                common,
                ..Offsets::default()
            },
            ..Self::quiet(base, step, common_change, digest)
        };
        let body = reader.offset();
        Ok(Header { delta, flags, body })
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

    fn read_body(
        &mut self,
        flags: u8,
        bits: &mut BitReader<'_>,
        limit: usize,
    ) -> Result<(), DecodeError> {
        self.offsets.entries = bits.offset();
        if flags & ENTRIES != 0 {
            self.read_entries(bits)?;
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

    fn read_entries(&mut self, bits: &mut BitReader<'_>) -> Result<(), DecodeError> {
        const LIMIT: u64 = Row::INDEX_LIMIT as u64;
        let names_before = bits.ranged(LIMIT, "name count")?;
        let nodes_before = bits.ranged(LIMIT, "node count")?;
        for _ in 0..read_new(bits, "new name count", 1)? {
            self.new_names.push(read_name(bits)?);
        }
        let names = names_before + self.new_names.len() as u64;
        for _ in 0..read_new(bits, "new node count", 128)? {
            let most = bits.bits(64, "node id")?;
            let least = bits.bits(64, "node id")?;
            let at = bits.offset();
            let name = bits.bits(index_width(names), "name index of a node")?;
            if name >= names {
                let what = format!("{name} of {names} names");
                return Err(invalid(at, "name index of a node", what));
            }
            let name = name as u32;
            let id = NodeId::from_halves(most, least);
            self.new_nodes.push(Node { id, name });
        }
        let nodes = nodes_before + self.new_nodes.len() as u64;
        self.check_new(names, nodes)?;
        self.entries = Entries {
            names: Some(names as u32),
            nodes: Some(nodes as u32),
        };
        Ok(())
    }

    /// Refuses too many entries, none, or one twice.
    fn check_new(&self, names: u64, nodes: u64) -> Result<(), DecodeError> {
        let at = self.offsets.entries;
        within(at, "name count", names, Row::INDEX_LIMIT.into())?;
        within(at, "node count", nodes, Row::INDEX_LIMIT.into())?;
        if self.new_names.is_empty() && self.new_nodes.is_empty() {
            return Err(invalid(at, "new name count", "new entries, but none"));
        }
        let mut names: Vec<_> = self.new_names.iter().collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[a, b]| a == b) {
            return Err(invalid(
                at,
                "new name",
                format!("`{name}` stands here twice"),
            ));
        }
        let mut nodes: Vec<_> = self.new_nodes.iter().map(|n| (n.id, n.name)).collect();
        nodes.sort_unstable();
        if let Some([(id, _), _]) = nodes.array_windows().find(|[a, b]| a == b) {
            return Err(invalid(at, "node id", format!("{id} stands here twice")));
        }
        Ok(())
    }

    /// The frame's bytes. `entries` is the size of the chain's dictionary (names, nodes) before.
    pub(super) fn write(&self, names: u32, nodes: u32) -> Vec<u8> {
        let has = |flag, present| if present { flag } else { 0 };
        let new_entries = !(self.new_names.is_empty() && self.new_nodes.is_empty());
        let flags = has(LOGICAL, self.common_logical != 0)
            | has(ENTRIES, new_entries)
            | has(REMOVED, !self.removed.is_empty())
            | has(REPLACED, !self.replaced.is_empty())
            | has(ADDED, !self.added.is_empty());
        let mut out = Vec::with_capacity(48);
        out.extend_from_slice(&MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&[0; 4]);
        put_unsigned(&mut out, self.base);
        put_unsigned(&mut out, self.step);
        out.push(flags);
        put_unsigned(&mut out, zigzag(self.common_change));
        if self.common_logical != 0 {
            put_unsigned(&mut out, self.common_logical.into());
        }
        out.extend_from_slice(&self.digest.bits().to_le_bytes());
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
            bits.number(names.into());
            bits.number(nodes.into());
            bits.number(self.new_names.len() as u64);
            for name in &self.new_names {
                bits.number(name.len() as u64);
                for byte in name.bytes() {
                    bits.bits(byte.into(), 8);
                }
            }
            bits.number(self.new_nodes.len() as u64);
            for node in &self.new_nodes {
                let (most, least) = node.id.halves();
                bits.bits(most, 64);
                bits.bits(least, 64);
                bits.bits(node.name.into(), index_width(entries.0.into()));
            }
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

/// Magic, version and checksum; then the reader stands at the base.
fn check_prefix(bytes: &[u8]) -> Result<Reader<'_>, DeltaError> {
    let mut magic = bytes.iter().zip(&MAGIC);
    if magic.any(|(found, magic)| found != magic) {
        return Err(DeltaError::NotADelta);
    }
    let mut reader = Reader::new(bytes);
    reader.take(MAGIC.len(), "magic")?;
    // Another version may have another layout: nothing after it can be trusted.
    let version = reader.u8("version")?;
    if version != VERSION {
        return Err(DeltaError::UnknownVersion(version));
    }
    let stored = u32::from_le_bytes(reader.array("checksum")?);
    let computed = checksum(bytes);
    if stored != computed {
        return Err(DeltaError::Checksum { stored, computed });
    }
    Ok(reader)
}

fn read_logical(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    const FIELD: &str = "common expiration logical";
    let at = reader.offset();
    let value = unsigned(reader, FIELD)?;
    match u16::try_from(value) {
        Ok(logical) if logical > 0 => Ok(logical),
        _ => Err(fault(
            at,
            FIELD,
            Defect::OutOfRange {
                value: value.into(),
                low: 1,
                high: u16::MAX.into(),
            },
        )),
    }
}

/// A number of new entries of at least so many bits each.
fn read_new(
    bits: &mut BitReader<'_>,
    field: &'static str,
    size: usize,
) -> Result<usize, DecodeError> {
    let at = bits.offset();
    let count = bits.ranged(MAX_CHANGES as u64, field)?;
    bits.carries(at, field, count, size)
}

fn read_name(bits: &mut BitReader<'_>) -> Result<NodeName, DecodeError> {
    let at = bits.offset();
    let len = bits.ranged(MAX_NAME as u64, "name length")?;
    let len = bits.carries(at, "name length", len, 8)?;
    let at = bits.offset();
    let byte = |_| bits.bits(8, "new name").map(|byte| byte as u8);
    let bytes: Vec<u8> = (0..len).map(byte).collect::<Result<_, _>>()?;
    match std::str::from_utf8(&bytes) {
        Ok(name) => Ok(name.into()),
        Err(error) => Err(invalid(at + error.valid_up_to(), "new name", "not UTF-8")),
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

/// An unsigned LEB128.
fn unsigned(reader: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    // The compact formats' variable-length integer is the same of the number plus one.
    reader
        .varint(field)
        .map(|value| value.wrapping_add(1) as u64)
}

fn put_unsigned(out: &mut Vec<u8>, value: u64) {
    varint::put(out, (value as i64).wrapping_sub(1));
}
