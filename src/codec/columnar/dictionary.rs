//! The dictionary of names and incarnations, all of it and in its order.

use std::collections::HashSet;

use crate::model::batch::{LeaseBatch, Row};
use crate::model::dictionary::{Dictionary, Node};
use crate::model::ids::{GroupId, GroupKind, NodeId, NodeName};

use super::super::error::{DecodeError, EncodeError};
use super::super::reader::{Reader, invalid};
use super::super::varint;

/// Largest number of dictionary entries: rows hold their indexes.
const ENTRIES: std::ops::RangeInclusive<i64> = 0..=Row::INDEX_LIMIT as i64;
/// Smallest sizes, for the checks of counts.
const NAME_SIZE: usize = 1;
const NODE_SIZE: usize = 17;
/// More is not reserved for in advance: a count alone is no reason to allocate.
const EXPECTED: usize = 1024;
/// Up to so many known entries are compared one by one.
const FEW: usize = 16;

pub(super) fn names(reader: &mut Reader<'_>) -> Result<Vec<NodeName>, DecodeError> {
    let count = reader.count("name count", ENTRIES, NAME_SIZE)?;
    let mut names: Vec<NodeName> = Vec::with_capacity(count.min(EXPECTED));
    let mut known = HashSet::new();
    for _ in 0..count {
        let offset = reader.offset();
        let len = reader.count("name length", 0..=i32::MAX.into(), 1)?;
        let start = reader.offset();
        let bytes = reader.take(len, "name")?;
        let name = std::str::from_utf8(bytes).map_err(|error| {
            let at = start + error.valid_up_to();
            invalid(at, "name", "malformed UTF-8")
        })?;
        let twice = match count {
            0..=FEW => names.iter().any(|known| **known == *name),
            _ => !known.insert(name),
        };
        if twice {
            let what = format!("`{name}` stands here twice");
            return Err(invalid(offset, "name", what));
        }
        names.push(name.into());
    }
    Ok(names)
}

pub(super) fn nodes(
    reader: &mut Reader<'_>,
    names: Vec<NodeName>,
) -> Result<Dictionary, DecodeError> {
    let count = reader.count("node count", ENTRIES, NODE_SIZE)?;
    let mut nodes: Vec<Node> = Vec::with_capacity(count.min(EXPECTED));
    let mut known = HashSet::new();
    for _ in 0..count {
        let offset = reader.offset();
        let most = reader.u64("node id")?;
        let least = reader.u64("node id")?;
        let id = NodeId::from_halves(most, least);
        let twice = match count {
            0..=FEW => nodes.iter().any(|known| known.id == id),
            _ => !known.insert(id),
        };
        if twice {
            let what = format!("{id} stands here twice");
            return Err(invalid(offset, "node id", what));
        }
        let name = reader.ranged("name index of a node", 0..=names.len() as i64 - 1)?;
        nodes.push(Node {
            id,
            name: name as u32,
        });
    }
    Ok(Dictionary::from_parts(names, nodes))
}

/// Refuses one id under two names.
pub(super) fn check(batch: &LeaseBatch) -> Result<(), EncodeError> {
    let dictionary = batch.dictionary();
    let mut by_id: Vec<_> = (0u32..).zip(dictionary.nodes()).collect();
    by_id.sort_by_key(|(_, node)| node.id);
    let Some(pair) = by_id.windows(2).find(|pair| pair[0].1.id == pair[1].1.id) else {
        return Ok(());
    };
    let (first, second) = (pair[0], pair[1]);
    let mut rows = batch.rows_as_arrived();
    let row = rows
        .find(|row| row.holder() == second.0)
        .or(batch.rows().first());
    Err(EncodeError::IdWithTwoNames {
        group: row.map_or(GroupId::first_of(GroupKind::Table, 0), Row::group),
        id: second.1.id,
        first: dictionary.name(first.1.name).clone(),
        second: dictionary.name(second.1.name).clone(),
    })
}

/// All entries in their order, whether a lease uses them or not.
pub(super) fn write(dictionary: &Dictionary, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    varint::put(out, dictionary.names().len() as i64);
    for name in dictionary.names() {
        if name.len() > i32::MAX as usize {
            return Err(too_large("a node name", name.len(), i32::MAX as usize));
        }
        varint::put(out, name.len() as i64);
        out.extend_from_slice(name.as_bytes());
    }
    varint::put(out, dictionary.nodes().len() as i64);
    for node in dictionary.nodes() {
        let (most, least) = node.id.halves();
        out.extend_from_slice(&most.to_le_bytes());
        out.extend_from_slice(&least.to_le_bytes());
        varint::put(out, node.name.into());
    }
    Ok(())
}

pub(super) fn too_large(what: &'static str, size: usize, limit: usize) -> EncodeError {
    EncodeError::TooLarge {
        what,
        size: size as u64,
        limit: limit as u64,
    }
}
