//! Bytes that a command is given: a payload in any format, as it is or in a stored record.

use crate::codec::anatomy::{self, Anatomy};
use crate::codec::{self, Decoded, Format, frame};

use super::failure::{Failure, warn};
use super::input::Input;

/// Bytes that were read and what is known about them without reading the leases.
pub(super) struct Payload {
    name: String,
    bytes: Vec<u8>,
    format: Option<Format>,
    /// Bytes before the payload: those of a stored record's header, or none.
    pub(super) header: usize,
}

impl Payload {
    /// Reads an input; `format` forces a format.
    pub(super) fn read(input: &Input, format: Option<Format>) -> Result<Self, Failure> {
        Self::of(input.name(), input.read()?, format)
    }

    /// Of bytes with a name; `format` forces a format.
    pub(super) fn of(
        name: String,
        bytes: Vec<u8>,
        format: Option<Format>,
    ) -> Result<Self, Failure> {
        if codec::is_delta(&bytes) {
            let what = "a delta: it says what changed, not what the leases are; `leasehold inspect` \
                        shows it, `leasehold decode --data DIR` the leases that it leads to";
            return Err(Failure::about(&name, what));
        }
        let mut payload = Self {
            header: 0,
            format,
            name,
            bytes,
        };
        if frame::is_record(&payload.bytes) {
            let record = frame::open(&payload.bytes);
            let record = record.map_err(|error| Failure::about(&payload.name, error))?;
            payload.format = format.or(Some(record.format));
            payload.header = frame::header_size(record.format);
        }
        Ok(payload)
    }

    /// Number of bytes in all.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    fn payload(&self) -> &[u8] {
        self.bytes.get(self.header..).unwrap_or_default()
    }

    /// The leases.
    pub(super) fn decode(&self) -> Result<Decoded, Failure> {
        let decoded = match self.format {
            Some(format) => codec::decode_as(format, self.payload()),
            None => codec::decode(self.payload()),
        };
        let decoded = decoded.map_err(|error| Failure::about(&self.name, error))?;
        self.warn_if_ambiguous(&decoded);
        Ok(decoded)
    }

    /// The leases and where the bytes go.
    pub(super) fn dissect(&self) -> Result<Anatomy, Failure> {
        let anatomy = anatomy::dissect(self.format, self.payload());
        let anatomy = anatomy.map_err(|error| Failure::about(&self.name, error))?;
        self.warn_if_ambiguous(&anatomy.decoded);
        Ok(anatomy)
    }

    fn warn_if_ambiguous(&self, decoded: &Decoded) {
        if decoded.ambiguous > 0 {
            warn(format_args!(
                "{}: {} of {} leases can be read in more than one way: compact-v1 was written \
                 with more than 8 node ids under at most 8 names",
                self.name,
                decoded.ambiguous,
                decoded.batch.len()
            ));
        }
    }
}

/// Parses the name of a format on the command line.
pub(super) fn format_parser() -> impl clap::builder::TypedValueParser<Value = Format> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| name.parse::<Format>())
}
