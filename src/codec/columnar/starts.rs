//! How starts are written: relative to what, which of them belong to an event (a node's failure
//! moves leases of all tables at once), and which are odd.
//!
//! Decided from a sample by what the alternatives would cost. A start that the sample did not
//! show is an odd one: the sample decides how many bytes a batch takes, not what is in them.

use crate::model::batch::Row;
use crate::model::hlc::MAX_PHYSICAL;

use super::bits;
use super::column::{CHUNK, DigitColumn, ROOM};
use super::digits::Digits;
use super::ints;
use super::sample::{Sample, Sampled};
use super::set::NONE;
use super::set_write::{self, Bitmap};
use super::survey::{Mask, Object};

/// One start in so many must be beyond the limit for the event to be worth a set of its own;
/// fewer are odd starts, which are faster to read.
const EVENT_SHARE: usize = 12;

/// Bits that a set of starts beyond the limit takes at least, with what stands before it.
const OTHERS: u64 = 100;

/// What starts are relative to and how far they may be from it.
struct Plan {
    /// The base of all objects, or else each has its own: its earliest start.
    base: Option<u64>,
    /// Starts at most so far from the base are stored as an offset.
    limit: u64,
    event: Option<Event>,
}

/// Starts that lie close together, whatever their objects.
#[derive(Clone, Copy)]
struct Event {
    first: u64,
    /// How much later others are at most.
    spread: u64,
    digits: Digits,
}

/// The best limit for some distances to a base: its bits, and the bits that all starts take with
/// it. A start beyond it takes its position and `odd` bits.
fn best_limit(distances: impl Iterator<Item = u64>, odd: u32) -> (u32, u64) {
    let mut by_width = [0u64; 65];
    let mut all = 0;
    for distance in distances {
        if let Some(count) = by_width.get_mut(bits::width(distance) as usize) {
            *count += 1;
        }
        all += 1;
    }
    let mut within = 0;
    let costs = (0u32..).zip(by_width).map(|(width, count)| {
        within += count;
        let beyond = all - within;
        let others = match beyond {
            0 => 0,
            _ => OTHERS + beyond * u64::from(2 + (all / beyond).ilog2() + odd),
        };
        let cost = all * u64::from(width) + others;
        (cost, width)
    });
    let (cost, width) = costs.min().unwrap_or((0, 0));
    (width, cost)
}

impl Plan {
    fn of(sampled: &Sampled<'_>) -> Self {
        let sample = &sampled.rows;
        let rows = sampled.all as u64;
        let starts = sample.iter().map(Sample::start);
        let first = starts.clone().min().unwrap_or(0);
        let spread = bits::width(starts.max().unwrap_or(0) - first);

        let from_first = |one: &Sample<'_>| one.start() - first;
        let (own, own_cost) = best_limit(sample.iter().map(Sample::offset), spread);
        let (shared, shared_cost) = best_limit(sample.iter().map(from_first), spread);
        let bases =
            sampled.objects * u64::from(bits::width(sampled.last_base.saturating_sub(first)));
        let in_all = |cost: u64| u128::from(cost) * u128::from(rows) / sample.len().max(1) as u128;
        let share = in_all(shared_cost) <= in_all(own_cost) + u128::from(bases);
        let distance = |one: &Sample<'_>| match share {
            true => from_first(one),
            false => one.offset(),
        };
        let limit = bits::mask(if share { shared } else { own });
        let within = sample.iter().map(distance).filter(|at| *at <= limit).max();
        let within = within.unwrap_or(0);
        // The sample may lack the very first and last ones: use what room there is.
        let widest = Digits::smallest(within + 1, rows).widest() - 1;
        let (base, limit) = match (share, sampled.is_all()) {
            (true, true) => (Some(first), within),
            (true, false) => (Some(first.saturating_sub((widest - within) / 2)), widest),
            (false, true) => (None, within),
            (false, false) => (None, widest),
        };
        let limit = limit.min(MAX_PHYSICAL - base.unwrap_or(first));
        let beyond = sample.iter().filter(|one| distance(one) > limit);
        let beyond: Vec<u64> = beyond.map(Sample::start).collect();
        let worth = beyond.len() * EVENT_SHARE > sample.len();
        let expected = beyond.len() as u64 * rows / sample.len().max(1) as u64;
        Self {
            base,
            limit,
            event: worth.then(|| Event::among(beyond, expected, sampled.is_all())),
        }
    }
}

impl Event {
    /// Which of some rows, at most 64, it has, by their distances from their bases: bits, the
    /// first row's lowest; and not 0 if others are beyond the limit. Notes how much later than
    /// its first start each of them is.
    #[inline]
    fn among_rows(
        &self,
        rows: &[Row],
        distances: &[u64],
        limit: u64,
        lates: &mut [u64; 64],
    ) -> (u64, u64) {
        let (mut bits, mut others) = (0, 0);
        for ((row, distance), slot) in rows.iter().zip(distances).zip(lates) {
            let late = row.physical_start().wrapping_sub(self.first);
            *slot = late;
            let beyond = u64::from(*distance > limit);
            let own = beyond & u64::from(late <= self.spread);
            others |= beyond ^ own;
            bits = bits >> 1 | own << 63;
        }
        (bits >> (64 - rows.len()), others)
    }

    /// The window among some starts in which they cost least if the others become odd ones;
    /// `expected` is about how many starts the whole batch has there, and `exact` says that it
    /// has no others than these.
    fn among(mut starts: Vec<u64>, expected: u64, exact: bool) -> Self {
        const PARTS: u64 = 64;
        /// What an odd start takes besides its number.
        const POSITION: u64 = 12;
        let bounds = |starts: &[u64]| {
            let first = starts.iter().min().copied().unwrap_or(0);
            let last = starts.iter().max().copied().unwrap_or(0);
            (first, last - first)
        };
        let (mut first, mut spread) = bounds(&starts);
        let odd = POSITION + u64::from(bits::width(spread));
        while spread > PARTS {
            let part = |start: u64| ((start - first) * PARTS / (spread + 1)) as usize;
            let mut counts = [0u64; PARTS as usize];
            for start in &starts {
                if let Some(count) = counts.get_mut(part(*start)) {
                    *count += 1;
                }
            }
            // Two parts, for an event may lie across a border.
            let pairs = counts.windows(2).map(|pair| pair.iter().sum::<u64>());
            let Some((count, at)) = pairs.zip(0..).max_by_key(|(count, _)| *count) else {
                break;
            };
            let all = starts.len() as u64;
            let narrow = u64::from(bits::width(2 * spread / PARTS));
            if count * narrow + (all - count) * odd >= all * u64::from(bits::width(spread)) {
                break;
            }
            starts.retain(|start| (at..at + 2).contains(&part(*start)));
            (first, spread) = bounds(&starts);
        }
        // The sample does not have the very first and last ones: use what room there is.
        let digits = Digits::smallest(spread + 1, expected);
        let room = match exact {
            true => 0,
            false => digits.widest() - 1 - spread,
        };
        let first = first.saturating_sub(room / 2);
        let spread = (spread + room).min(MAX_PHYSICAL - first);
        Self {
            first,
            spread,
            digits: Digits::new(spread + 1, digits.group()).unwrap_or(digits),
        }
    }
}

/// The columns of starts while they are written.
pub(super) struct StartColumns {
    plan: Plan,
    bases: Bases,
    row: u64,
    /// Of the rows of a chunk from their bases, where there is an event.
    distances: Vec<u64>,
    offsets: DigitColumn<u64>,
    event: Bitmap,
    events: DigitColumn<u64>,
    odd: Vec<u64>,
    odd_starts: Vec<u64>,
}

/// A cursor over what the starts of the next rows are relative to.
struct Bases {
    shared: Option<u64>,
    /// Number of the object after the current one.
    next: usize,
    /// Rows left of the current object.
    left: usize,
    base: u64,
}

impl Bases {
    /// Writes how far the next starts are from their bases; returns whether some are beyond the
    /// limit (before a shared base, a start is far behind every limit).
    fn distances(
        &mut self,
        mut rows: &[Row],
        objects: &[Object],
        limit: u64,
        out: &mut [u64],
    ) -> bool {
        let mut at = 0;
        // Distances and limits have less than 63 bits: the highest is set in a distance that
        // wrapped around, or in the room that one beyond the limit has left.
        let mut beyond = 0;
        while !rows.is_empty() {
            if self.left == 0
                && let Some(object) = objects.get(self.next)
            {
                self.next += 1;
                self.left = object.rows as usize;
                self.base = self.shared.unwrap_or(object.earliest);
            }
            let (own, others) = rows.split_at(self.left.min(rows.len()));
            self.left -= own.len();
            let base = self.base;
            let slots = out.get_mut(at..at + own.len()).unwrap_or_default();
            for (row, slot) in own.iter().zip(slots) {
                let distance = row.physical_start().wrapping_sub(base);
                *slot = distance;
                beyond |= distance | limit.wrapping_sub(distance);
            }
            at += own.len();
            rows = others;
        }
        beyond >> 63 != 0
    }
}

impl StartColumns {
    pub(super) fn new(sampled: &Sampled<'_>) -> Self {
        let plan = Plan::of(sampled);
        let rows = sampled.all;
        let offsets = Digits::smallest(plan.limit + 1, rows as u64);
        let (events, first, expected) = match plan.event {
            Some(event) => (event.digits, event.first, rows),
            None => (offsets, 0, 0),
        };
        Self {
            offsets: DigitColumn::new(offsets, 0, rows),
            events: DigitColumn::new(events, first, expected),
            event: Bitmap::new(rows, expected),
            bases: Bases {
                shared: plan.base,
                next: 0,
                left: 0,
                base: 0,
            },
            distances: vec![0; if plan.event.is_some() { CHUNK } else { 0 }],
            plan,
            row: 0,
            odd: Vec::new(),
            odd_starts: Vec::new(),
        }
    }

    /// Takes the next rows, at most a chunk, of these objects and earlier ones.
    pub(super) fn chunk(&mut self, rows: &[Row], objects: &[Object]) {
        match self.plan.event {
            None => self.few_odd(rows, objects),
            Some(event) => self.with_event(rows, objects, event),
        }
        self.row += rows.len() as u64;
    }

    #[inline(never)]
    fn few_odd(&mut self, rows: &[Row], objects: &[Object]) {
        let Some(room) = self.offsets.room() else {
            return;
        };
        let limit = self.plan.limit;
        if self.bases.distances(rows, objects, limit, room) {
            for ((row, distance), at) in rows.iter().zip(room).zip(self.row..) {
                if *distance > limit {
                    *distance = 0;
                    self.odd.push(at);
                    self.odd_starts.push(row.physical_start());
                }
            }
        }
        self.offsets.advance(rows.len());
    }

    #[inline(never)]
    fn with_event(&mut self, rows: &[Row], objects: &[Object], event: Event) {
        let limit = self.plan.limit;
        self.bases
            .distances(rows, objects, limit, &mut self.distances);
        let (Some(offsets), Some(lates)) = (self.offsets.room(), self.events.room()) else {
            return;
        };
        let mut mask = Mask::default();
        let (mut all, mut quiet, mut odd) = (0, 0, 0);
        let blocks = rows.chunks(64).zip(self.distances.chunks(64));
        for ((rows, distances), word) in blocks.zip(&mut mask) {
            let mut late = [0; 64];
            let (bits, others) = event.among_rows(rows, distances, limit, &mut late);
            *word = bits;
            odd |= others;
            let mut others = !bits;
            for (distance, late) in distances.iter().zip(&late).take(rows.len()) {
                // Written in any case and counted only if it is one: no branch to mispredict.
                offsets[quiet % ROOM] = *distance;
                lates[(all - quiet) % ROOM] = *late;
                all += 1;
                quiet += (others & 1) as usize;
                others >>= 1;
            }
        }
        let events = all - quiet;
        if odd != 0 {
            let is_event = |at: usize| {
                mask.get(at / 64)
                    .is_some_and(|word| word >> (at % 64) & 1 != 0)
            };
            let quiet = rows.iter().zip(0..).filter(|(_, at)| !is_event(*at));
            for ((row, at), offset) in quiet.zip(offsets) {
                if *offset > limit {
                    *offset = 0;
                    self.odd.push(self.row + at as u64);
                    self.odd_starts.push(row.physical_start());
                }
            }
        }
        self.offsets.advance(quiet);
        self.events.advance(events);
        self.event.put(self.row, &mask, events);
    }

    /// Appends the columns, but for the logical parts.
    pub(super) fn finish(mut self, objects: &[Object], out: &mut Vec<u8>) {
        match self.plan.base {
            Some(base) => ints::write_constant(out, base),
            None => {
                let bases: Vec<u64> = objects.iter().map(|object| object.earliest).collect();
                ints::write(out, &bases);
            }
        }
        match self.plan.event {
            None => out.push(NONE),
            Some(_) => {
                self.event.write(out);
                self.events.finish(out);
            }
        }
        self.offsets.finish(out);
        set_write::write(out, self.row, &self.odd);
        ints::write(out, &self.odd_starts);
    }
}
