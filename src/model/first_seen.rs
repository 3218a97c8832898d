//! Brings a dictionary into the order in which rows first use its entries, as the formats have it.

use super::batch::Row;
use super::dictionary::Dictionary;

/// The order in which rows first use the entries of a dictionary.
pub(super) struct FirstSeen<'a> {
    old: &'a Dictionary,
    nodes: Vec<u32>,
    names: Vec<u32>,
    new_node: Vec<u32>,
    new_name: Vec<u32>,
}

impl<'a> FirstSeen<'a> {
    const UNSEEN: u32 = u32::MAX;

    pub(super) fn new(old: &'a Dictionary) -> Self {
        Self {
            old,
            nodes: Vec::new(),
            names: Vec::new(),
            new_node: vec![Self::UNSEEN; old.nodes().len()],
            new_name: vec![Self::UNSEEN; old.names().len()],
        }
    }

    pub(super) fn see(&mut self, row: &Row) {
        let holder = row.holder();
        if self.new_node[holder as usize] == Self::UNSEEN {
            self.new_node[holder as usize] = self.nodes.len() as u32;
            self.nodes.push(holder);
            self.see_name(self.old.nodes()[holder as usize].name);
        }
        if let Some(candidate) = row.candidate() {
            self.see_name(candidate);
        }
    }

    /// New index of a node that was seen.
    pub(super) fn node(&self, old: u32) -> u32 {
        self.new_node[old as usize]
    }

    /// New index of a name that was seen.
    pub(super) fn name(&self, old: u32) -> u32 {
        self.new_name[old as usize]
    }

    fn see_name(&mut self, name: u32) {
        if self.new_name[name as usize] == Self::UNSEEN {
            self.new_name[name as usize] = self.names.len() as u32;
            self.names.push(name);
        }
    }

    pub(super) fn complete(&self) -> bool {
        self.nodes.len() == self.old.nodes().len() && self.names.len() == self.old.names().len()
    }

    pub(super) fn is_identity(&self) -> bool {
        let ascending = |order: &[u32]| (0u32..).zip(order).all(|(new, old)| new == *old);
        self.complete() && ascending(&self.nodes) && ascending(&self.names)
    }

    pub(super) fn rebuilt(&self) -> Dictionary {
        let names = (self.names.iter())
            .map(|name| self.old.name(*name).clone())
            .collect();
        let nodes = (self.nodes.iter())
            .map(|node| {
                let mut node = self.old.nodes()[*node as usize];
                node.name = self.new_name[node.name as usize];
                node
            })
            .collect();
        Dictionary::from_parts(names, nodes)
    }
}
