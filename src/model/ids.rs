//! Names of things: replication groups, nodes and their incarnations.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// A node's name: the same for its whole life.
pub type NodeName = Arc<str>;

/// A node's id: new at each start, so that an id names one *incarnation*.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Uuid);

impl NodeId {
    /// From the most and the least significant half.
    pub const fn from_halves(most: u64, least: u64) -> Self {
        Self(Uuid::from_u64_pair(most, least))
    }

    /// The most and the least significant half.
    #[inline]
    pub fn halves(self) -> (u64, u64) {
        self.0.as_u64_pair()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = IdError;

    /// Takes the 36-character lower-case text and nothing else.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = || IdError::NodeId(text.chars().take(64).collect());
        let id = Uuid::try_parse(text).map_err(|_| refuse())?;
        let mut buffer = Uuid::encode_buffer();
        if *id.hyphenated().encode_lower(&mut buffer) == *text {
            Ok(Self(id))
        } else {
            Err(refuse())
        }
    }
}

/// One start of a node: its name and the id it drew then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Incarnation {
    /// Name, for life.
    pub name: NodeName,
    /// Id, for this start.
    pub id: NodeId,
}

/// What a replication group's partitions belong to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// A partition of a table.
    Table,
    /// A partition of a distribution zone.
    Zone,
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Zone => "zone",
        })
    }
}

/// A replication group: kind, object id (signed 32 bits) and partition (0..=2^31 − 2).
///
/// Packed so that the order of the integer is the order (kind, object, partition), ids as signed
/// numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "GroupParts", into = "GroupParts")]
pub struct GroupId(u64);

impl GroupId {
    /// The largest partition number: its count, one more, still fits 31 bits.
    pub const MAX_PARTITION: u32 = i32::MAX as u32 - 1;

    const KIND_BIT: u32 = 63;
    const OBJECT_BIT: u32 = 31;
    const SIGN: u32 = 1 << 31;

    /// Refuses a partition that is negative or above [`MAX_PARTITION`](Self::MAX_PARTITION).
    pub const fn new(kind: GroupKind, object: i32, partition: i64) -> Result<Self, IdError> {
        if partition < 0 || partition > Self::MAX_PARTITION as i64 {
            return Err(IdError::Partition(partition));
        }
        let kind = match kind {
            GroupKind::Table => 0,
            GroupKind::Zone => 1 << Self::KIND_BIT,
        };
        let object = (object as u32 ^ Self::SIGN) as u64;
        Ok(Self(kind | object << Self::OBJECT_BIT | partition as u64))
    }

    /// The first group that an object can have: all of its groups follow.
    pub fn first_of(kind: GroupKind, object: i32) -> Self {
        match Self::new(kind, object, 0) {
            Ok(group) => group,
            Err(_) => Self(0),
        }
    }

    /// Table or zone.
    #[inline]
    pub const fn kind(self) -> GroupKind {
        if self.0 >> Self::KIND_BIT == 0 {
            GroupKind::Table
        } else {
            GroupKind::Zone
        }
    }

    /// Table or zone id.
    #[inline]
    pub const fn object(self) -> i32 {
        ((self.0 >> Self::OBJECT_BIT) as u32 ^ Self::SIGN) as i32
    }

    /// Partition number, at most [`MAX_PARTITION`](Self::MAX_PARTITION).
    #[inline]
    pub const fn partition(self) -> u32 {
        self.0 as u32 & !Self::SIGN
    }

    /// The packed form; two groups compare as their packed forms do.
    #[inline]
    pub const fn packed(self) -> u64 {
        self.0
    }

    /// Whether both are partitions of the same table or zone.
    #[inline]
    pub const fn same_object(self, other: Self) -> bool {
        self.0 >> Self::OBJECT_BIT == other.0 >> Self::OBJECT_BIT
    }

    /// The group of the same object with another partition number; `partition` above the limit
    /// is cut to 31 bits by the caller's contract, so check it first.
    #[inline]
    pub const fn with_partition(self, partition: u32) -> Self {
        Self(self.0 & !(Self::SIGN as u64 - 1) | (partition & !Self::SIGN) as u64)
    }

    /// The group so many partitions further on; that its number is within the limit is the
    /// caller's contract.
    #[inline]
    pub(crate) const fn partitions_on(self, partitions: u64) -> Self {
        Self(self.0 + partitions)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind(), self.object(), self.partition())
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for GroupId {
    type Err = IdError;

    /// `table/7/3` or `zone/1/0`.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = || IdError::Group(text.chars().take(64).collect());
        let mut parts = text.split('/');
        let kind = match parts.next() {
            Some("table") => GroupKind::Table,
            Some("zone") => GroupKind::Zone,
            _ => return Err(refuse()),
        };
        let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok());
        let (object, partition) = (number(), number());
        match (object, partition, parts.next()) {
            (Some(object), Some(partition), None) => {
                let object = i32::try_from(object).map_err(|_| IdError::Object(object))?;
                Self::new(kind, object, partition)
            }
            _ => Err(refuse()),
        }
    }
}

/// The JSON shape of a group.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupParts {
    kind: GroupKind,
    object_id: i32,
    partition_id: i64,
}

impl From<GroupId> for GroupParts {
    fn from(group: GroupId) -> Self {
        Self {
            kind: group.kind(),
            object_id: group.object(),
            partition_id: i64::from(group.partition()),
        }
    }
}

impl TryFrom<GroupParts> for GroupId {
    type Error = IdError;

    fn try_from(parts: GroupParts) -> Result<Self, IdError> {
        Self::new(parts.kind, parts.object_id, parts.partition_id)
    }
}

/// Why a text or number is not an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not a lower-case UUID.
    #[error(
        "`{0}` is not a node id: expected lower-case hexadecimal like 11111111-1111-1111-a0a0-a0a0a0a0a0a1"
    )]
    NodeId(String),
    /// Not `table/7/3` or `zone/1/0`.
    #[error(
        "`{0}` is not a group: expected KIND/OBJECT/PARTITION, for example table/7/3 or zone/1/0"
    )]
    Group(String),
    /// Outside 32 bits.
    #[error("table or zone {0} is outside -2147483648..=2147483647")]
    Object(i64),
    /// Outside 0..=2^31 − 2.
    #[error("partition {0} is outside 0..=2147483646")]
    Partition(i64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_packs_and_orders() {
        let mut last = None;
        for kind in [GroupKind::Table, GroupKind::Zone] {
            for object in [i32::MIN, -1, 0, 1, i32::MAX] {
                for partition in [0, 1, i64::from(GroupId::MAX_PARTITION)] {
                    let group = GroupId::new(kind, object, partition).unwrap();
                    assert_eq!(
                        (kind, object, partition),
                        (group.kind(), group.object(), i64::from(group.partition()))
                    );
                    assert!(Some(group) > last);
                    assert_eq!(group.to_string().parse(), Ok(group));
                    assert_eq!(
                        GroupId::first_of(kind, object).with_partition(partition as u32),
                        group
                    );
                    last = Some(group);
                }
            }
        }
    }

    #[test]
    fn group_refuses() {
        for bad in [
            "",
            "table",
            "table/1",
            "table/1/-1",
            "zone/1/2147483647",
            "table/1/2/3",
            "Table/1/2",
            "table/4294967296/0",
        ] {
            assert!(bad.parse::<GroupId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn node_id_text_is_canonical_only() {
        let text = "11111111-1111-1111-a0a0-a0a0a0a0a0a1";
        let id: NodeId = text.parse().unwrap();
        assert_eq!(id.halves(), (0x1111_1111_1111_1111, 0xA0A0_A0A0_A0A0_A0A1));
        assert_eq!(id.to_string(), text);
        for bad in [
            "11111111-1111-1111-A0A0-a0a0a0a0a0a1",
            "111111111111111 1a0a0a0a0a0a0a0a1",
            "11111111111111111a0a0a0a0a0a0a0a1",
            "",
        ] {
            assert!(bad.parse::<NodeId>().is_err(), "{bad}");
        }
    }
}
