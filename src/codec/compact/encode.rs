//! Writing `compact-v1` and `compact-v2`.

use crate::model::batch::{LeaseBatch, Row, most_frequent};
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use crate::model::ids::GroupKind;

use super::super::Format;
use super::super::error::EncodeError;
use super::super::varint;
use super::dictionary::Used;
use super::header::Header;
use super::quick::Writing;
use super::{
    ACCEPTED, HAS_CANDIDATE, HOLE, LOGICAL, PACKED_MAX, PACKED_SHIFT, PROLONGABLE, UNCOMMON,
};

/// The most elements, leases and holes together, of a batch that is written: an object of one
/// lease at the highest partition would be two gigabytes of holes.
const ELEMENT_LIMIT: u64 = 1 << 28;

/// Appends a batch.
pub(crate) fn encode(
    batch: &LeaseBatch,
    format: Format,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let version = match format {
        Format::CompactV2 => 2,
        _ => 1,
    };
    let rows = batch.rows();
    let split = rows.partition_point(|row| row.group().kind() == GroupKind::Table);
    let (tables, zones) = rows.split_at(split);
    if let (Format::CompactV1TablesOnly, Some(zone)) = (format, zones.first()) {
        return Err(EncodeError::ZonesNotCarried {
            format,
            group: zone.group(),
        });
    }
    let used = Used::of(batch);
    used.check(batch)?;
    let (names, ids) = (used.names(), used.nodes());
    if version == 1 && names <= PACKED_MAX && ids > PACKED_MAX {
        return Err(EncodeError::TooManyIdsForV1 { names, ids });
    }
    let surveys = [Survey::of(tables), Survey::of(zones)];
    check_size(&surveys)?;
    let header = header(batch, version, &surveys);
    // Five to eight bytes a lease in most batches.
    out.reserve(128 + 32 * ids + 8 * rows.len());
    header.write(out);
    used.write(batch, out)?;
    let packed = super::packed(version, names, ids);
    let mut leases = Leases {
        quick: header.common == batch.common_expiration(),
        writing: Writing::new(header.common, packed, &used.new_node, &used.new_name),
        minimum: header.minimum,
        common: header.common,
        stored: batch.common_expiration(),
        packed,
        used,
        chunk: [0; CHUNK],
        at: 0,
        out,
    };
    let [tables_survey, zones_survey] = surveys;
    leases.section(tables, &tables_survey);
    if format != Format::CompactV1TablesOnly {
        leases.section(zones, &zones_survey);
    }
    leases.flush();
    Ok(())
}

/// What is written before the leases of a section, found in one pass over them.
struct Survey {
    objects: usize,
    /// Leases and holes.
    elements: u64,
    /// Leases with an expiration of their own.
    own: usize,
    /// The earliest physical part of those.
    earliest: u64,
}

impl Survey {
    fn of(rows: &[Row]) -> Self {
        let mut survey = Self {
            objects: 0,
            elements: 0,
            own: 0,
            earliest: u64::MAX,
        };
        for object in objects(rows) {
            survey.objects += 1;
            survey.elements += u64::from(partitions(object));
            for expiration in object.iter().filter_map(Row::own_expiration) {
                survey.own += 1;
                survey.earliest = survey.earliest.min(expiration.physical());
            }
        }
        survey
    }
}

/// The version and the timestamps that all leases share.
fn header(batch: &LeaseBatch, version: u8, surveys: &[Survey; 2]) -> Header {
    let rows = batch.rows();
    if rows.is_empty() {
        return Header {
            version,
            minimum: MAX_PHYSICAL as i64,
            common: HybridTimestamp::MIN,
        };
    }
    let [tables, zones] = surveys;
    let own = tables.own + zones.own;
    let mut earliest = tables.earliest.min(zones.earliest);
    let stored = batch.common_expiration();
    if own < rows.len() {
        earliest = earliest.min(stored.physical());
    }
    let mut common = stored;
    if 2 * own >= rows.len() {
        let expirations = rows.iter().map(|row| row.expiration(stored));
        common = most_frequent(expirations).unwrap_or(stored);
    }
    Header {
        version,
        minimum: earliest as i64,
        common,
    }
}

fn check_size(surveys: &[Survey; 2]) -> Result<(), EncodeError> {
    let elements = surveys.iter().map(|survey| survey.elements).sum();
    if elements > ELEMENT_LIMIT {
        return Err(EncodeError::TooLarge {
            what: "a number of leases and holes",
            size: elements,
            limit: ELEMENT_LIMIT,
        });
    }
    Ok(())
}

/// Splits rows into those of each object.
fn objects(mut rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    let mut previous = 0usize;
    std::iter::from_fn(move || {
        let first = rows.first()?.group();
        let same = |row: &Row| row.group().same_object(first);
        let same_at = |position: usize| rows.get(position).is_some_and(same);
        // Most objects have as many leases as the one before.
        let guess = previous > 0 && same_at(previous - 1) && !same_at(previous);
        if !guess {
            previous = rows.partition_point(same);
        }
        let (object, rest) = rows.split_at(previous);
        rows = rest;
        Some(object)
    })
}

/// The highest partition of an object plus one.
fn partitions(object: &[Row]) -> u32 {
    object.last().map_or(0, |row| row.group().partition() + 1)
}

/// Leases are written to a chunk in the cache, whole words at a time.
const CHUNK: usize = 4096;
/// Rows between two looks at the room that is left in the chunk.
const CHUNK_ROWS: usize = 32;
/// More than an element or the head of an object takes.
const ELEMENT_MAX: usize = 40;

struct Leases<'a> {
    minimum: i64,
    /// The common expiration that is written.
    common: HybridTimestamp,
    /// The one of the batch: the same, unless most leases have their own.
    stored: HybridTimestamp,
    packed: bool,
    /// Whether rows without an expiration of their own have the written one.
    quick: bool,
    writing: Writing,
    used: Used,
    chunk: [u8; CHUNK],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl Leases<'_> {
    fn section(&mut self, rows: &[Row], survey: &Survey) {
        self.varint(survey.objects as i64);
        let mut previous = 0i32;
        for object in objects(rows) {
            let Some(first) = object.first() else { return };
            let id = first.group().object();
            self.flush_if_over(CHUNK - 2 * ELEMENT_MAX);
            self.varint(id.wrapping_sub(previous).into());
            self.varint(partitions(object).into());
            previous = id;
            self.object(object);
        }
    }

    fn object(&mut self, rows: &[Row]) {
        let mut next = 0;
        for rows in rows.chunks(CHUNK_ROWS) {
            self.flush_if_over(CHUNK - CHUNK_ROWS * ELEMENT_MAX);
            let mut at = self.at;
            for row in rows {
                let partition = row.group().partition();
                if next != partition {
                    self.at = at;
                    self.holes((partition - next) as usize);
                    at = 0;
                }
                next = partition + 1;
                let quick = self.quick && row.own_expiration().is_none();
                let word = if quick { self.writing.word(row) } else { None };
                match (word, self.chunk.get_mut(at..at + 8)) {
                    (Some((word, len)), Some(slot)) => {
                        slot.copy_from_slice(&word.to_le_bytes());
                        at += len;
                    }
                    _ => {
                        self.at = at;
                        self.element(row);
                        at = self.at;
                    }
                }
            }
            self.at = at;
        }
    }

    /// Any lease.
    #[cold]
    fn element(&mut self, row: &Row) {
        let expiration = row.expiration(self.stored);
        let uncommon = expiration != self.common;
        let mut flags = 0;
        let mut set = |flag: u8, on: bool| flags |= if on { flag } else { 0 };
        set(ACCEPTED, row.accepted());
        set(PROLONGABLE, row.prolongable());
        set(HAS_CANDIDATE, row.candidate().is_some());
        set(UNCOMMON, uncommon);
        set(LOGICAL, expiration.logical() != 0);
        self.byte(flags);
        let holder = i64::from(self.used.new_node[row.holder() as usize]);
        let candidate = (row.candidate()).map(|name| i64::from(self.used.new_name[name as usize]));
        if self.packed {
            self.varint(holder | candidate.unwrap_or(0) << PACKED_SHIFT);
        } else {
            self.varint(holder);
            if let Some(candidate) = candidate {
                self.varint(candidate);
            }
        }
        if uncommon {
            self.varint(expiration.physical() as i64 - self.minimum);
            if expiration.logical() != 0 {
                self.varint(expiration.logical().into());
            }
        }
        self.varint(expiration.physical() as i64 - row.physical_start() as i64);
        self.varint(row.logical_start().into());
    }

    fn holes(&mut self, count: usize) {
        self.flush();
        self.out.resize(self.out.len() + count, HOLE);
    }

    fn byte(&mut self, byte: u8) {
        if let Some(slot) = self.chunk.get_mut(self.at) {
            *slot = byte;
            self.at += 1;
        }
    }

    fn varint(&mut self, x: i64) {
        let mut buffer = [0; varint::MAX_LEN];
        let len = varint::write(&mut buffer, x);
        buffer.iter().take(len).for_each(|byte| self.byte(*byte));
    }

    #[inline]
    fn flush_if_over(&mut self, limit: usize) {
        if self.at > limit {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let written = self.chunk.get(..self.at).unwrap_or_default();
        self.out.extend_from_slice(written);
        self.at = 0;
    }
}
