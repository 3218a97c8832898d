//! Where the bytes of a batch go: each byte belongs to exactly one part.

use super::error::DecodeError;
use super::reader::Reader;
use super::{Decoded, Format, columnar, compact, decode, decode_as, naive};

/// A kind of bytes in a batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Part {
    /// Magic, version, shared timestamps; in `naive`, the number of leases.
    Header,
    /// Names in the dictionary, with their lengths and their number.
    Names,
    /// Node ids in the dictionary, with their name indexes and their number.
    NodeIds,
    /// Numbers of objects and of their partitions.
    Counts,
    /// Ids of tables and zones.
    ObjectIds,
    /// Groups in full.
    GroupIds,
    /// Flags of leases.
    Flags,
    /// Partitions without a lease.
    Holes,
    /// Which node holds a lease, and which one is its candidate.
    Nodes,
    /// Which node holds a lease.
    Holders,
    /// Names of holders in full.
    HolderNames,
    /// Ids of holders in full.
    HolderIds,
    /// Names of candidates in full, or that there is none; or which leases have one, and which.
    Candidates,
    /// Starts in full.
    Starts,
    /// What starts are relative to.
    StartBases,
    /// Starts relative to that.
    StartOffsets,
    /// Starts in an event that moved leases of many tables.
    EventStarts,
    /// Starts that are neither.
    OddStarts,
    /// Starts as the time to the expiration.
    Periods,
    /// Logical parts of starts.
    StartLogicals,
    /// Expirations (but in `naive` only those that are not the common one).
    Expirations,
}

impl Part {
    const ALL: [Self; 21] = [
        Self::Header,
        Self::Names,
        Self::NodeIds,
        Self::Counts,
        Self::ObjectIds,
        Self::GroupIds,
        Self::Flags,
        Self::Holes,
        Self::Nodes,
        Self::Holders,
        Self::HolderNames,
        Self::HolderIds,
        Self::Candidates,
        Self::Starts,
        Self::StartBases,
        Self::StartOffsets,
        Self::EventStarts,
        Self::OddStarts,
        Self::Periods,
        Self::StartLogicals,
        Self::Expirations,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Names => "dictionary: names",
            Self::NodeIds => "dictionary: node ids",
            Self::Counts => "counts",
            Self::ObjectIds => "object ids",
            Self::GroupIds => "group ids",
            Self::Flags => "flags",
            Self::Holes => "holes",
            Self::Nodes => "holders and candidates",
            Self::Holders => "holders",
            Self::HolderNames => "holder names",
            Self::HolderIds => "holder ids",
            Self::Candidates => "candidates",
            Self::Starts => "starts",
            Self::StartBases => "starts: bases",
            Self::StartOffsets => "starts: offsets",
            Self::EventStarts => "starts: event",
            Self::OddStarts => "starts: odd ones",
            Self::Periods => "periods",
            Self::StartLogicals => "start logicals",
            Self::Expirations => "expirations",
        }
    }
}

/// A batch with the sizes of its parts.
#[derive(Debug, Clone)]
pub struct Anatomy {
    /// The batch.
    pub decoded: Decoded,
    /// Parts that take bytes, and how many; the sum is the size of the batch.
    pub parts: Vec<(Part, usize)>,
    /// How parts are encoded, where the format has a choice.
    pub notes: Vec<(Part, String)>,
    /// Partitions without a lease below the highest partition of their table or zone.
    pub holes: usize,
}

/// Reads a batch (in a format, or in whichever it is) and sorts its bytes.
pub fn dissect(format: Option<Format>, bytes: &[u8]) -> Result<Anatomy, DecodeError> {
    let decoded = match format {
        Some(format) => decode_as(format, bytes)?,
        None => decode(bytes)?,
    };
    let mut tally = Tally::new(bytes);
    match decoded.format {
        Format::Naive => naive::tally(&mut tally)?,
        Format::Columnar => columnar::tally(bytes, &mut tally)?,
        _ => compact::tally(&mut tally)?,
    }
    let sizes = Part::ALL.into_iter().zip(tally.sizes);
    Ok(Anatomy {
        parts: sizes.filter(|(_, size)| *size > 0).collect(),
        holes: tally.holes.unwrap_or(tally.sizes[Part::Holes as usize]),
        notes: tally.notes,
        decoded,
    })
}

/// A second reading of sound bytes, which adds up what is passed.
pub(crate) struct Tally<'a> {
    pub(crate) reader: Reader<'a>,
    sizes: [usize; Part::ALL.len()],
    notes: Vec<(Part, String)>,
    /// Number of holes, where they do not take a byte each.
    pub(crate) holes: Option<usize>,
    counted: usize,
}

impl<'a> Tally<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            sizes: [0; Part::ALL.len()],
            notes: Vec::new(),
            holes: None,
            counted: 0,
        }
    }

    /// What was read since the last call belongs to a part.
    pub(crate) fn add(&mut self, part: Part) {
        let end = self.reader.offset();
        self.sizes[part as usize] += end - self.counted;
        self.counted = end;
    }

    /// Says how a part is encoded.
    pub(crate) fn note(&mut self, part: Part, note: String) {
        self.notes.push((part, note));
    }

    /// A variable-length integer of a part.
    pub(crate) fn varint(&mut self, part: Part) -> Result<i64, DecodeError> {
        let value = self.reader.varint(part.name())?;
        self.add(part);
        Ok(value)
    }

    /// Bytes of a part.
    pub(crate) fn skip(&mut self, len: usize, part: Part) -> Result<(), DecodeError> {
        self.reader.take(len, part.name())?;
        self.add(part);
        Ok(())
    }
}
