//! Hostile bytes in the compact formats get an error, each with its place; what is harmless is
//! read.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::anatomy::{self, Part};
use leasehold::codec::{self, Defect, Format};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::workload::Workload;
use support::{malformed, vectors};

#[test]
fn malformed_cases_are_answered_as_expected() {
    for case in malformed() {
        let bytes = case.bytes();
        let answer = codec::decode(&bytes);
        match case.expect.as_str() {
            "accept" => {
                let decoded = answer.unwrap_or_else(|e| panic!("{}: {e}", case.name));
                let again = codec::encode(decoded.format, &decoded.batch);
                if case.name != "version_1_nine_ids" {
                    let again = codec::decode(&again.unwrap()).unwrap();
                    assert_eq!(again.batch, decoded.batch, "{}", case.name);
                }
            }
            "error" => {
                let error = answer
                    .err()
                    .unwrap_or_else(|| panic!("{} was read", case.name));
                assert!(error.offset <= bytes.len(), "{}: {error}", case.name);
            }
            other => panic!("{}: what is {other}?", case.name),
        }
    }
}

#[test]
fn a_harmless_redundancy_is_normalised() {
    let cases = malformed();
    let decode = |name: &str| {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        codec::decode(&case.bytes()).unwrap().batch
    };
    for name in ["uncommon_logical_zero", "flags_logical_without_uncommon"] {
        let batch = decode(name);
        let own = |row: &leasehold::model::batch::Row| row.own_expiration();
        let common = batch.common_expiration();
        assert!(
            batch.rows().iter().all(|row| own(row) != Some(common)),
            "{name}"
        );
    }
    assert_eq!(decode("trailing_hole").len(), 1);
}

#[test]
fn errors_say_where() {
    let cases = malformed();
    for (name, offset, field) in [
        ("trunc_header", 3, "magic"),
        ("version_3", 0, "version"),
        ("trunc_in_uuid", 16, "node count"),
        ("trunc_before_second_flags_last_table", 61, "flags"),
        ("flags_unknown_bits", 57, "flags"),
        ("holder_index_out_of_range", 58, "holder index"),
        ("candidate_index_out_of_range", 58, "candidate index"),
        ("packed_1000_with_candidate", 58, "packed nodes"),
        ("period_larger_than_expiration", 39, "start"),
        ("start_zero", 39, "start"),
        ("start_logical_65536", 40, "start logical"),
        ("common_zero", 5, "common expiration"),
        ("common_logical_65536", 11, "common expiration logical"),
        ("dup_name", 15, "name"),
        ("dup_node_id", 35, "node id"),
        ("object_id_delta_0_twice", 61, "object id"),
        ("utf_overlong_2_byte_A", 14, "name"),
        ("trailing_garbage_after_zone_section", 62, "end"),
        ("lease_count_1000000_no_data", 36, "partition count"),
    ] {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let error = codec::decode(&case.bytes()).unwrap_err();
        assert_eq!(
            (error.offset, error.field),
            (offset, field),
            "{name}: {error}"
        );
    }
}

#[test]
fn every_truncation_of_every_vector_is_refused() {
    for vector in vectors() {
        for format in Format::ALL {
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            // A batch of version 1 cut exactly before its zones is a whole one of release 3.0.
            let whole = match format {
                Format::CompactV1 => vector.bytes(Format::CompactV1TablesOnly),
                _ => None,
            };
            let mut harmless = 0;
            for cut in 0..bytes.len() {
                let Err(error) = codec::decode(&bytes[..cut]) else {
                    harmless += 1;
                    let same = whole.as_ref().is_none_or(|whole| whole[..] == bytes[..cut]);
                    let only = format == Format::CompactV1 && same && harmless == 1;
                    assert!(only, "{} in {format} cut at {cut}", vector.name);
                    continue;
                };
                assert!(error.offset <= cut, "{error}");
                let strict = codec::decode_as(format, &bytes[..cut]).unwrap_err();
                assert!(
                    matches!(
                        strict.defect,
                        Defect::Truncated { .. } | Defect::CountTooLarge { .. }
                    ),
                    "{} in {format} cut at {cut}: {strict}",
                    vector.name
                );
            }
        }
    }
}

/// Bytes before the first section.
fn head(bytes: &[u8]) -> usize {
    let parts = anatomy::dissect(None, bytes).unwrap().parts;
    let head = [Part::Header, Part::Names, Part::NodeIds];
    let parts = parts.iter().filter(|(part, _)| head.contains(part));
    parts.map(|(_, size)| size).sum()
}

#[test]
fn overlong_numbers_are_refused_in_whatever_lease() {
    for workload in [Workload::Reference, Workload::Steady, Workload::Churn] {
        let batch = workload.with_tables(2);
        let bytes = codec::encode(Format::CompactV2, &batch).unwrap();
        let mut tried = 0;
        for at in head(&bytes)..bytes.len() {
            let last_of_several = bytes[at - 1] & 0x80 != 0 && bytes[at] & 0x80 == 0;
            if last_of_several {
                let mut overlong = bytes.clone();
                overlong[at] = 0;
                let error = codec::decode(&overlong).unwrap_err();
                assert!(error.offset <= at, "{error}");
                assert!(
                    error.to_string().contains("longer than its value"),
                    "{error}"
                );
                tried += 1;
            }
        }
        assert!(tried >= 40, "{tried}");
    }
}

#[test]
fn a_start_out_of_range_is_refused_in_whatever_lease() {
    let at = |physical| HybridTimestamp::new(physical, 0).unwrap();
    let mut lease = vectors()[1].leases[0].clone();
    (lease.start, lease.expiration) = (at(1), at(200));
    let leases: Vec<_> = (0..9)
        .map(|partition| {
            let group = lease.group.with_partition(partition);
            let lease = lease.clone();
            leasehold::model::lease::Lease { group, ..lease }
        })
        .collect();
    let batch = LeaseBatch::from_leases(&leases).unwrap();
    let bytes = codec::encode(Format::CompactV2, &batch).unwrap();
    // Flags, nodes, a period of 199, start logical 0.
    let element = [0x03, 0x01, 0xC8, 0x01, 0x01];
    let places: Vec<_> = (head(&bytes)..bytes.len() - 4)
        .filter(|at| bytes[*at..*at + 5] == element)
        .collect();
    assert_eq!(places.len(), 9);
    for place in places {
        for (period, why) in [(0xC9, "none"), (0xCA, "-1 is outside")] {
            let mut bad = bytes.clone();
            bad[place + 2] = period;
            let error = codec::decode(&bad).unwrap_err();
            assert_eq!((error.offset, error.field), (place + 2, "start"), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
