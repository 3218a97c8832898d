//! What a data directory belongs to: the cluster whose leases it holds.

use serde::{Deserialize, Serialize};

use crate::cluster::world::Cluster;
use crate::metastorage::contract::{Metastorage, Op, StoreError, Transaction};
use crate::model::ids::{Incarnation, NodeId};

use super::DaemonError;

/// Key of the identity.
const KEY: &[u8] = b"cluster/identity";

/// The cluster: its seed, and its nodes with their present ids.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The seed, which decides where replicas are.
    pub seed: u64,
    /// The nodes, in the order of their numbers.
    pub nodes: Vec<Incarnation>,
}

impl Identity {
    /// The stored one, if there is one.
    pub fn read(store: &dyn Metastorage) -> Result<Option<Self>, DaemonError> {
        let Some(entry) = store.get(KEY, None)? else {
            return Ok(None);
        };
        serde_json::from_slice(&entry.value)
            .map(Some)
            .map_err(|error| DaemonError::Identity(error.to_string()))
    }

    /// Stores it.
    pub fn write(&self, store: &dyn Metastorage) -> Result<(), StoreError> {
        let value = serde_json::to_vec(self).unwrap_or_default();
        store.invoke(Transaction {
            then: vec![Op::Put(KEY.into(), value.into())],
            ..Transaction::default()
        })?;
        Ok(())
    }

    /// Brings it up to date with the nodes that have been restarted; nodes that are down keep the
    /// id they had.
    pub fn follow(&mut self, cluster: &Cluster) {
        let before = std::mem::take(&mut self.nodes);
        let nodes = cluster.nodes().iter().enumerate();
        self.nodes = nodes
            .filter_map(|(index, node)| {
                let id = node.id().or(before.get(index).map(|node| node.id))?;
                let name = node.name.clone();
                Some(Incarnation { name, id })
            })
            .collect();
    }

    /// The ids of the nodes.
    pub fn ids(&self) -> Vec<NodeId> {
        self.nodes.iter().map(|node| node.id).collect()
    }
}
