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
use super::picks::Picks;
use super::scan::Scan;
use super::set::{Mask, WORDS, each_one, is_in};

/// A cursor over the rows of a batch.
pub(super) struct Rows<'a, 'c> {
    columns: &'c Columns<'a>,
    common: HybridTimestamp,
    groups: Groups<'a, 'c>,
    at: usize,
    rare_holders: Option<Picks<'a, 'c>>,
    /// Where many have one.
    candidates: Option<SparseScan<'a, 'c>>,
    /// Where few do.
    few_candidates: Option<Picks<'a, 'c>>,
    unaccepted: Picks<'a, 'c>,
    irregular: Picks<'a, 'c>,
    expirations: Picks<'a, 'c>,
    expiration_logicals: Picks<'a, 'c>,
    event: SparseScan<'a, 'c>,
    odd_starts: Picks<'a, 'c>,
    start_logicals: Picks<'a, 'c>,
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
    events: Buffer<u64>,
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
        let expirations = Picks::at(&columns.expirations, row)?;
        let rare = columns.rare_holders.as_ref();
        let few = columns.candidates.set.is_few();
        let candidates = Some(&columns.candidates);
        let (many, few) = match few {
            true => (None, candidates),
            false => (candidates, None),
        };
        Ok(Self {
            columns,
            common,
            groups: Groups::at(&columns.objects, place)?,
            at: place.row,
            rare_holders: rare.map(|rare| Picks::at(rare, row)).transpose()?,
            candidates: many.map(|many| SparseScan::at(many, row)).transpose()?,
            few_candidates: few.map(|few| Picks::at(few, row)).transpose()?,
            unaccepted: Picks::of(&columns.unaccepted, row)?,
            irregular: Picks::of(&columns.irregular, row)?,
            expiration_logicals: Picks::at(&columns.expiration_logicals, expirations.rank())?,
            expirations,
            event: SparseScan::at(&columns.event, row)?,
            odd_starts: Picks::at(&columns.odd_starts, row)?,
            start_logicals: Picks::at(&columns.start_logicals, row)?,
            buffers: Box::new(Buffers {
                holders: buffer(0),
                candidates: buffer(0),
                offsets: buffer(0),
                starts: buffer(0),
                events: buffer(0),
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
            events,
            names,
        } = &mut *self.buffers;

        let holders = columns.holders.read(from, to, holders)?;
        if let (Some(frequent), Some(rare)) = (&columns.frequent, &mut self.rare_holders) {
            name_holders(frequent, holders);
            take_rare(columns, frequent, (from, to), holders, rare)?;
        }

        if let Some(many) = &mut self.candidates {
            let mut mask = [0; WORDS];
            let names = many.read(len, &mut mask, names)?;
            expand(&mask, names, candidates);
        }

        let mut eventful = [0; WORDS];
        let quiet = from - self.event.scan.rank() as usize;
        let events = self.event.read(len, &mut eventful, events)?;
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
        match self.candidates {
            None => dense.rows::<false>(len, groups, out)?,
            Some(_) => dense.rows::<true>(len, groups, out)?,
        }
        let rows = out.get_mut(first..).unwrap_or_default();
        patch(rows, &eventful, events, |row, start| {
            row.set_start(start << 16);
        });

        let least = columns.offsets.least();
        let mut two_starts = false;
        self.odd_starts.each(to as u64, |at, start| {
            let at = at as usize - from;
            if let Some(row) = rows.get_mut(at) {
                let event = with_events && is_in(&eventful, at);
                two_starts |= event || starts.get(at) != Some(&least);
                row.set_start(start << 16);
            }
        })?;
        if two_starts {
            let offset = columns.odd_starts.set.offset();
            let what = "an odd start has another start as well";
            return Err(invalid(offset, "odd starts", what));
        }
        self.patches(from, rows)?;
        self.at = to;
        Ok(())
    }

    /// What few rows have; `from` is the number of the first of them.
    fn patches(&mut self, from: usize, rows: &mut [Row]) -> Result<(), DecodeError> {
        let columns = self.columns;
        let to = (from + rows.len()) as u64;
        let at = |position: u64| position as usize - from;
        if let Some(few) = &mut self.few_candidates {
            few.each(to, |position, candidate| {
                if let Some(row) = rows.get_mut(at(position)) {
                    row.set_candidate(candidate as u32);
                }
            })?;
        }
        if columns.may_start_at_zero() {
            self.logicals_or_zero(from, rows)?;
        } else {
            self.start_logicals.each(to, |position, logical| {
                if let Some(row) = rows.get_mut(at(position)) {
                    row.set_start(row.packed_start() | logical);
                }
            })?;
        }
        for (picks, flag) in [
            (&mut self.unaccepted, ACCEPTED),
            (&mut self.irregular, PROLONGABLE),
        ] {
            picks.each(to, |position, _| {
                if let Some(row) = rows.get_mut(at(position)) {
                    row.flip(flag);
                }
            })?;
        }
        let common = self.common.composite();
        let mut rank = self.expirations.rank();
        let (mut failed, mut wrong) = (None, None);
        self.expirations.each(to, |position, physical| {
            let logical = match self.expiration_logicals.take(rank) {
                Ok(logical) => logical.unwrap_or(0),
                Err(error) => {
                    failed.get_or_insert(error);
                    0
                }
            };
            rank += 1;
            let own = physical << 16 | logical;
            let own = HybridTimestamp::from_composite(own).ok();
            if own.is_none_or(|own| own.composite() == common) {
                wrong = Some(own);
            }
            if let Some(row) = rows.get_mut(at(position)) {
                row.set_expiration(own);
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(own) = wrong {
            let what = match own {
                None => "a timestamp of 0 means \"none\"".to_owned(),
                Some(_) => format!("the common expiration {} as an own one", self.common),
            };
            let offset = columns.expirations.numbers.offset();
            return Err(invalid(offset, "expirations", what));
        }
        Ok(())
    }

    /// Logical parts of starts; a lease may start at physical 0 only with one.
    #[cold]
    fn logicals_or_zero(&mut self, from: usize, rows: &mut [Row]) -> Result<(), DecodeError> {
        for (row, position) in rows.iter_mut().zip(from as u64..) {
            let logical = self.start_logicals.take(position)?;
            row.set_start(row.packed_start() | logical.unwrap_or(0));
            if row.packed_start() == 0 {
                let what = format!("{}: a timestamp of 0 means \"none\"", row.group());
                let offset = self.columns.offsets.offset();
                return Err(invalid(offset, "start offsets", what));
            }
        }
        Ok(())
    }

    /// Checks, behind the last row, that nothing is left.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        self.groups.finish()?;
        self.event.scan.finish()?;
        if let Some(candidates) = &mut self.candidates {
            candidates.scan.finish()?;
        }
        let picks = [
            &mut self.unaccepted,
            &mut self.irregular,
            &mut self.expirations,
            &mut self.expiration_logicals,
            &mut self.odd_starts,
            &mut self.start_logicals,
        ];
        let candidates = &mut self.few_candidates;
        let picks = picks.into_iter().chain(candidates);
        for picks in picks.chain(&mut self.rare_holders) {
            picks.finish()?;
        }
        Ok(())
    }
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
fn name_holders(frequent: &[u32], holders: &mut [u32]) {
    match *frequent {
        // After a failover of one of three nodes: without a look into the table.
        [first, second] => {
            let both = first ^ second;
            for digit in holders {
                *digit = first ^ both & 0u32.wrapping_sub(*digit);
            }
        }
        _ => {
            for digit in holders {
                *digit = frequent.get(*digit as usize).copied().unwrap_or(0);
            }
        }
    }
}

/// Puts the rare holders among those of the rows `from..to`; they stand over the digit 0.
fn take_rare(
    columns: &Columns<'_>,
    frequent: &[u32],
    (from, to): (usize, usize),
    holders: &mut [u32],
    rare: &mut Picks<'_, '_>,
) -> Result<(), DecodeError> {
    let mut wrong = false;
    rare.each(to as u64, |at, node| {
        if let Some(holder) = holders.get_mut(at as usize - from) {
            wrong |= Some(&*holder) != frequent.first();
            wrong |= frequent.binary_search(&(node as u32)).is_ok();
            *holder = node as u32;
        }
    })?;
    if !wrong {
        return Ok(());
    }
    let offset = columns.frequent_set.offset();
    let what = "a rare holder that is frequent, or has a digit as well";
    Err(invalid(offset, "rare holders", what))
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
    fn read<'b, T: Lane>(
        &mut self,
        len: usize,
        mask: &mut Mask,
        out: &'b mut Buffer<T>,
    ) -> Result<&'b [T], DecodeError> {
        let from = self.scan.rank() as usize;
        match self.scan.block(len, mask)? {
            0 => Ok(&[]),
            count => Ok(self.numbers.read(from, from + count, out)?),
        }
    }
}
