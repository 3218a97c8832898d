//! How starts are written: relative to what, which of them belong to an event (a node's failure
//! moves leases of all tables at once), and which are odd.
//!
//! Decided from a sample by what the alternatives would cost. The sample does not change what is
//! written of a batch, only in how many bytes.

use crate::model::batch::Row;

use super::bits;
use super::digits::Digits;
use super::ints;
use super::set_write::{self, Bitmap};
use super::survey::{Object, Survey};
use super::{bits::BitWriter, set::NONE};

/// Rows that are looked at, at most about as many.
const SAMPLE: usize = 4096;

/// Rows that are packed at once: whole groups of digits.
const CHUNK: usize = 480;

/// One start in so many must be beyond the limit for the event to be worth a set of its own;
/// fewer are odd starts, which are faster to read.
const EVENT_SHARE: usize = 12;

/// What starts are relative to and how far they may be from it.
struct Plan {
    /// The base of all objects, or else each has its own: its earliest start.
    base: Option<u64>,
    /// Starts further from the base are of the event, or odd.
    limit: u64,
    /// The earliest start of the event, and how much later others are at most.
    event: Option<(u64, u64)>,
}

/// A start in the sample.
struct Sample {
    start: u64,
    /// From its object's earliest start.
    offset: u64,
}

fn sample(rows: &[Row], objects: &[Object]) -> Vec<Sample> {
    // An odd step meets all partitions in turn.
    let step = rows.len() / SAMPLE | 1;
    let mut found = Vec::with_capacity(rows.len() / step + 1);
    let (mut next, mut end) = (0, 0);
    for object in objects {
        end += object.rows as usize;
        while let Some(row) = rows.get(next).filter(|_| next < end) {
            let start = row.start().physical();
            let offset = start - object.earliest;
            found.push(Sample { start, offset });
            next += step;
        }
    }
    found
}

/// The best limit for some distances to a base: bits of the limit, and the bits that all starts
/// take with it. A start beyond it takes its position and `odd` bits.
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
        let position = match beyond {
            0 => 0,
            _ => 2 + (all / beyond).ilog2(),
        };
        let cost = all * u64::from(width) + beyond * u64::from(position + odd);
        (cost, width)
    });
    let (cost, width) = costs.min().unwrap_or((0, 0));
    (width, cost)
}

impl Plan {
    fn of(rows: &[Row], objects: &[Object]) -> Self {
        let earliest = objects.iter().map(|object| object.earliest);
        let (first, last) = (earliest.clone().min(), earliest.max());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let latest = objects.iter().map(|object| object.latest).max();
        let spread = bits::width(latest.unwrap_or(0) - first);
        let sample = sample(rows, objects);

        let (own, own_cost) = best_limit(sample.iter().map(|one| one.offset), spread);
        let (shared, shared_cost) = best_limit(sample.iter().map(|one| one.start - first), spread);
        let bases = objects.len() as u64 * u64::from(bits::width(last - first));
        let share = |cost: u64| u128::from(cost) * rows.len() as u128 / sample.len().max(1) as u128;
        let shares = share(shared_cost) <= share(own_cost) + u128::from(bases);
        let width = if shares { shared } else { own };
        let limit = bits::mask(width);
        let beyond: Vec<u64> = (sample.iter())
            .filter(|one| if shares { one.start - first } else { one.offset } > limit)
            .map(|one| one.start)
            .collect();
        let event = (beyond.len() * EVENT_SHARE > sample.len()).then(|| event(beyond));
        Self {
            base: shares.then_some(first),
            limit,
            event,
        }
    }
}

/// The event among starts beyond the limit: the window in which they cost least if the others
/// become odd ones. Widened, since the sample has not all of them.
fn event(mut starts: Vec<u64>) -> (u64, u64) {
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
        let narrower = count * narrow + (all - count) * odd;
        if narrower >= all * u64::from(bits::width(spread)) {
            break;
        }
        starts.retain(|start| (at..at + 2).contains(&part(*start)));
        (first, spread) = bounds(&starts);
    }
    let margin = spread / 4 + 1;
    (first.saturating_sub(margin), spread + 2 * margin)
}

/// The starts of a batch, sorted into what is written.
struct Sorted {
    /// Offsets of all starts but the event's; 0 for odd ones.
    offsets: Vec<u64>,
    event: Bitmap,
    event_starts: Vec<u64>,
    odd: Vec<u64>,
    odd_starts: Vec<u64>,
}

impl Sorted {
    fn new(rows: &[Row], objects: &[Object], plan: &Plan) -> Self {
        let mut sorted = Self {
            offsets: vec![0; rows.len()],
            event: Bitmap {
                words: Vec::with_capacity(rows.len() / 64 + 1),
                len: rows.len() as u64,
                members: 0,
            },
            event_starts: Vec::new(),
            odd: Vec::new(),
            odd_starts: Vec::new(),
        };
        match plan.event {
            None => sorted.few_odd(rows, objects, plan),
            Some(event) => sorted.with_event(rows, objects, plan, event),
        }
        sorted
    }

    fn few_odd(&mut self, rows: &[Row], objects: &[Object], plan: &Plan) {
        let mut at = 0;
        for (rows, base) in by_object(rows, objects, plan) {
            let offsets = self.offsets.get_mut(at..at + rows.len());
            for ((row, slot), at) in rows.iter().zip(offsets.unwrap_or_default()).zip(at..) {
                let start = row.start().physical();
                *slot = start - base;
                if *slot > plan.limit {
                    *slot = 0;
                    self.odd.push(at as u64);
                    self.odd_starts.push(start);
                }
            }
            at += rows.len();
        }
    }

    fn with_event(&mut self, rows: &[Row], objects: &[Object], plan: &Plan, event: (u64, u64)) {
        let (first, spread) = event;
        self.event_starts = vec![0; rows.len() + 1];
        self.offsets.push(0);
        let (mut word, mut bit) = (0u64, 0);
        let (mut quiet, mut events, mut at) = (0, 0, 0u64);
        for (rows, base) in by_object(rows, objects, plan) {
            for row in rows {
                let start = row.start().physical();
                let offset = start - base;
                let beyond = offset > plan.limit;
                let is_event = beyond && start.wrapping_sub(first) <= spread;
                if beyond && !is_event {
                    self.odd.push(at);
                    self.odd_starts.push(start);
                }
                // Written in any case and passed only if it counts: no branch to mispredict.
                if let (Some(slot), Some(event)) = (
                    self.offsets.get_mut(quiet),
                    self.event_starts.get_mut(events),
                ) {
                    *slot = if beyond { 0 } else { offset };
                    *event = start;
                }
                quiet += usize::from(!is_event);
                events += usize::from(is_event);
                word |= u64::from(is_event) << bit;
                bit += 1;
                if bit == 64 {
                    self.event.words.push(word);
                    (word, bit) = (0, 0);
                }
                at += 1;
            }
        }
        self.event.words.push(word);
        self.event.members = events as u64;
        self.offsets.truncate(quiet);
        self.event_starts.truncate(events);
    }
}

/// The rows of each object with what their starts are relative to.
fn by_object<'r>(
    mut rows: &'r [Row],
    objects: &'r [Object],
    plan: &Plan,
) -> impl Iterator<Item = (&'r [Row], u64)> {
    let shared = plan.base;
    objects.iter().map(move |object| {
        let (own, others) = rows.split_at(object.rows as usize);
        rows = others;
        (own, shared.unwrap_or(object.earliest))
    })
}

/// Appends the columns of starts, but for their logical parts.
pub(super) fn write(rows: &[Row], survey: &Survey, out: &mut Vec<u8>) {
    let objects = &survey.objects;
    let plan = Plan::of(rows, objects);
    let base = |object: &Object| plan.base.unwrap_or(object.earliest);
    let bases: Vec<u64> = objects.iter().map(base).collect();
    ints::write(out, &bases);
    let furthest = objects.iter().map(|object| object.latest - base(object));
    let furthest = furthest.max().unwrap_or(0);
    if furthest <= plan.limit {
        out.push(NONE);
        write_quiet(rows, objects, &plan, furthest, out);
        out.push(NONE);
        return;
    }
    let sorted = Sorted::new(rows, objects, &plan);
    sorted.event.write(out);
    ints::write(out, &sorted.event_starts);
    let most = sorted.offsets.iter().max().copied().unwrap_or(0);
    if !sorted.offsets.is_empty() {
        let digits = Digits::smallest(most + 1, sorted.offsets.len() as u64);
        ints::write_head(out, 0, &digits);
        let mut packed =
            BitWriter::with_capacity(digits.size(sorted.offsets.len() as u64) as usize);
        digits.write(&sorted.offsets, &mut packed);
        out.extend_from_slice(&packed.finish());
    }
    set_write::write(out, rows.len() as u64, &sorted.odd);
    ints::write(out, &sorted.odd_starts);
}

/// The offsets of starts that are all within the limit, packed as they are found.
fn write_quiet(rows: &[Row], objects: &[Object], plan: &Plan, furthest: u64, out: &mut Vec<u8>) {
    let digits = Digits::smallest(furthest + 1, rows.len() as u64);
    ints::write_head(out, 0, &digits);
    if digits.width() == 0 {
        return;
    }
    let mut packed = BitWriter::with_capacity(digits.size(rows.len() as u64) as usize);
    let mut chunk = [0u64; CHUNK];
    let mut filled = 0;
    for (mut rows, base) in by_object(rows, objects, plan) {
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.len().min(CHUNK - filled));
            let slots = chunk
                .get_mut(filled..filled + now.len())
                .unwrap_or_default();
            for (slot, row) in slots.iter_mut().zip(now) {
                *slot = row.start().physical() - base;
            }
            filled += now.len();
            rows = later;
            if filled == CHUNK {
                digits.write(&chunk, &mut packed);
                filled = 0;
            }
        }
    }
    digits.write(chunk.get(..filled).unwrap_or_default(), &mut packed);
    out.extend_from_slice(&packed.finish());
}
