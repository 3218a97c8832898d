//! Floor 4: a node's side of its leases. No I/O here.
//!
//! A node answers offers, and serves a group only while the newest revision it has applied holds
//! an *accepted* lease with its own id and its clock shows less than the expiration. Having
//! answered "accepted" gives it no right to serve.

use std::collections::BTreeMap;

use crate::model::batch::LeaseBatch;
use crate::model::diff::LeaseUpdate;
use crate::model::hlc::{HybridClock, HybridTimestamp};
use crate::model::ids::{GroupId, Incarnation, NodeName};
use crate::model::message::{GrantAnswer, LeaseGranted, StopProlongation, Verdict};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The driver offers a lease. `leader` is who leads the group's consensus as this node knows
    /// it; none during an election.
    Granted {
        /// The offer.
        offer: LeaseGranted,
        /// The leader.
        leader: Option<NodeName>,
    },
    /// The replica of a group has caught up, or a wait is over; for the lease with this start.
    CaughtUp(GroupId, HybridTimestamp),
    /// A revision of the leases arrived.
    Applied(LeaseUpdate),
    /// Give up a group, in favour of a candidate if one is named.
    Resign(GroupId, Option<NodeName>),
}

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Answer the driver.
    Answer(GrantAnswer),
    /// Take the leadership of the group's consensus.
    TakeLeadership(GroupId),
    /// Bring the group's replica up to date, then input [`Input::CaughtUp`].
    CatchUp(GroupId, HybridTimestamp),
    /// Input [`Input::CaughtUp`] after so many milliseconds.
    Wait(GroupId, HybridTimestamp, u64),
    /// Ask the driver not to prolong the lease.
    Stop(StopProlongation),
}

/// The latest offer of a group. It is remembered when it was refused, too: an earlier one that
/// comes late must not be taken for the latest.
#[derive(Clone, Debug)]
struct Pending {
    offer: LeaseGranted,
    stage: Stage,
}

/// How far an offer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The replica catches up, or waits for whoever held the group before.
    CatchingUp,
    /// Accepted.
    Accepted,
    /// This node does not lead the group. That may change until the offer comes again.
    Refused,
}

/// One incarnation of a node.
#[derive(Debug)]
pub struct Replica {
    me: Incarnation,
    max_skew: u64,
    clock: HybridClock,
    revision: u64,
    applied: LeaseBatch,
    pending: BTreeMap<GroupId, Pending>,
}

impl Replica {
    /// A node that has just started. `max_skew` in milliseconds.
    pub fn new(me: Incarnation, max_skew: u64) -> Self {
        Self {
            me,
            max_skew,
            clock: HybridClock::new(max_skew),
            revision: 0,
            applied: LeaseBatch::default(),
            pending: BTreeMap::new(),
        }
    }

    /// Name and id.
    pub fn incarnation(&self) -> &Incarnation {
        &self.me
    }

    /// The newest revision that it has applied, and its batch.
    pub fn applied(&self) -> (u64, &LeaseBatch) {
        (self.revision, &self.applied)
    }

    /// Whether the node may serve a group now; to be asked at each use. `physical` is its
    /// physical clock, milliseconds.
    pub fn serves(&self, group: GroupId, physical: u64) -> bool {
        let now = self.clock.peek(physical);
        self.applied.get(group).is_some_and(|row| {
            let (holder, _) = self.applied.dictionary().node(row.holder());
            row.accepted()
                && holder == self.me.id
                && now < row.expiration(self.applied.common_expiration())
        })
    }

    /// Takes one input; appends what is to be done to `out`. `physical` is the node's physical
    /// clock, milliseconds.
    pub fn step(&mut self, physical: u64, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Granted { offer, leader } => self.granted(physical, offer, leader, out),
            Input::CaughtUp(group, start) => self.caught_up(physical, group, start, out),
            Input::Applied(update) => self.apply(update),
            Input::Resign(group, candidate) => {
                if self.serves(group, physical) {
                    let holder = self.me.id;
                    out.push(Output::Stop(StopProlongation {
                        group,
                        holder,
                        candidate,
                    }));
                }
            }
        }
    }

    fn granted(
        &mut self,
        physical: u64,
        offer: LeaseGranted,
        leader: Option<NodeName>,
        out: &mut Vec<Output>,
    ) {
        if self.clock.observe(physical, offer.sent).is_err() {
            return;
        }
        let group = offer.group;
        if let Some(pending) = self.pending.get(&group) {
            if pending.offer.start > offer.start {
                return;
            }
            match pending.stage {
                _ if pending.offer.start < offer.start => {}
                Stage::CatchingUp => return,
                Stage::Accepted => {
                    self.answer(physical, group, offer.start, Verdict::Accepted, out);
                    return;
                }
                Stage::Refused => {}
            }
        }
        let known = self.applied.get(group);
        if known.is_some_and(|row| row.start() > offer.start) {
            return;
        }
        let leads = leader.as_ref() == Some(&self.me.name);
        let stage = if offer.force || leads {
            out.push(Output::CatchUp(group, offer.start));
            Stage::CatchingUp
        } else {
            // During an election nobody leads. The offer comes again at the driver's next tick.
            if let Some(leader) = leader {
                let verdict = Verdict::Redirect(leader);
                self.answer(physical, group, offer.start, verdict, out);
            }
            Stage::Refused
        };
        self.pending.insert(group, Pending { offer, stage });
    }

    fn caught_up(
        &mut self,
        physical: u64,
        group: GroupId,
        start: HybridTimestamp,
        out: &mut Vec<Output>,
    ) {
        let now = self.clock.now(physical);
        let Some(pending) = self.pending.get_mut(&group) else {
            return;
        };
        if pending.offer.start != start || pending.stage != Stage::CatchingUp {
            return;
        }
        if now >= pending.offer.expiration {
            self.pending.remove(&group);
            return;
        }
        // Whoever held the group before may serve until its own clock shows the expiration.
        if let Some(before) = pending.offer.predecessor_expiration
            && !now.after(before, self.max_skew)
        {
            let over = before.physical() + self.max_skew + 1;
            let wait = over.saturating_sub(now.physical()).max(1);
            out.push(Output::Wait(group, start, wait));
            return;
        }
        pending.stage = Stage::Accepted;
        if pending.offer.force {
            out.push(Output::TakeLeadership(group));
        }
        self.answer(physical, group, start, Verdict::Accepted, out);
    }

    fn answer(
        &mut self,
        physical: u64,
        group: GroupId,
        start: HybridTimestamp,
        verdict: Verdict,
        out: &mut Vec<Output>,
    ) {
        out.push(Output::Answer(GrantAnswer {
            group,
            start,
            node: self.me.id,
            verdict,
            sent: self.clock.now(physical),
        }));
    }

    fn apply(&mut self, update: LeaseUpdate) {
        if update.revision <= self.revision {
            return;
        }
        for change in update.changes.iter() {
            // Published, or replaced: the talk about it is over either way.
            let lease = change.new.as_ref().or(change.old.as_ref());
            if let Some(lease) = lease
                && let Some(pending) = self.pending.get(&lease.group)
                && (change.new.is_none()
                    || lease.start > pending.offer.start
                    || (lease.start == pending.offer.start && lease.accepted))
            {
                self.pending.remove(&lease.group);
            }
        }
        self.revision = update.revision;
        self.applied = update.batch;
    }
}
