//! Every format writes the bytes of the vectors and reads them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::{self, EncodeError, Format};
use leasehold::model::batch::{LeaseBatch, LeaseDraft};
use leasehold::model::ids::Incarnation;
use support::{LOSSY, sorted, vectors};

#[test]
fn encode_gives_the_bytes_of_the_vectors() {
    for vector in vectors() {
        let batch = LeaseBatch::from_leases(&vector.leases).unwrap();
        for format in Format::ALL {
            let name = format!("{} in {format}", vector.name);
            let compact = format != Format::Naive;
            let written = codec::encode(format, &batch);
            match vector.bytes(format) {
                Some(_) if compact && vector.name == LOSSY => assert!(
                    matches!(written, Err(EncodeError::IdWithTwoNames { .. })),
                    "{name}"
                ),
                Some(expected) if compact && vector.is_tie() => {
                    let written = written.unwrap();
                    assert_ne!(written, expected, "{name}: no tie");
                    assert_eq!(codec::decode(&written).unwrap().batch, batch, "{name}");
                    // The original's choice is read and replaced.
                    let original = codec::decode(&expected).unwrap().batch;
                    assert_eq!(codec::encode(format, &original).unwrap(), written, "{name}");
                }
                Some(expected) => {
                    assert_eq!(
                        hex::encode(written.unwrap()),
                        hex::encode(expected),
                        "{name}"
                    );
                }
                // The system that the vectors are from does not know it.
                None if format == Format::Columnar => match written {
                    Ok(written) => {
                        assert_eq!(codec::decode(&written).unwrap().batch, batch, "{name}");
                    }
                    Err(error) => {
                        let two_names = matches!(error, EncodeError::IdWithTwoNames { .. });
                        assert!(two_names && vector.name == LOSSY, "{name}: {error}");
                    }
                },
                None => assert!(
                    matches!(
                        written,
                        Err(EncodeError::ZonesNotCarried { .. }
                            | EncodeError::TooManyIdsForV1 { .. })
                    ),
                    "{name}"
                ),
            }
        }
    }
}

#[test]
fn decode_gives_the_leases_of_the_vectors() {
    for vector in vectors() {
        for format in Format::ALL {
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            let name = format!("{} in {format}", vector.name);
            assert_eq!(codec::sniff(&bytes), Some(format), "{name}");
            let decoded = codec::decode(&bytes).unwrap();
            assert_eq!(decoded.format, format, "{name}");
            assert_eq!(decoded.ambiguous, 0, "{name}");
            let zones = matches!(format, Format::CompactV1 | Format::CompactV2);
            assert_eq!(decoded.zones_section, zones, "{name}");
            let leases: Vec<_> = decoded.batch.leases().collect();
            if format == Format::Naive {
                assert_eq!(leases, vector.leases, "{name}: stored order");
                continue;
            }
            assert_eq!(
                decoded.batch.common_expiration(),
                vector.common_expiration,
                "{name}"
            );
            let mut expected = sorted(vector.leases.clone());
            if vector.name == LOSSY {
                let first = expected[0].holder_name.clone();
                expected
                    .iter_mut()
                    .for_each(|l| l.holder_name = first.clone());
            }
            assert_eq!(leases, expected, "{name}");
        }
    }
}

#[test]
fn writing_what_was_read_gives_the_same_bytes() {
    for vector in vectors() {
        for format in Format::ALL {
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            if format != Format::Naive && vector.is_tie() {
                continue;
            }
            let batch = codec::decode_as(format, &bytes).unwrap().batch;
            let again = codec::encode(format, &batch).unwrap();
            assert_eq!(again, bytes, "{} in {format}", vector.name);
        }
    }
}

#[test]
fn broken_v1_bytes_are_read_as_the_original_does_and_counted() {
    let mut seen = 0;
    for vector in vectors() {
        let Some(bytes) = vector.broken() else {
            continue;
        };
        seen += 1;
        let decoded = codec::decode(&bytes).unwrap();
        let read: Vec<_> = decoded.batch.leases().collect();
        let expected = sorted(vector.leases);
        assert_eq!(read.len(), expected.len());
        let mut with_candidate = 0;
        for (read, written) in read.iter().zip(&expected) {
            if written.proposed_candidate.is_none() {
                assert_eq!(read, written, "{}: nothing is lost here", vector.name);
            } else {
                with_candidate += 1;
            }
        }
        let ambiguous = decoded.ambiguous;
        assert!(
            ambiguous > 0 && ambiguous <= with_candidate,
            "{}",
            vector.name
        );
    }
    assert_eq!(seen, 2);
}

#[test]
fn a_forced_format_must_be_the_right_one() {
    let vector = &vectors()[1];
    for written in Format::ALL {
        let batch = LeaseBatch::from_leases(&vector.leases).unwrap();
        let bytes = vector
            .bytes(written)
            .or_else(|| codec::encode(written, &batch).ok());
        let bytes = bytes.unwrap();
        for asked in Format::ALL {
            let readable = written == asked
                || (written, asked) == (Format::CompactV1TablesOnly, Format::CompactV1);
            let read = codec::decode_as(asked, &bytes);
            assert_eq!(read.is_ok(), readable, "{written} as {asked}");
        }
    }
}

#[test]
fn a_common_expiration_that_is_not_the_most_frequent_is_replaced() {
    let vectors = vectors();
    let tie = vectors.iter().find(|v| v.name == "tie_2_values").unwrap();
    let expected = codec::encode(
        Format::CompactV2,
        &LeaseBatch::from_leases(&tie.leases).unwrap(),
    );
    // The common expiration of a batch of one lease stays when the other lease comes.
    let mut leases = tie.leases.clone();
    leases.sort_by_key(|lease| lease.expiration);
    let mut batch = LeaseBatch::from_leases(&leases[1..]).unwrap();
    let earlier = leases.swap_remove(0);
    let draft = LeaseDraft {
        holder: Incarnation {
            name: earlier.holder_name,
            id: earlier.holder_id,
        },
        start: earlier.start,
        expiration: Some(earlier.expiration),
        accepted: earlier.accepted,
        prolongable: earlier.prolongable,
        candidate: earlier.proposed_candidate,
    };
    batch.apply(&[(earlier.group, Some(draft))].into());
    assert!(batch.common_expiration() > earlier.expiration);
    assert_eq!(codec::encode(Format::CompactV2, &batch), expected);
}
