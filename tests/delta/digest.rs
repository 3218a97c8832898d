//! The digest tells different states apart and no others.

use std::collections::BTreeSet;

use leasehold::model::batch::LeaseBatch;
use leasehold::model::digest::Digest;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, GroupKind, NodeId};
use leasehold::model::lease::Lease;
use leasehold::model::workload::Workload;

use crate::support::ts;

type Alter = fn(&mut Lease);

fn lease() -> Lease {
    Lease {
        group: GroupId::new(GroupKind::Table, 7, 3).unwrap(),
        holder_name: "node1".into(),
        holder_id: NodeId::from_halves(1, 2),
        start: ts(1000),
        expiration: ts(6000),
        accepted: false,
        prolongable: false,
        proposed_candidate: None,
    }
}

#[test]
fn is_a_fixed_function() {
    let digest = |leases: &[Lease]| Digest::of(&LeaseBatch::from_leases(leases).unwrap());
    let candidate = Lease {
        proposed_candidate: Some("a longer name".into()),
        ..lease()
    };
    let found = [
        Digest::of(&LeaseBatch::default()).to_string(),
        digest(&[lease()]).to_string(),
        digest(&[candidate]).to_string(),
        Digest::of(&Workload::Churn.generate()).to_string(),
    ];
    assert_eq!(
        found,
        [
            "0320771f58b7fb00",
            "607d44a9ea249f8d",
            "d3a794fcd12aace8",
            "b8bb0dec013c342c",
        ]
    );
}

#[test]
fn does_not_depend_on_the_order_of_rows_or_dictionary() {
    let batch = Workload::Churn.with_tables(20);
    let leases: Vec<Lease> = batch.leases().collect();
    let reversed = LeaseBatch::from_leases(leases.iter().rev()).unwrap();
    assert_ne!(reversed.dictionary(), batch.dictionary());
    assert_eq!(Digest::of(&reversed), Digest::of(&batch));
}

#[test]
fn a_change_of_any_field_changes_it() {
    let alter: [(&str, Alter); 14] = [
        ("nothing", |_| {}),
        ("kind", |l| {
            l.group = GroupId::new(GroupKind::Zone, 7, 3).unwrap()
        }),
        ("object", |l| {
            l.group = GroupId::new(GroupKind::Table, 8, 3).unwrap()
        }),
        ("partition", |l| {
            l.group = GroupId::new(GroupKind::Table, 7, 4).unwrap()
        }),
        ("holder's name", |l| l.holder_name = "node2".into()),
        ("a NUL after it", |l| l.holder_name = "node1\0".into()),
        ("most half", |l| l.holder_id = NodeId::from_halves(3, 2)),
        ("halves swapped", |l| {
            l.holder_id = NodeId::from_halves(2, 1)
        }),
        ("start", |l| l.start = ts(1001)),
        ("start logical", |l| l.start = l.start.tick()),
        ("accepted", |l| l.accepted = true),
        ("prolongable", |l| l.prolongable = true),
        ("candidate", |l| l.proposed_candidate = Some("node1".into())),
        ("empty candidate", |l| {
            l.proposed_candidate = Some("".into())
        }),
    ];
    // Others keep the common expiration where it is.
    let others: Vec<Lease> = Workload::Steady.with_tables(1).leases().take(5).collect();
    let common = others[0].expiration;
    let mut seen = BTreeSet::new();
    for expiration in [
        common,
        ts(6000),
        ts(6001),
        HybridTimestamp::new(6000, 1).unwrap(),
    ] {
        for (what, alter) in &alter {
            let mut lease = Lease {
                expiration,
                ..lease()
            };
            alter(&mut lease);
            let batch = LeaseBatch::from_leases(others.iter().chain([&lease])).unwrap();
            assert_eq!(batch.common_expiration(), common);
            assert!(seen.insert(Digest::of(&batch).bits()), "{what}");
            let mut renewed = batch;
            renewed.set_common_expiration(common.tick());
            assert!(seen.insert(Digest::of(&renewed).bits()), "{what}, renewed");
        }
    }
}

/// Every row of a large batch has a hash of its own, evenly spread: no sum of two rows of the
/// first thousand is another's.
#[test]
fn rows_do_not_cancel_out() {
    let batch = Workload::Steady.with_tables(40);
    let leases: Vec<Lease> = batch.leases().collect();
    let empty = {
        let mut empty = LeaseBatch::default();
        empty.set_common_expiration(batch.common_expiration());
        Digest::of(&empty).bits()
    };
    let hash = |lease: &Lease| {
        let one = LeaseBatch::from_leases([lease]).unwrap();
        Digest::of(&one).bits().wrapping_sub(empty)
    };
    let hashes: Vec<u64> = leases.iter().map(hash).collect();
    let mut sums = BTreeSet::new();
    for (at, a) in hashes.iter().enumerate() {
        for b in &hashes[at..] {
            assert!(sums.insert(a.wrapping_add(*b)));
        }
    }
    for bit in 0..64 {
        let ones = hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count();
        assert!((400..600).contains(&ones), "bit {bit} is set in {ones}");
    }
}
