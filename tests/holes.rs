//! Partitions without a lease: written and read as holes, up to a limit.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::{self, EncodeError, Format};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::ids::GroupId;
use support::vectors;

fn only_partition(partition: u32) -> LeaseBatch {
    let mut lease = vectors()[1].leases[0].clone();
    lease.group = lease.group.with_partition(partition);
    LeaseBatch::from_leases(&[lease]).unwrap()
}

#[test]
fn more_holes_than_a_buffer_takes() {
    let batch = only_partition(1_000_000);
    let bytes = codec::encode(Format::CompactV2, &batch).unwrap();
    assert!(bytes.len() > 1_000_000);
    assert_eq!(codec::decode(&bytes).unwrap().batch, batch);
}

#[test]
fn gigabytes_of_holes_are_refused() {
    let batch = only_partition(GroupId::MAX_PARTITION);
    for format in [Format::CompactV1, Format::CompactV2] {
        let mut out = b"before".to_vec();
        let refused = codec::encode_into(format, &batch, &mut out);
        assert!(matches!(refused, Err(EncodeError::TooLarge { .. })));
        assert_eq!(out, b"before", "nothing is left of the attempt");
    }
    let naive = codec::encode(Format::Naive, &batch).unwrap();
    assert_eq!(codec::decode(&naive).unwrap().batch, batch);
}
