//! One lease, self-contained: the form for people, JSON and tests. Batches hold leases as rows
//! (see [`super::batch`]).

use serde::{Deserialize, Serialize};

use super::hlc::HybridTimestamp;
use super::ids::{GroupId, Incarnation, NodeId, NodeName};

/// The right of one node to serve one replication group for a time.
///
/// Its JSON form is the one that `leasehold decode` prints and `leasehold encode` reads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// What may be served.
    pub group: GroupId,
    /// Who may serve it: the node's name.
    pub holder_name: NodeName,
    /// Who may serve it: the incarnation.
    pub holder_id: NodeId,
    /// When the lease was granted; the fencing token, constant while the lease is prolonged.
    pub start: HybridTimestamp,
    /// Until when it holds.
    pub expiration: HybridTimestamp,
    /// Whether the holder has agreed.
    pub accepted: bool,
    /// Whether the driver may prolong it.
    pub prolongable: bool,
    /// Who should get the next lease of this group, if somebody was proposed.
    pub proposed_candidate: Option<NodeName>,
}

impl Lease {
    /// Who holds it.
    pub fn holder(&self) -> Incarnation {
        Incarnation {
            name: self.holder_name.clone(),
            id: self.holder_id,
        }
    }
}
