//! The names and nodes that a delta appends to the chain's dictionary.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::batch::Row;
use crate::model::dictionary::Node;
use crate::model::ids::{NodeId, NodeName};

use super::MAX_CHANGES;
use super::bits::{BitReader, BitWriter, index_width, within};
use super::columns::Entries;

/// The longest name of a node, in bytes.
pub(super) const MAX_NAME: usize = i32::MAX as usize;

/// The most entries of a dictionary: rows hold their indexes.
const LIMIT: u64 = Row::INDEX_LIMIT as u64;

/// Bits of a node without its name.
const NODE_WIDTH: usize = 128;

/// What a frame appends.
pub(super) struct Growth {
    pub(super) names: Vec<NodeName>,
    pub(super) nodes: Vec<Node>,
    /// What the dictionary has then.
    pub(super) entries: Entries,
}

/// Writes new entries; `before` is how many names and nodes there are already.
pub(super) fn write(
    bits: &mut BitWriter,
    before: (u32, u32),
    new_names: &[NodeName],
    new_nodes: &[Node],
) {
    bits.number(before.0.into());
    bits.number(before.1.into());
    bits.number(new_names.len() as u64);
    for name in new_names {
        bits.number(name.len() as u64);
        for byte in name.bytes() {
            bits.bits(byte.into(), 8);
        }
    }
    let names = u64::from(before.0) + new_names.len() as u64;
    bits.number(new_nodes.len() as u64);
    for node in new_nodes {
        let (most, least) = node.id.halves();
        bits.bits(most, 64);
        bits.bits(least, 64);
        bits.bits(node.name.into(), index_width(names));
    }
}

pub(super) fn read(bits: &mut BitReader<'_>) -> Result<Growth, DecodeError> {
    let start = bits.offset();
    let names_before = bits.ranged(LIMIT, "name count")?;
    let nodes_before = bits.ranged(LIMIT, "node count")?;
    let new_names = read_names(bits)?;
    let names = names_before + new_names.len() as u64;
    let new_nodes = read_nodes(bits, names)?;
    let nodes = nodes_before + new_nodes.len() as u64;
    within(start, "name count", names, LIMIT)?;
    within(start, "node count", nodes, LIMIT)?;
    if new_names.is_empty() && new_nodes.is_empty() {
        let what = "the dictionary grows by nothing";
        return Err(invalid(start, "new name count", what));
    }
    Ok(Growth {
        names: new_names,
        nodes: new_nodes,
        entries: Entries {
            names: Some(names as u32),
            nodes: Some(nodes as u32),
        },
    })
}

fn read_names(bits: &mut BitReader<'_>) -> Result<Vec<NodeName>, DecodeError> {
    let start = bits.offset();
    let count = read_count(bits, "new name count", 1)?;
    let name = |_| read_name(bits);
    let names: Vec<NodeName> = (0..count).map(name).collect::<Result<_, _>>()?;
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort_unstable();
    if let Some(name) = twice(&sorted) {
        let what = format!("`{name}` stands here twice");
        return Err(invalid(start, "new name", what));
    }
    Ok(names)
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

fn read_nodes(bits: &mut BitReader<'_>, names: u64) -> Result<Vec<Node>, DecodeError> {
    const NAME: &str = "name index of a node";
    let start = bits.offset();
    let count = read_count(bits, "new node count", NODE_WIDTH)?;
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        let most = bits.bits(64, "node id")?;
        let least = bits.bits(64, "node id")?;
        let at = bits.offset();
        let name = bits.bits(index_width(names), NAME)?;
        if name >= names {
            return Err(invalid(at, NAME, format!("{name} of {names} names")));
        }
        nodes.push(Node {
            id: NodeId::from_halves(most, least),
            name: name as u32,
        });
    }
    let mut sorted: Vec<_> = nodes.iter().map(|node| (node.id, node.name)).collect();
    sorted.sort_unstable();
    if let Some((id, _)) = twice(&sorted) {
        let what = format!("{id} stands here twice under one name");
        return Err(invalid(start, "node id", what));
    }
    Ok(nodes)
}

/// A number of new entries of at least so many bits each.
fn read_count(
    bits: &mut BitReader<'_>,
    field: &'static str,
    size: usize,
) -> Result<usize, DecodeError> {
    let at = bits.offset();
    let count = bits.ranged(MAX_CHANGES as u64, field)?;
    bits.carries(at, field, count, size)
}

/// An entry that a sorted list has twice.
fn twice<T: PartialEq>(sorted: &[T]) -> Option<&T> {
    let pair = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    pair.and_then(|pair| pair.first())
}
