//! Who leads the consensus of each group: a stand-in for the groups' own elections.

use std::collections::BTreeMap;

use crate::model::ids::{GroupId, NodeName};
use crate::model::topology::Assignment;

use super::heap::Micros;

/// Leaders. A group is led by its first replica that was up when somebody asked first, until
/// that one goes down or another takes the leadership by force.
#[derive(Debug, Default)]
pub struct Leadership {
    /// Only where it is not the first replica.
    moved: BTreeMap<GroupId, NodeName>,
}

impl Leadership {
    /// The leader of a group. `down_since` says since when a node is down, if it is. None while
    /// the election after a failure lasts.
    pub fn leader(
        &mut self,
        group: GroupId,
        assignment: &Assignment,
        now: Micros,
        election: Micros,
        down_since: impl Fn(&str) -> Option<Micros>,
    ) -> Option<NodeName> {
        let first = assignment.stable.first().map(|replica| &replica.name)?;
        let leader = self.moved.get(&group).unwrap_or(first);
        match down_since(leader) {
            None => Some(leader.clone()),
            Some(since) if now < since.saturating_add(election) => None,
            Some(_) => {
                let mut members = assignment.stable.iter().map(|replica| &replica.name);
                let next = members.find(|name| down_since(name).is_none())?.clone();
                self.take(group, next.clone());
                Some(next)
            }
        }
    }

    /// A node takes the leadership.
    pub fn take(&mut self, group: GroupId, name: NodeName) {
        self.moved.insert(group, name);
    }

    /// The group is gone.
    pub fn forget(&mut self, group: GroupId) {
        self.moved.remove(&group);
    }
}
