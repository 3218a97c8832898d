//! The dictionary of names and incarnations: read, and the used entries of a batch's written.

use std::collections::HashSet;

use crate::model::batch::{LeaseBatch, Row};
use crate::model::dictionary::{Dictionary, Node};
use crate::model::ids::{NodeId, NodeName};

use super::super::error::{DecodeError, EncodeError};
use super::super::reader::{Reader, invalid};
use super::super::{mutf8, varint};
use super::{NAME_SIZE, NODE_SIZE};

/// Largest number of entries: rows hold their indexes.
const ENTRIES: std::ops::RangeInclusive<i64> = 0..=Row::INDEX_LIMIT as i64;

/// More are not reserved for in advance: a count alone is no reason to allocate.
const EXPECTED: usize = 1024;

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Dictionary, DecodeError> {
    let count = reader.count("name count", ENTRIES, NAME_SIZE)?;
    let mut names = Vec::with_capacity(count.min(EXPECTED));
    let mut known = HashSet::with_capacity(count.min(EXPECTED));
    for _ in 0..count {
        let offset = reader.offset();
        let len = reader.count("name length", 0..=i32::MAX.into(), 1)?;
        let start = reader.offset();
        let bytes = reader.take(len, "name")?;
        let name: NodeName = mutf8::decode(bytes)
            .map_err(|(position, what)| invalid(start + position, "name", what))?
            .into();
        if !known.insert(name.clone()) {
            return Err(invalid(
                offset,
                "name",
                format!("`{name}` stands here twice"),
            ));
        }
        names.push(name);
    }
    let count = reader.count("node count", ENTRIES, NODE_SIZE)?;
    let mut nodes = Vec::with_capacity(count.min(EXPECTED));
    let mut known = HashSet::with_capacity(count.min(EXPECTED));
    for _ in 0..count {
        let offset = reader.offset();
        let most = reader.u64("node id")?;
        let least = reader.u64("node id")?;
        let id = NodeId::from_halves(most, least);
        if !known.insert(id) {
            return Err(invalid(
                offset,
                "node id",
                format!("{id} stands here twice"),
            ));
        }
        let name = reader.ranged("name index of a node", 0..=names.len() as i64 - 1)?;
        nodes.push(Node {
            id,
            name: name as u32,
        });
    }
    Ok(Dictionary::from_parts(names, nodes))
}

/// The entries of a batch's dictionary that its rows use, in the dictionary's order.
pub(super) struct Used {
    names: Vec<u32>,
    nodes: Vec<u32>,
    /// New index of each old one; unused ones have any.
    pub(super) new_name: Vec<u32>,
    pub(super) new_node: Vec<u32>,
}

impl Used {
    pub(super) fn of(batch: &LeaseBatch) -> Self {
        let dictionary = batch.dictionary();
        let mut names = Marks::new(dictionary.names().len());
        let mut nodes = Marks::new(dictionary.nodes().len());
        for row in batch.rows() {
            let holder = row.holder() as usize;
            if nodes.mark(holder) {
                names.mark(dictionary.nodes()[holder].name as usize);
            }
            if let Some(candidate) = row.candidate() {
                names.mark(candidate as usize);
            }
            // In most batches the first few rows use all there is.
            if nodes.unmarked == 0 && names.unmarked == 0 {
                break;
            }
        }
        let (names, new_name) = names.kept();
        let (nodes, new_node) = nodes.kept();
        Self {
            names,
            nodes,
            new_name,
            new_node,
        }
    }

    /// Number of used names.
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }

    /// Number of used ids.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Refuses one id under two names.
    pub(super) fn check(&self, batch: &LeaseBatch) -> Result<(), EncodeError> {
        let dictionary = batch.dictionary();
        let id = |index: &u32| dictionary.node(*index).0;
        let mut by_id = self.nodes.clone();
        by_id.sort_by_key(id);
        let Some(pair) = by_id.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) else {
            return Ok(());
        };
        let (first, second) = (pair[0], pair[1]);
        let mut rows = batch.rows_as_arrived();
        let Some(row) = rows.find(|row| row.holder() == second) else {
            return Ok(());
        };
        Err(EncodeError::IdWithTwoNames {
            group: row.group(),
            id: id(&first),
            first: dictionary.node(first).1.clone(),
            second: dictionary.node(second).1.clone(),
        })
    }

    pub(super) fn write(&self, batch: &LeaseBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let dictionary = batch.dictionary();
        varint::put(out, self.names.len() as i64);
        for name in &self.names {
            let name = dictionary.name(*name);
            let size = mutf8::len(name);
            if size > i32::MAX as usize {
                return Err(EncodeError::TooLarge {
                    what: "a node name",
                    size: size as u64,
                    limit: i32::MAX as u64,
                });
            }
            varint::put(out, size as i64);
            mutf8::encode(name, out);
        }
        varint::put(out, self.nodes.len() as i64);
        for node in &self.nodes {
            let node = dictionary.nodes()[*node as usize];
            let (most, least) = node.id.halves();
            out.extend_from_slice(&most.to_le_bytes());
            out.extend_from_slice(&least.to_le_bytes());
            varint::put(out, self.new_name[node.name as usize].into());
        }
        Ok(())
    }
}

/// Which of some entries are used.
struct Marks {
    marked: Vec<bool>,
    unmarked: usize,
}

impl Marks {
    fn new(len: usize) -> Self {
        Self {
            marked: vec![false; len],
            unmarked: len,
        }
    }

    /// Marks an entry; whether it was not marked before.
    fn mark(&mut self, entry: usize) -> bool {
        let new = !std::mem::replace(&mut self.marked[entry], true);
        self.unmarked -= usize::from(new);
        new
    }

    /// The marked entries, and for each entry how many marked ones stand before it.
    fn kept(&self) -> (Vec<u32>, Vec<u32>) {
        let mut kept = Vec::with_capacity(self.marked.len() - self.unmarked);
        let mut new = Vec::with_capacity(self.marked.len());
        for (old, marked) in (0u32..).zip(&self.marked) {
            new.push(kept.len() as u32);
            if *marked {
                kept.push(old);
            }
        }
        (kept, new)
    }
}
