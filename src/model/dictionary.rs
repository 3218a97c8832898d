//! The names and incarnations that the rows of a batch refer to by index.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::ids::{NodeId, NodeName};

/// An incarnation, its name given as an index into the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The incarnation's id.
    pub id: NodeId,
    /// Index of its name.
    pub name: u32,
}

/// Names and incarnations in the order in which a format writes them.
///
/// Names are unique. An id may stand under two names (a naive batch can carry that); the pair is
/// unique.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dictionary {
    names: Vec<NodeName>,
    nodes: Vec<Node>,
}

impl Dictionary {
    /// From its parts. The caller has checked that names and (id, name) pairs are unique and
    /// that each name index is in range.
    pub(crate) fn from_parts(names: Vec<NodeName>, nodes: Vec<Node>) -> Self {
        debug_assert!(nodes.iter().all(|node| (node.name as usize) < names.len()));
        Self { names, nodes }
    }

    /// All names.
    pub fn names(&self) -> &[NodeName] {
        &self.names
    }

    /// All incarnations.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The name at an index that a row of the same batch holds.
    pub fn name(&self, index: u32) -> &NodeName {
        &self.names[index as usize]
    }

    /// Id and name at an index that a row of the same batch holds.
    pub fn node(&self, index: u32) -> (NodeId, &NodeName) {
        let node = self.nodes[index as usize];
        (node.id, self.name(node.name))
    }
}

/// Collects names and incarnations, giving each its index in order of first appearance.
#[derive(Debug, Default)]
pub struct DictionaryBuilder {
    dictionary: Dictionary,
    names: BTreeMap<NodeName, u32>,
    nodes: BTreeMap<(NodeId, u32), u32>,
    /// The index found last: in most batches the next lease asks for a recent one.
    recent: u32,
}

impl DictionaryBuilder {
    /// Goes on from an existing dictionary.
    pub fn from_dictionary(dictionary: Dictionary) -> Self {
        let index = |position: usize| position as u32;
        Self {
            names: (dictionary.names.iter().cloned())
                .enumerate()
                .map(|(position, name)| (name, index(position)))
                .collect(),
            nodes: (dictionary.nodes.iter())
                .enumerate()
                .map(|(position, node)| ((node.id, node.name), index(position)))
                .collect(),
            dictionary,
            recent: 0,
        }
    }

    /// Index of a name.
    pub fn name(&mut self, name: &NodeName) -> u32 {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        let index = self.dictionary.names.len() as u32;
        self.dictionary.names.push(name.clone());
        self.names.insert(name.clone(), index);
        index
    }

    /// Index of an incarnation. Its name is entered only when the incarnation is new, as the
    /// compact formats have it.
    pub fn node(&mut self, id: NodeId, name: &NodeName) -> u32 {
        if let Some(node) = self.dictionary.nodes.get(self.recent as usize)
            && node.id == id
            && self.dictionary.names[node.name as usize] == *name
        {
            return self.recent;
        }
        let name = self.name(name);
        self.recent = match self.nodes.entry((id, name)) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(vacant) => {
                let index = self.dictionary.nodes.len() as u32;
                self.dictionary.nodes.push(Node { id, name });
                *vacant.insert(index)
            }
        };
        self.recent
    }

    /// The dictionary collected so far.
    pub fn finish(self) -> Dictionary {
        self.dictionary
    }
}
