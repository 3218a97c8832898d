//! What the placement driver and the nodes say to each other.

use super::hlc::HybridTimestamp;
use super::ids::{GroupId, NodeId, NodeName};

/// Driver → node: a lease of yours is stored; do you accept it? Sent again until answered, and
/// idempotent by (group, start).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseGranted {
    /// The group.
    pub group: GroupId,
    /// Start of the lease.
    pub start: HybridTimestamp,
    /// Until when it may be accepted.
    pub expiration: HybridTimestamp,
    /// Until when somebody else may have held the group. A driver that did not grant the lease
    /// itself sends its start: leases are granted only when the one before is over.
    pub predecessor_expiration: Option<HybridTimestamp>,
    /// Accept even without leading the group, and take the leadership.
    pub force: bool,
    /// The driver's clock.
    pub sent: HybridTimestamp,
}

/// Node → driver: the answer to [`LeaseGranted`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantAnswer {
    /// The group.
    pub group: GroupId,
    /// Start of the lease that is answered.
    pub start: HybridTimestamp,
    /// Who answers.
    pub node: NodeId,
    /// Yes or no.
    pub verdict: Verdict,
    /// The node's clock.
    pub sent: HybridTimestamp,
}

/// A node's decision about a lease.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It takes the lease. This gives it no right to serve: only the stored, accepted lease does.
    Accepted,
    /// Another node leads the group; ask that one.
    Redirect(NodeName),
}

/// Holder → driver: do not prolong this lease any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StopProlongation {
    /// The group.
    pub group: GroupId,
    /// Who asks; only the holder may.
    pub holder: NodeId,
    /// Who should get the next lease.
    pub candidate: Option<NodeName>,
}

/// Driver → holder: the answer to [`StopProlongation`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProlongationStopped {
    /// The group.
    pub group: GroupId,
    /// When the lease will expire; none if it was not stopped (the write lost, or the sender
    /// does not hold the group).
    pub expiration: Option<HybridTimestamp>,
}
