//! The fields of replaced and added leases, a column each.
//!
//! What a driver writes at once is alike: grants of one moment, or answers to them. So each
//! column has a short form for "all the same", and times are packed as offsets from the smallest.

use std::ops::RangeInclusive;

use crate::codec::error::DecodeError;
use crate::codec::reader::{invalid, out_of_range};
use crate::model::batch::Row;
use crate::model::hlc::MAX_PHYSICAL;

use super::bits::{BitReader, BitWriter, bit_length, index_width, within};
use super::values::{DeltaLease, Grant, OwnExpiration};

/// Number of entries in a chain's dictionary after a delta, as far as the frame has said it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Entries {
    pub(super) names: Option<u32>,
    pub(super) nodes: Option<u32>,
}

/// Milliseconds between two times.
const PHYSICAL: RangeInclusive<i64> = -(MAX_PHYSICAL as i64)..=MAX_PHYSICAL as i64;

const LOGICAL: RangeInclusive<i64> = 0..=u16::MAX as i64;

/// The most bits of an offset from the smallest of some times.
const MAX_WIDTH: u64 = 48;

const ACCEPTED: u64 = 1;
const PROLONGABLE: u64 = 2;

// Classes of own expirations.
const COMMON: u64 = 0;
const AFTER_START: u64 = 1;
const SHARED: u64 = 2;
const EXPLICIT: u64 = 3;

/// Writes the columns. `said` is what the frame has said of `entries` before.
pub(super) fn write(
    bits: &mut BitWriter,
    leases: &[&DeltaLease],
    replaced: usize,
    entries: (u32, u32),
    said: Entries,
) {
    if replaced > 0 {
        let same = leases.iter().take(replaced).map(|l| l.grant.is_none());
        write_choices(bits, same);
    }
    let grants: Vec<Grant> = leases.iter().filter_map(|lease| lease.grant).collect();
    let (names, nodes) = entries;
    if !grants.is_empty() {
        if said.nodes.is_none() {
            bits.number(nodes.into());
        }
        let width = index_width(nodes.into());
        for grant in &grants {
            bits.bits(grant.holder.into(), width);
        }
        write_packed(bits, grants.iter().map(|grant| grant.start_offset));
        write_packed(bits, grants.iter().map(|grant| grant.start_logical.into()));
    }
    write_pairs(bits, leases.iter().map(|lease| flags(lease)));
    write_expirations(bits, leases);
    let candidates = leases.iter().map(|lease| lease.candidate);
    write_choices(
        bits,
        candidates.clone().map(|candidate| candidate.is_some()),
    );
    if candidates.clone().any(|candidate| candidate.is_some()) {
        if said.names.is_none() {
            bits.number(names.into());
        }
        for candidate in candidates.flatten() {
            bits.bits(candidate.into(), index_width(names.into()));
        }
    }
}

/// Reads `replaced` leases and then `added` ones; `entries` takes up what the frame says of the
/// dictionary's size.
pub(super) fn read(
    bits: &mut BitReader<'_>,
    replaced: usize,
    added: usize,
    entries: &mut Entries,
) -> Result<Vec<DeltaLease>, DecodeError> {
    let count = replaced + added;
    let mut granted = vec![true; count];
    if replaced > 0 {
        let same = read_choices(bits, replaced, "same lease")?;
        for (granted, same) in granted.iter_mut().zip(same) {
            *granted = !same;
        }
    }
    let grants = granted.iter().filter(|granted| **granted).count();
    let mut grants = read_grants(bits, grants, entries)?.into_iter();
    let flags = read_pairs(bits, count, "flags")?;
    let expirations = read_expirations(bits, count)?;
    let candidates = read_candidates(bits, count, entries)?;
    let columns = flags.into_iter().zip(expirations).zip(candidates);
    let lease = |(granted, ((flags, expiration), candidate))| DeltaLease {
        grant: if granted { grants.next() } else { None },
        expiration,
        accepted: u64::from(flags) & ACCEPTED != 0,
        prolongable: u64::from(flags) & PROLONGABLE != 0,
        candidate,
    };
    Ok(granted.into_iter().zip(columns).map(lease).collect())
}

fn flags(lease: &DeltaLease) -> u64 {
    u64::from(lease.accepted) * ACCEPTED | u64::from(lease.prolongable) * PROLONGABLE
}

fn read_grants(
    bits: &mut BitReader<'_>,
    count: usize,
    entries: &mut Entries,
) -> Result<Vec<Grant>, DecodeError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let nodes = said(bits, &mut entries.nodes, "node count")?;
    let holders = read_indexes(bits, count, nodes, "holder")?;
    let offsets = read_packed(bits, count, PHYSICAL, "start")?;
    let logicals = read_packed(bits, count, LOGICAL, "start logical")?;
    let times = offsets.into_iter().zip(logicals);
    let grant = |(holder, (start_offset, logical))| Grant {
        holder,
        start_offset,
        start_logical: logical as u16,
    };
    Ok(holders.into_iter().zip(times).map(grant).collect())
}

fn read_candidates(
    bits: &mut BitReader<'_>,
    count: usize,
    entries: &mut Entries,
) -> Result<Vec<Option<u32>>, DecodeError> {
    let present = read_choices(bits, count, "has candidate")?;
    let number = present.iter().filter(|present| **present).count();
    if number == 0 {
        return Ok(vec![None; count]);
    }
    let names = said(bits, &mut entries.names, "name count")?;
    let mut indexes = read_indexes(bits, number, names, "candidate")?.into_iter();
    let candidate = |present| if present { indexes.next() } else { None };
    Ok(present.into_iter().map(candidate).collect())
}

/// A size of the dictionary, which stands where it is needed first.
fn said(
    bits: &mut BitReader<'_>,
    known: &mut Option<u32>,
    field: &'static str,
) -> Result<u32, DecodeError> {
    match *known {
        Some(count) => Ok(count),
        None => {
            let count = bits.ranged(Row::INDEX_LIMIT.into(), field)? as u32;
            Ok(*known.insert(count))
        }
    }
}

fn read_indexes(
    bits: &mut BitReader<'_>,
    count: usize,
    entries: u32,
    field: &'static str,
) -> Result<Vec<u32>, DecodeError> {
    if entries == 0 {
        return Err(invalid(bits.offset(), field, "an index of no entries"));
    }
    let width = index_width(entries.into());
    let index = |_| {
        let offset = bits.offset();
        let index = bits.bits(width, field)?;
        within(offset, field, index, u64::from(entries) - 1).map(|index| index as u32)
    };
    (0..count).map(index).collect()
}

fn write_expirations(bits: &mut BitWriter, leases: &[&DeltaLease]) {
    let at = |lease: &&DeltaLease| match lease.expiration {
        OwnExpiration::At { offset, logical } => Some((offset, logical)),
        _ => None,
    };
    let shared = most_frequent(leases.iter().filter_map(at));
    let class = |lease: &DeltaLease| match lease.expiration {
        OwnExpiration::Common => COMMON,
        OwnExpiration::AfterStart(_) => AFTER_START,
        OwnExpiration::At { offset, logical } if Some((offset, logical)) == shared => SHARED,
        OwnExpiration::At { .. } => EXPLICIT,
    };
    write_pairs(bits, leases.iter().map(|lease| class(lease)));
    let after = leases.iter().find_map(|lease| match lease.expiration {
        OwnExpiration::AfterStart(millis) => Some(millis),
        _ => None,
    });
    if let Some(millis) = after {
        // Grants live for a round number of seconds.
        let seconds = millis % 1000 == 0;
        bits.bit(seconds);
        bits.number(if seconds { millis / 1000 } else { millis } as u64);
    }
    if let Some((offset, logical)) = shared {
        bits.signed(offset);
        bits.number(logical.into());
    }
    let explicit = leases.iter().filter(|lease| class(lease) == EXPLICIT);
    let explicit = explicit.filter_map(at);
    if explicit.clone().next().is_some() {
        write_packed(bits, explicit.clone().map(|(offset, _)| offset));
        write_packed(bits, explicit.map(|(_, logical)| logical.into()));
    }
}

fn read_expirations(
    bits: &mut BitReader<'_>,
    count: usize,
) -> Result<Vec<OwnExpiration>, DecodeError> {
    const FIELD: &str = "own expiration";
    const FIELD_LOGICAL: &str = "own expiration logical";
    let classes = read_pairs(bits, count, "kind of expiration")?;
    let of = |class| classes.iter().filter(|c| u64::from(**c) == class).count();
    let mut after = 0;
    if of(AFTER_START) > 0 {
        let offset = bits.offset();
        let seconds = bits.bit(FIELD)?;
        let value = bits.ranged(MAX_PHYSICAL, FIELD)? as i64;
        if !seconds && value % 1000 == 0 {
            return Err(invalid(offset, FIELD, "whole seconds in milliseconds"));
        }
        let millis = if seconds {
            value.saturating_mul(1000)
        } else {
            value
        };
        after = in_range(offset, FIELD, millis, PHYSICAL)?;
    }
    let mut shared = OwnExpiration::Common;
    if of(SHARED) > 0 {
        let at = bits.offset();
        let offset = in_range(at, FIELD, bits.signed(FIELD)?, PHYSICAL)?;
        let logical = bits.ranged(u16::MAX.into(), FIELD_LOGICAL)? as u16;
        shared = OwnExpiration::At { offset, logical };
    }
    let mut explicit = Vec::new().into_iter().zip(Vec::new());
    let number = of(EXPLICIT);
    if number > 0 {
        let offsets = read_packed(bits, number, PHYSICAL, FIELD)?;
        let logicals = read_packed(bits, number, LOGICAL, FIELD_LOGICAL)?;
        explicit = offsets.into_iter().zip(logicals);
    }
    let expiration = |class: &u8| match u64::from(*class) {
        AFTER_START => OwnExpiration::AfterStart(after),
        SHARED => shared,
        EXPLICIT => explicit
            .next()
            .map_or(OwnExpiration::Common, |(offset, logical)| {
                let logical = logical as u16;
                OwnExpiration::At { offset, logical }
            }),
        _ => OwnExpiration::Common,
    };
    Ok(classes.iter().map(expiration).collect())
}

/// Yes or no for each lease: 0 if all no, 10 if all yes, or 11 and a bit each.
fn write_choices(bits: &mut BitWriter, choices: impl Iterator<Item = bool> + Clone) {
    let yes = choices.clone().any(|choice| choice);
    bits.bit(yes);
    if yes {
        let no = choices.clone().any(|choice| !choice);
        bits.bit(no);
        if no {
            choices.for_each(|choice| bits.bit(choice));
        }
    }
}

fn read_choices(
    bits: &mut BitReader<'_>,
    count: usize,
    field: &'static str,
) -> Result<Vec<bool>, DecodeError> {
    if !bits.bit(field)? {
        Ok(vec![false; count])
    } else if !bits.bit(field)? {
        Ok(vec![true; count])
    } else {
        (0..count).map(|_| bits.bit(field)).collect()
    }
}

/// Two bits for each lease, or once for all.
fn write_pairs(bits: &mut BitWriter, pairs: impl Iterator<Item = u64> + Clone) {
    let first = pairs.clone().next().unwrap_or(0);
    if pairs.clone().all(|pair| pair == first) {
        bits.bit(false);
        bits.bits(first, 2);
    } else {
        bits.bit(true);
        pairs.for_each(|pair| bits.bits(pair, 2));
    }
}

fn read_pairs(
    bits: &mut BitReader<'_>,
    count: usize,
    field: &'static str,
) -> Result<Vec<u8>, DecodeError> {
    if bits.bit(field)? {
        let pair = |_| bits.bits(2, field).map(|pair| pair as u8);
        (0..count).map(pair).collect()
    } else {
        Ok(vec![bits.bits(2, field)? as u8; count])
    }
}

/// Numbers as offsets from the smallest, in as many bits as the largest needs.
fn write_packed(bits: &mut BitWriter, values: impl Iterator<Item = i64> + Clone) {
    let min = values.clone().min().unwrap_or(0);
    let max = values.clone().max().unwrap_or(0);
    let width = bit_length((max - min) as u64);
    bits.signed(min);
    bits.number(width.into());
    values.for_each(|value| bits.bits((value - min) as u64, width));
}

/// Such numbers, all within a range.
fn read_packed(
    bits: &mut BitReader<'_>,
    count: usize,
    range: RangeInclusive<i64>,
    field: &'static str,
) -> Result<Vec<i64>, DecodeError> {
    let offset = bits.offset();
    let min = in_range(offset, field, bits.signed(field)?, range.clone())?;
    let width = bits.ranged(MAX_WIDTH, field)? as u32;
    let value = |_| {
        let offset = bits.offset();
        let value = min + bits.bits(width, field)? as i64;
        in_range(offset, field, value, range.clone())
    };
    (0..count).map(value).collect()
}

fn in_range(
    offset: usize,
    field: &'static str,
    value: i64,
    range: RangeInclusive<i64>,
) -> Result<i64, DecodeError> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(out_of_range(offset, field, value, range))
    }
}

/// The most frequent of some values; of equally frequent ones the smallest.
pub(super) fn most_frequent<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut all: Vec<T> = values.collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b);
    let best = runs.reduce(|best, run| if run.len() > best.len() { run } else { best });
    best.and_then(|run| run.first().copied())
}
