//! What a frame says about one lease.
//!
//! Physical times are milliseconds relative to the common expiration *after* the delta: leases
//! are granted now, and the common expiration is never far from that.

/// A lease as a frame replaces or adds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaLease {
    /// Holder and start, unless they are those of the row that is replaced.
    pub grant: Option<Grant>,
    /// The expiration.
    pub expiration: OwnExpiration,
    /// Whether the holder has agreed.
    pub accepted: bool,
    /// Whether the driver may prolong it.
    pub prolongable: bool,
    /// The proposed candidate: an index into the names of the chain.
    pub candidate: Option<u32>,
}

/// Who holds a new lease since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The holder: an index into the nodes of the chain.
    pub holder: u32,
    /// Physical part of the start, relative to the common expiration (milliseconds).
    pub start_offset: i64,
    /// Logical part of the start.
    pub start_logical: u16,
}

/// The expiration of a lease that a frame replaces or adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OwnExpiration {
    /// The common one.
    #[default]
    Common,
    /// So many milliseconds (not negative) after the start's physical part, logical part 0: a
    /// fresh grant.
    AfterStart(i64),
    /// Another one.
    At {
        /// Physical part, relative to the common expiration (milliseconds).
        offset: i64,
        /// Logical part.
        logical: u16,
    },
}
