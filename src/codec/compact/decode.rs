//! Reading `compact-v1` and `compact-v2`.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use crate::model::ids::{GroupId, GroupKind};

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid};
use super::super::{Decoded, Format};
use super::element::Elements;
use super::header::Header;
use super::{ELEMENT_SIZE, HAS_CANDIDATE, OBJECT_SIZE, PACKED_MAX, PACKED_SHIFT, dictionary};

/// Fewest bytes of a lease, to bound what is reserved.
const LEASE_SIZE: usize = 4;

/// Reads a batch of either version.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reader = Reader::new(bytes);
    let header = Header::read(&mut reader)?;
    let dictionary = dictionary::read(&mut reader)?;
    let elements = Elements::new(&header, &dictionary);
    let mut leases = Leases {
        bytes,
        quick: Quick::new(&elements, dictionary.nodes().len()),
        elements,
        rows: Vec::new(),
        ambiguous: 0,
    };
    leases.section(&mut reader, GroupKind::Table)?;
    // The first release with this format knew no zones and stops here.
    let zones_section = header.version != 1 || !reader.rest().is_empty();
    if zones_section {
        leases.section(&mut reader, GroupKind::Zone)?;
    }
    reader.finish("end")?;
    Ok(Decoded {
        batch: LeaseBatch::from_checked(header.common, dictionary, leases.rows),
        format: match (header.version, zones_section) {
            (1, false) => Format::CompactV1TablesOnly,
            (1, true) => Format::CompactV1,
            _ => Format::CompactV2,
        },
        zones_section,
        ambiguous: leases.ambiguous,
    })
}

/// The leases read so far.
struct Leases<'a> {
    bytes: &'a [u8],
    elements: Elements,
    quick: Quick,
    rows: Vec<Row>,
    ambiguous: usize,
}

impl Leases<'_> {
    fn section(&mut self, reader: &mut Reader<'_>, kind: GroupKind) -> Result<(), DecodeError> {
        let field = match kind {
            GroupKind::Table => "table count",
            GroupKind::Zone => "zone count",
        };
        let objects = reader.count(field, 0..=i32::MAX.into(), OBJECT_SIZE)?;
        let mut previous = None;
        for _ in 0..objects {
            let offset = reader.offset();
            let delta = reader.ranged("object id", i32::MIN.into()..=i32::MAX.into())?;
            let id = previous.unwrap_or(0i32).wrapping_add(delta as i32);
            if let Some(previous) = previous.filter(|previous| *previous >= id) {
                let what = format!("{id} does not ascend: it follows {previous}");
                return Err(invalid(offset, "object id", what));
            }
            let partitions =
                reader.count("partition count", 1..=i32::MAX.into(), ELEMENT_SIZE)? as u32;
            // Most objects of a cluster have the same number of partitions: reserve once.
            let expected = match previous {
                None => objects.saturating_mul(partitions as usize),
                Some(_) => partitions as usize,
            };
            (self.rows).reserve(expected.min(reader.rest().len() / LEASE_SIZE + 1));
            let end = self.object(reader.offset(), GroupId::first_of(kind, id), partitions)?;
            reader.seek(end);
            previous = Some(id);
        }
        Ok(())
    }

    /// Reads the elements of an object from an offset and returns where they end.
    fn object(
        &mut self,
        mut at: usize,
        first: GroupId,
        partitions: u32,
    ) -> Result<usize, DecodeError> {
        for partition in 0..partitions {
            let group = first.with_partition(partition);
            if let Some((row, len)) = self.quick.read(self.bytes, at, group) {
                self.rows.push(row);
                at += len;
                continue;
            }
            let mut careful = Reader::at(self.bytes, at);
            if let Some(lease) = self.elements.read(&mut careful)? {
                self.ambiguous += usize::from(lease.ambiguous);
                self.rows.push(Row::new(
                    group,
                    lease.start,
                    lease.expiration,
                    lease.holder,
                    lease.candidate,
                    lease.accepted,
                    lease.prolongable,
                ));
            }
            at = careful.offset();
        }
        Ok(at)
    }
}

/// Recognises a whole lease in the next eight bytes: common expiration, nodes of one byte,
/// period of one to five, start without logical part. What it does not recognise, sound or not,
/// is left to [`Elements::read`].
struct Quick {
    common: u64,
    /// Holder and candidate by the byte of the nodes, above it whether there is a candidate.
    nodes: [Nodes; 256],
}

#[derive(Clone, Copy)]
struct Nodes {
    holder: u32,
    candidate: Option<u32>,
}

impl Nodes {
    /// No row can have this holder.
    const UNKNOWN: Self = Self {
        holder: u32::MAX,
        candidate: None,
    };
}

/// What the eight bytes are masked with, and what then is left, for a period of `len` bytes:
/// flags of a common expiration, nodes without continuation, the period's continuation bits, and
/// a start logical of 0 (`01`).
const fn shape(len: u32) -> (u64, u64) {
    let mut mask = 0x80_E8;
    let mut left = 0;
    let mut at = 16;
    while at < 16 + 8 * len {
        mask |= 0x80 << at;
        left |= 0x80 << at;
        at += 8;
    }
    left &= !(0x80 << (at - 8));
    (mask | 0xFF << at, left | 1 << at)
}

impl Quick {
    fn new(elements: &Elements, ids: usize) -> Self {
        let mut nodes = [Nodes::UNKNOWN; 256];
        for number in 0..0x7F {
            if number < ids {
                nodes[number + 1] = Nodes {
                    holder: number as u32,
                    candidate: None,
                };
            }
            // With more ids a number may be ambiguous, which is counted elsewhere.
            if elements.packed && ids <= PACKED_MAX {
                let (holder, candidate) = (number % PACKED_MAX, number >> PACKED_SHIFT);
                if holder < ids && candidate < elements.names() {
                    nodes[0x80 + number + 1] = Nodes {
                        holder: holder as u32,
                        candidate: Some(candidate as u32),
                    };
                }
            }
        }
        Self {
            common: elements.common.physical(),
            nodes,
        }
    }

    /// The lease at an offset and its length in bytes.
    #[inline(always)]
    fn read(&self, bytes: &[u8], at: usize, group: GroupId) -> Option<(Row, usize)> {
        const ONE: (u64, u64) = shape(1);
        const TWO: (u64, u64) = shape(2);
        const THREE: (u64, u64) = shape(3);
        const FOUR: (u64, u64) = shape(4);
        const FIVE: (u64, u64) = shape(5);
        let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        let group_at = |byte: u32| word >> (16 + 8 * byte) & 0x7F;
        // A branch on the length, not arithmetic: predicted, it does not hold up the next load.
        let (period, least, len) = if word & FIVE.0 == FIVE.1 {
            let low = group_at(0) | group_at(1) << 7 | group_at(2) << 14;
            (low | group_at(3) << 21 | group_at(4) << 28, 1 << 28, 8)
        } else if word & TWO.0 == TWO.1 {
            (group_at(0) | group_at(1) << 7, 1 << 7, 5)
        } else if word & FOUR.0 == FOUR.1 {
            let low = group_at(0) | group_at(1) << 7 | group_at(2) << 14;
            (low | group_at(3) << 21, 1 << 21, 7)
        } else if word & THREE.0 == THREE.1 {
            let low = group_at(0) | group_at(1) << 7;
            (low | group_at(2) << 14, 1 << 14, 6)
        } else if word & ONE.0 == ONE.1 {
            (group_at(0), 0, 4)
        } else {
            return None;
        };
        let flags = word as u8;
        let index = (word >> 8) as u8 | (flags & HAS_CANDIDATE) << 5;
        let nodes = self.nodes[usize::from(index)];
        // Stored is the period plus one.
        let start = (self.common + 1).wrapping_sub(period);
        let sound = period >= least && start.wrapping_sub(1) < MAX_PHYSICAL;
        if !sound || nodes.holder == u32::MAX {
            return None;
        }
        let start = HybridTimestamp::from_composite(start << 16).ok()?;
        let (accepted, prolongable) = (flags & 1 != 0, flags & 2 != 0);
        let row = Row::new(
            group,
            start,
            None,
            nodes.holder,
            nodes.candidate,
            accepted,
            prolongable,
        );
        Some((row, len))
    }
}
