//! Random batches come back as they went, in every format that can carry them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use leasehold::codec::{self, EncodeError, Format, anatomy, naive_row_size, naive_size};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use leasehold::model::ids::{GroupId, GroupKind, NodeId, NodeName};
use leasehold::model::lease::Lease;
use proptest::prelude::*;

fn timestamp() -> impl Strategy<Value = HybridTimestamp> {
    let physical = prop_oneof![
        4 => 1_774_000_000_000..1_774_000_009_000u64,
        2 => 1_700_000_000_000..1_774_000_000_000u64,
        1 => 0..=MAX_PHYSICAL,
        1 => Just(MAX_PHYSICAL),
    ];
    let logical = prop_oneof![6 => Just(0u16), 1 => 1..200u16, 1 => any::<u16>()];
    (physical, logical).prop_map(|(physical, logical)| {
        HybridTimestamp::new(physical, logical).unwrap_or(HybridTimestamp::MIN)
    })
}

fn group(zones: bool) -> impl Strategy<Value = GroupId> {
    let kind = match zones {
        true => prop_oneof![Just(GroupKind::Table), Just(GroupKind::Zone)].boxed(),
        false => Just(GroupKind::Table).boxed(),
    };
    let object = prop_oneof![8 => 1..6i32, 2 => -3..300i32, 1 => any::<i32>()];
    let partition = prop_oneof![8 => 0..12i64, 1 => 0..300i64];
    (kind, object, partition)
        .prop_map(|(kind, object, partition)| GroupId::new(kind, object, partition).unwrap())
}

/// Names, and for each lease the index of its holder and of its candidate's name.
fn leases() -> impl Strategy<Value = Vec<Lease>> {
    let name = prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter);
    let names = prop::collection::btree_set(name, 1..12);
    let expirations = prop::collection::vec(timestamp(), 1..4);
    let zones = any::<bool>();
    (names, 1..20usize, expirations, zones).prop_flat_map(|(names, ids, expirations, zones)| {
        let names: Vec<NodeName> = names.into_iter().map(NodeName::from).collect();
        let expiration = prop_oneof![
            6 => prop::sample::select(expirations),
            1 => timestamp(),
        ];
        let lease = (
            0..ids,
            prop::option::of(prop::sample::select(names.clone())),
            timestamp(),
            expiration,
            any::<(bool, bool)>(),
        )
            .prop_map(move |(holder, candidate, start, expiration, flags)| Lease {
                group: GroupId::first_of(GroupKind::Table, 0),
                holder_name: names[holder % names.len()].clone(),
                holder_id: NodeId::from_halves(!0, holder as u64),
                start,
                expiration,
                accepted: flags.0,
                prolongable: flags.1,
                proposed_candidate: candidate,
            });
        prop::collection::btree_map(group(zones), lease, 0..60)
            .prop_map(|leases: BTreeMap<GroupId, Lease>| {
                let leases = leases.into_iter();
                leases
                    .map(|(group, lease)| Lease { group, ..lease })
                    .collect::<Vec<_>>()
            })
            .prop_shuffle()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decode_gives_what_encode_got(leases in leases()) {
        let batch = LeaseBatch::from_leases(&leases).unwrap();
        let zones = leases.iter().any(|lease| lease.group.kind() == GroupKind::Zone);
        for format in Format::ALL {
            let tables_only = matches!(format, Format::Naive | Format::CompactV1TablesOnly);
            let bytes = match codec::encode(format, &batch) {
                Ok(bytes) => bytes,
                Err(EncodeError::ZonesNotCarried { .. }) => {
                    prop_assert!(zones && tables_only);
                    continue;
                }
                Err(EncodeError::TooManyIdsForV1 { names, ids }) => {
                    prop_assert!(names <= 8 && ids > 8 && format != Format::CompactV2);
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let decoded = codec::decode(&bytes).unwrap();
            prop_assert_eq!(decoded.format, format);
            prop_assert_eq!(&decoded.batch, &batch);
            prop_assert_eq!(&codec::encode(format, &decoded.batch).unwrap(), &bytes);
            let parts = anatomy::dissect(None, &bytes).unwrap().parts;
            prop_assert_eq!(parts.iter().map(|(_, size)| size).sum::<usize>(), bytes.len());
        }
    }

    #[test]
    fn naive_size_is_what_naive_takes(leases in leases()) {
        let batch = LeaseBatch::from_leases(&leases).unwrap();
        let rows = leases.iter().map(|lease| {
            let candidate = lease.proposed_candidate.as_ref().map(|name| name.len());
            naive_row_size(lease.holder_name.len(), candidate)
        });
        prop_assert_eq!(naive_size(&batch), 4 + rows.sum::<usize>());
        if let Ok(bytes) = codec::encode(Format::Naive, &batch) {
            prop_assert_eq!(naive_size(&batch), bytes.len());
        }
    }
}
