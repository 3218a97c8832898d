//! The placement driver: a state machine around the decisions of [`super::renewal`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::hlc::{HybridClock, HybridTimestamp};
use crate::model::ids::{GroupId, Incarnation};
use crate::model::message::{GrantAnswer, ProlongationStopped, StopProlongation};
use crate::model::timings::Timings;
use crate::model::topology::{Assignment, Assignments, Topology};

use super::activity::{Activity, Role};
use super::io::{
    BatchWrite, Input, Notice, Now, Output, RequestId, StoreReply, StoreRequest, Stored,
};
use super::leases::{Leases, Surroundings};
use super::negotiation::{Negotiation, Progress};
use super::renewal::{Decision, Plan};
use super::retention::{Retain, Retention};

/// One driver. Any node can run one; at most one at a time succeeds in writing.
///
/// Feed it with [`step`](Self::step); it does nothing by itself.
#[derive(Debug)]
pub struct PlacementDriver {
    timings: Timings,
    retain: Retain,
    clock: HybridClock,
    topology: Topology,
    assignments: Arc<Assignments>,
    activity: Activity,
    leases: Leases,
    negotiations: BTreeMap<GroupId, Negotiation>,
    stops: BTreeMap<GroupId, StopProlongation>,
    writing: Option<Writing>,
    rereading: Option<RequestId>,
    /// Writes that failed in a row, and when the next may be tried (monotonic milliseconds).
    failures: u32,
    retry_at: u64,
    retention: Retention,
    without_candidate: usize,
    last_request: RequestId,
}

/// A batch on its way to the store.
#[derive(Debug)]
struct Writing {
    id: RequestId,
    write: BatchWrite,
    plan: Plan,
}

impl PlacementDriver {
    /// A driver that knows of no node and no group yet. `timings` are valid.
    pub fn new(timings: Timings, retain: Retain) -> Self {
        Self {
            timings,
            retain,
            clock: HybridClock::new(timings.max_skew_ms),
            topology: Topology::default(),
            assignments: Arc::default(),
            activity: Activity::default(),
            leases: Leases::default(),
            negotiations: BTreeMap::new(),
            stops: BTreeMap::new(),
            writing: None,
            rereading: None,
            failures: 0,
            retry_at: 0,
            retention: Retention::new(retain),
            without_candidate: 0,
            last_request: 0,
        }
    }

    /// Takes all assignments at once, before [`Input::Start`]; they are shared until they change.
    pub fn assign(&mut self, assignments: Arc<Assignments>) {
        self.assignments = assignments;
    }

    /// Takes one input; appends what is to be done to `out`.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Start => self.request_role(StoreRequest::Read, out),
            Input::Tick => self.tick(now, out),
            Input::Topology(topology) => {
                self.topology = topology;
                self.review_all();
            }
            Input::Assignments(changes) => self.reassign(changes),
            Input::Reply(id, reply) => self.reply(now, id, reply, out),
            Input::Observed { epoch, beat } => {
                if self.activity.observe(epoch, beat, now.monotonic) {
                    self.step_down(out);
                }
            }
            Input::Answer(answer) => self.answer(now, &answer, out),
            Input::Stop(stop) => self.stop_prolongation(stop, out),
        }
    }

    /// What this driver is at the moment.
    pub fn role(&self) -> &Role {
        self.activity.role()
    }

    /// Assigned groups none of whose replicas is up, as of the last tick.
    pub fn groups_without_candidate(&self) -> usize {
        self.without_candidate
    }

    /// The talks under way.
    pub fn negotiations(&self) -> &BTreeMap<GroupId, Negotiation> {
        &self.negotiations
    }

    fn around(&self) -> Surroundings<'_> {
        Surroundings {
            topology: &self.topology,
            assignments: &self.assignments,
        }
    }

    fn next_request(&mut self) -> RequestId {
        self.last_request += 1;
        self.last_request
    }

    fn request_role(&mut self, request: StoreRequest, out: &mut Vec<Output>) {
        let id = self.next_request();
        self.activity.asked(id);
        out.push(Output::Store(id, request));
    }

    fn take_over_if_due(&mut self, now: Now, out: &mut Vec<Output>) {
        if let Some(known) = self.activity.takeover_due(now.monotonic, &self.timings) {
            let time = self.clock.now(now.physical);
            self.request_role(StoreRequest::TakeEpoch { known, time }, out);
        }
    }

    fn tick(&mut self, now: Now, out: &mut Vec<Output>) {
        self.take_over_if_due(now, out);
        if self.activity.read_due(now.monotonic) {
            self.request_role(StoreRequest::Read, out);
        }
        let Some(epoch) = self.activity.epoch() else {
            return;
        };
        let time = self.clock.now(now.physical);
        self.repeat_offers(time, out);
        let wrote = self.renew(now, time, out);
        // A batch write carries a beat.
        if !wrote && self.activity.beat_due(now.monotonic, &self.timings) {
            let id = self.next_request();
            self.activity.beating(id, now.monotonic);
            out.push(Output::Store(id, StoreRequest::Beat { epoch, time }));
        }
        if let Some(expired) = self.retention.expired(time) {
            if let Some(revision) = expired.batches {
                let id = self.next_request();
                out.push(Output::Store(id, StoreRequest::Compact(revision)));
            }
            if let Some(before) = expired.sizes {
                let id = self.next_request();
                let prune = StoreRequest::PruneSizes { epoch, before };
                out.push(Output::Store(id, prune));
            }
        }
    }

    /// Decides, and sends the new batch to the store if there is something to write.
    fn renew(&mut self, now: Now, time: HybridTimestamp, out: &mut Vec<Output>) -> bool {
        let busy = self.writing.is_some() || self.rereading.is_some();
        let (Some(epoch), false) = (self.activity.epoch(), busy) else {
            return false;
        };
        if now.monotonic < self.retry_at {
            return false;
        }
        if self.leases.quiet > 0 && self.leases.batch.common_expiration() <= time {
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
        if plan.is_empty() {
            return false;
        }
        let (batch, naive_bytes) = plan.carry_out(&self.leases);
        let id = self.next_request();
        let write = BatchWrite {
            epoch,
            expected: self.leases.revision,
            batch,
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

    fn reply(&mut self, now: Now, id: RequestId, reply: StoreReply, out: &mut Vec<Output>) {
        if let StoreReply::Unreadable(reason) = reply {
            self.halt(reason, out);
        } else if self.activity.is_asked(id) {
            self.role_reply(now, reply, out);
        } else if self.activity.is_beat(id) {
            self.activity.beat_done();
            if let StoreReply::Lost(stored) = reply {
                self.activity.stand_by(stored.epoch, now.monotonic);
                self.step_down(out);
            }
        } else if self.rereading == Some(id) {
            self.rereading = None;
            match reply {
                StoreReply::Read(stored) => self.adopt(now, stored, out),
                _ => self.reread(out),
            }
        } else if let Some(writing) = self.writing.take_if(|writing| writing.id == id) {
            self.write_reply(now, writing, reply, out);
        }
    }

    fn write_reply(
        &mut self,
        now: Now,
        writing: Writing,
        reply: StoreReply,
        out: &mut Vec<Output>,
    ) {
        match reply {
            StoreReply::Won(revision) => self.written(now, writing, revision, out),
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
            StoreReply::Read(_) | StoreReply::Unreadable(_) => {}
        }
    }

    fn written(&mut self, now: Now, writing: Writing, revision: u64, out: &mut Vec<Output>) {
        let Writing { write, plan, .. } = writing;
        self.failures = 0;
        self.retention.stored(write.time, revision);
        for group in plan.changes.keys() {
            self.negotiations.remove(group);
        }
        let around = Surroundings {
            topology: &self.topology,
            assignments: &self.assignments,
        };
        let changed = plan.changes.into_keys();
        (self.leases).advance(revision, write.batch, write.naive_bytes, changed, around);
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

    fn reread(&mut self, out: &mut Vec<Output>) {
        let id = self.next_request();
        self.rereading = Some(id);
        out.push(Output::Store(id, StoreRequest::Read));
    }

    /// Takes over what is stored. Talks about leases that are no longer there end; each
    /// unaccepted lease without a talk is offered again.
    fn adopt(&mut self, now: Now, stored: Stored, out: &mut Vec<Output>) {
        if self.activity.epoch().is_some_and(|own| own != stored.epoch) {
            self.activity.stand_by(stored.epoch, now.monotonic);
            self.step_down(out);
            return;
        }
        if let Some(time) = stored.time {
            self.clock.restore(time);
        }
        let around = Surroundings {
            topology: &self.topology,
            assignments: &self.assignments,
        };
        self.leases.adopt(stored, around);
        if let Some(start) = self.leases.latest_start() {
            self.clock.restore(start);
        }
        let batch = &self.leases.batch;
        self.negotiations.retain(|group, talk| {
            let row = batch.get(*group);
            row.is_some_and(|row| !row.accepted() && row.start() == talk.start)
        });
        let common = batch.common_expiration();
        let time = self.clock.now(now.physical);
        for row in batch.rows().iter().filter(|row| !row.accepted()) {
            let lease = batch.lease(row);
            let holder = Incarnation {
                name: lease.holder_name,
                id: lease.holder_id,
            };
            let talk = Negotiation {
                holder,
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

    fn role_reply(&mut self, now: Now, reply: StoreReply, out: &mut Vec<Output>) {
        self.activity.answered();
        match reply {
            StoreReply::Won(epoch) => {
                // Others may have written since this driver last read: read, then act.
                if self.activity.took(epoch) {
                    self.request_role(StoreRequest::Read, out);
                }
            }
            StoreReply::Lost(stored) => self.activity.stand_by(stored.epoch, now.monotonic),
            StoreReply::Read(stored) => match self.activity.taken() {
                Some(epoch) if epoch == stored.epoch => {
                    self.activity.activate(epoch);
                    self.retention = Retention::new(self.retain);
                    self.failures = 0;
                    self.retry_at = 0;
                    out.push(Output::Notice(Notice::Active { epoch }));
                    self.adopt(now, stored, out);
                }
                _ => {
                    if let Some(time) = stored.time {
                        self.clock.restore(time);
                    }
                    self.activity.stand_by(stored.epoch, now.monotonic);
                    self.take_over_if_due(now, out);
                }
            },
            StoreReply::Unknown(_)
            | StoreReply::Unavailable(_)
            | StoreReply::Unencodable(_)
            | StoreReply::Unreadable(_) => self.activity.ask_again(now.monotonic),
        }
    }

    fn step_down(&mut self, out: &mut Vec<Output>) {
        self.writing = None;
        self.rereading = None;
        self.negotiations.clear();
        for (_, stop) in std::mem::take(&mut self.stops) {
            out.push(stopped(&stop, None));
        }
        self.leases = Leases::default();
        out.push(Output::Notice(Notice::SteppedDown));
    }

    fn halt(&mut self, reason: String, out: &mut Vec<Output>) {
        self.step_down(out);
        self.activity.halt(reason.clone());
        out.push(Output::Notice(Notice::Halted(reason)));
    }

    fn reassign(&mut self, changes: Vec<(GroupId, Option<Assignment>)>) {
        let assignments = Arc::make_mut(&mut self.assignments);
        let mut groups = Vec::with_capacity(changes.len());
        for (group, change) in changes {
            groups.push(group);
            match change {
                Some(assignment) => assignments.insert(group, assignment),
                None => assignments.remove(&group),
            };
        }
        let around = Surroundings {
            topology: &self.topology,
            assignments: &self.assignments,
        };
        if self.activity.epoch().is_some() {
            self.leases.review(groups, around);
        }
    }

    fn review_all(&mut self) {
        let around = Surroundings {
            topology: &self.topology,
            assignments: &self.assignments,
        };
        if self.activity.epoch().is_some() {
            self.leases.review_all(around);
        }
    }

    fn repeat_offers(&mut self, time: HybridTimestamp, out: &mut Vec<Output>) {
        for (group, talk) in &self.negotiations {
            if talk.progress == Progress::Waiting {
                out.push(Output::Grant(talk.holder.id, talk.offer(*group, time)));
            }
        }
    }

    fn answer(&mut self, now: Now, answer: &GrantAnswer, out: &mut Vec<Output>) {
        if let Err(error) = self.clock.observe(now.physical, answer.sent) {
            out.push(Output::Notice(Notice::ClockTooFarAhead(error.to_string())));
            return;
        }
        if let Some(talk) = self.negotiations.get_mut(&answer.group)
            && talk.answer(answer)
        {
            out.push(Output::Notice(Notice::Redirected(answer.group)));
        }
    }

    /// Remembers the wish for the next tick; a driver that is not active refuses at once.
    fn stop_prolongation(&mut self, stop: StopProlongation, out: &mut Vec<Output>) {
        if self.activity.epoch().is_none() {
            out.push(stopped(&stop, None));
        } else {
            self.stops.insert(stop.group, stop);
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

fn stopped(stop: &StopProlongation, expiration: Option<HybridTimestamp>) -> Output {
    let answer = ProlongationStopped {
        group: stop.group,
        expiration,
    };
    Output::Stopped(stop.holder, answer)
}
