//! The stored record: what goes under a key around a payload of any format.
//!
//! It says what the payload is, and its checksum covers both, so that a reader knows whether it
//! may trust the bytes before it reads them. A `compact-v1` batch cut exactly before its zones
//! can't be told from a whole one otherwise.
//!
//! `columnar` carries all that itself: its payload is its record.

use thiserror::Error;

use super::columnar::{self, LeaseBatchView};
use super::error::DecodeError;
use super::{DecodeLimits, Decoded, Format, decode_as};

/// The first four bytes. No format starts with them.
pub const MAGIC: [u8; 4] = *b"\x89LHR";

/// The version of the record's own layout.
pub const VERSION: u8 = 1;

/// Bytes before the payload: magic, version, format, payload length, CRC-32.
pub const HEADER_SIZE: usize = 14;

/// Bytes before the checksum.
const CHECKED_SIZE: usize = HEADER_SIZE - 4;

/// A record that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// What the payload is.
    pub format: Format,
    /// The payload, its checksum verified.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the payload as the batch that it is.
    pub fn decode(&self) -> Result<Decoded, DecodeError> {
        match self.format {
            // [`open`] has verified what a reader would verify again.
            Format::Columnar => {
                let max_leases = DecodeLimits::default().max_leases;
                columnar::decode::decode_verified(self.payload, max_leases)
            }
            format => decode_as(format, self.payload),
        }
    }

    /// The payload, of which only what is asked for is read; `None` if its format must be read
    /// as a whole.
    pub fn view(&self) -> Option<Result<LeaseBatchView<'a>, DecodeError>> {
        let columnar = self.format == Format::Columnar;
        columnar.then(|| LeaseBatchView::open_verified(self.payload))
    }
}

/// Bytes before the payload in the record of a format.
pub const fn header_size(format: Format) -> usize {
    match format {
        Format::Columnar => 0,
        _ => HEADER_SIZE,
    }
}

/// Whether bytes claim to be a record.
pub fn is_record(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || bytes.starts_with(&columnar::MAGIC)
}

/// The record of a payload (of less than 4 GiB): a `columnar` one is the payload as it is.
pub fn wrap(format: Format, payload: &[u8]) -> Result<Vec<u8>, FrameError> {
    if format == Format::Columnar {
        let sealed = payload.starts_with(&columnar::MAGIC);
        return sealed
            .then(|| payload.to_vec())
            .ok_or(FrameError::NotARecord);
    }
    let Ok(len) = u32::try_from(payload.len()) else {
        return Err(FrameError::PayloadTooLarge(payload.len()));
    };
    let mut record = Vec::with_capacity(HEADER_SIZE + payload.len());
    record.extend_from_slice(&MAGIC);
    record.push(VERSION);
    record.push(code(format));
    record.extend_from_slice(&len.to_le_bytes());
    let crc = checksum(&record, payload);
    record.extend_from_slice(&crc.to_le_bytes());
    record.extend_from_slice(payload);
    Ok(record)
}

/// Verifies a record: the bytes must be one and nothing else.
pub fn open(bytes: &[u8]) -> Result<Record<'_>, FrameError> {
    if bytes.starts_with(&columnar::MAGIC) {
        columnar::seal::verify(bytes)?;
        return Ok(Record {
            format: Format::Columnar,
            payload: bytes,
        });
    }
    if !bytes.starts_with(&MAGIC) {
        let differ = bytes
            .iter()
            .zip(&MAGIC)
            .any(|(found, magic)| found != magic);
        return Err(if differ {
            FrameError::NotARecord
        } else {
            FrameError::Length {
                expected: HEADER_SIZE as u64,
                found: bytes.len(),
            }
        });
    }
    // Another version may have another layout: nothing after it can be trusted.
    if let Some(version) = bytes.get(4).filter(|version| **version != VERSION) {
        return Err(FrameError::UnknownVersion(*version));
    }
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
        return Err(FrameError::Length {
            expected: HEADER_SIZE as u64,
            found: bytes.len(),
        });
    };
    let [_, _, _, _, _, format, l0, l1, l2, l3, c0, c1, c2, c3] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if payload.len() as u64 != u64::from(len) {
        return Err(FrameError::Length {
            expected: HEADER_SIZE as u64 + u64::from(len),
            found: bytes.len(),
        });
    }
    let stored = u32::from_le_bytes([c0, c1, c2, c3]);
    let computed = checksum(header.get(..CHECKED_SIZE).unwrap_or_default(), payload);
    if stored != computed {
        return Err(FrameError::Checksum { stored, computed });
    }
    // Only now: a flipped bit in this byte is a damaged record, not an unknown format.
    let known = Format::ALL.into_iter().find(|known| code(*known) == format);
    let known = known.filter(|known| header_size(*known) > 0);
    let format = known.ok_or(FrameError::UnknownFormat(format))?;
    Ok(Record { format, payload })
}

/// The code of a format in a record. Codes are never given twice.
fn code(format: Format) -> u8 {
    match format {
        Format::Naive => 1,
        Format::CompactV1TablesOnly => 2,
        Format::CompactV1 => 3,
        Format::CompactV2 => 4,
        // Never written: its record is another.
        Format::Columnar => 5,
    }
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

impl From<columnar::seal::Broken> for FrameError {
    fn from(broken: columnar::seal::Broken) -> Self {
        use columnar::seal::Broken;
        match broken {
            Broken::Magic => Self::NotARecord,
            Broken::Version(version) => Self::UnknownVersion(version),
            Broken::Length { expected, found } => Self::Length { expected, found },
            Broken::Checksum { stored, computed } => Self::Checksum { stored, computed },
        }
    }
}

/// Why bytes are not a record that this reader understands.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Other bytes than the magic.
    #[error("byte 0: not a stored record (no magic 89 4c 48 52, or 89 4c 48 43 of columnar)")]
    NotARecord,
    /// A later layout.
    #[error("byte 4: version {0} of the stored record is unknown to this reader, which knows 1")]
    UnknownVersion(u8),
    /// A format that this reader does not know, in a sound record.
    #[error("byte 5: format code {0} is unknown to this reader: a newer release wrote it")]
    UnknownFormat(u8),
    /// Cut, or something follows.
    #[error(
        "byte {at}: the header says {expected} bytes, but there are {found}: {why}",
        at = (*found as u64).min(*expected),
        why = if (*found as u64) < *expected { "cut short" } else { "something follows" }
    )]
    Length {
        /// By the header (or the smallest header).
        expected: u64,
        /// Number of bytes given.
        found: usize,
    },
    /// Damaged.
    #[error(
        "the checksum {stored:08x} in the header does not match the content ({computed:08x}): some \
         byte is damaged"
    )]
    Checksum {
        /// In the record.
        stored: u32,
        /// Of the content.
        computed: u32,
    },
    /// Too large for the length field.
    #[error("a payload of {0} bytes is above the stored record's limit of 2^32 - 1")]
    PayloadTooLarge(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::LeaseBatch;

    #[test]
    fn opens_what_it_wrote_and_no_damaged_version_of_it() {
        let columnar = crate::codec::encode(Format::Columnar, &LeaseBatch::default()).unwrap();
        for format in Format::ALL {
            let payload = match format {
                Format::Columnar => columnar.as_slice(),
                _ => b"payload",
            };
            let record = wrap(format, payload).unwrap();
            assert_eq!(open(&record), Ok(Record { format, payload }));
            for cut in 0..record.len() {
                assert!(open(&record[..cut]).is_err(), "cut at {cut}");
            }
            let mut longer = record.clone();
            longer.push(0);
            assert!(matches!(open(&longer), Err(FrameError::Length { .. })));
            for bit in 0..8 * record.len() {
                let mut damaged = record.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(open(&damaged).is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn says_that_a_format_is_unknown_only_if_the_record_is_sound() {
        let mut record = wrap(Format::Naive, b"payload").unwrap();
        record[5] = 77;
        assert!(matches!(open(&record), Err(FrameError::Checksum { .. })));
        let crc = checksum(&record[..CHECKED_SIZE], b"payload");
        record[CHECKED_SIZE..HEADER_SIZE].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(open(&record), Err(FrameError::UnknownFormat(77)));
        record[4] = 9;
        assert_eq!(open(&record), Err(FrameError::UnknownVersion(9)));
        assert_eq!(open(b"\x01\xef\xbe\x43"), Err(FrameError::NotARecord));
    }
}
