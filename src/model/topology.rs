//! Which nodes are there, and which of them may hold the leases of a group.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ids::{GroupId, Incarnation, NodeId, NodeName};
use super::reads::Reads;

/// The nodes that are up, by name, with the id of their present incarnation; and the drivers that
/// read what is stored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Topology {
    nodes: BTreeMap<NodeName, (NodeId, Reads)>,
    drivers: BTreeMap<NodeName, Reads>,
}

impl Topology {
    /// From the nodes that are up, all of the newest release.
    pub fn new(nodes: impl IntoIterator<Item = Incarnation>) -> Self {
        let mut topology = Self::default();
        for node in nodes {
            topology.join(node, Reads::default());
        }
        topology
    }

    /// A node came up, or came back under a new id.
    pub fn join(&mut self, node: Incarnation, reads: Reads) {
        self.nodes.insert(node.name, (node.id, reads));
    }

    /// A node left.
    pub fn leave(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Id of the present incarnation of a node, if it is up.
    pub fn id_of(&self, name: &str) -> Option<NodeId> {
        self.nodes.get(name).map(|(id, _)| *id)
    }

    /// Whether some node that is up has this id.
    pub fn is_alive(&self, id: NodeId) -> bool {
        self.nodes.values().any(|(alive, _)| *alive == id)
    }

    /// A driver is there that reads what is stored.
    pub fn driver_came(&mut self, name: NodeName, reads: Reads) {
        self.drivers.insert(name, reads);
    }

    /// A driver is gone.
    pub fn driver_left(&mut self, name: &str) {
        self.drivers.remove(name);
    }

    /// What all nodes and drivers can read.
    pub fn all_read(&self) -> Reads {
        let nodes = self.nodes.values().map(|(_, reads)| *reads);
        let all = nodes.chain(self.drivers.values().copied());
        all.min().unwrap_or_default()
    }

    /// Of the nodes, those that can read this. The drivers stay.
    #[must_use]
    pub fn that_read(&self, needed: Reads) -> Self {
        let mut topology = self.clone();
        topology.nodes.retain(|_, (_, reads)| *reads >= needed);
        topology
    }

    /// The nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = Incarnation> + '_ {
        self.nodes.iter().map(|(name, (id, _))| Incarnation {
            name: name.clone(),
            id: *id,
        })
    }

    /// Number of nodes that are up.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node is up.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// One member of a replication group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Replica {
    /// The node.
    pub name: NodeName,
    /// Whether it votes. A learner never becomes a leaseholder.
    pub peer: bool,
}

/// Where the replicas of a group are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Where they are now.
    pub stable: Arc<[Replica]>,
    /// Where a rebalance is moving them; empty if none is under way.
    pub pending: Arc<[Replica]>,
}

impl Assignment {
    /// All replicas are peers and none moves.
    pub fn stable(names: impl IntoIterator<Item = NodeName>) -> Self {
        let peer = |name| Replica { name, peer: true };
        Self {
            stable: names.into_iter().map(peer).collect(),
            pending: Arc::default(),
        }
    }
}

/// The assignments of all groups.
pub type Assignments = BTreeMap<GroupId, Assignment>;
