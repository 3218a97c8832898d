//! What stands before the dictionary: magic, version and the two shared timestamps.

use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid, out_of_range};
use super::super::varint;
use super::{LAST_VERSION, MAGIC};

/// Range of a physical part.
pub(super) const PHYSICAL: std::ops::RangeInclusive<i64> = 0..=MAX_PHYSICAL as i64;
/// Range of a logical part.
pub(super) const LOGICAL: std::ops::RangeInclusive<i64> = 0..=u16::MAX as i64;

pub(crate) struct Header {
    pub(super) version: u8,
    /// Expirations are stored as differences to this (milliseconds).
    pub(super) minimum: i64,
    pub(super) common: HybridTimestamp,
}

impl Header {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.version);
        out.extend_from_slice(&MAGIC);
        varint::put(out, self.minimum);
        varint::put(out, self.common.physical() as i64 - self.minimum);
        varint::put(out, self.common.logical().into());
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [version, magic @ ..] = reader.array::<4>("magic")?;
        if magic != MAGIC {
            let found = hex::encode(magic);
            let what = format!("bytes 1 to 3 are {found}, expected efbe43");
            return Err(invalid(0, "magic", what));
        }
        if version == 0 || version > LAST_VERSION {
            let what = format!("{version} is unknown to this reader, which knows 1 and 2");
            return Err(invalid(0, "version", what));
        }
        let minimum = reader.ranged("minimum expiration", PHYSICAL)?;
        let offset = reader.offset();
        let physical = delta(reader, "common expiration", minimum)?;
        let logical = reader.ranged("common expiration logical", LOGICAL)?;
        let common = timestamp(offset, "common expiration", physical, logical)?;
        Ok(Self {
            version,
            minimum,
            common,
        })
    }
}

/// A physical part, stored as the difference to `base`.
pub(super) fn delta(
    reader: &mut Reader<'_>,
    field: &'static str,
    base: i64,
) -> Result<i64, DecodeError> {
    let offset = reader.offset();
    let physical = base.saturating_add(reader.varint(field)?);
    if PHYSICAL.contains(&physical) {
        Ok(physical)
    } else {
        Err(out_of_range(offset, field, physical, PHYSICAL))
    }
}

/// A timestamp of two parts that are in range; refuses 0.
pub(super) fn timestamp(
    offset: usize,
    field: &'static str,
    physical: i64,
    logical: i64,
) -> Result<HybridTimestamp, DecodeError> {
    HybridTimestamp::new(physical as u64, logical as u16)
        .map_err(|error| invalid(offset, field, error.to_string()))
}
