//! The dictionary of a chain, which deltas append to and nothing renumbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::batch::Row;
use crate::model::dictionary::{Dictionary, Node};
use crate::model::digest::EntryHashes;
use crate::model::ids::{NodeId, NodeName};

/// A dictionary, where its entries are, and their hashes.
#[derive(Clone, Debug)]
pub(super) struct ChainDictionary {
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) hashes: EntryHashes,
    names: BTreeMap<NodeName, u32>,
    nodes: BTreeMap<(NodeId, u32), u32>,
}

impl ChainDictionary {
    pub(super) fn new(dictionary: Arc<Dictionary>) -> Self {
        let names = dictionary.names().iter().cloned().zip(0..).collect();
        let nodes = dictionary.nodes().iter();
        let nodes = nodes.map(|node| (node.id, node.name)).zip(0..).collect();
        Self {
            hashes: EntryHashes::of(&dictionary),
            dictionary,
            names,
            nodes,
        }
    }

    /// Index of a name.
    pub(super) fn name(&self, name: &NodeName) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Index of a node.
    pub(super) fn node(&self, node: Node) -> Option<u32> {
        self.nodes.get(&(node.id, node.name)).copied()
    }

    pub(super) fn name_count(&self) -> u32 {
        self.dictionary.names().len() as u32
    }

    pub(super) fn node_count(&self) -> u32 {
        self.dictionary.nodes().len() as u32
    }

    /// With entries that it does not have yet; the nodes' name indexes may refer to the new
    /// names.
    pub(super) fn extended(&self, names: &[NodeName], nodes: &[Node]) -> Self {
        let mut all_names = self.dictionary.names().to_vec();
        let mut all_nodes = self.dictionary.nodes().to_vec();
        let mut extended = self.clone();
        for name in names {
            let index = all_names.len() as u32;
            extended.names.insert(name.clone(), index);
            extended.hashes.push_name(name);
            all_names.push(name.clone());
        }
        for node in nodes {
            let index = all_nodes.len() as u32;
            extended.nodes.insert((node.id, node.name), index);
            extended.hashes.push_node(node.id, node.name);
            all_nodes.push(*node);
        }
        extended.dictionary = Arc::new(Dictionary::from_parts(all_names, all_nodes));
        extended
    }
}

/// Where the entries of a batch's dictionary are in the chain's; new ones are collected.
pub(super) struct Translation<'a> {
    chain: &'a ChainDictionary,
    names: Vec<NodeName>,
    nodes: Vec<Node>,
}

impl<'a> Translation<'a> {
    pub(super) fn new(chain: &'a ChainDictionary) -> Self {
        Self {
            chain,
            names: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The new names and nodes.
    pub(super) fn collected(self) -> (Vec<NodeName>, Vec<Node>) {
        (self.names, self.nodes)
    }

    fn name(&mut self, name: &NodeName) -> u32 {
        if let Some(index) = self.chain.name(name) {
            return index;
        }
        let new = self.names.iter().position(|new| new == name);
        let new = new.unwrap_or_else(|| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        self.chain.name_count() + new as u32
    }

    fn node(&mut self, id: NodeId, name: &NodeName) -> u32 {
        let name = self.name(name);
        let node = Node { id, name };
        if let Some(index) = self.chain.node(node) {
            return index;
        }
        let new = self.nodes.iter().position(|new| *new == node);
        let new = new.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        self.chain.node_count() + new as u32
    }
}

/// The chain's index of each entry of one batch's dictionary, found when first asked for.
pub(super) struct Memo<'a> {
    dictionary: &'a Dictionary,
    names: Vec<Option<u32>>,
    nodes: Vec<Option<u32>>,
}

impl<'a> Memo<'a> {
    pub(super) fn new(dictionary: &'a Dictionary) -> Self {
        Self {
            dictionary,
            names: vec![None; dictionary.names().len()],
            nodes: vec![None; dictionary.nodes().len()],
        }
    }

    /// A row of the batch as the chain numbers its nodes.
    pub(super) fn translated(&mut self, row: &Row, translation: &mut Translation<'_>) -> Row {
        let (holder, candidate, _) = row.words();
        let (id, name) = self.dictionary.node(holder);
        let node = &mut self.nodes[holder as usize];
        let holder = *node.get_or_insert_with(|| translation.node(id, name));
        let candidate = match candidate {
            Row::NO_CANDIDATE => candidate,
            index => {
                let known = &mut self.names[index as usize];
                *known.get_or_insert_with(|| translation.name(self.dictionary.name(index)))
            }
        };
        row.reindexed(holder, candidate)
    }
}
