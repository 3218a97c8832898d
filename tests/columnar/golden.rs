//! Files of version 1 are read for ever, and written the same until that is decided otherwise.

use std::path::PathBuf;

use leasehold::codec::{self, Format, LeaseBatchView};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::{HybridTimestamp, MAX_PHYSICAL};
use leasehold::model::ids::{GroupId, GroupKind, NodeId};
use leasehold::model::lease::Lease;
use leasehold::model::workload::Workload;

fn at(physical: u64, logical: u16) -> HybridTimestamp {
    HybridTimestamp::new(physical, logical).unwrap()
}

fn lease(kind: GroupKind, object: i32, partition: u32) -> Lease {
    Lease {
        group: GroupId::first_of(kind, object).with_partition(partition),
        holder_name: "node1".into(),
        holder_id: NodeId::from_halves(0x1234_5678_90AB_CDEF, 0xFEDC_BA09_8765_4321),
        start: at(1_704_067_200_000, 0),
        expiration: at(1_704_067_205_000, 0),
        accepted: true,
        prolongable: true,
        proposed_candidate: None,
    }
}

fn of_node_2(lease: Lease) -> Lease {
    Lease {
        holder_name: "node2".into(),
        holder_id: NodeId::from_halves(0xFEDC_BA09_8765_4321, 0x1234_5678_90AB_CDEF),
        ..lease
    }
}

/// The batch that docs/FORMATS.md explains byte by byte.
fn small() -> LeaseBatch {
    let candidate = Lease {
        prolongable: false,
        proposed_candidate: Some("node2".into()),
        ..lease(GroupKind::Table, 1, 0)
    };
    let own = Lease {
        start: at(1_704_067_200_100, 0),
        expiration: at(1_704_067_205_100, 0),
        accepted: false,
        ..of_node_2(lease(GroupKind::Table, 1, 1))
    };
    let young = Lease {
        start: at(1_704_067_200_007, 3),
        ..lease(GroupKind::Table, 4, 0)
    };
    let zone = lease(GroupKind::Zone, 1, 1);
    LeaseBatch::from_leases(&[candidate, own, young, zone]).unwrap()
}

/// Holes, zones, ids and times at their limits.
fn odd() -> LeaseBatch {
    let mut leases = Vec::new();
    for kind in [GroupKind::Table, GroupKind::Zone] {
        for object in [i32::MIN, -7, 0, 9, i32::MAX] {
            for partition in [0, 3, 4, GroupId::MAX_PARTITION] {
                let quiet = lease(kind, object, partition);
                leases.push(match (object, partition) {
                    (0, 3) => Lease {
                        start: HybridTimestamp::MIN,
                        ..of_node_2(quiet)
                    },
                    (9, 4) => Lease {
                        start: at(MAX_PHYSICAL, u16::MAX),
                        expiration: at(MAX_PHYSICAL, u16::MAX),
                        ..quiet
                    },
                    (-7, 0) => Lease {
                        accepted: false,
                        proposed_candidate: Some("\0😀".into()),
                        ..quiet
                    },
                    _ => quiet,
                });
            }
        }
    }
    LeaseBatch::from_leases(&leases).unwrap()
}

fn all() -> Vec<(String, LeaseBatch)> {
    let mut all = vec![
        ("empty".to_owned(), LeaseBatch::default()),
        ("small".to_owned(), small()),
        ("odd".to_owned(), odd()),
    ];
    for workload in Workload::ALL {
        all.push((workload.to_string(), workload.with_tables(12)));
    }
    all
}

fn path(name: &str) -> PathBuf {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/columnar");
    data.join(format!("v1-{name}.bin"))
}

#[test]
fn files_of_version_1_are_read_and_written() {
    for (name, batch) in all() {
        let bytes = std::fs::read(path(&name)).unwrap();
        let decoded = codec::decode(&bytes).unwrap();
        assert_eq!(decoded.batch, batch, "{name}");
        assert_eq!(decoded.batch.dictionary(), batch.dictionary(), "{name}");
        let view = LeaseBatchView::open(&bytes).unwrap();
        for row in batch.rows() {
            let lease = view.lease(row.group()).unwrap();
            assert_eq!(lease, Some(batch.lease(row)), "{name}");
        }
        let written = codec::encode(Format::Columnar, &batch).unwrap();
        assert_eq!(written, bytes, "{name} is written otherwise");
    }
}

#[test]
fn the_documentation_explains_every_byte() {
    let text = include_str!("../../docs/FORMATS.md");
    let (_, section) = text
        .split_once("### A batch in columns, byte by byte")
        .unwrap();
    let (section, _) = section.split_once("\n### ").unwrap();
    let mut bytes = Vec::new();
    for line in section.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, offset, hex, ..] = cells[..] else {
            continue;
        };
        let Ok(offset) = offset.parse::<usize>() else {
            continue;
        };
        assert_eq!(offset, bytes.len(), "{line}");
        let hex = hex.trim_matches('`').replace(' ', "");
        bytes.extend(hex::decode(hex).unwrap());
    }
    assert_eq!(bytes, std::fs::read(path("small")).unwrap());
}

/// To be run when a new release is to write other bytes; never to make the test above pass.
#[test]
#[ignore = "overwrites the golden files"]
fn write_the_files() {
    for (name, batch) in all() {
        let bytes = codec::encode(Format::Columnar, &batch).unwrap();
        std::fs::write(path(&name), bytes).unwrap();
    }
}
