//! The placement driver: a state machine around the decisions of [`super::renewal`]; its writes
//! are in `writing`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::hlc::{HybridClock, HybridTimestamp};
use crate::model::ids::GroupId;
use crate::model::message::{GrantAnswer, ProlongationStopped, StopProlongation};
use crate::model::reads::Reads;
use crate::model::timings::Timings;
use crate::model::topology::{Assignment, Assignments, Topology};

use super::activity::{Activity, Role};
use super::io::{Input, Notice, Now, Output, RequestId, Revision, StoreReply, StoreRequest};
use super::leases::{Leases, Surroundings};
use super::negotiation::{Negotiation, Progress};
use super::retention::{Retain, Retention};
use super::storing::Storing;
use super::writing::Writing;

/// One driver. Any node can run one; at most one at a time succeeds in writing.
///
/// Feed it with [`step`](Self::step); it does nothing by itself.
#[derive(Debug)]
pub struct PlacementDriver {
    pub(super) timings: Timings,
    pub(super) retain: Retain,
    pub(super) clock: HybridClock,
    /// Who is up, as it was told.
    pub(super) told: Topology,
    /// Of these, who can read what is stored: only they may hold leases.
    pub(super) topology: Topology,
    pub(super) assignments: Arc<Assignments>,
    pub(super) activity: Activity,
    pub(super) leases: Leases,
    pub(super) negotiations: BTreeMap<GroupId, Negotiation>,
    pub(super) stops: BTreeMap<GroupId, StopProlongation>,
    pub(super) writing: Option<Writing>,
    pub(super) rereading: Option<RequestId>,
    /// Writes that failed in a row, and when the next may be tried (monotonic milliseconds).
    pub(super) failures: u32,
    pub(super) retry_at: u64,
    pub(super) retention: Retention,
    /// How to store batches if everybody can read that.
    pub(super) wished: Storing,
    /// What this driver's release can read.
    pub(super) reads: Reads,
    /// What it takes to read what is stored.
    pub(super) needs: Option<Reads>,
    pub(super) without_candidate: usize,
    pub(super) last_request: RequestId,
}

impl PlacementDriver {
    /// A driver that knows of no node and no group yet. `timings` are valid. It stores batches as
    /// wished, if everybody can read that; itself it can read `reads`.
    pub fn new(timings: Timings, retain: Retain, wished: Storing, reads: Reads) -> Self {
        Self {
            timings,
            retain,
            clock: HybridClock::new(timings.max_skew_ms),
            told: Topology::default(),
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
            wished,
            reads,
            needs: None,
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
                self.told = topology;
                self.admit();
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

    pub(super) fn around(&self) -> Surroundings<'_> {
        Surroundings::new(&self.topology, &self.assignments)
    }

    pub(super) fn next_request(&mut self) -> RequestId {
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

    fn reply(&mut self, now: Now, id: RequestId, reply: StoreReply, out: &mut Vec<Output>) {
        if let StoreReply::Unreadable(reason) = reply {
            self.halt(reason, out);
        } else if let StoreReply::TooNew { epoch, needs } = reply {
            self.too_new(now, id, epoch, needs, out);
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
            StoreReply::Written { .. }
            | StoreReply::Unknown(_)
            | StoreReply::Unavailable(_)
            | StoreReply::Unencodable(_)
            | StoreReply::TooNew { .. }
            | StoreReply::Unreadable(_) => self.activity.ask_again(now.monotonic),
        }
    }

    pub(super) fn step_down(&mut self, out: &mut Vec<Output>) {
        self.writing = None;
        self.rereading = None;
        self.negotiations.clear();
        for (_, stop) in std::mem::take(&mut self.stops) {
            out.push(stopped(&stop, None));
        }
        self.leases = Leases::default();
        out.push(Output::Notice(Notice::SteppedDown));
    }

    /// A newer release has written what this one can't read: it stands by, and reads again now
    /// and then. Before that works it does not try to become active.
    fn too_new(
        &mut self,
        now: Now,
        id: RequestId,
        epoch: Revision,
        needs: Reads,
        out: &mut Vec<Output>,
    ) {
        let writes = self.writing.as_ref().is_some_and(|write| write.id == id);
        let asked = self.activity.is_asked(id) || self.activity.is_beat(id);
        if !writes && !asked && self.rereading != Some(id) {
            return;
        }
        if self.activity.epoch().is_some() {
            self.step_down(out);
        }
        if self.activity.wait_for_older(epoch, now.monotonic) {
            out.push(Output::Notice(Notice::TooNew(needs)));
        }
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
        let around = Surroundings::new(&self.topology, &self.assignments);
        if self.activity.epoch().is_some() {
            self.leases.review(groups, around);
        }
    }

    pub(super) fn review_all(&mut self) {
        let around = Surroundings::new(&self.topology, &self.assignments);
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
}

pub(super) fn stopped(stop: &StopProlongation, expiration: Option<HybridTimestamp>) -> Output {
    let answer = ProlongationStopped {
        group: stop.group,
        expiration,
    };
    Output::Stopped(stop.holder, answer)
}
