//! What drivers were told about the topology, and what nodes have answered.

use std::collections::{BTreeMap, VecDeque};

use crate::cluster::event::Event;
use crate::cluster::heap::Micros;
use crate::cluster::world::Cluster;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::model::message::{GrantAnswer, Verdict as Answer};
use crate::model::reads::Reads;
use crate::model::topology::Topology;
use crate::placement::io::Input;
use crate::replica;

use super::bytes::in_words;
use super::stored::Stored;
use super::{Invariant, Verdict, node_name, wrong};

/// Topologies of a driver that are remembered: writes decided earlier have long arrived.
const REMEMBERED: usize = 32;

/// A topology that reached a driver.
#[derive(Debug)]
struct Delivered {
    at: Micros,
    topology: Topology,
    /// The driver stood still: it may have taken notice any time later.
    paused: bool,
}

/// An offer that reached a node.
#[derive(Clone, Copy, Debug)]
struct Offer {
    start: HybridTimestamp,
    predecessor: Option<HybridTimestamp>,
}

#[derive(Debug, Default)]
pub(super) struct Told {
    topologies: BTreeMap<usize, VecDeque<Delivered>>,
    /// The last offer to each node for each group.
    offers: BTreeMap<(usize, GroupId), Offer>,
    /// Who has accepted the latest lease of a group.
    accepted: BTreeMap<GroupId, BTreeMap<HybridTimestamp, NodeId>>,
}

impl Told {
    pub fn before(&mut self, cluster: &Cluster, event: &Event) {
        match event {
            Event::Driver {
                index,
                input: Input::Topology(topology),
                ..
            } => {
                let all = self.topologies.entry(*index).or_default();
                all.push_back(Delivered {
                    at: cluster.now_at_next(),
                    topology: topology.clone(),
                    paused: cluster.is_driver_paused(*index),
                });
                if all.len() > REMEMBERED {
                    all.pop_front();
                }
            }
            Event::Node {
                index,
                input: replica::Input::Granted { offer, .. },
                ..
            } => {
                let offer_to = Offer {
                    start: offer.start,
                    predecessor: offer.predecessor_expiration,
                };
                let last = self.offers.entry((*index, offer.group)).or_insert(offer_to);
                if last.start < offer.start {
                    *last = offer_to;
                } else if last.start == offer.start {
                    // A driver that took over knows less of the predecessor; the first one's word
                    // stands.
                    last.predecessor = last.predecessor.min(offer_to.predecessor);
                }
            }
            _ => {}
        }
    }

    /// Whether a driver knew, at some true time, that a node is up under an id.
    pub fn knew(&self, driver: usize, at: Micros, name: &str, id: NodeId) -> bool {
        let mut possible = self.possible(driver, at);
        possible.any(|topology| topology.id_of(name) == Some(id))
    }

    /// Whether all whom a driver knew of, at some true time, read this.
    pub fn all_read(&self, driver: usize, at: Micros, needs: Reads) -> bool {
        let mut possible = self.possible(driver, at);
        possible.any(|topology| topology.all_read() >= needs)
    }

    /// What a driver may have gone by at some true time: the last topology that reached it, and
    /// others if it stood still or if they came at this very instant.
    fn possible(&self, driver: usize, at: Micros) -> impl Iterator<Item = &Topology> {
        let all = self.topologies.get(&driver).into_iter().flatten();
        let mut certain = false;
        let known = all.rev().filter(move |delivered| delivered.at <= at);
        known
            .take_while(move |delivered| {
                let take = !certain;
                certain |= !delivered.paused && delivered.at < at;
                take
            })
            .map(|delivered| &delivered.topology)
    }

    /// Whether a node has accepted a lease.
    pub fn has_accepted(&self, group: GroupId, start: HybridTimestamp, holder: NodeId) -> bool {
        let accepted = self.accepted.get(&group);
        accepted.and_then(|starts| starts.get(&start)) == Some(&holder)
    }

    /// A node answers.
    pub fn answered(
        &mut self,
        node: usize,
        answer: &GrantAnswer,
        stored: &Stored,
        skew: u64,
    ) -> Verdict {
        if answer.verdict != Answer::Accepted {
            return Ok(());
        }
        let group = answer.group;
        let offer = self.offers.get(&(node, group));
        let offer = offer.filter(|offer| offer.start == answer.start);
        let second = format!(
            "{} has accepted the lease of {group} from {} at its time {}",
            node_name(node),
            answer.start,
            answer.sent
        );
        let Some(offer) = offer else {
            let first = "no such lease was offered to it last".to_owned();
            return wrong(Invariant::AnsweredAcceptance, Some(group), first, second);
        };
        let past = stored.past(group);
        let held = past.and_then(|past| past.accepted_until);
        let until = held.max(offer.predecessor);
        if let Some(until) = until
            && !answer.sent.after(until, skew)
        {
            let lease = past.and_then(|past| past.lease.as_ref());
            let first = match lease {
                Some(lease) if Some(lease.expiration) == Some(until) => in_words(Some(lease)),
                _ => format!("the group may have been held until {until}"),
            };
            return wrong(Invariant::AcceptanceWaits, Some(group), first, second);
        }
        let starts = self.accepted.entry(group).or_default();
        starts.insert(answer.start, answer.node);
        while starts.len() > 4 {
            starts.pop_first();
        }
        Ok(())
    }
}
