//! Hostile bytes in the naive format get an error with its place.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::{self, Format, naive_row_size};
use support::vectors;

/// Offsets in a record of a holder with an 11-character name and no candidate.
const COUNT: usize = 4;
const START: usize = 2;
const EXPIRATION: usize = 10;
const NAME: usize = 18;
const ID: usize = NAME + 4 + 11;
const CANDIDATE: usize = ID + 4 + 36;
const GROUP: usize = CANDIDATE + 4;
const RECORD: usize = GROUP + 4 + 102;

/// One lease of table 1, partition 0, held by `metanode-01`.
fn sound() -> Vec<u8> {
    let vectors = vectors();
    let vector = vectors.iter().find(|v| v.name == "single_table").unwrap();
    let bytes = vector.bytes(Format::Naive).unwrap();
    assert_eq!(bytes.len(), COUNT + RECORD);
    assert_eq!(RECORD, naive_row_size(11, None));
    bytes
}

/// Puts bytes at a place in the (first) record.
fn with(at: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = sound();
    bytes[COUNT + at..COUNT + at + patch.len()].copy_from_slice(patch);
    bytes
}

fn refused(bytes: &[u8], offset: usize, field: &str) {
    let error = codec::decode_as(Format::Naive, bytes).unwrap_err();
    assert_eq!((error.offset, error.field), (offset, field), "{error}");
    // Whatever it is taken for, it is not read.
    assert!(codec::decode(bytes).is_err());
}

#[test]
fn the_sound_one_is_read() {
    let decoded = codec::decode(&sound()).unwrap();
    assert_eq!(decoded.batch.len(), 1);
    assert_eq!(decoded.format, Format::Naive);
}

#[test]
fn counts() {
    for count in [-1, i32::MIN, 2, 1_000_000, i32::MAX] {
        let mut bytes = sound();
        bytes[..4].copy_from_slice(&count.to_le_bytes());
        refused(&bytes, 0, "lease count");
    }
    refused(&[], 0, "lease count");
    refused(&[0, 0, 0], 3, "lease count");
}

#[test]
fn booleans() {
    for bad in [2, 0x7F, 0xFF] {
        refused(&with(0, &[bad]), COUNT, "accepted");
        refused(&with(1, &[bad]), COUNT + 1, "prolongable");
    }
}

#[test]
fn timestamps() {
    for bad in [0, 1u64 << 63, u64::MAX] {
        let bad = bad.to_le_bytes();
        refused(&with(START, &bad), COUNT + START, "start");
        refused(&with(EXPIRATION, &bad), COUNT + EXPIRATION, "expiration");
    }
}

#[test]
fn lengths() {
    for (at, field, sound) in [
        (NAME, "holder name", 11),
        (ID, "holder id", 36),
        (CANDIDATE, "candidate", -1),
        (GROUP, "group id", 102),
    ] {
        for bad in [-2, i32::MIN, i32::MAX] {
            let error = codec::decode_as(Format::Naive, &with(at, &bad.to_le_bytes()));
            let error = error.unwrap_err();
            assert_eq!(error.field, field, "{error}");
        }
        if sound != -1 {
            refused(&with(at, &(-1i32).to_le_bytes()), COUNT + at, field);
        }
    }
    refused(&with(ID, &35i32.to_le_bytes()), COUNT + ID, "holder id");
    refused(
        &with(GROUP, &101i32.to_le_bytes()),
        COUNT + GROUP,
        "group id",
    );
    refused(&with(GROUP, &0i32.to_le_bytes()), COUNT + GROUP, "group id");
}

#[test]
fn texts() {
    refused(
        &with(NAME + 4 + 3, &[0xFF]),
        COUNT + NAME + 4 + 3,
        "holder name",
    );
    refused(
        &with(NAME + 4, &[0xC0, 0x80]),
        COUNT + NAME + 4,
        "holder name",
    );
    // Upper case, braces, no hyphens: not the canonical text.
    refused(&with(ID + 4 + 35, b"A"), COUNT + ID + 4, "holder id");
    refused(&with(ID + 4, b"{"), COUNT + ID + 4, "holder id");
    refused(&with(ID + 4 + 8, b"1"), COUNT + ID + 4, "holder id");
    refused(&with(ID + 4, &[0xFF]), COUNT + ID + 4, "holder id");
}

#[test]
fn groups() {
    for at in 0..94 {
        let place = GROUP + 4 + at;
        let flipped = sound()[COUNT + place] ^ 1;
        refused(&with(place, &[flipped]), COUNT + place, "group id");
    }
    for partition in [-1, i32::MIN, i32::MAX] {
        let place = GROUP + 4 + 94;
        refused(
            &with(place, &partition.to_be_bytes()),
            COUNT + place,
            "group id",
        );
    }
    for table in [-1, i32::MIN, i32::MAX] {
        let read = codec::decode(&with(GROUP + 4 + 98, &table.to_be_bytes())).unwrap();
        assert_eq!(
            read.batch.rows()[0].group().object(),
            table,
            "any table is sound"
        );
    }
}

#[test]
fn a_second_lease_of_a_group() {
    let mut bytes = sound();
    let record = bytes[COUNT..].to_vec();
    let mut other = record.clone();
    other[RECORD - 1] = 9;
    for record in [&other, &record] {
        bytes.extend_from_slice(record);
    }
    bytes[0] = 3;
    refused(&bytes, COUNT + 2 * RECORD, "lease");
}

#[test]
fn what_follows_the_end() {
    for tail in [&[0u8][..], &sound()[COUNT..]] {
        let mut bytes = sound();
        bytes.extend_from_slice(tail);
        refused(&bytes, COUNT + RECORD, "end");
    }
    refused(&[0, 0, 0, 0, 0], 4, "end");
}

#[test]
fn every_truncation() {
    let bytes = sound();
    for cut in 0..bytes.len() {
        assert!(codec::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        assert!(
            codec::decode_as(Format::Naive, &bytes[..cut]).is_err(),
            "cut at {cut}"
        );
    }
}
