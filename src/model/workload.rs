//! Named, reproducible batches: the same bytes on every machine and in every release.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::batch::{LeaseBatch, Row};
use super::dictionary::{Dictionary, Node};
use super::hlc::HybridTimestamp;
use super::ids::{GroupId, GroupKind, NodeId, NodeName};

/// The splitmix64 generator (Steele, Lea, Flood 2014), which defines the named workloads.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// With the given state.
    pub const fn new(state: u64) -> Self {
        Self(state)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `bound`: the high half of a 128-bit product.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }
}

/// A named batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Workload {
    /// The published 25,000-lease batch of Apache Ignite: young leases, half with a candidate.
    Reference,
    /// 25,000 leases up to ten days old, nothing going on.
    Steady,
    /// As steady, with recent grants, denials and clocks that tick within a millisecond.
    Churn,
    /// As steady, an hour after one of three nodes failed.
    Failover,
    /// One million leases on 100 nodes.
    Large,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 5] = [
        Self::Reference,
        Self::Steady,
        Self::Churn,
        Self::Failover,
        Self::Large,
    ];

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Steady => "steady",
            Self::Churn => "churn",
            Self::Failover => "failover",
            Self::Large => "large",
        }
    }

    /// The batch.
    pub fn generate(self) -> LeaseBatch {
        let tables = if self == Self::Large { 40_000 } else { 1000 };
        self.with_tables(tables)
    }

    /// A batch of the same kind with `tables` × 25 leases, for measuring at other sizes.
    pub fn with_tables(self, tables: u32) -> LeaseBatch {
        let plan = match self {
            Self::Reference => return reference(tables),
            Self::Steady => Plan::new(43),
            Self::Churn => Plan {
                churn: Some(Churn::NAMED),
                ..Plan::new(44)
            },
            Self::Failover => Plan {
                failover: true,
                ..Plan::new(46)
            },
            Self::Large => Plan {
                nodes: 100,
                ..Plan::new(45)
            },
        };
        Plan { tables, ..plan }.generate()
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Self, UnknownWorkload> {
        let found = Self::ALL.into_iter().find(|known| known.name() == text);
        found.ok_or_else(|| UnknownWorkload(text.to_owned()))
    }
}

/// No workload has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a workload: expected reference, steady, churn, failover or large")]
pub struct UnknownWorkload(String);

/// The batch behind the published figures.
fn reference(tables: u32) -> LeaseBatch {
    let mut random = SplitMix64::new(35750);
    let common = timestamp(1_729_500_005_000, 0);
    let mut parts = Parts::new(
        (1..=3u64).map(|i| {
            let id = NodeId::from_halves(
                0x1111_1111_1111_1111u64.wrapping_mul(i),
                0xA0A0_A0A0_A0A0_A0A0 + i,
            );
            (format!("metanode-{i:02}").into(), id)
        }),
        common,
    );
    for table in 1..=tables {
        for partition in 0..25 {
            let holder = (random.next() % 3) as u32;
            let has_candidate = random.next() & 1 == 1;
            let candidate = (random.next() % 3) as u32;
            let period = 1 + random.next() % 5000;
            parts.push(Drawn {
                group: group(table, partition),
                holder,
                candidate: has_candidate.then_some(candidate),
                start: timestamp(common.physical() - period, 0),
                expiration: common,
                accepted: true,
                prolongable: !has_candidate,
            });
        }
    }
    parts.finish()
}

/// Parameters of a drawn batch: the named workloads other than `reference`, and planned clusters.
#[derive(Clone, Debug)]
pub struct Plan {
    /// State of the generator.
    pub seed: u64,
    /// Number of tables.
    pub tables: u32,
    /// Partitions of each table.
    pub partitions: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Tables were created up to this long ago (milliseconds), at least a minute ago.
    pub age: u64,
    /// Leases that are not quiet.
    pub churn: Option<Churn>,
    /// Whether node1 failed an hour ago.
    pub failover: bool,
}

/// How many leases in a thousand are in each unquiet state.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// Granted within the last minute.
    pub young: u64,
    /// With an expiration of their own.
    pub uncommon: u64,
    /// Denied, with a candidate.
    pub denied: u64,
    /// Not accepted yet.
    pub unaccepted: u64,
    /// Started with a logical part.
    pub logical: u64,
}

impl Churn {
    const NAMED: Self = Self {
        young: 20,
        uncommon: 10,
        denied: 5,
        unaccepted: 5,
        logical: 10,
    };

    /// The mix of the churn workload (5 % of the leases) scaled to another share.
    pub fn per_thousand(share: u64) -> Self {
        let scaled = |part: u64| (part * share / 50).min(1000);
        Self {
            young: scaled(20),
            uncommon: scaled(10),
            denied: scaled(5),
            unaccepted: scaled(5),
            logical: scaled(10),
        }
    }
}

impl Plan {
    /// 1,000 tables × 25 partitions on three nodes, up to ten days old.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            tables: 1000,
            partitions: 25,
            nodes: 3,
            age: 864_000_000,
            churn: None,
            failover: false,
        }
    }

    /// Draws the batch.
    pub fn generate(&self) -> LeaseBatch {
        const NOW: u64 = 1_774_000_000_000;
        const HOUR: u64 = 3_600_000;
        let mut random = SplitMix64::new(self.seed);
        let common = timestamp(NOW + 5000, 0);
        let nodes: Vec<_> = (1..=self.nodes)
            .map(|i| {
                let most = random.next();
                let least = random.next();
                (format!("node{i}").into(), NodeId::from_halves(most, least))
            })
            .collect();
        let mut parts = Parts::new(nodes, common);
        let node_count = u64::from(self.nodes);
        for table in 1..=self.tables {
            let created = NOW - 60_000 - random.below(self.age);
            for partition in 0..self.partitions {
                let mut holder = random.below(node_count);
                let mut start = created + random.below(50);
                let mut logical = 0;
                let mut expiration = common;
                let mut candidate = None;
                let mut accepted = true;
                let mut prolongable = true;
                if let Some(churn) = self.churn {
                    if random.below(1000) < churn.young {
                        start = NOW - random.below(60_000);
                    }
                    if random.below(1000) < churn.uncommon {
                        expiration = timestamp(NOW + 1 + random.below(4999), 0);
                    }
                    if random.below(1000) < churn.denied {
                        candidate = Some(random.below(node_count) as u32);
                        prolongable = false;
                    }
                    if random.below(1000) < churn.unaccepted {
                        accepted = false;
                    }
                    if random.below(1000) < churn.logical {
                        logical = 1 + random.below(16) as u16;
                    }
                }
                if self.failover && holder == 0 && created < NOW - HOUR {
                    holder = 1 + random.below(2);
                    start = NOW - HOUR + random.below(500);
                }
                parts.push(Drawn {
                    group: group(table, partition),
                    holder: holder as u32,
                    candidate,
                    start: timestamp(start, logical),
                    expiration,
                    accepted,
                    prolongable,
                });
            }
        }
        parts.finish()
    }
}

/// One drawn lease, its nodes as drawn.
struct Drawn {
    group: GroupId,
    holder: u32,
    candidate: Option<u32>,
    start: HybridTimestamp,
    expiration: HybridTimestamp,
    accepted: bool,
    prolongable: bool,
}

/// A batch under construction, its dictionary in order of first appearance.
struct Parts {
    drawn: Vec<(NodeName, NodeId)>,
    names: Vec<NodeName>,
    nodes: Vec<Node>,
    name_index: Vec<Option<u32>>,
    node_index: Vec<Option<u32>>,
    common: HybridTimestamp,
    rows: Vec<Row>,
}

impl Parts {
    fn new(drawn: impl IntoIterator<Item = (NodeName, NodeId)>, common: HybridTimestamp) -> Self {
        let drawn: Vec<_> = drawn.into_iter().collect();
        Self {
            names: Vec::new(),
            nodes: Vec::new(),
            name_index: vec![None; drawn.len()],
            node_index: vec![None; drawn.len()],
            drawn,
            common,
            rows: Vec::new(),
        }
    }

    fn name(&mut self, drawn: u32) -> u32 {
        *self.name_index[drawn as usize].get_or_insert_with(|| {
            self.names.push(self.drawn[drawn as usize].0.clone());
            self.names.len() as u32 - 1
        })
    }

    fn node(&mut self, drawn: u32) -> u32 {
        if let Some(index) = self.node_index[drawn as usize] {
            return index;
        }
        let name = self.name(drawn);
        let id = self.drawn[drawn as usize].1;
        self.nodes.push(Node { id, name });
        let index = self.nodes.len() as u32 - 1;
        self.node_index[drawn as usize] = Some(index);
        index
    }

    fn push(&mut self, lease: Drawn) {
        let holder = self.node(lease.holder);
        let candidate = lease.candidate.map(|drawn| self.name(drawn));
        self.rows.push(Row::new(
            lease.group,
            lease.start,
            (lease.expiration != self.common).then_some(lease.expiration),
            holder,
            candidate,
            lease.accepted,
            lease.prolongable,
        ));
    }

    fn finish(self) -> LeaseBatch {
        let dictionary = Dictionary::from_parts(self.names, self.nodes);
        LeaseBatch::from_checked(self.common, dictionary, self.rows)
    }
}

/// Generated numbers are in range by construction; clamped rather than trusted.
fn timestamp(physical: u64, logical: u16) -> HybridTimestamp {
    HybridTimestamp::new(physical, logical).unwrap_or(HybridTimestamp::MIN)
}

fn group(table: u32, partition: u32) -> GroupId {
    let first = GroupId::first_of(GroupKind::Table, table as i32);
    first.with_partition(partition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_has_the_published_counts() {
        let batch = Workload::Reference.generate();
        assert_eq!(batch.len(), 25_000);
        let candidates = batch.rows().iter().filter(|row| row.candidate().is_some());
        assert_eq!(candidates.count(), 12_514);
        let common = batch.common_expiration().physical();
        let short = |row: &&Row| common - row.start().physical() <= 126;
        assert_eq!(batch.rows().iter().filter(short).count(), 600);
    }

    #[test]
    fn names_go_both_ways() {
        for workload in Workload::ALL {
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        assert!("Reference".parse::<Workload>().is_err());
    }
}
