//! Why a delta frame can't be read or applied.

use thiserror::Error;

use crate::codec::error::DecodeError;
use crate::model::digest::Digest;

/// Why a frame was not applied. The state is what it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// Other bytes than the magic.
    #[error("byte 0: not a delta frame (no magic 89 4c 48 44)")]
    NotADelta,
    /// A later layout.
    #[error("byte 4: version {0} of the delta frame is unknown to this reader, which knows 1")]
    UnknownVersion(u8),
    /// Damaged.
    #[error("byte 5: checksum {stored:08x} does not match the content ({computed:08x})")]
    Checksum {
        /// In the frame.
        stored: u32,
        /// Of the content.
        computed: u32,
    },
    /// The bytes are no frame, or none that fits any state like this one.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It belongs to another snapshot.
    #[error(
        "the delta belongs to the snapshot of revision {found}, but the state to that of \
         {expected}: read again from the snapshot"
    )]
    WrongBase {
        /// Revision of the state's snapshot.
        expected: u64,
        /// Revision of the frame's.
        found: u64,
    },
    /// It is not the next one of the chain.
    #[error(
        "delta {found} was {}, as the next one of the chain is {expected}: {}",
        if found < expected { "applied already" } else { "read too early" },
        if found < expected {
            "skip it, or read again from the snapshot"
        } else {
            "one is missing; read again from the snapshot"
        }
    )]
    WrongStep {
        /// The next number.
        expected: u64,
        /// The frame's.
        found: u64,
    },
    /// It does not lead where it should: the states of writer and reader differ.
    #[error(
        "the delta leads to digest {computed}, but its writer had {expected}: the states differ; \
         read again from the snapshot"
    )]
    WrongState {
        /// Of the writer's state.
        expected: Digest,
        /// Of what the frame makes of this state.
        computed: Digest,
    },
}
