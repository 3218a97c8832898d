//! Writing a batch.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::ids::{GroupId, GroupKind};

use super::super::error::EncodeError;
use super::super::{DecodeLimits, varint};
use super::column::CHUNK;
use super::dictionary::{self, too_large};
use super::ints;
use super::nodes::{CandidateColumn, HolderColumn};
use super::sample::sample;
use super::seal::{self, HEADER_SIZE};
use super::set_write;
use super::starts::StartColumns;
use super::survey::{Object, PARTITION_BITS, Rare, Survey};

/// Appends a batch.
pub(crate) fn encode(batch: &LeaseBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let rows = batch.rows();
    let limit = DecodeLimits::default().max_leases;
    if rows.len() > limit {
        return Err(too_large("a number of leases", rows.len(), limit));
    }
    dictionary::check(batch)?;
    let start = out.len();
    let nodes = batch.dictionary().nodes().len();
    out.reserve(HEADER_SIZE + 128 + 32 * nodes + 2 * rows.len());
    out.resize(start + HEADER_SIZE, 0);
    varint::put(out, rows.len() as i64);
    let common = batch.common_expiration();
    varint::put(out, common.physical() as i64);
    varint::put(out, common.logical().into());
    dictionary::write(batch.dictionary(), out)?;
    if !rows.is_empty() {
        write_columns(batch, out);
    }
    let size = out.len() - start;
    seal::seal(out, start).ok_or_else(|| too_large("a batch", size, u32::MAX as usize))
}

fn write_columns(batch: &LeaseBatch, out: &mut Vec<u8>) {
    let rows = batch.rows();
    let all = rows.len() as u64;
    let dictionary = batch.dictionary();
    let sampled = sample(rows);
    let mut survey = Survey::new(batch);
    let mut holders = HolderColumn::new(dictionary.nodes().len(), &sampled);
    let mut candidates = CandidateColumn::new(dictionary.names().len(), &sampled);
    let mut starts = StartColumns::new(&sampled);
    for rows in rows.chunks(CHUNK) {
        let with_candidate = survey.chunk(rows);
        holders.chunk(rows);
        candidates.chunk(rows, &with_candidate);
        starts.chunk(rows, &survey.objects);
    }

    write_objects(rows, &survey, out);
    holders.finish(out);
    candidates.finish(out);
    set_write::write(out, all, &survey.with(Rare::Unaccepted));
    set_write::write(out, all, &survey.with(Rare::Irregular));
    write_expirations(batch, &survey.with(Rare::OwnExpiration), out);
    starts.finish(&survey.objects, out);
    let logical = |row: &Row| row.logical_start().into();
    let logical_starts = survey.with(Rare::LogicalStart);
    set_write::write(out, all, &logical_starts);
    ints::write(out, &some(rows, &logical_starts, logical));
}

/// A property of the rows at some positions.
fn some(rows: &[Row], positions: &[u64], property: impl Fn(&Row) -> u64) -> Vec<u64> {
    let rows = positions.iter().filter_map(|at| rows.get(*at as usize));
    rows.map(property).collect()
}

fn write_objects(rows: &[Row], survey: &Survey<'_>, out: &mut Vec<u8>) {
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
    let mut stride = 0;
    for object in others {
        stride = greatest_common_divisor(distance(object), stride);
        if stride == 1 {
            break;
        }
    }
    let span = others.last().map_or(0, distance) / stride + 1;
    varint::put(out, stride as i64);
    varint::put(out, (span - objects.len() as u64) as i64);
    if span > objects.len() as u64 {
        let steps: Vec<u64> = objects
            .iter()
            .map(|object| distance(object) / stride)
            .collect();
        set_write::write(out, span, &steps);
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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
