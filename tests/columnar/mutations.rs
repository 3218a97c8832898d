//! Damaged batches whose checksum is right again: whoever has such bytes made them on purpose.
//! No reader panics or stalls, and what one reads the other reads as well.

use std::time::{Duration, Instant};

use leasehold::codec::columnar::Position;
use leasehold::codec::{self, DecodeLimits, Format, LeaseBatchView};
use leasehold::model::batch::Row;
use leasehold::model::ids::{GroupId, GroupKind};
use leasehold::model::workload::{SplitMix64, Workload};

use crate::seal;

const LIMITS: DecodeLimits = DecodeLimits { max_leases: 5000 };

fn samples() -> Vec<Vec<u8>> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/columnar");
    let mut paths: Vec<_> = std::fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut samples: Vec<_> = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    for workload in Workload::ALL {
        for tables in [1, 2] {
            let batch = workload.with_tables(tables);
            samples.push(codec::encode(Format::Columnar, &batch).unwrap());
        }
    }
    samples
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut SplitMix64) {
    const TELLING: [u8; 12] = [0, 1, 2, 3, 4, 5, 8, 0x20, 0x7F, 0x80, 0x81, 0xFF];
    for _ in 0..=random.below(3) {
        // The seal is put right again anyway.
        let len = bytes.len() as u64;
        let at = 13 + random.below(len.saturating_sub(13) + 1) as usize;
        match random.below(8) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.next() as u8,
            3 | 4 if at < bytes.len() => bytes[at] = TELLING[random.below(12) as usize],
            5 if at <= bytes.len() => bytes.insert(at, TELLING[random.below(12) as usize]),
            6 if at < bytes.len() => {
                bytes.drain(at..bytes.len().min(at + 1 + random.below(9) as usize));
            }
            _ if at <= bytes.len() => {
                let from = random.below(other.len() as u64) as usize;
                let to = other.len().min(from + 1 + random.below(24) as usize);
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => {}
        }
    }
    seal(bytes);
}

/// Reads all that can be read; what is read in full must be sound, and the same in parts.
fn read(bytes: &[u8], random: &mut SplitMix64) -> bool {
    let decoded = codec::decode_with(bytes, LIMITS);
    let view = LeaseBatchView::open(bytes);
    if let Err(error) = &decoded {
        assert!(error.offset <= bytes.len(), "{error}");
    }
    let Ok(view) = view else {
        assert!(decoded.is_err());
        return false;
    };
    if view.len() > LIMITS.max_leases {
        return false;
    }
    let kinds = [GroupKind::Table, GroupKind::Zone];
    let kind = kinds[random.below(2) as usize];
    let object = random.below(16) as i32;
    let group = GroupId::first_of(kind, object).with_partition(random.below(30) as u32);
    let index = random.below(view.len() as u64 + 2) as usize;
    let rows = view.rows_of(kind, object);
    let position = view.position(group);
    let (lease, row) = (view.lease(group), view.row_at(index));
    let Ok(decoded) = decoded else {
        return false;
    };
    let batch = decoded.batch;
    let all = batch.rows();
    assert!(all.is_sorted_by(|a, b| a.group() < b.group()));
    let common = Some(batch.common_expiration());
    assert!(all.iter().all(|row| row.own_expiration() != common));
    let of_object: Vec<Row> = (all.iter().copied())
        .filter(|row| row.group().same_object(group))
        .collect();
    let rows = rows.unwrap().map_or_else(Vec::new, |found| found.rows);
    assert_eq!(rows, of_object);
    let expected = match all.binary_search_by_key(&group, Row::group) {
        Ok(index) => Position::Found(index),
        Err(index) => Position::WouldBe(index),
    };
    assert_eq!(position.unwrap(), expected);
    assert_eq!(lease.unwrap(), batch.get(group).map(|row| batch.lease(row)));
    assert_eq!(row.unwrap(), all.get(index).copied());
    let again = codec::encode(Format::Columnar, &batch).unwrap();
    assert_eq!(codec::decode(&again).unwrap().batch, batch);
    true
}

#[allow(clippy::disallowed_methods, reason = "a reader must not stall")]
fn mutate(times: u32) {
    let samples = samples();
    let mut random = SplitMix64::new(20_261_201);
    let mut sound = 0;
    for _ in 0..times {
        let pick = |random: &mut SplitMix64| random.below(samples.len() as u64) as usize;
        let mut bytes = samples[pick(&mut random)].clone();
        damage(&mut bytes, &samples[pick(&mut random)], &mut random);
        let start = Instant::now();
        sound += u32::from(read(&bytes, &mut random));
        let took = start.elapsed();
        assert!(
            took < Duration::from_secs(2),
            "{took:?}: {}",
            hex::encode(&bytes)
        );
    }
    println!("{sound} of {times} were read");
    assert!(
        sound > times / 100,
        "{sound} were read: too few to say anything"
    );
}

#[test]
fn damaged_batches_are_refused_or_sound() {
    mutate(10_000);
}

/// `cargo test --release --test columnar -- --ignored a_million`
#[test]
#[ignore = "takes half a minute"]
fn a_million_damaged_batches_are_refused_or_sound() {
    mutate(1_000_000);
}
