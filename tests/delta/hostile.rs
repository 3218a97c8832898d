//! Bytes of any kind get an answer: mutated frames whose checksum fits, and crafted ones.

use leasehold::codec::delta::reseal;
use leasehold::codec::{Chain, Delta, DeltaError};
use leasehold::model::digest::Digest;
use leasehold::model::workload::{SplitMix64, Workload};

use crate::support::{Changes, advance, grant, incarnation, nodes, pick, table};

/// Offset of the first byte that a checksum covers and that is not magic or version.
const CONTENT: usize = 9;

fn frames(chain: &Chain) -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(8);
    let mut all = Vec::new();
    let known = nodes(chain.batch());
    let common = chain.batch().common_expiration();
    let now = common.physical();
    for kind in 0..12 {
        let mut changes = Changes::new();
        for group in pick(&mut random, chain.batch(), 2 * kind as usize) {
            let mut lease = grant(&mut random, &known, now);
            if kind % 3 == 1 {
                lease.candidate = Some("node2".into());
            }
            if kind % 4 == 2 {
                lease.expiration = (random.below(3) > 0).then(|| lease.start.tick());
            }
            let remove = kind % 5 == 2 && random.below(2) == 0;
            changes.insert(group, (!remove).then_some(lease));
        }
        for partition in 0..kind / 2 {
            let lease = grant(&mut random, &[incarnation(9, kind as u64)], now);
            changes.insert(table(kind, partition.into()), Some(lease));
        }
        all.push(advance(chain, common.plus_millis(2500), &changes).1);
    }
    all
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut SplitMix64) {
    for _ in 0..1 + random.below(3) {
        let left = (bytes.len() - CONTENT) as u64;
        let at = CONTENT + random.below(left.max(1)) as usize;
        match random.below(6) {
            _ if at >= bytes.len() => bytes.push(random.next() as u8),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            2 => bytes[at] = random.next() as u8,
            3 => bytes.truncate(at),
            4 => bytes.insert(at, random.next() as u8),
            _ => {
                let from = CONTENT + random.below((other.len() - CONTENT) as u64) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
}

#[test]
fn mutated_frames_are_answered() {
    let chain = Chain::new(7, Workload::Churn.with_tables(4));
    let frames = frames(&chain);
    let mut random = SplitMix64::new(77);
    let rounds = if cfg!(debug_assertions) {
        60_000
    } else {
        1_000_000
    };
    let mut past = 0;
    for _ in 0..rounds {
        let pick = |random: &mut SplitMix64| random.below(frames.len() as u64) as usize;
        let mut bytes = frames[pick(&mut random)].clone();
        damage(&mut bytes, &frames[pick(&mut random)], &mut random);
        reseal(&mut bytes);
        match chain.apply(&bytes) {
            // The mutation made one of the frames again, or changed what does not matter.
            Ok((next, _)) => assert_eq!(Digest::of(next.batch()), next.digest()),
            Err(DeltaError::Decode(error)) => assert!(error.offset <= bytes.len(), "{error}"),
            Err(DeltaError::WrongState { .. }) => past += 1,
            Err(_) => {}
        }
        if let Ok(delta) = Delta::read(&bytes) {
            assert!(
                delta.removed.len() + delta.replaced.len() + delta.added.len() < 8 * bytes.len()
            );
        }
    }
    assert!(
        past > rounds / 20,
        "{past} got past the bytes: too few to say anything"
    );
}

/// With the digest set right as well, whatever is accepted is a sound state.
#[test]
fn what_fits_a_digest_is_a_sound_state() {
    let chain = Chain::new(7, Workload::Churn.with_tables(4));
    let frames = frames(&chain);
    let mut random = SplitMix64::new(78);
    let rounds = if cfg!(debug_assertions) {
        30_000
    } else {
        300_000
    };
    let mut accepted = 0;
    for _ in 0..rounds {
        let mut bytes = frames[random.below(frames.len() as u64) as usize].clone();
        let digest = Delta::read(&bytes).unwrap().digest.bits().to_le_bytes();
        let at = bytes
            .windows(8)
            .position(|window| window == digest)
            .unwrap();
        damage(&mut bytes, &frames[3], &mut random);
        reseal(&mut bytes);
        let Err(DeltaError::WrongState { computed, .. }) = chain.apply(&bytes) else {
            continue;
        };
        let Some(stored) = bytes.get_mut(at..at + 8) else {
            continue;
        };
        stored.copy_from_slice(&computed.bits().to_le_bytes());
        reseal(&mut bytes);
        let Ok((next, changes)) = chain.apply(&bytes) else {
            continue;
        };
        accepted += 1;
        let batch = next.batch();
        assert!(batch.rows().is_sorted_by(|a, b| a.group() < b.group()));
        assert_eq!(Digest::of(batch), next.digest());
        assert_eq!(leasehold::model::diff::diff(chain.batch(), batch), changes);
        assert_eq!(batch.leases().count(), batch.len());
    }
    assert!(
        accepted > rounds / 50,
        "{accepted} fitted: too few to say anything"
    );
}

/// The header of a frame with these flags, up to the body.
fn header(flags: u8) -> Vec<u8> {
    let mut bytes = b"\x89LHD\x01\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[7, 1, flags, 0]);
    bytes.extend_from_slice(&[0; 8]);
    bytes
}

fn error(mut bytes: Vec<u8>) -> String {
    reseal(&mut bytes);
    Delta::read(&bytes).unwrap_err().to_string()
}

#[test]
fn crafted_frames_are_refused_with_their_place() {
    let with = |mut bytes: Vec<u8>, at: usize, byte: u8| {
        bytes[at] = byte;
        bytes
    };
    assert!(error(with(header(0), 10, 0)).starts_with("byte 10, step: "));
    assert!(error(with(header(0), 11, 0x20)).starts_with("byte 11, flags: 20 has bits"));
    let mut overlong = header(0);
    overlong.splice(9..10, [0x87, 0]);
    assert!(error(overlong).starts_with("byte 9, base: a variable-length integer that is longer"));
    let mut far = header(0);
    far.splice(12..13, [0xff; 9].into_iter().chain([1]));
    assert!(error(far).starts_with("byte 12, common expiration: "));
    // A logical part of 0 is said by the flag.
    let mut logical = header(1);
    logical.insert(13, 0);
    assert!(error(logical).starts_with("byte 13, common expiration logical: 0 is outside 1..="));
    for flags in [2, 4, 8, 16] {
        assert!(error(header(flags)).starts_with("byte 21, "), "{flags}");
        for filler in [0u8, 0xff, 0x55, 0xaa, 1, 0x80] {
            let mut bytes = header(flags);
            bytes.extend_from_slice(&[filler; 64]);
            let text = error(bytes);
            assert!(text.starts_with("byte "), "{flags} {filler}: {text}");
        }
    }
}

#[test]
fn a_huge_count_is_refused_before_anything_is_allocated() {
    // 2^62 removed rows: six zeros, a one, 111110 (63 bits), then 62 ones.
    for flags in [4, 8, 16] {
        let mut bytes = header(flags);
        bytes.extend_from_slice(&[
            0b1010_0000 | 1 << 5,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
            0xff,
        ]);
        let text = error(bytes);
        assert!(text.starts_with("byte 21, "), "{text}");
    }
}
