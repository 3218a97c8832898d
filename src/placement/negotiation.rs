//! The talk between driver and candidate about a lease that is stored and not accepted yet.

use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, Incarnation, NodeName};
use crate::model::message::{GrantAnswer, LeaseGranted, Verdict};

/// How far the talk has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// No answer yet.
    Waiting,
    /// The holder agrees.
    Accepted,
    /// The holder refuses and names the group's leader.
    Refused(NodeName),
}

/// One talk, about the lease of one group with one start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Negotiation {
    /// Who was chosen.
    pub holder: Incarnation,
    /// Start of the lease.
    pub start: HybridTimestamp,
    /// Until when it may be accepted.
    pub expiration: HybridTimestamp,
    /// Until when somebody else may have held the group, if somebody did.
    pub predecessor: Option<HybridTimestamp>,
    /// Whether the holder must accept.
    pub force: bool,
    /// Who has refused since the group last had an accepted lease. Trying one of them again is
    /// done with force, so that two nodes that name each other can't go on for ever.
    pub refused: Vec<NodeName>,
    /// How far it has come.
    pub progress: Progress,
}

impl Negotiation {
    /// The offer to send, and to send again while there is no answer.
    pub fn offer(&self, group: GroupId, sent: HybridTimestamp) -> LeaseGranted {
        LeaseGranted {
            group,
            start: self.start,
            expiration: self.expiration,
            predecessor_expiration: self.predecessor,
            force: self.force,
            sent,
        }
    }

    /// Takes an answer. One to another start, or from another incarnation, is ignored, and so is
    /// one after the first. Says whether it was a refusal.
    pub fn answer(&mut self, answer: &GrantAnswer) -> bool {
        let fits = answer.start == self.start && answer.node == self.holder.id;
        if !fits || self.progress != Progress::Waiting {
            return false;
        }
        match &answer.verdict {
            Verdict::Accepted => {
                self.progress = Progress::Accepted;
                false
            }
            Verdict::Redirect(leader) => {
                if !self.refused.contains(&self.holder.name) {
                    self.refused.push(self.holder.name.clone());
                }
                self.progress = Progress::Refused(leader.clone());
                true
            }
        }
    }
}
