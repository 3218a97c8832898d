//! The tables and zones of the simulated cluster, and where their replicas are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::ids::{GroupId, GroupKind, NodeName};
use crate::model::topology::{Assignment, Replica};
use crate::model::workload::SplitMix64;

/// What exists: objects with their number of partitions.
#[derive(Debug)]
pub struct Catalog {
    seed: u64,
    objects: BTreeMap<(GroupKind, i32), u32>,
    /// Replica sets, one for each first member of the ring: groups share them.
    rings: Vec<Arc<[Replica]>>,
    last_table: i32,
    /// Groups whose replicas are not where they were first, or are on the move.
    moved: BTreeMap<GroupId, Place>,
}

/// Where a group's replicas are: numbers of replica sets.
#[derive(Clone, Copy, Debug)]
struct Place {
    stable: usize,
    pending: Option<usize>,
}

impl Catalog {
    /// An empty catalog over nodes in a ring; each group lives on `replicas` of them in a row.
    pub fn new(seed: u64, nodes: Vec<NodeName>, replicas: usize) -> Self {
        let replicas = replicas.min(nodes.len());
        let ring = |first: usize| -> Arc<[Replica]> {
            let members = nodes.iter().cycle().skip(first).take(replicas);
            let peer = |name: &NodeName| Replica {
                name: name.clone(),
                peer: true,
            };
            members.map(peer).collect()
        };
        Self {
            seed,
            rings: (0..nodes.len()).map(ring).collect(),
            objects: BTreeMap::new(),
            last_table: 0,
            moved: BTreeMap::new(),
        }
    }

    /// Creates a table or zone; its groups.
    pub fn create(&mut self, kind: GroupKind, object: i32, partitions: u32) -> Vec<GroupId> {
        self.objects.insert((kind, object), partitions);
        if kind == GroupKind::Table {
            self.last_table = self.last_table.max(object);
        }
        groups(kind, object, partitions).collect()
    }

    /// Creates the table with the next free id; its groups.
    pub fn create_next(&mut self, partitions: u32) -> Vec<GroupId> {
        let next = self.last_table.saturating_add(1);
        self.create(GroupKind::Table, next, partitions)
    }

    /// Drops the oldest table; its groups.
    pub fn drop_oldest(&mut self) -> Vec<GroupId> {
        let tables = (GroupKind::Table, i32::MIN)..(GroupKind::Zone, i32::MIN);
        let Some((&(kind, object), &partitions)) = self.objects.range(tables).next() else {
            return Vec::new();
        };
        self.objects.remove(&(kind, object));
        let gone: Vec<_> = groups(kind, object, partitions).collect();
        for group in &gone {
            self.moved.remove(group);
        }
        gone
    }

    /// Whether a group exists.
    pub fn contains(&self, group: GroupId) -> bool {
        let partitions = self.objects.get(&(group.kind(), group.object()));
        partitions.is_some_and(|partitions| group.partition() < *partitions)
    }

    /// All groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        (self.objects.iter())
            .flat_map(|(&(kind, object), &partitions)| groups(kind, object, partitions))
    }

    /// Number of groups.
    pub fn group_count(&self) -> u64 {
        self.objects.values().map(|count| u64::from(*count)).sum()
    }

    /// Number of tables.
    pub fn table_count(&self) -> usize {
        let is_table = |(kind, _): &&(GroupKind, i32)| *kind == GroupKind::Table;
        self.objects.keys().filter(is_table).count()
    }

    /// Where a group's replicas are: the same in every run with the same seed and nodes.
    pub fn assignment(&self, group: GroupId) -> Assignment {
        let place = self.place(group);
        let ring = |index: usize| self.rings.get(index).cloned().unwrap_or_default();
        Assignment {
            stable: ring(place.stable),
            pending: place.pending.map(ring).unwrap_or_default(),
        }
    }

    /// The replicas of a group begin to move to the next places of the ring.
    pub fn depart(&mut self, group: GroupId) {
        let mut place = self.place(group);
        place.pending = Some((place.stable + 1) % self.rings.len().max(1));
        self.moved.insert(group, place);
    }

    /// The replicas of a group have arrived where they moved to.
    pub fn arrive(&mut self, group: GroupId) {
        if let Some(place) = self.moved.get_mut(&group) {
            place.stable = place.pending.take().unwrap_or(place.stable);
        }
    }

    /// The groups whose replicas are on the move.
    pub fn on_the_move(&self) -> Vec<GroupId> {
        let moving = self
            .moved
            .iter()
            .filter(|(_, place)| place.pending.is_some());
        moving.map(|(group, _)| *group).collect()
    }

    fn place(&self, group: GroupId) -> Place {
        let first = || {
            let first = SplitMix64::new(self.seed ^ group.packed()).below(self.rings.len() as u64);
            Place {
                stable: first as usize,
                pending: None,
            }
        };
        self.moved.get(&group).copied().unwrap_or_else(first)
    }
}

fn groups(kind: GroupKind, object: i32, partitions: u32) -> impl Iterator<Item = GroupId> {
    let first = GroupId::first_of(kind, object);
    (0..partitions).map(move |partition| first.with_partition(partition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creates_drops_and_assigns() {
        let nodes: Vec<NodeName> = ["a", "b", "c", "d"].map(Into::into).to_vec();
        let mut catalog = Catalog::new(7, nodes, 3);
        catalog.create(GroupKind::Zone, 1, 2);
        catalog.create(GroupKind::Table, 1, 3);
        let created = catalog.create_next(4);
        assert_eq!(created[0].to_string(), "table/2/0");
        assert_eq!(catalog.group_count(), 9);
        assert_eq!(catalog.drop_oldest()[0].object(), 1);
        assert!(!catalog.contains("table/1/0".parse().unwrap()));
        assert!(catalog.contains("zone/1/1".parse().unwrap()));
        let assignment = catalog.assignment(created[0]);
        assert_eq!(assignment.stable.len(), 3);
        assert_eq!(assignment, catalog.assignment(created[0]));
        catalog.depart(created[0]);
        let moving = catalog.assignment(created[0]);
        assert_eq!(moving.stable, assignment.stable);
        assert_ne!(moving.pending, assignment.stable);
        catalog.arrive(created[0]);
        let arrived = catalog.assignment(created[0]);
        assert_eq!(arrived.stable, moving.pending);
        assert!(arrived.pending.is_empty());
    }
}
