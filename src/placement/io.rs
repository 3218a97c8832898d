//! What goes into a driver and what comes out of it.

use std::fmt;

use crate::codec::Format;
use crate::codec::delta::Chain;
use crate::model::batch::LeaseBatch;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};
use crate::model::message::{GrantAnswer, LeaseGranted, ProlongationStopped, StopProlongation};
use crate::model::reads::Reads;
use crate::model::topology::{Assignment, Topology};

/// A revision of the metastorage.
pub type Revision = u64;

/// Pairs a store request with its reply.
pub type RequestId = u64;

/// The clocks of the node on which a driver runs, at the moment of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Physical clock, milliseconds since the Unix epoch. May step.
    pub physical: u64,
    /// Monotonic clock, milliseconds from any origin. Never goes back.
    pub monotonic: u64,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin: find out what is stored.
    Start,
    /// Time to look for something to do; every `tick_ms`.
    Tick,
    /// The nodes that are up now.
    Topology(Topology),
    /// Assignments that changed; `None` where the group is gone.
    Assignments(Vec<(GroupId, Option<Assignment>)>),
    /// The store's reply to a request.
    Reply(RequestId, StoreReply),
    /// The store's watch showed a new beat or epoch.
    Observed {
        /// Revision of the last change of `epoch`.
        epoch: Option<Revision>,
        /// Whether the active driver beat.
        beat: bool,
    },
    /// A node answered an offered lease.
    Answer(GrantAnswer),
    /// A holder wants its lease not to be prolonged.
    Stop(StopProlongation),
}

/// Something to do.
#[derive(Clone, Debug)]
pub enum Output {
    /// Ask the store; answered by [`Input::Reply`].
    Store(RequestId, StoreRequest),
    /// Offer a lease to the incarnation with this id.
    Grant(NodeId, LeaseGranted),
    /// Answer a holder's request to stop the prolongation.
    Stopped(NodeId, ProlongationStopped),
    /// For logs and counters.
    Notice(Notice),
}

/// A request to the store. How it looks there is settled in [`super::record`].
#[derive(Clone, Debug)]
pub enum StoreRequest {
    /// Read epoch, beat and batch, linearizably and at one revision.
    Read,
    /// Become the active driver, if the epoch is still that of revision `known` (0: none yet).
    TakeEpoch {
        /// Revision of the last change of the epoch.
        known: Revision,
        /// The driver's clock.
        time: HybridTimestamp,
    },
    /// Show that the driver is alive, if the epoch is still its own.
    Beat {
        /// Revision at which this driver took the epoch.
        epoch: Revision,
        /// The driver's clock.
        time: HybridTimestamp,
    },
    /// Replace the batch.
    Write(Box<BatchWrite>),
    /// Forget history up to a revision.
    Compact(Revision),
    /// Delete the size rows of batches written before a time, if the epoch is still its own.
    PruneSizes {
        /// Revision at which this driver took the epoch.
        epoch: Revision,
        /// Rows from before this time go.
        before: HybridTimestamp,
    },
}

/// A new batch, to be stored if nobody else has written since.
#[derive(Clone, Debug)]
pub struct BatchWrite {
    /// Revision at which this driver took the epoch; must be unchanged.
    pub epoch: Revision,
    /// What it derives from; nothing may have been stored since.
    pub chain: Chain,
    /// The new batch.
    pub batch: LeaseBatch,
    /// The groups whose lease is not the same as before, the common expiration aside; ascending.
    pub changed: Vec<GroupId>,
    /// Whether all of it is stored, or what has changed.
    pub form: Form,
    /// The format, if it is stored in full.
    pub format: Format,
    /// The format instead of that one if it can't carry these leases.
    pub substitute: Format,
    /// The driver's clock.
    pub time: HybridTimestamp,
    /// Why it is written.
    pub cause: Cause,
    /// What the naive format would take for it, bytes.
    pub naive_bytes: u64,
}

/// How a batch is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// In full, as is every other batch.
    Full,
    /// In full, and deltas will refer to it.
    Snapshot,
    /// As the changes since the last snapshot or delta.
    Delta,
}

/// Why a batch is written: how many leases had what done to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cause {
    /// Whether all that may be prolonged were.
    pub renewal: bool,
    /// New leases.
    pub granted: u32,
    /// Accepted by their holders.
    pub published: u32,
    /// Not to be prolonged any more.
    pub denied: u32,
    /// Taken out of the batch.
    pub removed: u32,
    /// Whether somebody could not read the form in which it was stored.
    pub fallback: bool,
}

impl Cause {
    /// Leases that changed other than by being prolonged.
    pub const fn changed(&self) -> u32 {
        self.granted + self.published + self.denied + self.removed
    }
}

impl fmt::Display for Cause {
    /// `renewal`, `grant`, `publish`, `deny`, `remove`, `fallback`, joined by `+` where it is several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.renewal, "renewal"),
            (self.granted > 0, "grant"),
            (self.published > 0, "publish"),
            (self.denied > 0, "deny"),
            (self.removed > 0, "remove"),
            (self.fallback, "fallback"),
        ];
        let mut first = true;
        for (_, part) in parts.into_iter().filter(|(applies, _)| *applies) {
            if !first {
                f.write_str("+")?;
            }
            f.write_str(part)?;
            first = false;
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}

/// What the store said.
#[derive(Clone, Debug)]
pub enum StoreReply {
    /// Done; the revision is that of the change.
    Won(Revision),
    /// The batch is stored.
    Written {
        /// Revision of the change.
        revision: Revision,
        /// What is stored now.
        chain: Chain,
        /// What it takes to read that.
        needs: Reads,
    },
    /// What is stored can't be read by the release of this driver, though a newer one can. Nothing
    /// was changed.
    TooNew {
        /// Revision of the last change of the epoch; 0 if there is none yet.
        epoch: Revision,
        /// What it takes to read what is stored.
        needs: Reads,
    },
    /// A condition did not hold. What is there.
    Lost(Stored),
    /// What was to be read.
    Read(Stored),
    /// It is not known whether the write took place.
    Unknown(String),
    /// Nothing was changed, for a reason that may pass (the store is full or out of reach).
    Unavailable(String),
    /// What is stored can't be read, so it must not be overwritten.
    Unreadable(String),
    /// The batch can't be written in the chosen format; nothing was changed.
    Unencodable(String),
}

/// What is in the store.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Revision of the last change of the epoch; 0 if there is none yet.
    pub epoch: Revision,
    /// Revision of the last write of a batch; 0 if there is none yet.
    pub revision: Revision,
    /// The leases, and where the next delta fits.
    pub chain: Chain,
    /// What it takes to read them.
    pub needs: Option<Reads>,
    /// The active driver's clock at its last write or beat.
    pub time: Option<HybridTimestamp>,
}

/// What a driver has to tell its surroundings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// This driver is the active one now.
    Active {
        /// Its epoch.
        epoch: Revision,
    },
    /// Another driver has taken over.
    SteppedDown,
    /// A batch was stored.
    Stored {
        /// Its revision.
        revision: Revision,
        /// Why it was written.
        cause: Cause,
    },
    /// The batch had been changed by somebody else.
    WriteLost,
    /// It is not known whether the batch was stored.
    WriteUnknown(String),
    /// The store refused the batch.
    WriteFailed(String),
    /// A node refused a lease and named the group's leader.
    Redirected(GroupId),
    /// A node's clock is further ahead than the maximum skew; its message was dropped.
    ClockTooFarAhead(String),
    /// What is stored takes a newer release to read; the driver waits.
    TooNew(Reads),
    /// What is stored can't be read; the driver has stopped.
    Halted(String),
}
