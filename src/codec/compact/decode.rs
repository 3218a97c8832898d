//! Reading `compact-v1` and `compact-v2`.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::ids::{GroupId, GroupKind};

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid};
use super::super::{Decoded, Format};
use super::element::Elements;
use super::header::Header;
use super::quick::Reading;
use super::{ELEMENT_SIZE, OBJECT_SIZE, dictionary};

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
        quick: Reading::new(&elements, &dictionary),
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
    quick: Reading,
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
        let bytes = self.bytes;
        let quick = &self.quick;
        for partition in 0..partitions {
            let group = first.with_partition(partition);
            if let Some(next) = bytes.get(at..).and_then(|rest| rest.first_chunk())
                && let Some((row, len)) = quick.read(u64::from_le_bytes(*next), group)
            {
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
