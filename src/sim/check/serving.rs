//! Whom the nodes serve, asked at true time.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::event::Event;
use crate::cluster::world::Cluster;
use crate::model::batch::LeaseBatch;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::placement::io::Revision;
use crate::replica;

use super::{EXHAUSTIVE, Invariant, Verdict, node_name, wrong};

/// Groups asked about in turn where there are too many for all.
const IN_TURN: usize = 32;

/// What a node has been shown.
#[derive(Debug, Default)]
struct Shown {
    id: Option<NodeId>,
    revision: Revision,
    /// Batches that it may be going by: more than one while it stands still.
    batches: Vec<LeaseBatch>,
}

/// What the next look is to cover.
#[derive(Debug, Default)]
enum Scope {
    #[default]
    Nothing,
    Some(BTreeSet<GroupId>),
    InTurn,
    All,
}

#[derive(Debug, Default)]
pub(super) struct Serving {
    shown: BTreeMap<usize, Shown>,
    groups: BTreeSet<GroupId>,
    scope: Scope,
    turn: Option<GroupId>,
}

impl Serving {
    pub fn before(&mut self, cluster: &Cluster, event: &Event) {
        self.scope = match event {
            Event::Watch { index, id, shown } => {
                let (update, needs) = (&shown.update, shown.needs);
                let Some(node) = cluster.nodes().get(*index) else {
                    return;
                };
                if needs > node.reads() {
                    return;
                }
                let shown = self.shown.entry(*index).or_default();
                if shown.id != Some(*id) {
                    *shown = Shown {
                        id: Some(*id),
                        ..Shown::default()
                    };
                }
                if node.id() != Some(*id) || update.revision <= shown.revision {
                    return;
                }
                let in_order = update.previous == shown.revision;
                // A lease that had lapsed on the node's clock may be valid again.
                let physical = node.physical(cluster.now_at_next());
                let lapsed = shown.batches.iter().any(|batch| {
                    batch.common_expiration().physical() <= physical && !batch.is_empty()
                });
                shown.revision = update.revision;
                if !node.is_paused() {
                    shown.batches.clear();
                }
                shown.batches.push(update.batch.clone());
                let changed = update.changes.iter().filter_map(|change| {
                    let lease = change.new.as_ref().or(change.old.as_ref());
                    lease.map(|lease| lease.group)
                });
                let changed: BTreeSet<_> = changed.collect();
                self.groups.extend(&changed);
                if !in_order || lapsed {
                    self.groups
                        .extend(update.batch.rows().iter().map(|row| row.group()));
                    Scope::All
                } else {
                    Scope::Some(changed)
                }
            }
            Event::Node { input, .. } => match input {
                replica::Input::Granted { offer, .. } => Scope::Some([offer.group].into()),
                replica::Input::CaughtUp(group, _) | replica::Input::Resign(group, _) => {
                    Scope::Some([*group].into())
                }
                replica::Input::Applied(_) => Scope::All,
            },
            Event::Operation(_) | Event::Resumed(_) | Event::Heal => Scope::All,
            Event::SafeTime => Scope::InTurn,
            _ => Scope::Nothing,
        };
        if self.groups.len() <= EXHAUSTIVE && !matches!(self.scope, Scope::Nothing) {
            self.scope = Scope::All;
        }
    }

    pub fn check(&mut self, cluster: &Cluster) -> Verdict {
        match std::mem::take(&mut self.scope) {
            Scope::Nothing => Ok(()),
            Scope::Some(groups) => self.ask(cluster, groups.iter()),
            Scope::All => self.ask(cluster, self.groups.iter()),
            Scope::InTurn => {
                let from = self.turn.take();
                let mut turn: Vec<_> = match from {
                    Some(from) => self.groups.range(from..).take(IN_TURN).copied().collect(),
                    None => self.groups.iter().take(IN_TURN).copied().collect(),
                };
                if turn.len() == IN_TURN {
                    self.turn = turn.pop();
                }
                self.ask(cluster, turn.iter())
            }
        }
    }

    fn ask<'a>(&self, cluster: &Cluster, groups: impl Iterator<Item = &'a GroupId>) -> Verdict {
        let now = cluster.now();
        let nodes: Vec<_> = (cluster.nodes().iter().enumerate())
            .filter_map(|(index, node)| {
                let up = node.up.as_ref()?;
                Some((index, node.physical(now), &up.replica))
            })
            .collect();
        for group in groups {
            let mut server: Option<(usize, u64)> = None;
            for (index, physical, replica) in &nodes {
                if !replica.serves(*group, *physical) {
                    continue;
                }
                self.has_right(*index, *group, *physical, replica.incarnation().id)?;
                if let Some((other, at)) = server.replace((*index, *physical)) {
                    return wrong(
                        Invariant::OneServer,
                        Some(*group),
                        format!("{} serves at its time {at}", node_name(other)),
                        format!("{} serves at its time {physical}", node_name(*index)),
                    );
                }
            }
        }
        Ok(())
    }

    fn has_right(&self, index: usize, group: GroupId, physical: u64, id: NodeId) -> Verdict {
        let shown = self.shown.get(&index);
        let batches = shown.map_or([].as_slice(), |shown| &shown.batches);
        let now = HybridTimestamp::new(physical, 0).unwrap_or(HybridTimestamp::MIN);
        let right = batches.iter().any(|batch| {
            batch.get(group).is_some_and(|row| {
                let (holder, _) = batch.dictionary().node(row.holder());
                let unexpired = now < row.expiration(batch.common_expiration());
                row.accepted() && holder == id && unexpired
            })
        });
        if right && shown.is_some_and(|shown| shown.id == Some(id)) {
            return Ok(());
        }
        let newest = batches.last();
        let lease = newest.and_then(|batch| batch.get(group).map(|row| batch.lease(row)));
        wrong(
            Invariant::RightToServe,
            Some(group),
            format!(
                "the newest that {} has seen is revision {} with {}",
                node_name(index),
                shown.map_or(0, |shown| shown.revision),
                super::bytes::in_words(lease.as_ref())
            ),
            format!("it serves, as {id}, at its time {physical}"),
        )
    }
}
