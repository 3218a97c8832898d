//! The header of a frame: bytes, where the body is bits.

use crate::codec::error::DecodeError;
use crate::codec::reader::{Reader, fault, invalid, out_of_range};
use crate::codec::{Defect, varint};
use crate::model::digest::Digest;
use crate::model::hlc::MAX_PHYSICAL;

use super::bits::{BitReader, unzigzag, zigzag};
use super::error::DeltaError;
use super::frame::{Delta, Offsets};
use super::{MAGIC, MAX_CHANGES, VERSION};

/// Bytes before the checksum: magic and version.
const CHECKED_SIZE: usize = 5;

/// Bytes up to and with the checksum.
const PREFIX_SIZE: usize = CHECKED_SIZE + 4;

// What a frame has, in its flags.
pub(super) const LOGICAL: u8 = 0x01;
pub(super) const ENTRIES: u8 = 0x02;
pub(super) const REMOVED: u8 = 0x04;
pub(super) const REPLACED: u8 = 0x08;
pub(super) const ADDED: u8 = 0x10;
pub(super) const BODY: u8 = ENTRIES | REMOVED | REPLACED | ADDED;

/// A frame of which the body is still to be read.
pub(super) struct Header {
    pub(super) delta: Delta,
    flags: u8,
    body: usize,
}

impl Header {
    /// Reads what says where the frame belongs, and more.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DeltaError> {
        let mut reader = check_prefix(bytes)?;
        let base = unsigned(&mut reader, "base")?;
        let at = reader.offset();
        let step = unsigned(&mut reader, "step")?;
        if step == 0 {
            return Err(invalid(at, "step", "0 is the snapshot itself").into());
        }
        let at = reader.offset();
        let flags = reader.u8("flags")?;
        if flags & !(LOGICAL | BODY) != 0 {
            let what = format!("{flags:02x} has bits that are unknown");
            return Err(invalid(at, "flags", what).into());
        }
        let common = reader.offset();
        let common_change = unzigzag(unsigned(&mut reader, "common expiration")?);
        let limit = MAX_PHYSICAL as i64;
        let range = -limit..=limit;
        if !range.contains(&common_change) {
            return Err(out_of_range(common, "common expiration", common_change, range).into());
        }
        let common_logical = if flags & LOGICAL == 0 {
            0
        } else {
            read_logical(&mut reader)?
        };
        let digest = Digest::from_bits(reader.u64("digest")?);
        let delta = Delta {
            common_logical,
            offsets: Offsets {
                common,
                ..Offsets::default()
            },
            ..Delta::quiet(base, step, common_change, digest)
        };
        let body = reader.offset();
        Ok(Self { delta, flags, body })
    }

    /// Reads the rest, in which at most `limit` leases are removed or replaced each.
    pub(super) fn read_rest(self, bytes: &[u8], limit: usize) -> Result<Delta, DeltaError> {
        let mut delta = self.delta;
        if self.flags & BODY == 0 {
            Reader::at(bytes, self.body).finish("end")?;
        } else {
            let mut bits = BitReader::at(bytes, self.body);
            delta.read_body(self.flags, &mut bits, limit.min(MAX_CHANGES))?;
            bits.finish()?;
        }
        Ok(delta)
    }
}

/// Whether bytes claim to be a delta frame.
pub fn is_delta(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Sets the checksum of altered bytes right, so that a test gets past it.
#[doc(hidden)]
pub fn reseal(frame: &mut [u8]) {
    let crc = checksum(frame).to_le_bytes();
    if let Some(stored) = frame.get_mut(CHECKED_SIZE..PREFIX_SIZE) {
        stored.copy_from_slice(&crc);
    }
}

/// Of all bytes but the checksum's own.
fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(frame.get(..CHECKED_SIZE).unwrap_or_default());
    hasher.update(frame.get(PREFIX_SIZE..).unwrap_or_default());
    hasher.finalize()
}

/// Appends all but the body, the checksum still to be set, and says which parts the body has.
pub(super) fn write(delta: &Delta) -> (Vec<u8>, u8) {
    let has = |flag, present| if present { flag } else { 0 };
    let new_entries = !(delta.new_names.is_empty() && delta.new_nodes.is_empty());
    let flags = has(LOGICAL, delta.common_logical != 0)
        | has(ENTRIES, new_entries)
        | has(REMOVED, !delta.removed.is_empty())
        | has(REPLACED, !delta.replaced.is_empty())
        | has(ADDED, !delta.added.is_empty());
    let mut out = Vec::with_capacity(48);
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&[0; 4]);
    put_unsigned(&mut out, delta.base);
    put_unsigned(&mut out, delta.step);
    out.push(flags);
    put_unsigned(&mut out, zigzag(delta.common_change));
    if delta.common_logical != 0 {
        put_unsigned(&mut out, delta.common_logical.into());
    }
    out.extend_from_slice(&delta.digest.bits().to_le_bytes());
    (out, flags)
}

/// Magic, version and checksum; then the reader stands at the base.
fn check_prefix(bytes: &[u8]) -> Result<Reader<'_>, DeltaError> {
    let mut magic = bytes.iter().zip(&MAGIC);
    if magic.any(|(found, magic)| found != magic) {
        return Err(DeltaError::NotADelta);
    }
    let mut reader = Reader::new(bytes);
    reader.take(MAGIC.len(), "magic")?;
    // Another version may have another layout: nothing after it can be trusted.
    let version = reader.u8("version")?;
    if version != VERSION {
        return Err(DeltaError::UnknownVersion(version));
    }
    let stored = u32::from_le_bytes(reader.array("checksum")?);
    let computed = checksum(bytes);
    if stored != computed {
        return Err(DeltaError::Checksum { stored, computed });
    }
    Ok(reader)
}

fn read_logical(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    const FIELD: &str = "common expiration logical";
    let at = reader.offset();
    let value = unsigned(reader, FIELD)?;
    match u16::try_from(value) {
        Ok(logical) if logical > 0 => Ok(logical),
        _ => Err(fault(
            at,
            FIELD,
            Defect::OutOfRange {
                value: value.into(),
                low: 1,
                high: u16::MAX.into(),
            },
        )),
    }
}

/// An unsigned LEB128.
fn unsigned(reader: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    // The compact formats' variable-length integer is the same of the number plus one.
    reader
        .varint(field)
        .map(|value| value.wrapping_add(1) as u64)
}

fn put_unsigned(out: &mut Vec<u8>, value: u64) {
    varint::put(out, (value as i64).wrapping_sub(1));
}
