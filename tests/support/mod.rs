//! What the tests of the formats share: the vectors and the hostile bytes.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use leasehold::codec::Format;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::lease::Lease;
use serde::Deserialize;

/// A batch with its bytes in each format (`None`: the format can't carry it).
#[derive(Deserialize)]
pub struct Vector {
    pub name: String,
    pub leases: Vec<Lease>,
    pub common_expiration: HybridTimestamp,
    naive_hex: Option<String>,
    compact_v1_tables_only_hex: Option<String>,
    compact_v1_hex: Option<String>,
    compact_v2_hex: Option<String>,
    compact_v1_broken_hex: Option<String>,
}

/// Equally frequent expirations, of which the original picks another one.
pub const TIES: [&str; 4] = [
    "tie_3_values_logical",
    "tie_collision",
    "tie_25_values",
    "tie_120_values",
];

/// One id under two names, which the compact formats lose.
pub const LOSSY: &str = "same_id_two_names";

impl Vector {
    pub fn bytes(&self, format: Format) -> Option<Vec<u8>> {
        let text = match format {
            Format::Naive => &self.naive_hex,
            Format::CompactV1TablesOnly => &self.compact_v1_tables_only_hex,
            Format::CompactV1 => &self.compact_v1_hex,
            Format::CompactV2 => &self.compact_v2_hex,
            _ => return None,
        };
        text.as_ref().map(|text| hex::decode(text).unwrap())
    }

    /// What the original writes where it should refuse.
    pub fn broken(&self) -> Option<Vec<u8>> {
        let text = self.compact_v1_broken_hex.as_ref();
        text.map(|text| hex::decode(text).unwrap())
    }

    pub fn is_tie(&self) -> bool {
        TIES.contains(&self.name.as_str())
    }
}

pub fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../data/vectors.json")).unwrap()
}

#[derive(Deserialize)]
pub struct Malformed {
    pub name: String,
    pub expect: String,
    hex: String,
}

impl Malformed {
    pub fn bytes(&self) -> Vec<u8> {
        hex::decode(&self.hex).unwrap()
    }
}

pub fn malformed() -> Vec<Malformed> {
    serde_json::from_str(include_str!("../data/malformed.json")).unwrap()
}

/// Leases in the order of their groups.
pub fn sorted(mut leases: Vec<Lease>) -> Vec<Lease> {
    leases.sort_by_key(|lease| lease.group);
    leases
}
