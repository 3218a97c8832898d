//! Why bytes are not a batch, and why a batch can't be written.

use thiserror::Error;

use crate::model::ids::{GroupId, NodeId, NodeName};

use super::Format;

/// A defect of some bytes: what, where and in which field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}, {field}: {defect}")]
pub struct DecodeError {
    /// Offset of the first byte of the faulty field, or of what is missing.
    pub offset: usize,
    /// The field, as docs/FORMATS.md names it.
    pub field: &'static str,
    /// What is wrong with it.
    pub defect: Defect,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Defect {
    /// The bytes end within or before the field.
    #[error("the data ends here ({missing} more byte(s) needed)")]
    Truncated {
        /// How many bytes are missing at least.
        missing: usize,
    },
    /// A number that the field can't hold.
    #[error("{value} is outside {low}..={high}")]
    OutOfRange {
        /// The number.
        value: i128,
        /// The smallest allowed.
        low: i128,
        /// The largest allowed.
        high: i128,
    },
    /// A count that the bytes left can't carry.
    #[error("{count} is more than the {left} byte(s) left can carry")]
    CountTooLarge {
        /// The count.
        count: u64,
        /// Bytes left.
        left: usize,
    },
    /// More leases than the caller allows.
    #[error("more than {limit} leases, the limit of this reader")]
    TooManyLeases {
        /// The limit.
        limit: usize,
    },
    /// Anything else; the text says what was found and what was expected.
    #[error("{0}")]
    Invalid(String),
}

/// Why a batch can't be written in a format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The format has no place for the leases of zones.
    #[error("group {group}: {format} carries tables only, not zones; use compact-v2 or columnar")]
    ZonesNotCarried {
        /// The format.
        format: Format,
        /// The first such group.
        group: GroupId,
    },
    /// The flaw of compact-v1: at most 8 names, but more than 8 ids.
    #[error(
        "{names} node names with {ids} node ids: compact-v1 packs both indexes of a lease into \
         one number and has room for 8 ids when there are at most 8 names; use compact-v2"
    )]
    TooManyIdsForV1 {
        /// Number of names, at most 8.
        names: usize,
        /// Number of ids, more than 8.
        ids: usize,
    },
    /// One id under two names, which only naive can carry.
    #[error(
        "group {group}: node id {id} stands under the names `{first}` and `{second}`; \
         only naive can carry that"
    )]
    IdWithTwoNames {
        /// The first group that uses the second name.
        group: GroupId,
        /// The id.
        id: NodeId,
        /// One name.
        first: NodeName,
        /// The other.
        second: NodeName,
    },
    /// A name or a number of leases that the format's length fields can't hold, or more leases and
    /// holes than are sensible to write.
    #[error("{what} of {size} is above the format's limit of {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A delta's list of changed groups is not in ascending order, each once.
    #[error("group {group}: the changed groups of a delta must ascend, each once")]
    ChangesNotAscending {
        /// The first group that is not above the one before.
        group: GroupId,
    },
    /// Leases came or went whose groups a delta's list of changed groups does not have.
    #[error(
        "the listed changes lead to {expected} leases, but the next batch has {found}: \
         a group that changed is not listed"
    )]
    UnlistedChange {
        /// Number of leases by the list.
        expected: usize,
        /// Number of leases in the next batch.
        found: usize,
    },
    /// A changed row names the common expiration as its own, which a reader of a batch would not
    /// tell from having none.
    #[error(
        "group {group}: its own expiration is the common one; edit the batch with `apply` after \
         the common expiration has moved"
    )]
    OwnExpirationIsCommon {
        /// The group.
        group: GroupId,
    },
}
