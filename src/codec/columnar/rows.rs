//! Rows from columns, a block at a time: the dense columns first, then what is rare on top.

use crate::model::batch::Row;
use crate::model::hlc::{HybridTimestamp, MAX_PHYSICAL};

use super::super::error::DecodeError;
use super::super::reader::invalid;
use super::dense::{ACCEPTED, Dense, PROLONGABLE, expand, spread};
use super::digits::Lane;
use super::groups::{Groups, Place};
use super::ints::{Buffer, Ints, buffer};
use super::layout::{Columns, Sparse};
use super::scan::Scan;
use super::set::{Mask, WORDS, each_one};

/// A cursor over the rows of a batch.
pub(super) struct Rows<'a, 'c> {
    columns: &'c Columns<'a>,
    common: HybridTimestamp,
    groups: Groups<'a, 'c>,
    at: usize,
    rare_holders: Option<SparseScan<'a, 'c>>,
    candidates: SparseScan<'a, 'c>,
    unaccepted: Scan<'a>,
    irregular: Scan<'a>,
    expirations: SparseScan<'a, 'c>,
    expiration_logicals: SparseScan<'a, 'c>,
    event: SparseScan<'a, 'c>,
    odd_starts: SparseScan<'a, 'c>,
    start_logicals: SparseScan<'a, 'c>,
    buffers: Box<Buffers>,
}

/// A block of each column.
struct Buffers {
    holders: Buffer<u32>,
    candidates: Buffer<u32>,
    offsets: Buffer<u64>,
    /// Starts, relative or not.
    starts: Buffer<u64>,
    /// Numbers at some positions.
    some: Buffer<u64>,
    names: Buffer<u32>,
}

impl<'a, 'c> Rows<'a, 'c> {
    /// From a row on.
    pub(super) fn at(
        columns: &'c Columns<'a>,
        common: HybridTimestamp,
        place: Place,
    ) -> Result<Self, DecodeError> {
        let row = place.row as u64;
        let expirations = SparseScan::at(&columns.expirations, row)?;
        let own = expirations.scan.rank();
        Ok(Self {
            columns,
            common,
            groups: Groups::at(&columns.objects, place)?,
            at: place.row,
            rare_holders: match &columns.rare_holders {
                Some(rare) => Some(SparseScan::at(rare, row)?),
                None => None,
            },
            candidates: SparseScan::at(&columns.candidates, row)?,
            unaccepted: columns.unaccepted.scan(row)?,
            irregular: columns.irregular.scan(row)?,
            expiration_logicals: SparseScan::at(&columns.expiration_logicals, own)?,
            expirations,
            event: SparseScan::at(&columns.event, row)?,
            odd_starts: SparseScan::at(&columns.odd_starts, row)?,
            start_logicals: SparseScan::at(&columns.start_logicals, row)?,
            buffers: Box::new(Buffers {
                holders: buffer(0),
                candidates: buffer(0),
                offsets: buffer(0),
                starts: buffer(0),
                some: buffer(0),
                names: buffer(0),
            }),
        })
    }

    /// Appends the next `len` rows, at most a block.
    pub(super) fn block(&mut self, len: usize, out: &mut Vec<Row>) -> Result<(), DecodeError> {
        let columns = self.columns;
        let (from, to) = (self.at, self.at + len);
        let first = out.len();
        let Buffers {
            holders,
            candidates,
            offsets,
            starts,
            some,
            names,
        } = &mut *self.buffers;

        let holders = columns.holders.read(from, to, holders)?;
        if let (Some(frequent), Some(rare)) = (&columns.frequent, &mut self.rare_holders) {
            let mut mask = [0; WORDS];
            let rare = rare.read(len, &mut mask, some)?;
            name_holders(columns, frequent, holders, &mask, rare)?;
        }

        let mut mask = [0; WORDS];
        let (skip, count) = self.candidates.read_at(len, &mut mask, names)?;
        let names = names.get(skip..skip + count).unwrap_or_default();
        // Few are written over rows without one, below.
        let with_candidates = 8 * count > len;
        if with_candidates {
            expand(&mask, names, candidates);
        }

        let mut eventful = [0; WORDS];
        let quiet = from - self.event.scan.rank() as usize;
        let events = self.event.read(len, &mut eventful, some)?;
        let offsets = (columns.offsets).read(quiet, quiet + len - events.len(), offsets)?;
        let with_events = !events.is_empty();
        let starts: &[u64] = if with_events {
            spread(&eventful, offsets, starts);
            starts
        } else {
            offsets
        };

        let groups = &mut self.groups;
        let dense = Dense {
            holders,
            candidates,
            starts,
            checked: !columns.may_start_too_late(),
            offset: columns.offsets.offset(),
        };
        match with_candidates {
            false => dense.rows::<false>(len, groups, out)?,
            true => dense.rows::<true>(len, groups, out)?,
        }
        let rows = out.get_mut(first..).unwrap_or_default();
        patch(rows, &eventful, events, |row, start| {
            row.set_start(timestamp(start, 0));
        });
        if !with_candidates {
            patch(rows, &mask, names, |row, candidate| {
                let (holder, _, flags) = row.words();
                let flags = flags & !PROLONGABLE;
                *row = Row::from_words(row.group(), row.start(), holder, candidate, flags);
            });
        }

        let mut odd = [0; WORDS];
        let odd_starts = self.odd_starts.read(len, &mut odd, some)?;
        if !odd_starts.is_empty() {
            let least = columns.offsets.least();
            let eventful = with_events.then_some(&eventful);
            check_odd(columns, &odd, eventful, starts, least)?;
            patch(rows, &odd, odd_starts, |row, start| {
                row.set_start(timestamp(start, 0));
            });
        }
        self.patches(rows)?;
        self.at = to;
        Ok(())
    }

    /// What few rows have.
    fn patches(&mut self, rows: &mut [Row]) -> Result<(), DecodeError> {
        let columns = self.columns;
        let some = &mut self.buffers.some;
        let mut logical = [0; WORDS];
        let logicals = self.start_logicals.read(rows.len(), &mut logical, some)?;
        if columns.may_start_at_zero() {
            check_zero(columns, rows, &logical)?;
        }
        patch(rows, &logical, logicals, |row, logical| {
            row.set_start(timestamp(physical(row.start()), logical as u16));
        });
        for (scan, flag) in [
            (&mut self.unaccepted, ACCEPTED),
            (&mut self.irregular, PROLONGABLE),
        ] {
            let mut mask = [0; WORDS];
            if scan.block(rows.len(), &mut mask)? > 0 {
                each_one(&mask, |at| {
                    if let Some(row) = rows.get_mut(at) {
                        let (holder, candidate, flags) = row.words();
                        let (group, start) = (row.group(), row.start());
                        *row = Row::from_words(group, start, holder, candidate, flags ^ flag);
                    }
                });
            }
        }
        let mut own = [0; WORDS];
        let physicals = self.expirations.read(rows.len(), &mut own, some)?;
        if physicals.is_empty() {
            return Ok(());
        }
        let mut expirations = [0; super::ints::BLOCK];
        for (slot, physical) in expirations.iter_mut().zip(&*physicals) {
            *slot = *physical << 16;
        }
        let expirations = expirations.get_mut(..physicals.len()).unwrap_or_default();
        let mut mask = [0; WORDS];
        let len = expirations.len();
        let logicals = self.expiration_logicals.read(len, &mut mask, some)?;
        patch(expirations, &mask, logicals, |expiration, logical| {
            *expiration |= logical;
        });
        let common = self.common.composite();
        if let Some(wrong) = expirations.iter().find(|own| **own == common || **own == 0) {
            let what = match wrong {
                0 => "a timestamp of 0 means \"none\"".to_owned(),
                _ => format!("the common expiration {} as an own one", self.common),
            };
            let offset = columns.expirations.numbers.offset();
            return Err(invalid(offset, "expirations", what));
        }
        patch(rows, &own, expirations, |row, expiration| {
            let own = HybridTimestamp::from_composite(expiration).ok();
            *row = Row::new(
                row.group(),
                row.start(),
                own,
                row.holder(),
                row.candidate(),
                row.accepted(),
                row.prolongable(),
            );
        });
        Ok(())
    }

    /// Checks, behind the last row, that nothing is left.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        self.groups.finish()?;
        let sparse = [
            &mut self.candidates,
            &mut self.expirations,
            &mut self.expiration_logicals,
            &mut self.event,
            &mut self.odd_starts,
            &mut self.start_logicals,
        ];
        for column in sparse.into_iter().chain(&mut self.rare_holders) {
            column.scan.finish()?;
        }
        self.unaccepted.finish()?;
        self.irregular.finish()
    }
}

/// A timestamp; 0.1 stands for 0.0, which no lease starts at.
#[inline]
fn timestamp(physical: u64, logical: u16) -> HybridTimestamp {
    HybridTimestamp::from_checked(physical << 16 | u64::from(logical))
}

/// The physical part of a start without a logical one.
fn physical(start: HybridTimestamp) -> u64 {
    start.physical()
}

/// Calls `set` with each item in a mask and its number.
#[inline]
fn patch<T, N: Copy>(items: &mut [T], mask: &Mask, numbers: &[N], mut set: impl FnMut(&mut T, N)) {
    let mut numbers = numbers.iter();
    if numbers.len() == 0 {
        return;
    }
    each_one(mask, |at| {
        if let (Some(item), Some(number)) = (items.get_mut(at), numbers.next()) {
            set(item, *number);
        }
    });
}

/// Turns digits into nodes where they stand for the frequent ones only.
fn name_holders(
    columns: &Columns<'_>,
    frequent: &[u32],
    holders: &mut [u32],
    mask: &Mask,
    rare: &[u64],
) -> Result<(), DecodeError> {
    let mut wrong = false;
    patch(holders, mask, rare, |digit, node| {
        wrong |= *digit != 0 || frequent.binary_search(&(node as u32)).is_ok();
    });
    if wrong {
        let offset = columns.frequent_set.offset();
        let what = "a rare holder that is frequent, or has a digit as well";
        return Err(invalid(offset, "rare holders", what));
    }
    match *frequent {
        // After a failover of one of three nodes: without a look into the table.
        [first, second] => {
            let both = first ^ second;
            for digit in holders.iter_mut() {
                *digit = first ^ both & 0u32.wrapping_sub(*digit);
            }
        }
        _ => {
            for digit in holders.iter_mut() {
                *digit = frequent.get(*digit as usize).copied().unwrap_or(0);
            }
        }
    }
    patch(holders, mask, rare, |holder, node| *holder = node as u32);
    Ok(())
}

/// Odd starts stand over a zero digit, and never over the event's.
#[cold]
fn check_odd(
    columns: &Columns<'_>,
    odd: &Mask,
    eventful: Option<&Mask>,
    starts: &[u64],
    least: u64,
) -> Result<(), DecodeError> {
    let mut wrong = false;
    each_one(odd, |at| {
        let event = eventful.is_some_and(|mask| {
            let word = mask.get(at / 64).copied().unwrap_or(0);
            word >> (at % 64) & 1 == 1
        });
        wrong |= event || starts.get(at) != Some(&least);
    });
    if !wrong {
        return Ok(());
    }
    let offset = columns.odd_starts.set.offset();
    let what = "an odd start has another start as well";
    Err(invalid(offset, "odd starts", what))
}

/// A lease may start at physical 0 only with a logical part.
#[cold]
fn check_zero(columns: &Columns<'_>, rows: &[Row], logical: &Mask) -> Result<(), DecodeError> {
    for (at, row) in rows.iter().enumerate() {
        let word = logical.get(at / 64).copied().unwrap_or(0);
        if row.start() == HybridTimestamp::MIN && word >> (at % 64) & 1 == 0 {
            let what = format!("{}: a timestamp of 0 means \"none\"", row.group());
            return Err(invalid(columns.offsets.offset(), "start offsets", what));
        }
    }
    Ok(())
}

impl Columns<'_> {
    fn may_start_too_late(&self) -> bool {
        self.objects.bases.most() + self.offsets.most() > MAX_PHYSICAL
    }

    fn may_start_at_zero(&self) -> bool {
        let zero = |numbers: &Ints<'_>| numbers.len() > 0 && numbers.least() == 0;
        zero(&self.objects.bases) && zero(&self.offsets)
            || zero(&self.event.numbers)
            || zero(&self.odd_starts.numbers)
    }
}

/// A cursor over a column that some rows have.
struct SparseScan<'a, 'c> {
    scan: Scan<'a>,
    numbers: &'c Ints<'a>,
}

impl<'a, 'c> SparseScan<'a, 'c> {
    fn at(column: &'c Sparse<'a>, row: u64) -> Result<Self, DecodeError> {
        Ok(Self {
            scan: column.set.scan(row)?,
            numbers: &column.numbers,
        })
    }

    /// Which of the next `len` rows have a number, and the numbers.
    #[inline]
    fn read<'b>(
        &mut self,
        len: usize,
        mask: &mut Mask,
        out: &'b mut Buffer<u64>,
    ) -> Result<&'b mut [u64], DecodeError> {
        let (skip, count) = self.read_at(len, mask, out)?;
        Ok(out.get_mut(skip..skip + count).unwrap_or_default())
    }

    /// The same; returns where in the buffer the numbers start, and how many there are.
    #[inline]
    fn read_at<T: Lane>(
        &mut self,
        len: usize,
        mask: &mut Mask,
        out: &mut Buffer<T>,
    ) -> Result<(usize, usize), DecodeError> {
        let from = self.scan.rank() as usize;
        let count = self.scan.block(len, mask)?;
        if count == 0 {
            return Ok((0, 0));
        }
        let skip = self.numbers.read_at(from, from + count, out)?;
        Ok((skip, count))
    }
}
