//! The checker: an observer that asks, at each event, whether what must always hold does hold.
//!
//! It trusts neither driver nor nodes: it keeps its own record of what was stored (read back from
//! the store, not taken from the driver), of what each process was told, and of true time.
//!
//! * [`violation`] lists the invariants; `stored` looks at each batch that is written;
//!   `transitions` at what became of each lease; `bytes` at how it is stored;
//! * `serving` asks the nodes whom they serve; `tracked` follows what their trackers say;
//! * `told` remembers what drivers and nodes were told; `liveness` demands progress.
//!
//! Up to [`EXHAUSTIVE`] leases everything is looked at each time; beyond, what an event touches is,
//! and the rest in turn.

mod bytes;
mod liveness;
mod serving;
mod stored;
mod told;
mod tracked;
mod transitions;
pub mod violation;

use crate::cluster::event::{Event, Notice, StoreCall};
use crate::cluster::heap::Micros;
use crate::cluster::scenario::Process;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::Metastorage;
use crate::model::diff::LeaseUpdate;
use crate::model::ids::GroupId;
use crate::placement::io::{Revision, StoreReply};

use super::Observer;
pub use liveness::bound as liveness_bound;
use serving::Serving;
use stored::Stored;
use told::Told;
use tracked::Tracked;
pub use violation::{Invariant, Violation};

/// Up to so many leases everything is looked at each time.
pub const EXHAUSTIVE: usize = 256;

/// The checker of one run. It keeps the first violation.
#[derive(Debug, Default)]
pub struct Checker {
    stored: Stored,
    serving: Serving,
    tracked: Tracked,
    told: Told,
    /// Highest revision that somebody was told of.
    acknowledged: Revision,
    /// How often the store has crashed.
    crashes: u64,
    /// Whether progress was demanded.
    demanded: bool,
    violation: Option<Violation>,
}

/// What is wrong, before it is known when.
pub(super) struct Wrong {
    invariant: Invariant,
    group: Option<GroupId>,
    first: String,
    second: String,
}

/// What a check says.
pub(super) type Verdict = Result<(), Wrong>;

fn wrong(
    invariant: Invariant,
    group: Option<GroupId>,
    first: impl Into<String>,
    second: impl Into<String>,
) -> Verdict {
    Err(Wrong {
        invariant,
        group,
        first: first.into(),
        second: second.into(),
    })
}

impl Checker {
    /// The first violation, if there was one.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Takes the violation out.
    pub fn into_violation(self) -> Option<Violation> {
        self.violation
    }

    /// Something else that must not be, such as a panic.
    pub fn fail(&mut self, elapsed_us: Micros, what: &str) {
        self.violation.get_or_insert_with(|| Violation {
            invariant: Invariant::NoFailure,
            elapsed_us,
            group: None,
            first: "the cluster was at work".to_owned(),
            second: what.to_owned(),
        });
    }

    fn note(&mut self, cluster: &Cluster, verdict: Verdict) {
        if let Err(wrong) = verdict
            && self.violation.is_none()
        {
            self.violation = Some(Violation {
                invariant: wrong.invariant,
                elapsed_us: cluster.now() - cluster.begin(),
                group: wrong.group,
                first: wrong.first,
                second: wrong.second,
            });
        }
    }
}

impl Observer for Checker {
    fn before(&mut self, cluster: &Cluster, event: &Event) {
        self.told.before(cluster, event);
        self.serving.before(cluster, event);
        match event {
            Event::Served {
                incarnation,
                reply: StoreReply::Won(revision) | StoreReply::Written { revision, .. },
                ..
            } if *incarnation == self.crashes => {
                self.acknowledged = self.acknowledged.max(*revision);
            }
            Event::Shown { incarnation, seen } if *incarnation == self.crashes => {
                self.acknowledged = self.acknowledged.max(seen.revision);
                self.stored.settle(self.acknowledged);
            }
            _ => {}
        }
    }

    fn asked(&mut self, _cluster: &Cluster, store: &dyn Metastorage, call: &StoreCall) {
        self.stored.asked(store, call);
    }

    fn answered(&mut self, cluster: &Cluster, store: &dyn Metastorage, reply: &StoreReply) {
        let verdict = self.stored.answered(store, reply, &self.told);
        self.note(cluster, verdict);
    }

    fn rewritten(&mut self, cluster: &Cluster, store: &dyn Metastorage) {
        let verdict = self.stored.rewritten(store);
        self.note(cluster, verdict);
    }

    fn stored(&mut self, cluster: &Cluster, update: &LeaseUpdate) {
        let verdict = self.stored.stored(cluster, update, &self.told);
        self.note(cluster, verdict);
    }

    fn crashed(&mut self, cluster: &Cluster, store: &dyn Metastorage, kept: Revision) {
        self.crashes += 1;
        let verdict = if kept < self.acknowledged {
            wrong(
                Invariant::NothingLost,
                None,
                format!("revision {} was acknowledged", self.acknowledged),
                format!("after a crash the store has only what came up to revision {kept}"),
            )
        } else {
            self.stored.crashed(store, kept)
        };
        self.note(cluster, verdict);
    }

    fn notice(&mut self, cluster: &Cluster, notice: &Notice) {
        let verdict = match notice {
            Notice::Answered(node, answer) => {
                let skew = cluster.scenario().timings.max_skew_ms;
                self.told.answered(*node, answer, &self.stored, skew)
            }
            Notice::Tracked(node, id, events) => self.tracked.take(*node, *id, events),
            _ => Ok(()),
        };
        self.note(cluster, verdict);
    }

    fn stepped(&mut self, cluster: &Cluster, _store: &dyn Metastorage) {
        let verdict = self.serving.check(cluster);
        self.note(cluster, verdict);
        if !self.demanded
            && let Some(healed) = cluster.healed_at()
            && cluster.now() >= healed + liveness::bound(cluster.scenario())
        {
            self.demanded = true;
            let verdict = liveness::check(cluster, self.stored.batch());
            self.note(cluster, verdict);
        }
    }

    fn has_enough(&self) -> bool {
        self.violation.is_some()
    }
}

/// A process as the reader of a report knows it.
fn node_name(index: usize) -> String {
    Process::Node(index).to_string()
}
