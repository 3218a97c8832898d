//! What each format costs by the yardstick that travels between machines: one copy of the rows
//! into fresh memory.
//!
//! `cargo bench --bench columnar`; `-- columnar steady` for some formats and workloads. For each workload the ways take
//! turns, and the medians of all rounds are compared, so that a noisy machine slows all alike.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark, not a library"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use leasehold::codec::{self, Format, LeaseBatchView};
use leasehold::model::batch::{LeaseBatch, Row};
use leasehold::model::ids::GroupKind;
use leasehold::model::workload::Workload;

/// The entropy of the named workloads, bytes.
const FLOORS: [u64; 5] = [49_051, 26_175, 28_568, 30_538, 1_678_260];

/// Time for the rounds of a workload.
const BUDGET: Duration = Duration::from_millis(1500);

fn main() {
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let wanted = |name: &str, all: &[&str]| {
        let some = asked.iter().any(|asked| all.contains(&&**asked));
        !some || asked.iter().any(|asked| asked == name)
    };
    let all_formats = Format::ALL.map(Format::name);
    let all_workloads = Workload::ALL.map(Workload::name);
    println!("ns per lease, and how many copies of the rows that is; an interval is of quartiles");
    println!(
        "{:<10} {:<22} {:>9} {:>7}  {:>24}  {:>24}",
        "workload", "way", "bytes", "floor", "encode", "decode"
    );
    for (workload, floor) in Workload::ALL.into_iter().zip(FLOORS) {
        if !wanted(workload.name(), &all_workloads) {
            continue;
        }
        let batch = workload.generate();
        let formats = Format::ALL.into_iter();
        let formats = formats.filter(|format| wanted(format.name(), &all_formats));
        let formats: Vec<Format> = formats.collect();
        compare(workload, floor, &batch, &formats);
    }
    println!("\none table of 25 leases, µs (quartiles): open, and read its leases");
    for workload in Workload::ALL {
        if wanted(workload.name(), &all_workloads) {
            view(workload);
        }
    }
}

/// Quartiles of some durations.
fn quartiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| all[quarter * (all.len() - 1) / 4])
}

fn time<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let done = black_box(run());
    (start.elapsed().as_nanos() as f64, done)
}

fn compare(workload: Workload, floor: u64, batch: &LeaseBatch, formats: &[Format]) {
    let encoded: Vec<(Format, Vec<u8>)> = (formats.iter())
        .filter_map(|format| Some((*format, codec::encode(*format, batch).ok()?)))
        .collect();
    let ways = 2 * encoded.len() + 1;
    let mut times = vec![Vec::new(); ways];
    let begin = Instant::now();
    while begin.elapsed() < BUDGET || times[0].len() < 7 {
        let (copy, rows) = time(|| black_box(batch.rows()).to_vec());
        drop::<Vec<Row>>(rows);
        times[0].push(copy);
        for (way, (format, bytes)) in encoded.iter().enumerate() {
            let encode = time(|| codec::encode(*format, black_box(batch)).unwrap()).0;
            let decode = time(|| codec::decode_as(*format, black_box(bytes)).unwrap()).0;
            times[2 * way + 1].push(encode);
            times[2 * way + 2].push(decode);
        }
    }
    let leases = batch.len() as f64;
    let mut times = times
        .into_iter()
        .map(|times| quartiles(times).map(|ns| ns / leases));
    let copy = times.next().unwrap();
    println!(
        "{workload:<10} {:<22} {:>9} {:>7}  {:>24}  {:>24.2}",
        "copy of the rows", "", "", "", copy[1]
    );
    for (format, bytes) in &encoded {
        let mut cell = || {
            let [low, median, high] = times.next().unwrap();
            format!(
                "{median:6.2} ({low:.2}-{high:.2}) {:5.2}x",
                median / copy[1]
            )
        };
        let (encode, decode) = (cell(), cell());
        let share = bytes.len() as f64 / floor as f64;
        println!(
            "{workload:<10} {format:<22} {:>9} {share:>7.3}  {encode:>24}  {decode:>24}",
            bytes.len()
        );
    }
}

fn view(workload: Workload) {
    let batch = workload.generate();
    let bytes = codec::encode(Format::Columnar, &batch).unwrap();
    let last = batch.rows().last().unwrap().group().object();
    let mut opening = Vec::new();
    let mut reading = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < BUDGET / 5 {
        let table = 1 + opening.len() as i32 * 37 % last;
        let (open, view) = time(|| LeaseBatchView::open(black_box(&bytes)).unwrap());
        let (read, leases) = time(|| view.leases_of(GroupKind::Table, table).unwrap());
        assert_eq!(leases.len(), 25);
        opening.push(open / 1000.0);
        reading.push(read / 1000.0);
    }
    let cell = |all| {
        let [low, median, high] = quartiles(all);
        format!("{median:6.2} ({low:.2}-{high:.2})")
    };
    println!(
        "{workload:<10} open {}, read {}",
        cell(opening),
        cell(reading)
    );
}
