//! Goes through the groups of a batch: partitions of one object without a gap between them are
//! given at once.

use crate::model::ids::GroupId;

use super::super::error::DecodeError;
use super::super::reader::invalid;
use super::ints::{BLOCK, Buffer, buffer};
use super::layout::Objects;
use super::scan::Scan;

/// Where reading starts: a row with its object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Number of the row.
    pub(super) row: usize,
    /// Number of its object.
    pub(super) object: usize,
    /// Partitions of the objects before.
    pub(super) before: u64,
    /// The row's partition, after those.
    pub(super) slot: u64,
}

/// Leases of consecutive partitions of an object.
pub(super) struct Segment {
    /// The first group.
    pub(super) first: GroupId,
    /// Number of leases.
    pub(super) len: usize,
    /// What the offsets of their starts are relative to.
    pub(super) base: u64,
}

/// A cursor over the groups.
pub(super) struct Groups<'a, 'c> {
    objects: &'c Objects<'a>,
    /// Number of the object after the current one.
    next: usize,
    section: usize,
    ids: Scan<'a>,
    /// Steps of ids that follow each other, and how many are left.
    steps: (u64, u64),
    loaded: usize,
    partitions: Box<Buffer<u32>>,
    bases: Box<Buffer<u64>>,
    present: Scan<'a>,
    /// Present partitions without a gap, and how many are left.
    run: (u64, u64),
    /// Partitions of the objects before the current one, and with it.
    start: u64,
    end: u64,
    /// The partition after the last one given.
    given: u64,
    first: GroupId,
    base: u64,
}

impl<'a, 'c> Groups<'a, 'c> {
    pub(super) fn at(objects: &'c Objects<'a>, place: Place) -> Result<Self, DecodeError> {
        let [tables, zones] = &objects.sections;
        let (section, local) = match place.object.checked_sub(tables.len) {
            None => (tables, place.object),
            Some(local) => (zones, local),
        };
        let step = section.steps.select(local as u64)?.unwrap_or(0);
        Ok(Self {
            objects,
            next: place.object,
            section: usize::from(place.object >= tables.len),
            ids: section.steps.scan(step)?,
            steps: (0, 0),
            loaded: usize::MAX,
            partitions: Box::new(buffer(0)),
            bases: Box::new(buffer(0)),
            present: objects.present.scan(place.slot)?,
            run: (0, 0),
            start: place.before,
            end: place.before,
            given: place.before,
            first: GroupId::first_of(section.kind, 0),
            base: 0,
        })
    }

    /// Passes on the next `len` leases.
    #[inline(always)]
    pub(super) fn segments(
        &mut self,
        mut len: usize,
        mut visit: impl FnMut(Segment),
    ) -> Result<(), DecodeError> {
        while len > 0 {
            len -= self.whole_objects(len, &mut visit);
            if len > 0 {
                let segment = self.segment(len)?;
                len -= segment.len;
                visit(segment);
            }
        }
        Ok(())
    }

    /// Passes on objects that lack no lease and follow each other by the usual step, as long as
    /// they do not need more than `most` leases; returns how many they had.
    #[inline(always)]
    fn whole_objects(&mut self, most: usize, visit: &mut impl FnMut(Segment)) -> usize {
        let in_block = self.next % BLOCK;
        let (slot, present) = self.run;
        let (first_step, steps) = self.steps;
        let at_start = self.given == self.end && slot == self.end;
        let Some(section) = self.objects.sections.get(self.section) else {
            return 0;
        };
        if !at_start || self.loaded != self.next - in_block {
            return 0;
        }
        let block = in_block..BLOCK;
        let partitions = self.partitions.get(block.clone()).unwrap_or_default();
        let bases = self.bases.get(block).unwrap_or_default();
        let most = (most as u64).min(present);
        let (mut given, mut step, mut last) = (0, first_step, 0);
        for (partitions, base) in partitions.iter().zip(bases) {
            let len = u64::from(*partitions);
            if given + len > most || step - first_step == steps {
                break;
            }
            visit(Segment {
                first: GroupId::first_of(section.kind, section.id(step)),
                len: len as usize,
                base: *base,
            });
            (given, step, last) = (given + len, step + 1, len);
        }
        if given > 0 {
            let objects = step - first_step;
            self.next += objects as usize;
            self.steps = (step, steps - objects);
            self.run = (slot + given, present - given);
            self.end += given;
            self.start = self.end - last;
            self.given = self.end;
            self.first = GroupId::first_of(section.kind, section.id(step - 1));
        }
        given as usize
    }

    /// The next leases of one object, at most so many.
    #[inline]
    fn segment(&mut self, most: usize) -> Result<Segment, DecodeError> {
        if self.run.1 == 0 {
            self.run = (self.present.run()?).ok_or_else(|| self.wrong("too few partitions"))?;
        }
        let (slot, left) = self.run;
        while slot >= self.end {
            self.object()?;
        }
        let len = left.min(self.end - slot).min(most as u64);
        self.run = (slot + len, left - len);
        self.given = slot + len;
        Ok(Segment {
            first: self.first.with_partition((slot - self.start) as u32),
            len: len as usize,
            base: self.base,
        })
    }

    /// Goes to the next object.
    fn object(&mut self) -> Result<(), DecodeError> {
        self.check_last_partition()?;
        let number = self.next;
        self.next += 1;
        let in_block = number % BLOCK;
        if self.loaded != number - in_block {
            self.load(number - in_block)?;
        }
        let (Some(partitions), Some(base)) =
            (self.partitions.get(in_block), self.bases.get(in_block))
        else {
            return Err(self.wrong("no such object"));
        };
        self.start = self.end;
        self.end += u64::from(*partitions);
        self.base = *base;
        while self.steps.1 == 0 {
            match self.ids.run()? {
                Some(run) => self.steps = run,
                None => self.next_section()?,
            }
        }
        let (step, left) = self.steps;
        self.steps = (step + 1, left - 1);
        if let Some(section) = self.objects.sections.get(self.section) {
            self.first = GroupId::first_of(section.kind, section.id(step));
        }
        Ok(())
    }

    #[cold]
    fn next_section(&mut self) -> Result<(), DecodeError> {
        self.ids.finish()?;
        self.section += 1;
        let section = self.objects.sections.get(self.section);
        let section = section.ok_or_else(|| self.wrong("more objects than ids"))?;
        self.ids = section.steps.scan(0)?;
        Ok(())
    }

    /// Reads a block of the columns of objects.
    fn load(&mut self, from: usize) -> Result<(), DecodeError> {
        let Objects {
            partitions, bases, ..
        } = self.objects;
        let to = partitions.len().min(from.saturating_add(BLOCK));
        if from >= to {
            return Err(self.wrong("more partitions than the objects have"));
        }
        let skip = |group: u32| from % group as usize;
        partitions.read(from, to, &mut self.partitions)?;
        self.partitions
            .rotate_left(skip(partitions.digits().group()));
        bases.read(from, to, &mut self.bases)?;
        self.bases.rotate_left(skip(bases.digits().group()));
        self.loaded = from;
        Ok(())
    }

    /// Each object ends with a lease, or it would have fewer partitions.
    #[inline]
    fn check_last_partition(&self) -> Result<(), DecodeError> {
        if self.given == self.end {
            return Ok(());
        }
        let what = format!("no lease for the last partition of {}", self.first);
        Err(self.wrong(&what))
    }

    /// Checks that nothing is left behind the last lease.
    pub(super) fn finish(&mut self) -> Result<(), DecodeError> {
        self.check_last_partition()?;
        self.present.finish()?;
        if self.next != self.objects.partitions.len() || self.run.1 > 0 {
            return Err(self.wrong("objects without a lease"));
        }
        if self.end != self.objects.present.universe() {
            return Err(self.wrong("fewer partitions than leases and holes"));
        }
        while self.steps.1 == 0 && self.section + 1 < self.objects.sections.len() {
            self.next_section()?;
        }
        self.ids.finish()
    }

    #[cold]
    fn wrong(&self, what: &str) -> DecodeError {
        invalid(self.objects.partitions.offset(), "partitions", what)
    }
}
