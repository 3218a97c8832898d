//! A batch of which only what is asked for is read.

use crate::model::batch::Row;
use crate::model::dictionary::Dictionary;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, GroupKind};
use crate::model::lease::Lease;

use super::super::DecodeLimits;
use super::super::error::DecodeError;
use super::super::reader::invalid;
use super::groups::Place;
use super::ints::{BLOCK, Ints, buffer};
use super::layout::{Columns, Layout};
use super::rows::Rows;
use super::seal;

/// A `columnar` batch that is read where it lies: opening it verifies the checksum and finds the
/// columns; a table, a group or a row is then read without the others.
///
/// What is read is checked as [`decode`](crate::codec::decode) does; what is not read is not, so
/// that a batch with a defect elsewhere may be open.
#[derive(Clone, Debug)]
pub struct LeaseBatchView<'a> {
    layout: Layout<'a>,
}

/// Where a group stands among the rows of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// It has a lease: the row with this number.
    Found(usize),
    /// It has none; its lease would be before the row with this number.
    WouldBe(usize),
}

/// The rows of a table or zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectRows {
    /// Number of the first row in the batch.
    pub first: usize,
    /// The rows, ascending by partition.
    pub rows: Vec<Row>,
}

/// An object that has leases.
struct Located {
    /// Number of the object.
    object: usize,
    /// Partitions of the objects before, and with this one.
    before: u64,
    end: u64,
}

impl<'a> LeaseBatchView<'a> {
    /// Opens a batch.
    ///
    /// # Errors
    /// If the bytes are not a sound `columnar` batch as far as can be seen without its leases,
    /// or have more leases than [`DecodeLimits::default`] allows.
    pub fn open(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        seal::verify(bytes)?;
        Self::open_verified(bytes)
    }

    /// The same where the checksum has been verified.
    pub(crate) fn open_verified(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let limits = DecodeLimits::default();
        let layout = Layout::find(bytes, limits.max_leases, &mut |_, _| {})?;
        Ok(Self { layout })
    }

    /// Number of leases.
    pub fn len(&self) -> usize {
        self.layout.leases
    }

    /// Whether there is no lease.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The expiration of every row that has none of its own.
    pub fn common_expiration(&self) -> HybridTimestamp {
        self.layout.common
    }

    /// What the rows' indexes refer to.
    pub fn dictionary(&self) -> &Dictionary {
        &self.layout.dictionary
    }

    /// The rows of a table or zone; `None` if it has no lease.
    ///
    /// # Errors
    /// If what is read on the way is not sound.
    pub fn rows_of(&self, kind: GroupKind, object: i32) -> Result<Option<ObjectRows>, DecodeError> {
        let Some(columns) = &self.layout.columns else {
            return Ok(None);
        };
        let Ok(located) = columns.locate(kind, object)? else {
            return Ok(None);
        };
        let first = columns.row_of(located.before)?;
        let end = columns.row_of(located.end)?;
        let place = Place {
            row: first,
            object: located.object,
            before: located.before,
            slot: located.before,
        };
        let rows = self.read(columns, place, end.saturating_sub(first))?;
        Ok(Some(ObjectRows { first, rows }))
    }

    /// The leases of a table or zone, ascending by partition.
    ///
    /// # Errors
    /// As [`rows_of`](Self::rows_of).
    pub fn leases_of(&self, kind: GroupKind, object: i32) -> Result<Vec<Lease>, DecodeError> {
        let found = self.rows_of(kind, object)?;
        let rows = found.map_or_else(Vec::new, |found| found.rows);
        Ok(rows.iter().map(|row| self.to_lease(row)).collect())
    }

    /// Where a group's row stands or would stand.
    ///
    /// # Errors
    /// As [`rows_of`](Self::rows_of).
    pub fn position(&self, group: GroupId) -> Result<Position, DecodeError> {
        Ok(match self.place(group)? {
            Ok(place) => Position::Found(place.row),
            Err(row) => Position::WouldBe(row),
        })
    }

    /// The lease of a group.
    ///
    /// # Errors
    /// As [`rows_of`](Self::rows_of).
    pub fn lease(&self, group: GroupId) -> Result<Option<Lease>, DecodeError> {
        let row = self.row(group)?;
        Ok(row.map(|row| self.to_lease(&row)))
    }

    /// The row of a group.
    ///
    /// # Errors
    /// As [`rows_of`](Self::rows_of).
    pub fn row(&self, group: GroupId) -> Result<Option<Row>, DecodeError> {
        let (Some(columns), Ok(place)) = (&self.layout.columns, self.place(group)?) else {
            return Ok(None);
        };
        Ok(self.read(columns, place, 1)?.pop())
    }

    /// The row with a number; `None` behind the last one.
    ///
    /// # Errors
    /// As [`rows_of`](Self::rows_of).
    pub fn row_at(&self, index: usize) -> Result<Option<Row>, DecodeError> {
        let Some(columns) = &self.layout.columns else {
            return Ok(None);
        };
        match columns.place_of(index)? {
            Some(place) => Ok(self.read(columns, place, 1)?.pop()),
            None => Ok(None),
        }
    }

    /// The self-contained form of a row of this batch.
    pub fn to_lease(&self, row: &Row) -> Lease {
        let dictionary = self.dictionary();
        let (holder_id, holder_name) = dictionary.node(row.holder());
        Lease {
            group: row.group(),
            holder_name: holder_name.clone(),
            holder_id,
            start: row.start(),
            expiration: row.expiration(self.layout.common),
            accepted: row.accepted(),
            prolongable: row.prolongable(),
            proposed_candidate: row.candidate().map(|index| dictionary.name(index).clone()),
        }
    }

    /// Where a group's row stands, or else the number that it would have.
    fn place(&self, group: GroupId) -> Result<Result<Place, usize>, DecodeError> {
        let Some(columns) = &self.layout.columns else {
            return Ok(Err(0));
        };
        let located = match columns.locate(group.kind(), group.object())? {
            Ok(located) => located,
            Err(before) => return Ok(Err(columns.row_of(before)?)),
        };
        let slot = located.before + u64::from(group.partition());
        if slot >= located.end {
            return Ok(Err(columns.row_of(located.end)?));
        }
        let (row, present) = columns.objects.present.rank(slot)?;
        let place = Place {
            row: row as usize,
            object: located.object,
            before: located.before,
            slot,
        };
        Ok(if present { Ok(place) } else { Err(place.row) })
    }

    /// Rows from a place on.
    fn read(
        &self,
        columns: &Columns<'a>,
        place: Place,
        len: usize,
    ) -> Result<Vec<Row>, DecodeError> {
        let end = place.row.saturating_add(len);
        if end > columns.leases {
            let what = format!("more than {} leases", columns.leases);
            return Err(invalid(
                columns.objects.partitions.offset(),
                "partitions",
                what,
            ));
        }
        let mut rows = Vec::with_capacity(len.min(BLOCK));
        let mut scan = Rows::at(columns, self.layout.common, place)?;
        while rows.len() < len {
            scan.block(BLOCK.min(len - rows.len()), &mut rows)?;
        }
        Ok(rows)
    }
}

impl Columns<'_> {
    /// An object, or if it has no lease the partitions of all objects before it.
    fn locate(&self, kind: GroupKind, id: i32) -> Result<Result<Located, u64>, DecodeError> {
        let [tables, zones] = &self.objects.sections;
        let (section, others) = match kind {
            GroupKind::Table => (tables, 0),
            GroupKind::Zone => (zones, tables.len),
        };
        let (local, exact) = section.locate(id)?;
        let object = others + local;
        let partitions = &self.objects.partitions;
        let before = sum(partitions, object.min(partitions.len()))?;
        if !exact || object >= partitions.len() {
            return Ok(Err(before));
        }
        let end = before + partitions.get(object)?;
        Ok(Ok(Located {
            object,
            before,
            end,
        }))
    }

    /// The first row at a partition, counted over all objects, or behind it.
    fn row_of(&self, slot: u64) -> Result<usize, DecodeError> {
        let (row, _) = self.objects.present.rank(slot)?;
        Ok(row as usize)
    }

    /// Where the row with a number stands.
    fn place_of(&self, row: usize) -> Result<Option<Place>, DecodeError> {
        if row >= self.leases {
            return Ok(None);
        }
        let Some(slot) = self.objects.present.select(row as u64)? else {
            return Ok(None);
        };
        let partitions = &self.objects.partitions;
        let mut place = Place {
            row,
            object: 0,
            before: 0,
            slot,
        };
        if let Some(each) = partitions.constant() {
            place.object = (slot / each.max(1)) as usize;
            place.before = place.object as u64 * each;
            return Ok(Some(place));
        }
        let mut block = buffer(0u64);
        while place.object < partitions.len() {
            let to = partitions.len().min(place.object + BLOCK);
            for each in partitions.read(place.object, to, &mut block)? {
                if slot < place.before + *each {
                    return Ok(Some(place));
                }
                place.before += *each;
                place.object += 1;
            }
        }
        let what = format!("row {row} is behind the last partition");
        Err(invalid(partitions.offset(), "partitions", what))
    }
}

/// The sum of the first `len` numbers.
fn sum(numbers: &Ints<'_>, len: usize) -> Result<u64, DecodeError> {
    if let Some(each) = numbers.constant() {
        return Ok(len as u64 * each);
    }
    let mut sum = 0;
    numbers.each(0, len, |number| sum += number)?;
    Ok(sum)
}
