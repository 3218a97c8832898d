//! How answers look in JSON; the command line reads them in the same form. All times are in
//! milliseconds since the Unix epoch, but for the hybrid timestamps within a lease.

use serde::{Deserialize, Serialize};

use crate::audit::sizes::Summary;
use crate::audit::state::LeaseState;
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::placement::record::SizeRow;

/// `/healthz`
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Health {
    /// `ok` or `trouble`.
    pub status: String,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// `/v1/batches`
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Batches {
    /// One row a stored batch, oldest first.
    pub rows: Vec<SizeRow>,
    /// What these rows come to.
    pub summary: Summary,
    /// If more follow: the time to go on from, to be given as `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl From<Vec<SizeRow>> for Batches {
    fn from(rows: Vec<SizeRow>) -> Self {
        Self {
            summary: Summary::of(&rows),
            rows,
            next: None,
        }
    }
}

/// A lease and how it stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeaseEntry {
    /// How it stands.
    pub state: LeaseState,
    /// The lease.
    pub lease: Lease,
}

/// `/v1/leases`
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leases {
    /// Revision of the batch.
    pub revision: u64,
    /// Cluster time that the states are relative to.
    pub time: u64,
    /// The leases, by group.
    pub leases: Vec<LeaseEntry>,
    /// The last group of this page if more follow, to be given as `after`.
    #[serde(with = "group_text")]
    pub next: Option<GroupId>,
}

/// `/v1/leases/{kind}/{object}/{partition}`
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OneLease {
    /// Revision of the batch.
    pub revision: u64,
    /// Cluster time that state and validity are relative to.
    pub time: u64,
    /// How the lease stands.
    pub state: LeaseState,
    /// Whether its holder may serve.
    pub valid: bool,
    /// The lease.
    pub lease: Lease,
}

impl OneLease {
    /// A lease of a batch as it stands at a time.
    pub fn new(revision: u64, time: u64, lease: Lease) -> Self {
        let state = LeaseState::at(&lease, time);
        Self {
            revision,
            time,
            state,
            valid: state.is_valid(),
            lease,
        }
    }
}

/// Data of the event `lagged`: the reader was too slow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lagged {
    /// Events that it has missed.
    pub lost: u64,
}

/// An error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// It.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// The HTTP status.
    pub status: u16,
    /// What was wrong, for a person.
    pub message: String,
}

/// A group as the text that queries take.
mod group_text {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::model::ids::GroupId;

    pub fn serialize<S: Serializer>(group: &Option<GroupId>, to: S) -> Result<S::Ok, S::Error> {
        group.map(|group| group.to_string()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<GroupId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom))
            .transpose()
    }
}
