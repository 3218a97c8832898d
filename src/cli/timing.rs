//! Measuring several things side by side.

use std::hint::black_box;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

/// Most and fewest rounds.
const ROUNDS: std::ops::RangeInclusive<u64> = 3..=101;
/// Short work is repeated until a sample takes about this long: what ran before it has left the
/// caches by then.
const SAMPLE: Duration = Duration::from_millis(1);

/// Something to measure.
pub(super) type Work<'a> = Box<dyn Fn() + 'a>;

/// Median time of each work in seconds. They take turns, so that a slow moment of the machine
/// meets all of them. `budget` is how long it may take, unless the fewest rounds take longer.
pub(super) fn medians(works: &[Work<'_>], budget: Duration) -> Vec<f64> {
    // One round to warm up and to see how often to repeat.
    let repeats: Vec<u32> = (works.iter())
        .map(|work| {
            let once = time(work, 1).max(1e-9);
            (SAMPLE.as_secs_f64() / once).clamp(1.0, 10_000.0) as u32
        })
        .collect();
    let mut samples = vec![Vec::new(); works.len()];
    let progress = ProgressBar::new(*ROUNDS.end());
    let begin = now();
    for round in 1..=*ROUNDS.end() {
        for ((work, repeat), samples) in works.iter().zip(&repeats).zip(&mut samples) {
            samples.push(time(work, *repeat));
        }
        progress.set_position(round);
        if round >= *ROUNDS.start() && begin.elapsed() >= budget {
            break;
        }
    }
    progress.finish_and_clear();
    samples.into_iter().map(median).collect()
}

fn time(work: &Work<'_>, repeat: u32) -> f64 {
    let begin = now();
    for _ in 0..repeat {
        work();
    }
    begin.elapsed().as_secs_f64() / f64::from(repeat)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

/// Runs something whose result is not needed.
pub(super) fn work<'a, T>(run: impl Fn() -> T + 'a) -> Work<'a> {
    Box::new(move || drop(black_box(run())))
}

#[allow(clippy::disallowed_methods, reason = "this command measures time")]
fn now() -> Instant {
    Instant::now()
}
