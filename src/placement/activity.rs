//! Which driver is the active one.
//!
//! ```text
//! Asking ──read──► Standby ──no beat for takeover_ms──► Taking ──won──► Reading ──► Active
//!                     ▲                                    │ lost                     │
//!                     └────────────────────────────────────┴──────── epoch lost ◄─────┘
//! ```
//!
//! The monotonic clock decides when a beat is overdue, so that a step of the physical clock
//! neither deposes a driver nor keeps a dead one in office.

use crate::model::timings::Timings;

use super::io::{RequestId, Revision};

/// What a driver is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Role {
    /// It does not know yet what is stored.
    #[default]
    Unknown,
    /// Another driver is active, as far as this one knows.
    Standby {
        /// Revision of the other's epoch; 0 if nobody has been active yet.
        epoch: Revision,
    },
    /// It has taken the epoch and is reading what is stored.
    Reading {
        /// Its epoch.
        epoch: Revision,
    },
    /// It is the one that writes.
    Active {
        /// Its epoch.
        epoch: Revision,
    },
    /// It has met something that it can't read and must not overwrite.
    Halted(String),
}

/// The role, and the clockwork around it. Times are monotonic milliseconds.
#[derive(Debug, Default)]
pub struct Activity {
    role: Role,
    asked: Option<RequestId>,
    /// When another driver's beat was last seen.
    seen: u64,
    /// When the own beat was last stored or sent.
    beat_at: Option<u64>,
    beating: Option<RequestId>,
    ask_again_at: Option<u64>,
    /// What is stored is too new for this driver.
    waits_for_older: bool,
}

/// Pause before a question to the store is repeated.
const ASK_AGAIN_MS: u64 = 250;

/// Pause before what was too new is read again.
const TOO_NEW_MS: u64 = 1_000;

impl Activity {
    /// The role.
    pub fn role(&self) -> &Role {
        &self.role
    }

    /// The own epoch, while active.
    pub fn epoch(&self) -> Option<Revision> {
        match self.role {
            Role::Active { epoch } => Some(epoch),
            _ => None,
        }
    }

    /// The own epoch, while what is stored has not been read yet.
    pub fn taken(&self) -> Option<Revision> {
        match self.role {
            Role::Reading { epoch } => Some(epoch),
            _ => None,
        }
    }

    /// A question about the role is on its way to the store.
    pub fn asked(&mut self, id: RequestId) {
        self.asked = Some(id);
        self.ask_again_at = None;
    }

    /// Whether this is the question on its way.
    pub fn is_asked(&self, id: RequestId) -> bool {
        self.asked == Some(id)
    }

    /// The question has been answered.
    pub fn answered(&mut self) {
        self.asked = None;
    }

    /// The answer was no answer.
    pub fn ask_again(&mut self, now: u64) {
        self.ask_again_at = Some(now + ASK_AGAIN_MS);
    }

    /// Whether to read what is stored (again).
    pub fn read_due(&self, now: u64) -> bool {
        let waiting = match self.role {
            Role::Unknown | Role::Reading { .. } => true,
            Role::Standby { .. } => self.waits_for_older,
            Role::Active { .. } | Role::Halted(_) => false,
        };
        waiting && self.asked.is_none() && self.ask_again_at.is_none_or(|at| now >= at)
    }

    /// The epoch to replace, if it is time to take over.
    pub fn takeover_due(&self, now: u64, timings: &Timings) -> Option<Revision> {
        match self.role {
            Role::Standby { epoch }
                if self.asked.is_none()
                    && !self.waits_for_older
                    && self.ask_again_at.is_none_or(|at| now >= at)
                    && (epoch == 0 || now >= self.seen + timings.takeover_ms) =>
            {
                Some(epoch)
            }
            _ => None,
        }
    }

    /// The store's watch showed something. Says whether this driver was active and no longer is.
    pub fn observe(&mut self, epoch: Option<Revision>, beat: bool, now: u64) -> bool {
        match self.role {
            Role::Active { epoch: own } | Role::Reading { epoch: own } => {
                let newer = epoch.filter(|epoch| *epoch > own);
                if let Some(epoch) = newer {
                    self.stand_by(epoch, now);
                }
                newer.is_some()
            }
            Role::Standby { epoch: known } => {
                // The new epoch may be the own one, its acknowledgement still on the way: a question
                // that is being asked stays open.
                if let Some(epoch) = epoch.filter(|epoch| *epoch > known) {
                    self.role = Role::Standby { epoch };
                    self.seen = now;
                } else if beat {
                    self.seen = now;
                }
                false
            }
            Role::Unknown | Role::Halted(_) => false,
        }
    }

    /// Another driver is active.
    pub fn stand_by(&mut self, epoch: Revision, now: u64) {
        self.role = Role::Standby { epoch };
        self.seen = now;
        self.asked = None;
        self.beating = None;
        self.beat_at = None;
        self.waits_for_older = false;
    }

    /// Another driver is active, or is to become it: what is stored is too new for this one. Says
    /// whether that is news.
    pub fn wait_for_older(&mut self, epoch: Revision, now: u64) -> bool {
        let news = !self.waits_for_older;
        self.stand_by(epoch, now);
        self.waits_for_older = true;
        self.ask_again_at = Some(now + TOO_NEW_MS);
        news
    }

    /// The epoch is this driver's now, unless the watch has shown a later one meanwhile. Says
    /// which.
    pub fn took(&mut self, epoch: Revision) -> bool {
        let overtaken = matches!(self.role, Role::Standby { epoch: known } if known > epoch);
        if !overtaken {
            self.role = Role::Reading { epoch };
        }
        !overtaken
    }

    /// What is stored is known: act.
    pub fn activate(&mut self, epoch: Revision) {
        self.role = Role::Active { epoch };
    }

    /// Never act again.
    pub fn halt(&mut self, reason: String) {
        self.role = Role::Halted(reason);
    }

    /// Whether the next beat is due.
    pub fn beat_due(&self, now: u64, timings: &Timings) -> bool {
        let due = (self.beat_at).is_none_or(|last| now >= last + timings.beat_ms);
        self.beating.is_none() && due
    }

    /// A beat is on its way.
    pub fn beating(&mut self, id: RequestId, now: u64) {
        self.beating = Some(id);
        self.beaten(now);
    }

    /// Whether this is the beat on its way.
    pub fn is_beat(&self, id: RequestId) -> bool {
        self.beating == Some(id)
    }

    /// The beat on its way has been answered.
    pub fn beat_done(&mut self) {
        self.beating = None;
    }

    /// Something that carries a beat was sent.
    pub fn beaten(&mut self, now: u64) {
        self.beat_at = Some(now);
    }
}
