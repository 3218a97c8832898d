//! What the next batch is to be: the decision of one tick, for all groups that need one.

use std::collections::BTreeMap;

use crate::codec::naive_row_size;
use crate::model::batch::{LeaseBatch, LeaseDraft, Row};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeName};
use crate::model::message::StopProlongation;
use crate::model::timings::Timings;
use crate::model::topology::Assignment;

use super::candidate::choose;
use super::io::Cause;
use super::leases::{Leases, Surroundings};
use super::negotiation::{Negotiation, Progress};

/// What a tick decided.
#[derive(Debug, Default)]
pub struct Plan {
    /// Leases to set (`Some`) and to remove (`None`).
    pub changes: BTreeMap<GroupId, Option<LeaseDraft>>,
    /// The new common expiration.
    pub common: Option<HybridTimestamp>,
    /// Talks to begin once the batch is stored.
    pub offers: Vec<(GroupId, Negotiation)>,
    /// Requests to stop prolongation that this batch fulfils, with the expiration to answer.
    pub stopped: Vec<(StopProlongation, HybridTimestamp)>,
    /// Why it is written.
    pub cause: Cause,
    /// Groups with an assignment and no candidate that is up.
    pub without_candidate: usize,
}

impl Plan {
    /// Whether there is something to write.
    pub fn is_empty(&self) -> bool {
        !self.cause.renewal && !self.cause.fallback && self.cause.changed() == 0
    }

    /// The batch that it makes of the present one, and what the naive format would take for it.
    pub fn carry_out(&self, leases: &Leases) -> (LeaseBatch, u64) {
        let mut naive_bytes = leases.naive_bytes;
        for (group, change) in &self.changes {
            if let Some(row) = leases.batch().get(*group) {
                let dictionary = leases.batch().dictionary();
                let (_, holder) = dictionary.node(row.holder());
                let candidate = row.candidate().map(|index| dictionary.name(index).len());
                naive_bytes -= naive_row_size(holder.len(), candidate) as u64;
            }
            if let Some(draft) = change {
                let candidate = draft.candidate.as_ref().map(|name| name.len());
                naive_bytes += naive_row_size(draft.holder.name.len(), candidate) as u64;
            }
        }
        let mut batch = leases.batch().clone();
        if let Some(common) = self.common {
            batch.set_common_expiration(common);
        }
        batch.apply(&self.changes);
        (batch, naive_bytes)
    }
}

/// What a tick looks at.
#[derive(Debug)]
pub struct Decision<'a> {
    /// The stored leases.
    pub leases: &'a Leases,
    /// Nodes and replicas.
    pub around: Surroundings<'a>,
    /// The talks under way.
    pub negotiations: &'a BTreeMap<GroupId, Negotiation>,
    /// Requests to stop prolongation, by group.
    pub stops: &'a BTreeMap<GroupId, StopProlongation>,
    /// The protocol's settings.
    pub timings: &'a Timings,
    /// The driver's clock.
    pub now: HybridTimestamp,
}

impl Decision<'_> {
    /// Decides. Costs what needs attention, whatever the number of quiet leases.
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let batch = self.leases.batch();
        let common = batch.common_expiration();
        let renewed = self.now.plus_millis(self.timings.lease_interval_ms);
        plan.cause.renewal = self.leases.quiet > 0 && self.is_due(common);

        let mut renewable = Vec::new();
        for group in &self.leases.attention {
            let assignment = self.around.assignments.get(group);
            match batch.get(*group) {
                Some(row) if self.may_be_prolonged(row, assignment) => {
                    plan.cause.renewal |= self.is_due(row.expiration(common));
                    renewable.push(row);
                }
                row => self.decide(&mut plan, *group, assignment, row, renewed),
            }
        }
        for (group, stop) in self.stops {
            if let Some(row) = batch.get(*group) {
                self.stop(&mut plan, row, stop);
            }
        }

        if self.leases.quiet == 0 {
            // No lease that lasts is on the common expiration, which may be far ahead if most wait
            // for their holders: let it be that of the leases accepted or prolonged now.
            let wanted = plan.cause.renewal || plan.cause.published > 0;
            plan.common = wanted.then_some(renewed);
        } else if plan.cause.renewal {
            plan.common = Some(common.max(renewed));
        }
        if let Some(new_common) = plan.common {
            if plan.cause.renewal {
                for row in renewable {
                    let align = row.expiration(common) <= new_common;
                    let mut draft = self.draft(row);
                    draft.expiration = draft.expiration.filter(|_| !align);
                    plan.changes.entry(row.group()).or_insert(Some(draft));
                }
            }
            self.keep_expirations(&mut plan, new_common);
        }
        plan
    }

    /// Leases that are not prolonged must not move along with the common expiration.
    fn keep_expirations(&self, plan: &mut Plan, new_common: HybridTimestamp) {
        for group in &self.leases.attention {
            if let Some(row) = self.leases.batch().get(*group)
                && row.own_expiration().is_none_or(|own| own == new_common)
            {
                let unchanged = || Some(self.draft(row));
                plan.changes.entry(*group).or_insert_with(unchanged);
            }
        }
    }

    fn is_due(&self, expiration: HybridTimestamp) -> bool {
        expiration.physical() <= self.now.physical() + self.timings.due_within_ms()
    }

    fn is_expired(&self, row: &Row) -> bool {
        row.expiration(self.leases.batch().common_expiration()) <= self.now
    }

    /// Expired on every clock of the cluster. An unaccepted lease gives no right, so that one is
    /// over at once.
    fn is_over(&self, row: &Row) -> bool {
        let expiration = row.expiration(self.leases.batch().common_expiration());
        let skew = if row.accepted() {
            self.timings.max_skew_ms
        } else {
            0
        };
        self.now.after(expiration, skew) || (skew == 0 && expiration <= self.now)
    }

    fn may_be_prolonged(&self, row: &Row, assignment: Option<&Assignment>) -> bool {
        row.accepted()
            && row.prolongable()
            && !self.is_expired(row)
            && (self.leases).holder_is_candidate(row, assignment, self.around.topology)
    }

    fn decide(
        &self,
        plan: &mut Plan,
        group: GroupId,
        assignment: Option<&Assignment>,
        row: Option<&Row>,
        renewed: HybridTimestamp,
    ) {
        match row {
            None => self.grant(plan, group, assignment, &Predecessor::default()),
            Some(row) if !row.accepted() => {
                self.decide_unaccepted(plan, assignment, row, renewed);
            }
            Some(row) if self.is_over(row) => {
                let lease = self.leases.batch().lease(row);
                let denied = !row.prolongable();
                let proposed = if denied {
                    lease.proposed_candidate
                } else {
                    Some(lease.holder_name)
                };
                let before = Predecessor {
                    start: Some(row.start()),
                    expiration: Some(lease.expiration),
                    force_proposed: denied,
                    proposed,
                    refused: Vec::new(),
                };
                self.grant(plan, group, assignment, &before);
            }
            Some(_) => {}
        }
    }

    fn decide_unaccepted(
        &self,
        plan: &mut Plan,
        assignment: Option<&Assignment>,
        row: &Row,
        renewed: HybridTimestamp,
    ) {
        let group = row.group();
        let talk = self.negotiations.get(&group);
        let talk = talk.filter(|talk| talk.start == row.start());
        let progress = talk.map(|talk| &talk.progress);
        let stands = !self.is_expired(row)
            && (self.leases).holder_is_candidate(row, assignment, self.around.topology);
        if stands && progress == Some(&Progress::Accepted) {
            plan.cause.published += 1;
            let mut draft = self.draft(row);
            draft.accepted = true;
            draft.expiration = Some(renewed);
            plan.changes.insert(group, Some(draft));
        } else if !stands || matches!(progress, Some(Progress::Refused(_))) {
            let proposed = match progress {
                Some(Progress::Refused(leader)) => Some(leader.clone()),
                _ => self.leases.batch().lease(row).proposed_candidate,
            };
            let before = Predecessor {
                start: Some(row.start()),
                // Whoever held the group before, that was over when this lease was granted.
                expiration: Some(
                    talk.and_then(|talk| talk.predecessor)
                        .unwrap_or(row.start()),
                ),
                force_proposed: !row.prolongable(),
                proposed,
                refused: talk.map(|talk| talk.refused.clone()).unwrap_or_default(),
            };
            self.grant(plan, group, assignment, &before);
        }
    }

    /// A new lease for a group whose former one is over, or its removal.
    fn grant(
        &self,
        plan: &mut Plan,
        group: GroupId,
        assignment: Option<&Assignment>,
        before: &Predecessor,
    ) {
        let proposed = before.proposed.as_deref();
        let chosen = assignment
            .and_then(|assignment| choose(group, assignment, self.around.topology, proposed));
        let Some(holder) = chosen else {
            plan.without_candidate += usize::from(assignment.is_some());
            if before.start.is_some() {
                plan.cause.removed += 1;
                plan.changes.insert(group, None);
            }
            return;
        };
        let start = (before.start).map_or(self.now, |last| self.now.max(last.tick()));
        let expiration = start.plus_millis(self.timings.acceptance_limit_ms);
        let named = before.force_proposed && proposed == Some(&*holder.name);
        let force = named || before.refused.contains(&holder.name);
        plan.cause.granted += 1;
        let draft = LeaseDraft {
            holder: holder.clone(),
            start,
            expiration: Some(expiration),
            accepted: false,
            prolongable: true,
            candidate: None,
        };
        plan.changes.insert(group, Some(draft));
        let talk = Negotiation {
            holder,
            start,
            expiration,
            predecessor: before.expiration,
            force,
            refused: before.refused.clone(),
            progress: Progress::Waiting,
        };
        plan.offers.push((group, talk));
    }

    /// A holder gives up its lease: an accepted one keeps its expiration, an unaccepted one ends.
    fn stop(&self, plan: &mut Plan, row: &Row, stop: &StopProlongation) {
        let (holder, _) = self.leases.batch().dictionary().node(row.holder());
        let group = row.group();
        if holder != stop.holder || self.is_expired(row) || plan.changes.contains_key(&group) {
            return;
        }
        let mut draft = self.draft(row);
        draft.prolongable = false;
        draft.candidate = stop.candidate.clone();
        if !row.accepted() {
            draft.expiration = Some(row.start().tick());
        }
        let expiration = draft.expiration.unwrap_or(row.start());
        plan.cause.denied += 1;
        plan.changes.insert(group, Some(draft));
        plan.stopped.push((stop.clone(), expiration));
    }

    /// The lease as it is, with its expiration made its own.
    fn draft(&self, row: &Row) -> LeaseDraft {
        LeaseDraft::of(&self.leases.batch().lease(row))
    }
}

/// What a new lease has to respect of the one before.
#[derive(Debug, Default)]
struct Predecessor {
    start: Option<HybridTimestamp>,
    expiration: Option<HybridTimestamp>,
    proposed: Option<NodeName>,
    /// Whether the proposed candidate, if chosen, must accept.
    force_proposed: bool,
    refused: Vec<NodeName>,
}
