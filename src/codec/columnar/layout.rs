//! Where each column of a batch stands. Finding them reads the heads of the columns only.

use crate::model::dictionary::Dictionary;
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use crate::model::ids::{GroupId, GroupKind};

use super::super::error::{DecodeError, Defect};
use super::super::reader::{Reader, fault, invalid};
use super::dictionary::{names, nodes};
use super::ints::Ints;
use super::seal::HEADER_SIZE;
use super::set::Set;

/// Partitions that may lack a lease: no batch has more.
const MAX_HOLES: i64 = 1 << 62;

/// Numbers at some positions of a column.
#[derive(Clone, Debug)]
pub(super) struct Sparse<'a> {
    pub(super) set: Set<'a>,
    pub(super) numbers: Ints<'a>,
}

impl<'a> Sparse<'a> {
    fn find(
        reader: &mut Reader<'a>,
        field: &'static str,
        universe: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Self, DecodeError> {
        let set = Set::find(reader, field, universe)?;
        let numbers = Ints::find(reader, field, set.len() as usize, range)?;
        Ok(Self { set, numbers })
    }
}

/// The ids of all tables, or of all zones: first, and which multiples of the stride follow.
#[derive(Clone, Debug)]
pub(super) struct Section<'a> {
    pub(super) kind: GroupKind,
    pub(super) len: usize,
    pub(super) first: i32,
    pub(super) stride: u64,
    pub(super) steps: Set<'a>,
}

impl<'a> Section<'a> {
    fn find(
        reader: &mut Reader<'a>,
        kind: GroupKind,
        field: &'static str,
        leases: usize,
    ) -> Result<Self, DecodeError> {
        let len = reader.ranged(field, 0..=leases as i64)? as usize;
        let mut section = Self {
            kind,
            len,
            first: 0,
            stride: 1,
            steps: Set::all(0),
        };
        if len == 0 {
            return Ok(section);
        }
        section.first = reader.i32("object ids")?;
        section.steps = Set::all(1);
        if len == 1 {
            return Ok(section);
        }
        let span = u64::from(i32::MAX.abs_diff(section.first));
        section.stride = reader.ranged("object ids", 1..=u32::MAX.into())? as u64;
        let offset = reader.offset();
        let absent = reader.ranged("object ids", 0..=u32::MAX.into())? as u64;
        let steps = len as u64 + absent;
        let last = section.stride.checked_mul(steps - 1);
        if last.is_none_or(|last| last > span) {
            let what = format!(
                "{steps} ids from {} in steps of {} end beyond 32 bits",
                section.first, section.stride
            );
            return Err(invalid(offset, "object ids", what));
        }
        section.steps = Set::all(steps);
        if absent > 0 {
            section.steps = Set::find(reader, "object ids", steps)?;
            if section.steps.len() != len as u64 {
                let what = format!("{} of {len} objects", section.steps.len());
                return Err(invalid(section.steps.offset(), "object ids", what));
            }
        }
        Ok(section)
    }

    /// The id at a step.
    pub(super) fn id(&self, step: u64) -> i32 {
        (i64::from(self.first) + (self.stride * step) as i64) as i32
    }

    /// The object that has an id, or the next one, and whether it is the one.
    pub(super) fn locate(&self, id: i32) -> Result<(usize, bool), DecodeError> {
        if self.len == 0 || id < self.first {
            return Ok((0, false));
        }
        let distance = u64::from(id.abs_diff(self.first));
        let exact = distance.is_multiple_of(self.stride);
        let (before, within) = self.steps.rank(distance.div_ceil(self.stride))?;
        Ok((before as usize, exact && within))
    }
}

/// Which groups have a lease.
#[derive(Clone, Debug)]
pub(super) struct Objects<'a> {
    pub(super) sections: [Section<'a>; 2],
    /// Highest partition plus one of each object.
    pub(super) partitions: Ints<'a>,
    /// Which of all partitions have a lease.
    pub(super) present: Set<'a>,
    /// The smallest start of each object that is not an exception.
    pub(super) bases: Ints<'a>,
}

/// The columns of a batch with leases.
#[derive(Clone, Debug)]
pub(super) struct Columns<'a> {
    pub(super) leases: usize,
    pub(super) objects: Objects<'a>,
    /// The nodes that the digits of `holders` stand for, where these are not all.
    pub(super) frequent: Option<Vec<u32>>,
    pub(super) frequent_set: Set<'a>,
    pub(super) holders: Ints<'a>,
    pub(super) rare_holders: Option<Sparse<'a>>,
    pub(super) candidates: Sparse<'a>,
    pub(super) unaccepted: Set<'a>,
    pub(super) irregular: Set<'a>,
    pub(super) expirations: Sparse<'a>,
    pub(super) expiration_logicals: Sparse<'a>,
    pub(super) event: Sparse<'a>,
    pub(super) offsets: Ints<'a>,
    pub(super) odd_starts: Sparse<'a>,
    pub(super) start_logicals: Sparse<'a>,
}

/// All of a batch, its leases not read yet.
#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    pub(super) leases: usize,
    pub(super) common: HybridTimestamp,
    pub(super) dictionary: Dictionary,
    /// `None` in a batch without leases.
    pub(super) columns: Option<Columns<'a>>,
}

/// Is told which field ended at which offset.
pub(super) type Mark<'m> = &'m mut dyn FnMut(Field, usize);

/// The fields that bytes are counted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Header,
    Names,
    Nodes,
    ObjectIds,
    Partitions,
    Holes,
    Holders,
    RareHolders,
    Candidates,
    Flags,
    Expirations,
    StartBases,
    StartEvent,
    StartOffsets,
    OddStarts,
    StartLogicals,
}

impl<'a> Layout<'a> {
    /// Finds the columns of a batch whose seal is sound.
    pub(super) fn find(
        bytes: &'a [u8],
        max_leases: usize,
        mark: Mark<'_>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::at(bytes, HEADER_SIZE);
        let leases = reader.ranged("lease count", 0..=u32::MAX.into())? as usize;
        if leases > max_leases {
            let limit = max_leases;
            return Err(fault(
                HEADER_SIZE,
                "lease count",
                Defect::TooManyLeases { limit },
            ));
        }
        let offset = reader.offset();
        let physical = reader.ranged("common expiration", 0..=MAX_PHYSICAL as i64)?;
        let logical = reader.ranged("common expiration", 0..=u16::MAX.into())?;
        let common = HybridTimestamp::new(physical as u64, logical as u16)
            .map_err(|error| invalid(offset, "common expiration", error.to_string()))?;
        mark(Field::Header, reader.offset());
        let names = names(&mut reader)?;
        mark(Field::Names, reader.offset());
        let dictionary = nodes(&mut reader, names)?;
        mark(Field::Nodes, reader.offset());
        let columns = match leases {
            0 => None,
            _ => Some(Columns::find(&mut reader, leases, &dictionary, mark)?),
        };
        reader.finish("end")?;
        Ok(Self {
            leases,
            common,
            dictionary,
            columns,
        })
    }
}

impl<'a> Columns<'a> {
    fn find(
        reader: &mut Reader<'a>,
        leases: usize,
        dictionary: &Dictionary,
        mark: Mark<'_>,
    ) -> Result<Self, DecodeError> {
        let all = leases as u64;
        let nodes = dictionary.nodes().len() as u64;
        let names = dictionary.names().len() as u64;
        if nodes == 0 {
            let what = format!("{leases} leases, but no node that could hold them");
            return Err(invalid(HEADER_SIZE, "lease count", what));
        }
        let offset = reader.offset();
        let tables = Section::find(reader, GroupKind::Table, "table count", leases)?;
        let zones = Section::find(reader, GroupKind::Zone, "zone count", leases)?;
        let objects = tables.len + zones.len;
        if objects == 0 || objects > leases {
            let what = format!("{objects} tables and zones for {leases} leases");
            return Err(invalid(offset, "table count", what));
        }
        mark(Field::ObjectIds, reader.offset());
        let most = u64::from(GroupId::MAX_PARTITION) + 1;
        let partitions = Ints::find(reader, "partitions", objects, 1..=most)?;
        mark(Field::Partitions, reader.offset());
        let holes = reader.ranged("holes", 0..=MAX_HOLES)? as u64;
        let mut present = Set::all(all + holes);
        if holes > 0 {
            present = Set::find(reader, "holes", all + holes)?;
            if present.len() != all {
                let what = format!("{} partitions of {leases} leases", present.len());
                return Err(invalid(present.offset(), "holes", what));
            }
        }
        mark(Field::Holes, reader.offset());

        let frequent_set = Set::find(reader, "frequent holders", nodes)?;
        let frequent = frequent(&frequent_set)?;
        let Some(most) = frequent_set.len().checked_sub(1) else {
            let what = "no frequent holder";
            return Err(invalid(frequent_set.offset(), "frequent holders", what));
        };
        let holders = Ints::find(reader, "holders", leases, 0..=most)?;
        mark(Field::Holders, reader.offset());
        let rare_holders = match frequent {
            None => None,
            Some(_) => Some(Sparse::find(reader, "rare holders", all, 0..=nodes - 1)?),
        };
        mark(Field::RareHolders, reader.offset());
        let candidates = Sparse::find(reader, "candidates", all, 0..=names.saturating_sub(1))?;
        if names == 0 && !candidates.set.is_empty() {
            let what = "candidates, but no names";
            return Err(invalid(candidates.set.offset(), "candidates", what));
        }
        mark(Field::Candidates, reader.offset());
        let unaccepted = Set::find(reader, "unaccepted", all)?;
        let irregular = Set::find(reader, "irregular", all)?;
        mark(Field::Flags, reader.offset());
        let expirations = Sparse::find(reader, "expirations", all, 0..=MAX_PHYSICAL)?;
        let own = expirations.set.len();
        let expiration_logicals = match own {
            0 => Sparse {
                set: Set::all(0),
                numbers: Ints::find(reader, "expiration logicals", 0, 1..=1)?,
            },
            _ => Sparse::find(reader, "expiration logicals", own, 1..=u16::MAX.into())?,
        };
        mark(Field::Expirations, reader.offset());

        let bases = Ints::find(reader, "start bases", objects, 0..=MAX_PHYSICAL)?;
        mark(Field::StartBases, reader.offset());
        let event = Sparse::find(reader, "event starts", all, 0..=MAX_PHYSICAL)?;
        mark(Field::StartEvent, reader.offset());
        let quiet = (all - event.set.len()) as usize;
        let room = MAX_PHYSICAL - bases.least();
        let offsets = Ints::find(reader, "start offsets", quiet, 0..=room)?;
        mark(Field::StartOffsets, reader.offset());
        let odd_starts = Sparse::find(reader, "odd starts", all, 0..=MAX_PHYSICAL)?;
        mark(Field::OddStarts, reader.offset());
        let start_logicals = Sparse::find(reader, "start logicals", all, 1..=u16::MAX.into())?;
        mark(Field::StartLogicals, reader.offset());
        Ok(Self {
            leases,
            objects: Objects {
                sections: [tables, zones],
                partitions,
                present,
                bases,
            },
            frequent,
            frequent_set,
            holders,
            rare_holders,
            candidates,
            unaccepted,
            irregular,
            expirations,
            expiration_logicals,
            event,
            offsets,
            odd_starts,
            start_logicals,
        })
    }
}

/// The members of the set of frequent holders, unless these are all nodes.
fn frequent(set: &Set<'_>) -> Result<Option<Vec<u32>>, DecodeError> {
    if set.is_all() {
        return Ok(None);
    }
    let mut members = Vec::new();
    let mut scan = set.scan(0)?;
    while let Some((first, len)) = scan.run()? {
        members.extend((first..first + len).map(|node| node as u32));
    }
    scan.finish()?;
    Ok(Some(members))
}
