//! Who may hold the lease of a group, and who is chosen.

use crate::model::ids::{GroupId, Incarnation, NodeName};
use crate::model::topology::{Assignment, Replica, Topology};
use crate::model::workload::SplitMix64;

/// The peers that are up: of the stable assignment or, if none of those is, of the pending one.
pub fn candidates<'a>(
    assignment: &'a Assignment,
    topology: &'a Topology,
) -> impl Iterator<Item = &'a NodeName> {
    let up = |replica: &Replica| replica.peer && topology.id_of(&replica.name).is_some();
    let members = if assignment.stable.iter().any(up) {
        &assignment.stable
    } else {
        &assignment.pending
    };
    members
        .iter()
        .filter(move |replica| up(replica))
        .map(|replica| &replica.name)
}

/// Whether a node may hold the lease of a group with this assignment.
pub fn is_candidate(name: &str, assignment: &Assignment, topology: &Topology) -> bool {
    candidates(assignment, topology).any(|candidate| **candidate == *name)
}

/// The node for a new lease: the proposed one if it is a candidate, else the candidate with the
/// smallest hash of (name, group), so that leases spread over the nodes and stay put.
pub fn choose(
    group: GroupId,
    assignment: &Assignment,
    topology: &Topology,
    proposed: Option<&str>,
) -> Option<Incarnation> {
    let mut best: Option<(u64, &NodeName)> = None;
    for name in candidates(assignment, topology) {
        if proposed == Some(&**name) {
            best = Some((0, name));
            break;
        }
        let hash = rank(name, group);
        if best.is_none_or(|found| (hash, name) < found) {
            best = Some((hash, name));
        }
    }
    let (_, name) = best?;
    Some(Incarnation {
        name: name.clone(),
        id: topology.id_of(name)?,
    })
}

/// A hash of (name, group), the same in every release: it decides where leases are.
fn rank(name: &str, group: GroupId) -> u64 {
    let mixed = name.bytes().fold(group.packed(), |state, byte| {
        SplitMix64::new(state ^ u64::from(byte)).next()
    });
    SplitMix64::new(mixed).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{GroupKind, NodeId};

    fn node(name: &str) -> Incarnation {
        Incarnation {
            name: name.into(),
            id: NodeId::from_halves(7, name.len() as u64),
        }
    }

    fn group(partition: i64) -> GroupId {
        GroupId::new(GroupKind::Table, 1, partition).unwrap()
    }

    #[test]
    fn the_stable_assignment_comes_first_and_learners_never() {
        let mut assignment = Assignment::stable(["a".into(), "b".into()]);
        assignment.pending = [Replica {
            name: "c".into(),
            peer: true,
        }]
        .into();
        let all = Topology::new([node("a"), node("b"), node("c")]);
        let chosen = |topology: &Topology| choose(group(0), &assignment, topology, Some("c"));
        assert_ne!(&*chosen(&all).unwrap().name, "c");
        let only_c = Topology::new([node("c")]);
        assert_eq!(chosen(&only_c), Some(node("c")));

        let learner = Assignment {
            stable: [Replica {
                name: "a".into(),
                peer: false,
            }]
            .into(),
            pending: [].into(),
        };
        assert_eq!(choose(group(0), &learner, &all, Some("a")), None);
    }

    #[test]
    fn the_proposed_one_wins_and_others_spread() {
        let names = ["node1", "node2", "node3"];
        let assignment = Assignment::stable(names.map(Into::into));
        let topology = Topology::new(names.map(node));
        for name in names {
            let chosen = choose(group(0), &assignment, &topology, Some(name)).unwrap();
            assert_eq!(&*chosen.name, name);
        }
        let mut counts = [0; 3];
        for partition in 0..3000 {
            let chosen = choose(group(partition), &assignment, &topology, None).unwrap();
            let index = names
                .iter()
                .position(|name| **name == *chosen.name)
                .unwrap();
            counts[index] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }
}
