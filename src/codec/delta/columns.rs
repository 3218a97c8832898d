//! The fields of replaced and added leases, a column each.
//!
//! What a driver writes at once is alike: grants of one moment, or answers to them. So each
//! column has a short form for "all the same", and times are packed as offsets from the smallest.

use std::ops::RangeInclusive;

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::batch::Row;
use crate::model::hlc::MAX_PHYSICAL;

use super::bits::{BitReader, BitWriter, index_width, within};
use super::packing::{
    in_range, most_frequent, read_choices, read_packed, read_pairs, write_choices, write_packed,
    write_pairs,
};
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
    u64::from(lease.accepted) * ACCEPTED + u64::from(lease.prolongable) * PROLONGABLE
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
