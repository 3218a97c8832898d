//! Reading `naive`.

use std::collections::HashMap;

use crate::model::batch::{BatchError, LeaseBatch, Row};
use crate::model::dictionary::DictionaryBuilder;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, GroupKind, NodeId, NodeName};

use super::super::error::{DecodeError, Defect};
use super::super::reader::{Reader, fault, invalid, out_of_range};
use super::super::{Decoded, Format};
use super::{GROUP_PREFIX, GROUP_SIZE, ID_SIZE, RECORD_SIZE};

/// Whether bytes start with a count that they can carry, with the first lease's booleans after it.
pub(crate) fn plausible(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    let Ok(count) = count(&mut reader) else {
        return false;
    };
    let booleans = reader.rest().iter().take(2);
    count == 0 && reader.rest().is_empty() || count > 0 && booleans.max() <= Some(&1)
}

/// Reads a batch.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let mut reader = Reader::new(bytes);
    let count = count(&mut reader)?;
    let mut nodes = Nodes::default();
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        rows.push(record(&mut reader, &mut nodes)?);
    }
    reader.finish("end")?;
    let batch = LeaseBatch::from_arrived(nodes.builder.finish(), rows);
    Ok(Decoded {
        batch: batch.map_err(|BatchError::DuplicateGroup(group)| duplicate(bytes, group))?,
        format: Format::Naive,
        zones_section: false,
        ambiguous: 0,
    })
}

fn count(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let count = reader.i32("lease count")?;
    if count < 0 {
        let range = 0..=i32::MAX.into();
        return Err(out_of_range(0, "lease count", count.into(), range));
    }
    reader.check_count(0, "lease count", count as u64, RECORD_SIZE)
}

fn record<'a>(reader: &mut Reader<'a>, nodes: &mut Nodes<'a>) -> Result<Row, DecodeError> {
    let accepted = boolean(reader, "accepted")?;
    let prolongable = boolean(reader, "prolongable")?;
    let start = timestamp(reader, "start")?;
    let expiration = timestamp(reader, "expiration")?;
    let holder = nodes.holder(reader)?;
    let candidate = nodes.candidate(reader)?;
    let group = group(reader)?;
    Ok(Row::new(
        group,
        start,
        Some(expiration),
        holder,
        candidate,
        accepted,
        prolongable,
    ))
}

fn boolean(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    let offset = reader.offset();
    match reader.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(out_of_range(offset, field, other.into(), 0..=1)),
    }
}

fn timestamp(reader: &mut Reader<'_>, field: &'static str) -> Result<HybridTimestamp, DecodeError> {
    let offset = reader.offset();
    HybridTimestamp::from_composite(reader.u64(field)?)
        .map_err(|error| invalid(offset, field, error.to_string()))
}

/// A byte string that must be there.
fn string<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    lengths: std::ops::RangeInclusive<i64>,
) -> Result<&'a [u8], DecodeError> {
    let offset = reader.offset();
    let len = i64::from(reader.i32(field)?);
    if !lengths.contains(&len) {
        return Err(out_of_range(offset, field, len, lengths));
    }
    reader.take(len as usize, field)
}

const ANY_LENGTH: std::ops::RangeInclusive<i64> = 0..=i32::MAX as i64;

fn group(reader: &mut Reader<'_>) -> Result<GroupId, DecodeError> {
    let only = GROUP_SIZE as i64;
    let bytes = string(reader, "group id", only..=only)?;
    let offset = reader.offset() - GROUP_SIZE;
    let mut numbers = Reader::new(bytes);
    let prefix: [u8; GROUP_PREFIX.len()] = numbers.array("group id")?;
    if prefix != *GROUP_PREFIX {
        let differs = prefix.iter().zip(GROUP_PREFIX).take_while(|(a, b)| a == b);
        let what = "not the serialized form of a table's partition";
        return Err(invalid(offset + differs.count(), "group id", what));
    }
    let partition = i32::from_be_bytes(numbers.array("group id")?);
    let table = i32::from_be_bytes(numbers.array("group id")?);
    GroupId::new(GroupKind::Table, table, partition.into())
        .map_err(|error| invalid(offset + prefix.len(), "group id", error.to_string()))
}

/// Where the second lease of a group stands. Every record before it has been read already.
fn duplicate(bytes: &[u8], group: GroupId) -> DecodeError {
    let mut reader = Reader::new(bytes);
    let mut nodes = Nodes::default();
    let mut seen = false;
    let count = count(&mut reader).unwrap_or(0);
    let mut offset = reader.offset();
    for _ in 0..count {
        match record(&mut reader, &mut nodes) {
            Ok(row) if row.group() == group && seen => break,
            Ok(row) => seen |= row.group() == group,
            Err(_) => break,
        }
        offset = reader.offset();
    }
    invalid(offset, "lease", format!("a second lease of group {group}"))
}

/// The dictionary under construction. The bytes of holders and candidates that were read before
/// are compared as they stand; only new ones are parsed.
#[derive(Default)]
struct Nodes<'a> {
    builder: DictionaryBuilder,
    holders: Known<'a>,
    candidates: Known<'a>,
}

impl<'a> Nodes<'a> {
    fn holder(&mut self, reader: &mut Reader<'a>) -> Result<u32, DecodeError> {
        let before = reader.rest();
        let offset = reader.offset();
        let name = string(reader, "holder name", ANY_LENGTH)?;
        let id_offset = reader.offset();
        let only = ID_SIZE as i64;
        let id = string(reader, "holder id", only..=only)?;
        let bytes = (before.get(..reader.offset() - offset)).unwrap_or_default();
        if let Some(index) = self.holders.find(bytes) {
            return Ok(index);
        }
        let name = text(name, offset + 4, "holder name")?;
        let id: NodeId = text(id, id_offset + 4, "holder id")?.parse().map_err(
            |error: crate::model::ids::IdError| {
                invalid(id_offset + 4, "holder id", error.to_string())
            },
        )?;
        let index = checked(self.builder.node(id, &name), offset)?;
        self.holders.enter(bytes, index);
        Ok(index)
    }

    fn candidate(&mut self, reader: &mut Reader<'a>) -> Result<Option<u32>, DecodeError> {
        let offset = reader.offset();
        if reader.rest().first_chunk() == Some(&(-1i32).to_le_bytes()) {
            reader.take(4, "candidate")?;
            return Ok(None);
        }
        let bytes = string(reader, "candidate", -1..=i32::MAX.into())?;
        if let Some(index) = self.candidates.find(bytes) {
            return Ok(Some(index));
        }
        let name = text(bytes, offset + 4, "candidate")?;
        let index = checked(self.builder.name(&name), offset)?;
        self.candidates.enter(bytes, index);
        Ok(Some(index))
    }
}

fn text(bytes: &[u8], offset: usize, field: &'static str) -> Result<NodeName, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(invalid(
            offset + error.valid_up_to(),
            field,
            "malformed UTF-8",
        )),
    }
}

fn checked(index: u32, offset: usize) -> Result<u32, DecodeError> {
    if index < Row::INDEX_LIMIT {
        return Ok(index);
    }
    let limit = Row::INDEX_LIMIT as usize;
    Err(fault(offset, "lease", Defect::TooManyLeases { limit }))
}

/// Indexes by the bytes they were parsed from: the first few in a list, all in a map.
#[derive(Default)]
struct Known<'a> {
    first: Vec<(&'a [u8], u32)>,
    all: HashMap<&'a [u8], u32>,
}

impl<'a> Known<'a> {
    const FIRST: usize = 4;

    fn find(&self, bytes: &[u8]) -> Option<u32> {
        if let Some((_, index)) = self.first.iter().find(|(known, _)| *known == bytes) {
            return Some(*index);
        }
        self.all.get(bytes).copied()
    }

    fn enter(&mut self, bytes: &'a [u8], index: u32) {
        if self.first.len() < Self::FIRST {
            self.first.push((bytes, index));
        }
        self.all.insert(bytes, index);
    }
}
