//! Whether trackers elect each lease once, after the one before has expired.

use std::collections::BTreeMap;

use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::placement::tracker::TrackerEvent;

use super::{Invariant, Verdict, node_name, wrong};

/// What a node's tracker has said of a group last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Elected(HybridTimestamp),
    Expired(HybridTimestamp),
}

#[derive(Debug, Default)]
struct Node {
    id: Option<NodeId>,
    revision: u64,
    groups: BTreeMap<GroupId, Said>,
}

#[derive(Debug, Default)]
pub(super) struct Tracked {
    nodes: BTreeMap<usize, Node>,
}

impl Tracked {
    pub fn take(&mut self, index: usize, id: NodeId, events: &[TrackerEvent]) -> Verdict {
        let node = self.nodes.entry(index).or_default();
        if node.id != Some(id) {
            *node = Node {
                id: Some(id),
                ..Node::default()
            };
        }
        for event in events {
            let lease = event.lease();
            let last = node.groups.get(&lease.group).copied();
            let (revision, said, fits) = match event {
                TrackerEvent::Elected { revision, .. } => {
                    let fits = match last {
                        None => true,
                        Some(Said::Elected(_)) => false,
                        Some(Said::Expired(before)) => before < lease.start,
                    };
                    (*revision, Said::Elected(lease.start), fits)
                }
                TrackerEvent::Expired { revision, .. } => {
                    let fits = last == Some(Said::Elected(lease.start));
                    (*revision, Said::Expired(lease.start), fits)
                }
            };
            if !fits || revision < node.revision {
                return wrong(
                    Invariant::ElectionsInOrder,
                    Some(lease.group),
                    match last {
                        None => "nothing was said of the group".to_owned(),
                        Some(last) => format!("at revision {} {last:?} was said", node.revision),
                    },
                    format!("{} says {said:?} at revision {revision}", node_name(index)),
                );
            }
            node.revision = revision;
            node.groups.insert(lease.group, said);
        }
        Ok(())
    }
}
