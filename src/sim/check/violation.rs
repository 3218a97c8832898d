//! What the checker has to say when something that must always hold does not.

use std::fmt;

use serde::Serialize;

use crate::cluster::heap::Micros;
use crate::model::ids::GroupId;

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident $name:literal $rule:literal,)*) => {
        /// What must always hold.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Invariant {
            $($(#[$doc])* $variant,)*
        }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it says.
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule,)* }
            }
        }
    };
}

invariants! {
    /// 1a.
    DisjointLeases "disjoint-leases"
        "accepted intervals of different leases of a group are apart by more than the skew",
    /// 1b.
    OneServer "one-server"
        "at no true instant do two nodes serve one group",
    /// Part of 1b: the right to serve.
    RightToServe "right-to-serve"
        "a node serves only by an accepted lease of its own id that it has seen stored and that \
         its clock shows unexpired",
    /// 2.
    StartsIncrease "starts-increase"
        "the starts of a group strictly increase, and the holder never changes under one start",
    /// 3.
    NoStepBack "no-step-back"
        "an accepted lease stays accepted, its expiration never goes back, and a denied lease is \
         never prolonged",
    /// What may be done to a lease.
    LegalProlonging "legal-prolonging"
        "only accepted, unexpired leases of nodes that are up under the holder's id are prolonged",
    /// What makes a lease accepted.
    AnsweredAcceptance "answered-acceptance"
        "a lease is published only after it was stored as granted and its holder has accepted \
         exactly it",
    /// What a holder waits for.
    AcceptanceWaits "acceptance-waits"
        "a node accepts only when whoever held the group before has expired on every clock",
    /// 4.
    NoLostUpdate "no-lost-update"
        "each stored batch derives from the one before and is written by the active driver",
    /// 4, the bytes.
    StoredAsMeant "stored-as-meant"
        "what is stored reads, by another way, as the leases that the driver meant",
    /// Mixed releases.
    Readable "readable"
        "a batch is stored in a form that all can read whom its writer knew of, and its leases \
         begin at nodes that read it",
    /// 5.
    ElectionsInOrder "elections-in-order"
        "on every node a lease is elected once, after the one before has expired",
    /// 6.
    NothingLost "nothing-lost"
        "nothing acknowledged is lost by a crash",
    /// 7.
    Liveness "liveness"
        "when faults have stopped, each group with a live candidate has an accepted lease within \
         the bound",
    /// The code itself.
    NoFailure "no-failure"
        "the code under test neither panics nor meets something that it can't read",
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Invariant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A violation: two events that contradict each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Violation {
    /// What does not hold.
    pub invariant: Invariant,
    /// When, in microseconds since the begin.
    pub elapsed_us: Micros,
    /// Of which group, if of one.
    #[serde(serialize_with = "as_text")]
    pub group: Option<GroupId>,
    /// What was so.
    pub first: String,
    /// What contradicts it.
    pub second: String,
}

fn as_text<S: serde::Serializer>(group: &Option<GroupId>, to: S) -> Result<S::Ok, S::Error> {
    match group {
        Some(group) => to.collect_str(group),
        None => to.serialize_none(),
    }
}
