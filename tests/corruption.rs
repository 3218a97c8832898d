//! A hundred thousand damaged batches: none crashes or stalls a reader, and what is read in spite
//! of the damage is a sound batch.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::{self, EncodeError, Format, frame};
use leasehold::model::workload::SplitMix64;
use support::vectors;

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut SplitMix64) {
    const TELLING: [u8; 10] = [0x00, 0x01, 0x02, 0x08, 0x20, 0x3F, 0x7F, 0x80, 0x81, 0xFF];
    for _ in 0..=random.below(3) {
        let len = bytes.len() as u64;
        let at = random.below(len + 1) as usize;
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 if at < bytes.len() => bytes[at] = TELLING[random.below(10) as usize],
            3 => bytes.insert(at, TELLING[random.below(10) as usize]),
            4 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(9) as usize))),
            5 => bytes.truncate(at),
            _ => {
                let from = random.below(other.len() as u64) as usize;
                let to = other.len().min(from + 1 + random.below(24) as usize);
                bytes.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}

#[test]
fn damaged_batches_are_refused_or_sound() {
    let all: Vec<_> = (vectors().iter())
        .flat_map(|vector| Format::ALL.map(|format| vector.bytes(format)))
        .flatten()
        .filter(|bytes| bytes.len() < 4096)
        .collect();
    let mut random = SplitMix64::new(20_261_130);
    let mut read = 0;
    for _ in 0..100_000 {
        let pick = |random: &mut SplitMix64| random.below(all.len() as u64) as usize;
        let mut bytes = all[pick(&mut random)].clone();
        damage(&mut bytes, &all[pick(&mut random)], &mut random);
        // Must not panic either, though nothing is asked of the answer.
        let _ = (codec::sniff(&bytes), frame::open(&bytes).is_ok());
        let decoded = match codec::decode(&bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                assert!(error.offset <= bytes.len(), "{error}");
                continue;
            }
        };
        read += 1;
        let batch = &decoded.batch;
        assert!(batch.len() <= bytes.len());
        assert!(batch.rows().is_sorted_by(|a, b| a.group() < b.group()));
        let common = Some(batch.common_expiration());
        assert!(
            batch
                .rows()
                .iter()
                .all(|row| row.own_expiration() != common)
        );
        match codec::encode(decoded.format, batch) {
            Ok(again) => assert_eq!(codec::decode(&again).unwrap().batch, *batch),
            Err(EncodeError::TooManyIdsForV1 { .. }) => {}
            Err(error) => panic!("{error}: {}", hex::encode(&bytes)),
        }
    }
    assert!(read > 1_000, "{read} were read: too few to say anything");
}
