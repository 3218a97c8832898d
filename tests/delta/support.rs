//! What the tests share: a driver that edits its batch and keeps the writer's chain.

use std::collections::BTreeMap;

use leasehold::codec::Chain;
use leasehold::model::batch::{LeaseBatch, LeaseDraft};
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, GroupKind, Incarnation, NodeId};
use leasehold::model::workload::SplitMix64;

pub type Changes = BTreeMap<GroupId, Option<LeaseDraft>>;

pub fn ts(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap()
}

pub fn table(object: i32, partition: i64) -> GroupId {
    GroupId::new(GroupKind::Table, object, partition).unwrap()
}

pub fn incarnation(number: u64, restarts: u64) -> Incarnation {
    Incarnation {
        name: format!("node{number}").into(),
        id: NodeId::from_halves(number, restarts),
    }
}

/// The writer's chain after an edit, and the frame.
pub fn advance(chain: &Chain, common: HybridTimestamp, changes: &Changes) -> (Chain, Vec<u8>) {
    let mut next = chain.batch().clone();
    next.set_common_expiration(common);
    next.apply(changes);
    let groups: Vec<GroupId> = changes.keys().copied().collect();
    chain.advance(next, &groups).unwrap()
}

/// The incarnations of a batch.
pub fn nodes(batch: &LeaseBatch) -> Vec<Incarnation> {
    let dictionary = batch.dictionary();
    let node = |index| {
        let (id, name) = dictionary.node(index);
        let name = name.clone();
        Incarnation { name, id }
    };
    (0..dictionary.nodes().len() as u32).map(node).collect()
}

/// A new lease, granted within 50 ms of `now`, to be accepted within two minutes.
pub fn grant(random: &mut SplitMix64, nodes: &[Incarnation], now: u64) -> LeaseDraft {
    let start = now + random.below(50);
    LeaseDraft {
        holder: nodes[random.below(nodes.len() as u64) as usize].clone(),
        start: ts(start),
        expiration: Some(ts(start + 120_000)),
        accepted: false,
        prolongable: true,
        candidate: None,
    }
}

/// Different random groups of a batch.
pub fn pick(random: &mut SplitMix64, batch: &LeaseBatch, count: usize) -> Vec<GroupId> {
    let mut groups: Vec<GroupId> = batch.rows().iter().map(|row| row.group()).collect();
    for chosen in 0..count {
        let left = (groups.len() - chosen) as u64;
        groups.swap(chosen, chosen + random.below(left) as usize);
    }
    groups.truncate(count);
    groups
}
