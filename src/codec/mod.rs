//! Floor 2: the byte formats of a batch. Pure.
//!
//! [`encode`] and [`decode`] are all that most callers need; [`frame`] is what goes around a
//! payload in a store. Each format has a folder of its own ([`naive_size`] is what a batch would
//! take in the oldest one); docs/FORMATS.md has the byte tables.

pub mod anatomy;
pub mod columnar;
mod compact;
pub mod delta;
pub mod error;
pub mod frame;
mod mutf8;
mod naive;
mod reader;
mod varint;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::model::batch::LeaseBatch;

pub use columnar::LeaseBatchView;
pub use delta::{Chain, Delta, DeltaError, is_delta};
pub use error::{DecodeError, Defect, EncodeError};
pub use naive::{naive_row_size, naive_size};

/// A byte format of a batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// One self-contained record per lease.
    Naive,
    /// Per table, delta- and dictionary-coded, without the section for zones (release 3.0).
    CompactV1TablesOnly,
    /// The same with zones (release 3.1).
    CompactV1,
    /// The same with more than 8 ids under at most 8 names.
    CompactV2,
    /// One column per field, near the entropy; see [`columnar`].
    Columnar,
}

impl Format {
    /// All formats, oldest first.
    pub const ALL: [Self; 5] = [
        Self::Naive,
        Self::CompactV1TablesOnly,
        Self::CompactV1,
        Self::CompactV2,
        Self::Columnar,
    ];

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::CompactV1TablesOnly => "compact-v1-tables-only",
            Self::CompactV1 => "compact-v1",
            Self::CompactV2 => "compact-v2",
            Self::Columnar => "columnar",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.into_iter().find(|known| known.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a format: expected naive, compact-v1-tables-only, compact-v1, compact-v2 or \
     columnar"
)]
pub struct UnknownFormat(String);

/// A batch that was read, and how.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The leases.
    pub batch: LeaseBatch,
    /// The format that they were in.
    pub format: Format,
    /// Whether there was a section for zones, empty or not. `columnar` always has one.
    pub zones_section: bool,
    /// Leases whose packed number stands for more than one pair of holder and candidate: the
    /// flaw of `compact-v1` with more than 8 ids under at most 8 names. They were read as the
    /// original does.
    pub ambiguous: usize,
}

/// Writes a batch.
pub fn encode(format: Format, batch: &LeaseBatch) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    encode_into(format, batch, &mut out)?;
    Ok(out)
}

/// Appends a batch to a buffer; on an error the buffer is left as it was.
pub fn encode_into(
    format: Format,
    batch: &LeaseBatch,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let result = match format {
        Format::Naive => naive::encode(batch, out),
        Format::Columnar => columnar::encode::encode(batch, out),
        _ => compact::encode::encode(batch, format, out),
    };
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// How much a reader takes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeLimits {
    /// The most leases of a `columnar` batch, whose columns may have no width: a few bytes can
    /// then stand for any number of leases, of 32 bytes each once they are read. In the other
    /// formats each lease takes bytes.
    pub max_leases: usize,
}

impl Default for DecodeLimits {
    /// 16 Mi leases, half a gigabyte. No writer writes more.
    fn default() -> Self {
        Self {
            max_leases: 16 << 20,
        }
    }
}

/// Reads a batch in whichever format it is; see [`sniff`].
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    decode_with(bytes, DecodeLimits::default())
}

/// The same with other limits than the default ones.
pub fn decode_with(bytes: &[u8], limits: DecodeLimits) -> Result<Decoded, DecodeError> {
    match family(bytes) {
        Some(Family::Columnar) => columnar::decode::decode(bytes, limits.max_leases),
        Some(Family::Compact) => compact::decode::decode(bytes),
        Some(Family::Naive) => naive::decode(bytes),
        None if bytes.len() < 4 => Err(DecodeError {
            offset: bytes.len(),
            field: "magic",
            defect: Defect::Truncated {
                missing: 4 - bytes.len(),
            },
        }),
        None => Err(DecodeError {
            offset: 0,
            field: "magic",
            defect: Defect::Invalid(
                "no lease batch: neither the magic of columnar (894c4843) nor that of the \
                 compact formats (bytes 1 to 3 efbe43) nor a number of naive records that these bytes can carry"
                    .to_owned(),
            ),
        }),
    }
}

/// Reads a batch that must be in the given format. A `compact-v1` batch may lack the section for
/// zones (and is then reported as [`Format::CompactV1TablesOnly`]), but not the other way round.
pub fn decode_as(format: Format, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let decoded = match (format, family(bytes)) {
        (Format::Naive, _) => return naive::decode(bytes),
        (Format::Columnar, found) if !matches!(found, Some(Family::Compact)) => {
            return columnar::decode::decode(bytes, DecodeLimits::default().max_leases);
        }
        (_, Some(Family::Columnar)) => {
            columnar::decode::decode(bytes, DecodeLimits::default().max_leases)?
        }
        _ => compact::decode::decode(bytes)?,
    };
    let same = decoded.format == format
        || (format, decoded.format) == (Format::CompactV1, Format::CompactV1TablesOnly);
    if same {
        return Ok(decoded);
    }
    Err(DecodeError {
        offset: 0,
        field: "version",
        defect: Defect::Invalid(format!("this is {}, not {format}", decoded.format)),
    })
}

/// Which format bytes seem to be in: by the magic and version, or else because they start with a
/// plausible number of naive records. `None` if they are none of these. Whether a `compact-v1`
/// batch has a section for zones is found by reading it.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    match (family(bytes)?, bytes.first()?) {
        (Family::Naive, _) => Some(Format::Naive),
        (Family::Columnar, _) => Some(Format::Columnar),
        (Family::Compact, 1) => match compact::decode::decode(bytes) {
            Ok(decoded) => Some(decoded.format),
            Err(_) => Some(Format::CompactV1),
        },
        (Family::Compact, 2) => Some(Format::CompactV2),
        (Family::Compact, _) => None,
    }
}

enum Family {
    Naive,
    Columnar,
    Compact,
}

fn family(bytes: &[u8]) -> Option<Family> {
    if bytes.get(1..4) == Some(&compact::MAGIC) {
        Some(Family::Compact)
    } else if bytes.starts_with(&columnar::MAGIC) {
        Some(Family::Columnar)
    } else {
        naive::plausible(bytes).then_some(Family::Naive)
    }
}
