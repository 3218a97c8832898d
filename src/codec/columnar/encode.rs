//! Writing a batch.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::dictionary::Dictionary;
use crate::model::ids::{GroupId, GroupKind};

use super::super::error::EncodeError;
use super::super::{DecodeLimits, varint};
use super::bits::BitWriter;
use super::digits::Digits;
use super::seal::{self, HEADER_SIZE};
use super::set::{ALL, NONE};
use super::set_write::{self, Bitmap};
use super::survey::{Object, PARTITION_BITS, Survey};
use super::{ints, starts};

/// Rows that are packed at once: whole groups of digits.
const CHUNK: usize = 480;

/// Stands for a node that has no digit.
const RARE: u32 = u32::MAX;

/// Appends a batch.
pub(crate) fn encode(batch: &LeaseBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let rows = batch.rows();
    let limit = DecodeLimits::default().max_leases;
    if rows.len() > limit {
        return Err(too_large("a number of leases", rows.len(), limit));
    }
    check_ids(batch)?;
    let start = out.len();
    let nodes = batch.dictionary().nodes().len();
    out.reserve(HEADER_SIZE + 128 + 32 * nodes + 2 * rows.len());
    out.resize(start + HEADER_SIZE, 0);
    varint::put(out, rows.len() as i64);
    let common = batch.common_expiration();
    varint::put(out, common.physical() as i64);
    varint::put(out, common.logical().into());
    write_dictionary(batch.dictionary(), out)?;
    if !rows.is_empty() {
        write_columns(batch, out);
    }
    let size = out.len() - start;
    seal::seal(out, start).ok_or_else(|| too_large("a batch", size, u32::MAX as usize))
}

fn too_large(what: &'static str, size: usize, limit: usize) -> EncodeError {
    EncodeError::TooLarge {
        what,
        size: size as u64,
        limit: limit as u64,
    }
}

/// Refuses one id under two names.
fn check_ids(batch: &LeaseBatch) -> Result<(), EncodeError> {
    let dictionary = batch.dictionary();
    let mut by_id: Vec<_> = (0u32..).zip(dictionary.nodes()).collect();
    by_id.sort_by_key(|(_, node)| node.id);
    let Some(pair) = by_id.windows(2).find(|pair| pair[0].1.id == pair[1].1.id) else {
        return Ok(());
    };
    let (first, second) = (pair[0], pair[1]);
    let mut rows = batch.rows_as_arrived();
    let row = rows
        .find(|row| row.holder() == second.0)
        .or(batch.rows().first());
    Err(EncodeError::IdWithTwoNames {
        group: row.map_or(GroupId::first_of(GroupKind::Table, 0), Row::group),
        id: second.1.id,
        first: dictionary.name(first.1.name).clone(),
        second: dictionary.name(second.1.name).clone(),
    })
}

/// All entries in their order, whether a lease uses them or not.
fn write_dictionary(dictionary: &Dictionary, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    varint::put(out, dictionary.names().len() as i64);
    for name in dictionary.names() {
        if name.len() > i32::MAX as usize {
            return Err(too_large("a node name", name.len(), i32::MAX as usize));
        }
        varint::put(out, name.len() as i64);
        out.extend_from_slice(name.as_bytes());
    }
    varint::put(out, dictionary.nodes().len() as i64);
    for node in dictionary.nodes() {
        let (most, least) = node.id.halves();
        out.extend_from_slice(&most.to_le_bytes());
        out.extend_from_slice(&least.to_le_bytes());
        varint::put(out, node.name.into());
    }
    Ok(())
}

fn write_columns(batch: &LeaseBatch, out: &mut Vec<u8>) {
    let rows = batch.rows();
    let all = rows.len() as u64;
    let survey = Survey::of(batch);
    write_objects(rows, &survey, out);
    write_holders(batch, &survey, out);
    write_candidates(rows, survey.candidates, out);
    set_write::write(out, all, &survey.unaccepted);
    set_write::write(out, all, &survey.irregular);
    write_expirations(batch, &survey.own_expirations, out);
    starts::write(rows, &survey, out);
    let logical = |row: &Row| row.start().logical().into();
    set_write::write(out, all, &survey.logical_starts);
    ints::write(out, &some(rows, &survey.logical_starts, logical));
}

/// A property of the rows at some positions.
fn some(rows: &[Row], positions: &[u64], property: impl Fn(&Row) -> u64) -> Vec<u64> {
    let rows = positions.iter().filter_map(|at| rows.get(*at as usize));
    rows.map(property).collect()
}

fn write_objects(rows: &[Row], survey: &Survey, out: &mut Vec<u8>) {
    let objects = &survey.objects;
    let is_table = |object: &Object| object.key < 1 << 32;
    let tables = objects.partition_point(is_table);
    let (tables, zones) = objects.split_at(tables);
    write_ids(tables, out);
    write_ids(zones, out);
    let partitions: Vec<u64> = objects.iter().map(|o| o.partitions.into()).collect();
    ints::write(out, &partitions);
    let holes = survey.slots - rows.len() as u64;
    varint::put(out, holes as i64);
    if holes == 0 {
        return;
    }
    let mut present = Vec::with_capacity(rows.len());
    let mut rest = rows;
    let mut before = 0;
    for object in objects {
        let (own, others) = rest.split_at(object.rows as usize);
        present.extend(
            own.iter()
                .map(|row| before + u64::from(row.group().partition())),
        );
        rest = others;
        before += u64::from(object.partitions);
    }
    set_write::write(out, survey.slots, &present);
}

fn write_ids(objects: &[Object], out: &mut Vec<u8>) {
    varint::put(out, objects.len() as i64);
    let Some((first, others)) = objects.split_first() else {
        return;
    };
    let id = GroupId::first_of(GroupKind::Table, 0).packed() >> PARTITION_BITS;
    let id = (first.key as u32).wrapping_sub(id as u32);
    out.extend_from_slice(&id.to_le_bytes());
    if others.is_empty() {
        return;
    }
    let distance = |object: &Object| object.key - first.key;
    let stride = others.iter().map(distance).fold(0, greatest_common_divisor);
    let steps: Vec<u64> = objects
        .iter()
        .map(|object| distance(object) / stride)
        .collect();
    let span = steps.last().map_or(1, |last| last + 1);
    varint::put(out, stride as i64);
    varint::put(out, (span - objects.len() as u64) as i64);
    if span > objects.len() as u64 {
        set_write::write(out, span, &steps);
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// How many of the most frequent nodes get a digit, so that the column is smallest.
fn best_radix(counts: &[(u64, u32)], all: u64) -> usize {
    let nodes = counts.len() as u64;
    let mut within = 0;
    let mut best = (u64::MAX, counts.len());
    for (radix, (count, _)) in (1u64..).zip(counts) {
        within += count;
        let coarse = radix <= 64 || radix.is_multiple_of(16) || radix == nodes;
        if !coarse || within + within / 2 < all {
            continue;
        }
        let mut size = Digits::smallest(radix, all).size(all);
        if radix < nodes {
            let rare = all - within;
            size += set_write::size(nodes, radix) + set_write::size(all, rare);
            size += Digits::smallest(nodes, rare).size(rare);
        }
        best = best.min((size, radix as usize));
    }
    best.1
}

fn write_holders(batch: &LeaseBatch, survey: &Survey, out: &mut Vec<u8>) {
    let rows = batch.rows();
    let all = rows.len() as u64;
    let nodes = batch.dictionary().nodes().len();
    let mut counts: Vec<(u64, u32)> = survey.holders().zip(0u32..).collect();
    counts.sort_unstable_by_key(|(count, node)| (std::cmp::Reverse(*count), *node));
    let radix = best_radix(&counts, all);
    let digits = Digits::smallest(radix as u64, all);
    if radix == nodes {
        out.push(ALL);
        ints::write_head(out, 0, &digits);
        pack_holders(rows, &digits, |holder| holder, out);
        return;
    }
    let mut frequent: Vec<u64> = counts
        .iter()
        .take(radix)
        .map(|(_, n)| (*n).into())
        .collect();
    frequent.sort_unstable();
    set_write::write(out, nodes as u64, &frequent);
    let mut digit_of = vec![RARE; nodes];
    for (digit, node) in (0u32..).zip(&frequent) {
        if let Some(slot) = digit_of.get_mut(*node as usize) {
            *slot = digit;
        }
    }
    ints::write_head(out, 0, &digits);
    let digit = |holder: u32| digit_of.get(holder as usize).copied().unwrap_or(RARE);
    let dense = |holder: u32| match digit(holder) {
        RARE => 0,
        digit => digit,
    };
    pack_holders(rows, &digits, dense, out);
    let rare: Vec<u64> = (0u64..)
        .zip(rows)
        .filter(|(_, row)| digit(row.holder()) == RARE)
        .map(|(at, _)| at)
        .collect();
    set_write::write(out, all, &rare);
    ints::write(out, &some(rows, &rare, |row| row.holder().into()));
}

fn pack_holders(rows: &[Row], digits: &Digits, digit: impl Fn(u32) -> u32, out: &mut Vec<u8>) {
    if digits.width() == 0 {
        return;
    }
    let mut packed = BitWriter::with_capacity(digits.size(rows.len() as u64) as usize);
    let mut chunk = [0u32; CHUNK];
    for rows in rows.chunks(CHUNK) {
        for (slot, row) in chunk.iter_mut().zip(rows) {
            *slot = digit(row.holder());
        }
        digits.write(chunk.get(..rows.len()).unwrap_or_default(), &mut packed);
    }
    out.extend_from_slice(&packed.finish());
}

fn write_candidates(rows: &[Row], candidates: u64, out: &mut Vec<u8>) {
    if candidates == 0 {
        out.push(NONE);
        return;
    }
    let mut set = Bitmap {
        words: Vec::with_capacity(rows.len().div_ceil(64)),
        len: rows.len() as u64,
        members: candidates,
    };
    // One more, for a candidate is written in any case and passed only if there is one.
    let mut numbers = vec![0; candidates as usize + 1];
    let mut next = 0;
    for rows in rows.chunks(64) {
        let mut word = 0;
        for (bit, row) in rows.iter().enumerate() {
            let (_, candidate, _) = row.words();
            let has = candidate != Row::NO_CANDIDATE;
            if let Some(slot) = numbers.get_mut(next) {
                *slot = candidate.into();
            }
            next += usize::from(has);
            word |= u64::from(has) << bit;
        }
        set.words.push(word);
    }
    numbers.truncate(next);
    set.write(out);
    ints::write(out, &numbers);
}

fn write_expirations(batch: &LeaseBatch, own: &[u64], out: &mut Vec<u8>) {
    let rows = batch.rows();
    let common = batch.common_expiration();
    set_write::write(out, rows.len() as u64, own);
    if own.is_empty() {
        return;
    }
    let physical = |row: &Row| row.expiration(common).physical();
    ints::write(out, &some(rows, own, physical));
    let logicals = some(rows, own, |row| row.expiration(common).logical().into());
    let with_logical: Vec<u64> = (0u64..)
        .zip(&logicals)
        .filter(|(_, logical)| **logical != 0)
        .map(|(at, _)| at)
        .collect();
    set_write::write(out, own.len() as u64, &with_logical);
    let logicals: Vec<u64> = logicals
        .into_iter()
        .filter(|logical| *logical != 0)
        .collect();
    ints::write(out, &logicals);
}
