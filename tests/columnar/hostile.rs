//! Bytes that are not a batch get an error that says where, and cost no more than they are.

use leasehold::codec::frame::{self, FrameError};
use leasehold::codec::{self, DecodeError, DecodeLimits, Defect, Format, LeaseBatchView, anatomy};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::ids::NodeId;
use leasehold::model::lease::Lease;
use leasehold::model::workload::Workload;

use crate::seal;

fn churn() -> Vec<u8> {
    codec::encode(Format::Columnar, &Workload::Churn.with_tables(6)).unwrap()
}

/// `leases` leases of one table that take no bytes each.
fn alike(leases: u32) -> LeaseBatch {
    let lease = Workload::Steady.with_tables(1).leases().next().unwrap();
    let leases: Vec<Lease> = (0..leases)
        .map(|partition| Lease {
            group: lease.group.with_partition(partition),
            ..lease.clone()
        })
        .collect();
    LeaseBatch::from_leases(&leases).unwrap()
}

#[test]
fn every_truncation_is_refused() {
    let bytes = churn();
    for cut in 0..bytes.len() {
        let cut = &bytes[..cut];
        let error = codec::decode_as(Format::Columnar, cut).unwrap_err();
        assert!(error.offset <= cut.len(), "{error}");
        assert!(LeaseBatchView::open(cut).is_err());
        assert!(frame::open(cut).is_err());
        let mut sealed = cut.to_vec();
        seal(&mut sealed);
        let error = codec::decode_as(Format::Columnar, &sealed).unwrap_err();
        assert!(error.offset <= cut.len(), "{error}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(codec::decode(&longer).is_err());
    seal(&mut longer);
    let error = codec::decode(&longer).unwrap_err();
    assert_eq!((error.offset, error.field), (bytes.len(), "end"), "{error}");
}

#[test]
fn every_flipped_bit_is_found() {
    let bytes = churn();
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(
            codec::decode_as(Format::Columnar, &damaged).is_err(),
            "{bit}"
        );
        assert!(LeaseBatchView::open(&damaged).is_err(), "{bit}");
        assert!(frame::open(&damaged).is_err(), "{bit}");
    }
}

#[test]
fn a_record_says_what_is_wrong_with_it() {
    let bytes = churn();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bytes
    };
    let len = bytes.len() as u64;
    assert!(matches!(
        frame::open(&changed(9, !bytes[9])),
        Err(FrameError::Checksum { .. })
    ));
    assert_eq!(
        frame::open(&changed(4, 2)),
        Err(FrameError::UnknownVersion(2))
    );
    assert_eq!(frame::open(&changed(0, 0)), Err(FrameError::NotARecord));
    let shorter = &bytes[..bytes.len() - 1];
    assert_eq!(
        frame::open(shorter),
        Err(FrameError::Length {
            expected: len,
            found: shorter.len()
        })
    );
    let error = codec::decode(&changed(4, 2)).unwrap_err();
    assert_eq!((error.offset, error.field), (4, "version"));
}

#[test]
fn more_leases_than_allowed_are_refused_before_they_are_read() {
    let bytes = codec::encode(Format::Columnar, &alike(1000)).unwrap();
    assert!(bytes.len() < 100, "{} bytes", bytes.len());
    let with = |max_leases| codec::decode_with(&bytes, DecodeLimits { max_leases });
    assert_eq!(with(1000).unwrap().batch, alike(1000));
    let limit = 999;
    let error = DecodeError {
        offset: 13,
        field: "lease count",
        defect: Defect::TooManyLeases { limit },
    };
    assert_eq!(with(limit).unwrap_err(), error);
}

/// Replaces some bytes, which must stand there once, and seals the rest.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut places = bytes.windows(from.len()).enumerate();
    let (at, _) = places.find(|(_, window)| *window == from).unwrap();
    assert!(!places.any(|(_, window)| window == from), "ambiguous");
    let mut bytes = bytes.to_vec();
    bytes.splice(at..at + from.len(), to.iter().copied());
    seal(&mut bytes);
    bytes
}

#[test]
fn a_count_that_nothing_proves_is_capped() {
    let bytes = codec::encode(Format::Columnar, &alike(1000)).unwrap();
    // 1000 leases, and 1000 partitions of the one table.
    let lease_count = [0xE9, 0x07];
    let rest = bytes.strip_prefix(&bytes[..13]).unwrap();
    assert!(rest.starts_with(&lease_count));
    for (count, defect) in [
        // 2^24 + 1 and 2^32 − 1, each as the number plus one.
        (&[0x82, 0x80, 0x80, 0x08][..], "limit of this reader"),
        (&[0x80, 0x80, 0x80, 0x80, 0x10][..], "limit of this reader"),
        (&[0x81, 0x80, 0x80, 0x80, 0x10][..], "outside"),
        (&[0x00][..], "outside"),
        (&[0xEA, 0x07][..], "partitions"),
        (&[0xE8, 0x07][..], "partition"),
    ] {
        let mut bad = bytes.clone();
        bad.splice(13..15, count.iter().copied());
        seal(&mut bad);
        let error = codec::decode(&bad).unwrap_err();
        assert!(error.to_string().contains(defect), "{error}");
    }
}

/// Bytes at which other values say the same, and how many other values of all bytes are refused.
fn redundant(bytes: &[u8]) -> (Vec<usize>, usize) {
    let same = codec::decode(bytes).unwrap().batch;
    let (mut redundant, mut refused) = (Vec::new(), 0);
    for at in 13..bytes.len() {
        for byte in (0..=u8::MAX).filter(|byte| *byte != bytes[at]) {
            let mut other = bytes.to_vec();
            other[at] = byte;
            seal(&mut other);
            match codec::decode(&other) {
                Ok(decoded) => {
                    let dictionary = decoded.batch.dictionary() == same.dictionary();
                    if dictionary && decoded.batch == same && redundant.last() != Some(&at) {
                        redundant.push(at);
                    }
                }
                Err(error) => {
                    assert!(error.offset <= bytes.len(), "{error}");
                    refused += 1;
                }
            }
        }
    }
    (redundant, refused)
}

/// Any other value of any byte is an error or another batch; the same one only where a radix is
/// larger than it need be, or digits are packed otherwise.
#[test]
fn hardly_another_byte_says_the_same() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/columnar/");
    for (file, expected, columns) in [
        ("v1-small.bin", 16_280, &[83, 92, 123][..]),
        (
            "v1-odd.bin",
            82_647,
            &[317, 361, 362, 363, 364, 365, 366][..],
        ),
        (
            "v1-churn.bin",
            33_128,
            &[193, 194, 210, 211, 212, 213, 497, 498, 499, 532],
        ),
        ("v1-failover.bin", 26_261, &[84, 133, 134, 135, 136, 230]),
    ] {
        let (redundant, refused) = redundant(&std::fs::read(format!("{data}{file}")).unwrap());
        assert_eq!(
            (redundant.as_slice(), refused),
            (columns, expected),
            "{file}"
        );
    }
}

#[test]
fn a_rare_holder_has_one_digit() {
    let lease = Workload::Steady.with_tables(1).leases().next().unwrap();
    let leases: Vec<Lease> = (0..200)
        .map(|partition: u32| {
            let node = match partition {
                77 => 3,
                _ => partition % 2,
            };
            Lease {
                group: lease.group.with_partition(partition),
                holder_name: format!("node{node}").into(),
                holder_id: NodeId::from_halves(1, node.into()),
                ..lease.clone()
            }
        })
        .collect();
    let batch = LeaseBatch::from_leases(&leases).unwrap();
    let bytes = codec::encode(Format::Columnar, &batch).unwrap();
    let notes = anatomy::dissect(None, &bytes).unwrap().notes;
    let rare = |(_, note): &(_, String)| note.contains("rare ones: 1 coded");
    assert!(notes.iter().any(rare), "{notes:?}");
    let (redundant, _) = redundant(&bytes);
    // Two digits of one bit to a number are the same as one.
    assert_eq!(redundant, [108usize]);
}

#[test]
fn a_name_or_an_id_that_stands_twice_is_refused() {
    let bytes = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/columnar/v1-small.bin"
    ))
    .unwrap();
    let bad = replaced(&bytes, b"node2", b"node1");
    assert_eq!(codec::decode(&bad).unwrap_err().field, "name");
    let first = 0x1234_5678_90AB_CDEFu64.to_le_bytes();
    let second = 0xFEDC_BA09_8765_4321u64.to_le_bytes();
    let id = |a: [u8; 8], b: [u8; 8]| [a, b].concat();
    let bad = replaced(&bytes, &id(second, first), &id(first, second));
    assert_eq!(codec::decode(&bad).unwrap_err().field, "node id");
    let bad = replaced(&bytes, b"node2", b"nod\xFF2");
    let error = codec::decode(&bad).unwrap_err();
    assert_eq!(error.field, "name");
    assert_eq!(bad[error.offset], 0xFF);
}
