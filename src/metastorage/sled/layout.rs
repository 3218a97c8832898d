//! The rows in sled: how keys sort and what records hold. docs/STORE.md has the same as a table.
//!
//! Every record ends with a CRC-32 over its own row key and its content, so that a damaged row, or
//! a row in another's place, is told apart from a good one.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use ::sled::IVec;

use crate::metastorage::contract::{Bytes, Revision, StoreError};
use crate::metastorage::mvcc::Version;

/// Version of this layout.
pub const FORMAT: u64 = 1;

/// Row of the layout's version.
pub const FORMAT_ROW: &[u8] = b"mformat";
/// Row of the compacted revision.
pub const COMPACTED_ROW: &[u8] = b"mcompacted";

const CHUNK: u8 = b'c';
const EVENT: u8 = b'e';
const VERSION: u8 = b'k';

const TOMBSTONE: u8 = 0;
const INLINE: u8 = 1;
const CHUNKED: u8 = 2;

/// Bytes of a version record before the value.
const HEADER: usize = 17;
/// Bytes of the checksum.
const CHECKSUM: usize = 4;

/// Where a value is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stored {
    /// In the version's record.
    Inline(IVec),
    /// In rows of its own.
    Chunked(Chunks),
}

/// A value in rows of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunks {
    /// Which write of its transaction this was.
    pub slot: u32,
    /// Length of the value.
    pub len: u64,
    /// Length of every chunk but the last.
    pub chunk: u32,
    /// CRC-32 of the value.
    pub checksum: u32,
}

impl Chunks {
    /// Row keys of the chunks, in order.
    pub fn rows(self, revision: Revision) -> impl Iterator<Item = [u8; 17]> {
        let count = self.len.div_ceil(u64::from(self.chunk.max(1)));
        (0..count).map(move |index| chunk_row(revision, self.slot, index as u32))
    }
}

/// Row key of a chunk.
pub fn chunk_row(revision: Revision, slot: u32, index: u32) -> [u8; 17] {
    let mut row = [CHUNK; 17];
    row[1..9].copy_from_slice(&revision.to_be_bytes());
    row[9..13].copy_from_slice(&slot.to_be_bytes());
    row[13..].copy_from_slice(&index.to_be_bytes());
    row
}

/// Row keys of the chunks of all revisions from `revision` on.
pub fn chunk_rows_from(revision: Revision) -> RangeInclusive<[u8; 17]> {
    chunk_row(revision, 0, 0)..=chunk_row(Revision::MAX, u32::MAX, u32::MAX)
}

/// Row key of a part of the list of keys that a revision changed.
pub fn event_row(revision: Revision, part: u32) -> [u8; 13] {
    let mut row = [EVENT; 13];
    row[1..9].copy_from_slice(&revision.to_be_bytes());
    row[9..].copy_from_slice(&part.to_be_bytes());
    row
}

/// Row keys of the events of some revisions.
pub fn event_rows(revisions: RangeInclusive<Revision>) -> RangeInclusive<[u8; 13]> {
    event_row(*revisions.start(), 0)..=event_row(*revisions.end(), u32::MAX)
}

/// The revision of an event's row.
pub fn event_revision(row: &[u8]) -> Result<Revision, StoreError> {
    let revision = row.get(1..9).and_then(|bytes| bytes.try_into().ok());
    let revision = revision.ok_or_else(|| damaged(row, "the row's key has no revision"))?;
    Ok(Revision::from_be_bytes(revision))
}

/// The beginning of the row keys of a key's versions. They sort as the keys do: 0 becomes 0 255,
/// and 0 1 ends the key.
pub fn version_prefix(key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(key.len() + 11);
    row.push(VERSION);
    for &byte in key {
        row.push(byte);
        if byte == 0 {
            row.push(0xFF);
        }
    }
    row.extend([0, 1]);
    row
}

/// The first row key beyond those of all versions.
pub fn versions_end() -> Vec<u8> {
    vec![VERSION + 1]
}

/// Row key of a version.
pub fn version_row(key: &[u8], revision: Revision) -> Vec<u8> {
    let mut row = version_prefix(key);
    row.extend(revision.to_be_bytes());
    row
}

/// A version's row key without its revision, and the revision.
pub fn split_version_row(row: &[u8]) -> Result<(&[u8], Revision), StoreError> {
    let split = row.split_last_chunk::<8>();
    let (prefix, revision) = split.ok_or_else(|| damaged(row, "the row's key is too short"))?;
    Ok((prefix, Revision::from_be_bytes(*revision)))
}

/// The key whose versions' row keys begin so.
pub fn key_of(prefix: &[u8]) -> Result<Bytes, StoreError> {
    let wrong = || damaged(prefix, "the row's key is not that of a version");
    let escaped = prefix.strip_prefix(&[VERSION]).ok_or_else(wrong)?;
    let escaped = escaped.strip_suffix(&[0, 1]).ok_or_else(wrong)?;
    let mut key = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        key.push(byte);
        if byte == 0 && bytes.next() != Some(&0xFF) {
            return Err(wrong());
        }
    }
    Ok(key.into())
}

/// The record of a version.
pub fn write_version(row: &[u8], version: &Version<Stored>) -> Vec<u8> {
    let (kind, inline): (u8, &[u8]) = match &version.value {
        None => (TOMBSTONE, &[]),
        Some(Stored::Inline(value)) => (INLINE, value),
        Some(Stored::Chunked(_)) => (CHUNKED, &[]),
    };
    let mut record = Vec::with_capacity(HEADER + inline.len() + 24);
    record.push(kind);
    record.extend(version.create_revision.to_le_bytes());
    record.extend(version.version.to_le_bytes());
    record.extend(inline);
    if let Some(Stored::Chunked(chunks)) = &version.value {
        record.extend(chunks.slot.to_le_bytes());
        record.extend(chunks.len.to_le_bytes());
        record.extend(chunks.chunk.to_le_bytes());
        record.extend(chunks.checksum.to_le_bytes());
    }
    sealed(row, record)
}

/// Reads the record of a version.
pub fn read_version(row: &[u8], record: &IVec) -> Result<Version<Stored>, StoreError> {
    let mut content = unsealed(row, record)?;
    let wrong = || damaged(row, "the record is not that of a version");
    let kind = *take::<1>(&mut content).ok_or_else(wrong)?;
    let create_revision = take(&mut content).ok_or_else(wrong)?;
    let version = take(&mut content).ok_or_else(wrong)?;
    let value = match kind {
        [TOMBSTONE] => None,
        [INLINE] => Some(Stored::Inline(record.subslice(HEADER, content.len()))),
        [CHUNKED] => Some(Stored::Chunked(Chunks {
            slot: u32::from_le_bytes(*take(&mut content).ok_or_else(wrong)?),
            len: u64::from_le_bytes(*take(&mut content).ok_or_else(wrong)?),
            chunk: u32::from_le_bytes(*take(&mut content).ok_or_else(wrong)?),
            checksum: u32::from_le_bytes(*take(&mut content).ok_or_else(wrong)?),
        })),
        _ => return Err(wrong()),
    };
    Ok(Version {
        create_revision: u64::from_le_bytes(*create_revision),
        mod_revision: split_version_row(row)?.1,
        version: u64::from_le_bytes(*version),
        value,
    })
}

/// The records of an event: the keys it changed, in parts of about `size` bytes.
pub fn write_event<'a>(
    revision: Revision,
    keys: impl Iterator<Item = &'a Bytes>,
    size: usize,
) -> Vec<([u8; 13], Vec<u8>)> {
    let mut parts = vec![Vec::new()];
    for key in keys {
        if parts.last().is_some_and(|part| part.len() >= size) {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend((key.len() as u32).to_le_bytes());
            part.extend(&**key);
        }
    }
    let count = (parts.len() as u32).to_le_bytes();
    let records = parts.into_iter().zip(0..).map(|(part, index)| {
        let row = event_row(revision, index);
        (row, sealed(&row, [count.as_slice(), &part].concat()))
    });
    records.collect()
}

/// Reads a part of an event: the number of its parts, and keys.
pub fn read_event(row: &[u8], record: &[u8]) -> Result<(u32, Vec<Bytes>), StoreError> {
    let mut content = unsealed(row, record)?;
    let wrong = || damaged(row, "the record is not that of an event");
    let parts = u32::from_le_bytes(*take(&mut content).ok_or_else(wrong)?);
    let mut keys = Vec::new();
    while let Some(len) = take(&mut content) {
        let len = u32::from_le_bytes(*len) as usize;
        let (key, rest) = content.split_at_checked(len).ok_or_else(wrong)?;
        keys.push(key.into());
        content = rest;
    }
    Ok((parts, keys))
}

/// The record of a number.
pub fn write_number(row: &[u8], number: u64) -> Vec<u8> {
    sealed(row, number.to_le_bytes().to_vec())
}

/// Reads the record of a number.
pub fn read_number(row: &[u8], record: &[u8]) -> Result<u64, StoreError> {
    let number = unsealed(row, record)?.try_into();
    let number = number.map_err(|_| damaged(row, "the record is not a number"))?;
    Ok(u64::from_le_bytes(number))
}

/// What is wrong with which row.
pub fn damaged(row: &[u8], what: &str) -> StoreError {
    StoreError::Damaged(format!("row `{}`: {what}", row.escape_ascii()))
}

fn sealed(row: &[u8], mut content: Vec<u8>) -> Vec<u8> {
    content.extend(checksum(row, &content).to_le_bytes());
    content
}

fn unsealed<'a>(row: &[u8], record: &'a [u8]) -> Result<&'a [u8], StoreError> {
    match record.split_last_chunk::<CHECKSUM>() {
        Some((content, sum)) if checksum(row, content) == u32::from_le_bytes(*sum) => Ok(content),
        _ => Err(damaged(row, "the checksum does not match")),
    }
}

fn checksum(row: &[u8], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(row);
    hasher.update(content);
    hasher.finalize()
}

fn take<'a, const N: usize>(content: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = content.split_first_chunk()?;
    *content = rest;
    Some(taken)
}
