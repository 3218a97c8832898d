//! The groups of added rows, ascending: a bit each within a run of partitions.

use crate::codec::error::DecodeError;
use crate::codec::reader::invalid;
use crate::model::ids::{GroupId, GroupKind};

use super::MAX_CHANGES;
use super::bits::{BitReader, BitWriter, unzigzag, within, zigzag};

const FIELD: &str = "added group";

/// Writes a number of groups and the groups; at least one.
pub(super) fn write<'a>(bits: &mut BitWriter, groups: impl ExactSizeIterator<Item = &'a GroupId>) {
    bits.number(groups.len() as u64 - 1);
    let mut before: Option<GroupId> = None;
    for group in groups {
        match before {
            None => object(bits, *group),
            Some(last) if !last.same_object(*group) => {
                bits.bits(0b11, 2);
                let same_kind = last.kind() == group.kind();
                bits.bit(!same_kind);
                if same_kind {
                    let step = i64::from(group.object()) - i64::from(last.object());
                    bits.number(step as u64 - 1);
                    bits.number(group.partition().into());
                } else {
                    object_and_partition(bits, *group);
                }
            }
            Some(last) => {
                let gap = group.partition() - last.partition() - 1;
                bits.bit(gap > 0);
                if gap > 0 {
                    bits.bit(false);
                    bits.number(u64::from(gap - 1));
                }
            }
        }
        before = Some(*group);
    }
}

/// The first group, of which nothing is known.
fn object(bits: &mut BitWriter, group: GroupId) {
    bits.bit(group.kind() == GroupKind::Zone);
    object_and_partition(bits, group);
}

fn object_and_partition(bits: &mut BitWriter, group: GroupId) {
    bits.number(zigzag(group.object().into()));
    bits.number(group.partition().into());
}

pub(super) fn read(bits: &mut BitReader<'_>) -> Result<Vec<GroupId>, DecodeError> {
    let count = bits.count(MAX_CHANGES, 1, "added count")?;
    let mut groups: Vec<GroupId> = Vec::with_capacity(count);
    for _ in 0..count {
        let offset = bits.offset();
        let group = match groups.last() {
            None => {
                let kind = if bits.bit(FIELD)? {
                    GroupKind::Zone
                } else {
                    GroupKind::Table
                };
                first_of(bits, kind)?
            }
            Some(last) => next(bits, *last)?,
        };
        groups.push(
            group.ok_or_else(|| invalid(offset, FIELD, "an object or a partition out of range"))?,
        );
    }
    Ok(groups)
}

fn next(bits: &mut BitReader<'_>, last: GroupId) -> Result<Option<GroupId>, DecodeError> {
    if !bits.bit(FIELD)? {
        return Ok(partition(last, 1));
    }
    if !bits.bit(FIELD)? {
        let gap = bits.number(FIELD)?;
        return Ok(partition(last, gap.saturating_add(2)));
    }
    if !bits.bit(FIELD)? {
        let step = bits.number(FIELD)?;
        let object = i64::try_from(step).ok();
        let object = object.and_then(|step| step.checked_add(i64::from(last.object()) + 1));
        return group(bits, last.kind(), object);
    }
    let offset = bits.offset();
    // Zones stand after tables.
    within(offset, FIELD, u64::from(last.kind() == GroupKind::Zone), 0)?;
    first_of(bits, GroupKind::Zone)
}

fn first_of(bits: &mut BitReader<'_>, kind: GroupKind) -> Result<Option<GroupId>, DecodeError> {
    let object = unzigzag(bits.number(FIELD)?);
    group(bits, kind, Some(object))
}

fn group(
    bits: &mut BitReader<'_>,
    kind: GroupKind,
    object: Option<i64>,
) -> Result<Option<GroupId>, DecodeError> {
    let partition = i64::try_from(bits.number(FIELD)?).ok();
    let object = object.and_then(|object| i32::try_from(object).ok());
    Ok(object
        .zip(partition)
        .and_then(|(object, partition)| GroupId::new(kind, object, partition).ok()))
}

/// The partition so many after another of the same object.
fn partition(last: GroupId, step: u64) -> Option<GroupId> {
    let partition = u64::from(last.partition()).checked_add(step)?;
    GroupId::new(last.kind(), last.object(), i64::try_from(partition).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(groups: &[GroupId]) -> Vec<u8> {
        let mut bits = BitWriter::default();
        write(&mut bits, groups.iter());
        bits.finish()
    }

    #[test]
    fn both_ways_and_a_table_takes_four_bytes() {
        let mut groups = Vec::new();
        for kind in [GroupKind::Table, GroupKind::Zone] {
            for object in [i32::MIN, -7, 0, 1, 2, i32::MAX] {
                let last = i64::from(GroupId::MAX_PARTITION);
                for partition in [0, 1, 2, 9, 10, last - 2, last] {
                    groups.push(GroupId::new(kind, object, partition).unwrap());
                }
            }
        }
        for from in 0..groups.len() {
            let bytes = written(&groups[from..]);
            let mut bits = BitReader::at(&bytes, 0);
            assert_eq!(read(&mut bits).unwrap(), groups[from..]);
            assert_eq!(bits.finish(), Ok(()));
        }
        let tables = (1..=100).flat_map(|object| {
            (0..25).map(move |partition| GroupId::new(GroupKind::Table, object, partition).unwrap())
        });
        assert!(written(&tables.collect::<Vec<_>>()).len() < 400);
    }
}
