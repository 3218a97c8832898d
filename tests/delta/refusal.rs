//! What does not fit is refused, and the state stays what it was.

use leasehold::codec::{Chain, DeltaError, EncodeError, is_delta};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::workload::{SplitMix64, Workload};

use crate::support::{Changes, advance, grant, incarnation, nodes, pick, table};

/// A chain and its next two frames.
fn frames() -> (Chain, Vec<u8>, Vec<u8>) {
    let mut random = SplitMix64::new(1);
    let chain = Chain::new(7, Workload::Churn.with_tables(4));
    let nodes = nodes(chain.batch());
    let common = chain.batch().common_expiration();
    let now = common.physical();
    let mut changes = Changes::new();
    for group in pick(&mut random, chain.batch(), 9) {
        changes.insert(group, Some(grant(&mut random, &nodes, now)));
    }
    changes.insert(table(2, 3), None);
    let mut added = grant(&mut random, &[incarnation(9, 9)], now);
    added.candidate = Some("somebody".into());
    changes.insert(table(9, 0), Some(added));
    let (next, first) = advance(&chain, common.plus_millis(2500), &changes);
    let (_, second) = advance(&next, common.plus_millis(5000), &Changes::new());
    (chain, first, second)
}

fn refused(chain: &Chain, frame: &[u8]) -> DeltaError {
    let before = chain.batch().clone();
    let digest = chain.digest();
    let error = chain.apply(frame).unwrap_err();
    assert!(chain.batch().shares_rows(&before) && *chain.batch() == before);
    assert_eq!(chain.digest(), digest);
    error
}

#[test]
fn another_snapshot() {
    let (chain, first, _) = frames();
    let other = Chain::new(8, chain.batch().clone());
    let error = refused(&other, &first);
    let (expected, found) = (8, 7);
    assert_eq!(error, DeltaError::WrongBase { expected, found });
    assert!(error.to_string().contains("read again from the snapshot"));
}

#[test]
fn a_step_twice_or_skipped() {
    let (chain, first, second) = frames();
    let (once, _) = chain.apply(&first).unwrap();
    let replayed = refused(&once, &first);
    let (expected, found) = (2, 1);
    assert_eq!(replayed, DeltaError::WrongStep { expected, found });
    assert!(replayed.to_string().contains("applied already"));
    let skipped = refused(&chain, &second);
    let (expected, found) = (1, 2);
    assert_eq!(skipped, DeltaError::WrongStep { expected, found });
    assert!(skipped.to_string().contains("missing"), "{skipped}");
    once.apply(&second).unwrap();
}

#[test]
fn another_state() {
    let (chain, first, second) = frames();
    let mut other = chain.batch().clone();
    let group = other.rows()[0].group();
    other.apply(&Changes::from([(group, None)]));
    let other = Chain::new(7, other);
    assert!(matches!(
        refused(&other, &first),
        DeltaError::WrongState { .. } | DeltaError::Decode(_)
    ));
    // Only the common expiration differs.
    let mut later = chain.batch().clone();
    later.set_common_expiration(later.common_expiration().plus_millis(1));
    let error = refused(&Chain::new(7, later), &first);
    assert!(matches!(error, DeltaError::WrongState { .. }), "{error}");
    // A quiet frame does not touch a row, yet it knows them.
    let (once, _) = chain.apply(&first).unwrap();
    let mut without = once.batch().clone();
    without.apply(&Changes::from([(group, None)]));
    let mut without = Chain::new(7, without);
    let common = without.batch().common_expiration();
    (without, _) = advance(&without, common, &Changes::new());
    let error = refused(&without, &second);
    assert!(matches!(error, DeltaError::WrongState { .. }), "{error}");
}

#[test]
fn any_bit_turned_and_any_byte_missing() {
    let (chain, first, second) = frames();
    let (once, _) = chain.apply(&first).unwrap();
    for (chain, frame) in [(&chain, &first), (&once, &second)] {
        for bit in 0..8 * frame.len() {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = refused(chain, &damaged);
            let expected = match bit / 8 {
                0..4 => matches!(error, DeltaError::NotADelta),
                4 => matches!(error, DeltaError::UnknownVersion(_)),
                _ => matches!(error, DeltaError::Checksum { .. }),
            };
            assert!(expected, "bit {bit}: {error}");
        }
        for cut in 0..frame.len() {
            refused(chain, &frame[..cut]);
            assert_eq!(is_delta(&frame[..cut]), cut >= 4);
            // Nor if the rest looks whole.
            let mut resealed = frame[..cut].to_vec();
            leasehold::codec::delta::reseal(&mut resealed);
            let error = refused(chain, &resealed);
            if let DeltaError::Decode(error) = error {
                assert!(error.offset <= cut, "{error}");
            }
        }
        let mut longer = frame.clone();
        longer.push(0);
        leasehold::codec::delta::reseal(&mut longer);
        let error = refused(chain, &longer).to_string();
        assert!(error.contains("1 trailing byte(s)"), "{error}");
    }
}

#[test]
fn a_writer_notices_what_it_can() {
    let (chain, ..) = frames();
    let groups: Vec<_> = chain.batch().rows().iter().map(|row| row.group()).collect();
    let next = || chain.batch().clone();
    let twice = chain.advance(next(), &[groups[1], groups[1]]);
    let group = groups[1];
    assert_eq!(
        twice.unwrap_err(),
        EncodeError::ChangesNotAscending { group }
    );
    let mut smaller = next();
    smaller.apply(&Changes::from([(groups[0], None)]));
    assert_eq!(
        chain.advance(smaller, &[]).unwrap_err(),
        EncodeError::UnlistedChange {
            expected: groups.len(),
            found: groups.len() - 1
        }
    );
    // A row that has the common expiration as its own would be another one after the next
    // snapshot.
    let mut pinned = next();
    let mut random = SplitMix64::new(3);
    let draft = grant(&mut random, &nodes(&pinned), 1000);
    let own = draft.expiration.unwrap();
    pinned.apply(&Changes::from([(groups[2], Some(draft))]));
    pinned.set_common_expiration(own);
    let group = groups[2];
    assert_eq!(
        chain.advance(pinned, &[group]).unwrap_err(),
        EncodeError::OwnExpirationIsCommon { group }
    );
}

#[test]
fn nothing_is_a_batch_too() {
    let chain = Chain::new(1, LeaseBatch::default());
    let common = chain.batch().common_expiration().plus_millis(10);
    let (_, frame) = advance(&chain, common, &Changes::new());
    let (read, _) = chain.apply(&frame).unwrap();
    assert!(read.batch().is_empty());
    assert_eq!(read.batch().common_expiration(), common);
}
