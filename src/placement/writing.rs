//! The driver's writes: what it sends to the store, and what it does with the reply.

use crate::codec::delta::Chain;
use crate::model::batch::{LeaseBatch, LeaseDraft};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;
use crate::model::topology::Topology;

use super::driver::{PlacementDriver, stopped};
use super::io::{
    BatchWrite, Form, Notice, Now, Output, RequestId, Revision, StoreReply, StoreRequest, Stored,
};
use super::leases::Surroundings;
use super::negotiation::{Negotiation, Progress};
use super::renewal::{Decision, Plan};

/// A batch on its way to the store.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) id: RequestId,
    write: BatchWrite,
    plan: Plan,
}

impl PlacementDriver {
    /// Decides, and sends the new batch to the store if there is something to write.
    pub(super) fn renew(&mut self, now: Now, time: HybridTimestamp, out: &mut Vec<Output>) -> bool {
        let busy = self.writing.is_some() || self.rereading.is_some();
        let (Some(epoch), false) = (self.activity.epoch(), busy) else {
            return false;
        };
        if now.monotonic < self.retry_at {
            return false;
        }
        if self.leases.quiet > 0 && self.leases.batch().common_expiration() <= time {
            self.leases.disturb_all();
        }
        let plan = Decision {
            leases: &self.leases,
            around: self.around(),
            negotiations: &self.negotiations,
            stops: &self.stops,
            timings: &self.timings,
            now: time,
        }
        .plan();
        self.without_candidate = plan.without_candidate;
        self.refuse_stops(&plan, out);
        let (mut plan, allowed) = (plan, self.told.all_read().min(self.reads));
        plan.cause.fallback = self.needs.is_some_and(|needs| needs > allowed);
        let storing = self.wished.readable_with(allowed);
        if plan.is_empty() {
            return false;
        }
        let (batch, naive_bytes) = plan.carry_out(&self.leases);
        let id = self.next_request();
        let changed: Vec<GroupId> = plan.changes.keys().copied().collect();
        let write = BatchWrite {
            epoch,
            chain: self.leases.chain.clone(),
            form: self.form(storing.snapshot_every, &batch, &changed),
            format: storing.format,
            substitute: storing.substitute(allowed),
            batch,
            changed,
            time,
            cause: plan.cause,
            naive_bytes,
        };
        out.push(Output::Store(
            id,
            StoreRequest::Write(Box::new(write.clone())),
        ));
        self.activity.beaten(now.monotonic);
        self.writing = Some(Writing { id, write, plan });
        true
    }

    /// A snapshot every so often, and also once the deltas since the last one have changed more
    /// leases than there are: whoever reads them all then reads little more than a snapshot's
    /// bytes a few times over.
    fn form(&self, snapshot_every: u32, batch: &LeaseBatch, changed: &[GroupId]) -> Form {
        let chain = &self.leases.chain;
        let next = chain.step() + 1;
        if snapshot_every <= 1 {
            return Form::Full;
        }
        let all_changed = self.leases.changed_since_snapshot + changed.len();
        if chain.base() == 0 || next >= snapshot_every.into() || all_changed > batch.len() {
            Form::Snapshot
        } else {
            Form::Delta
        }
    }

    pub(super) fn write_reply(
        &mut self,
        now: Now,
        writing: Writing,
        reply: StoreReply,
        out: &mut Vec<Output>,
    ) {
        match reply {
            StoreReply::Written {
                revision,
                chain,
                needs,
            } => {
                self.written(now, writing, revision, chain, out);
                if self.needs != Some(needs) {
                    self.needs = Some(needs);
                    self.admit();
                }
            }
            StoreReply::Lost(stored) => {
                out.push(Output::Notice(Notice::WriteLost));
                self.failed(now, writing.plan, out);
                self.adopt(now, stored, out);
            }
            StoreReply::Unavailable(reason) | StoreReply::Unencodable(reason) => {
                out.push(Output::Notice(Notice::WriteFailed(reason)));
                self.failed(now, writing.plan, out);
            }
            StoreReply::Unknown(reason) => {
                out.push(Output::Notice(Notice::WriteUnknown(reason)));
                self.failed(now, writing.plan, out);
                self.reread(out);
            }
            StoreReply::Won(_)
            | StoreReply::Read(_)
            | StoreReply::TooNew { .. }
            | StoreReply::Unreadable(_) => {}
        }
    }

    fn written(
        &mut self,
        now: Now,
        writing: Writing,
        revision: Revision,
        chain: Chain,
        out: &mut Vec<Output>,
    ) {
        let Writing { write, plan, .. } = writing;
        self.failures = 0;
        self.retention.stored(write.time, revision);
        // A lease that was only given its expiration as its own is still being talked about.
        for (group, change) in &plan.changes {
            let open = |draft: &LeaseDraft, talk: &Negotiation| {
                !draft.accepted && draft.start == talk.start
            };
            let draft = change.as_ref();
            let talk = self.negotiations.get(group);
            if !draft
                .zip(talk)
                .is_some_and(|(draft, talk)| open(draft, talk))
            {
                self.negotiations.remove(group);
            }
        }
        let around = Surroundings::new(&self.topology, &self.assignments);
        let common = write.batch.common_expiration();
        (self.leases).advance(chain, write.naive_bytes, write.changed, common, around);
        let time = self.clock.now(now.physical);
        for (group, talk) in plan.offers {
            out.push(Output::Grant(talk.holder.id, talk.offer(group, time)));
            self.negotiations.insert(group, talk);
        }
        for (stop, expiration) in plan.stopped {
            self.stops.remove(&stop.group);
            out.push(stopped(&stop, Some(expiration)));
        }
        out.push(Output::Notice(Notice::Stored {
            revision,
            cause: write.cause,
        }));
    }

    /// A write did not take place, or may not have: the holders that wanted out are told so, and
    /// the next attempt waits, longer each time up to an eighth of the lease interval.
    fn failed(&mut self, now: Now, plan: Plan, out: &mut Vec<Output>) {
        for (stop, _) in plan.stopped {
            self.stops.remove(&stop.group);
            out.push(stopped(&stop, None));
        }
        self.failures += 1;
        let pause = (self.timings.tick_ms / 2) << (self.failures - 1).min(4);
        self.retry_at = now.monotonic + pause.min(self.timings.lease_interval_ms / 8);
    }

    /// Who can read what is stored may hold leases.
    pub(super) fn admit(&mut self) {
        self.topology = self.admitted();
        self.review_all();
    }

    fn admitted(&self) -> Topology {
        match self.needs {
            Some(needs) => self.told.that_read(needs),
            None => self.told.clone(),
        }
    }

    pub(super) fn reread(&mut self, out: &mut Vec<Output>) {
        let id = self.next_request();
        self.rereading = Some(id);
        out.push(Output::Store(id, StoreRequest::Read));
    }

    /// Takes over what is stored. Talks about leases that are no longer there end; each
    /// unaccepted lease without a talk is offered again.
    pub(super) fn adopt(&mut self, now: Now, stored: Stored, out: &mut Vec<Output>) {
        if self.activity.epoch().is_some_and(|own| own != stored.epoch) {
            self.activity.stand_by(stored.epoch, now.monotonic);
            self.step_down(out);
            return;
        }
        if let Some(time) = stored.time {
            self.clock.restore(time);
        }
        self.needs = stored.needs;
        self.topology = self.admitted();
        let around = Surroundings::new(&self.topology, &self.assignments);
        self.leases.adopt(stored, around);
        if let Some(start) = self.leases.latest_start() {
            self.clock.restore(start);
        }
        let batch = self.leases.batch();
        self.negotiations.retain(|group, talk| {
            let row = batch.get(*group);
            row.is_some_and(|row| !row.accepted() && row.start() == talk.start)
        });
        let common = batch.common_expiration();
        let time = self.clock.now(now.physical);
        for row in batch.rows().iter().filter(|row| !row.accepted()) {
            let talk = Negotiation {
                holder: batch.lease(row).holder(),
                start: row.start(),
                expiration: row.expiration(common),
                predecessor: Some(row.start()),
                force: false,
                refused: Vec::new(),
                progress: Progress::Waiting,
            };
            let talk = self.negotiations.entry(row.group()).or_insert(talk);
            if talk.progress == Progress::Waiting {
                out.push(Output::Grant(talk.holder.id, talk.offer(row.group(), time)));
            }
        }
    }

    /// Answers the wishes that the plan could not fulfil.
    fn refuse_stops(&mut self, plan: &Plan, out: &mut Vec<Output>) {
        let fulfilled = |group: &GroupId| plan.stopped.iter().any(|(stop, _)| stop.group == *group);
        let stops = std::mem::take(&mut self.stops);
        for (group, stop) in stops {
            if fulfilled(&group) {
                self.stops.insert(group, stop);
            } else {
                out.push(stopped(&stop, None));
            }
        }
    }
}
