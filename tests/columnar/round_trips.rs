//! Any batch comes back, dictionary and all.

use leasehold::codec::{self, EncodeError, Format, anatomy, frame};
use leasehold::model::batch::LeaseBatch;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, GroupKind, NodeId};
use leasehold::model::lease::Lease;
use leasehold::model::workload::{Churn, Plan};
use proptest::prelude::*;

use crate::batches::batch;

/// Encodes and decodes, and checks all that must hold for any batch.
fn round_trip(batch: &LeaseBatch) -> Vec<u8> {
    let bytes = codec::encode(Format::Columnar, batch).unwrap();
    let decoded = codec::decode(&bytes).unwrap();
    assert_eq!(decoded.batch, *batch);
    assert_eq!(decoded.batch.rows(), batch.rows());
    assert_eq!(decoded.batch.dictionary(), batch.dictionary());
    assert_eq!(decoded.batch.common_expiration(), batch.common_expiration());
    assert_eq!(
        codec::encode(Format::Columnar, &decoded.batch).unwrap(),
        bytes
    );
    let parts = anatomy::dissect(None, &bytes).unwrap().parts;
    assert_eq!(
        parts.iter().map(|(_, size)| size).sum::<usize>(),
        bytes.len()
    );
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batch_comes_back(batch in batch()) {
        let bytes = round_trip(&batch);
        let record = frame::wrap(Format::Columnar, &bytes).unwrap();
        prop_assert_eq!(&record, &bytes, "the record is the payload");
        prop_assert!(frame::is_record(&record));
        let opened = frame::open(&record).unwrap();
        prop_assert_eq!(opened.format, Format::Columnar);
        prop_assert_eq!(opened.decode().unwrap().batch, batch);
    }
}

#[test]
fn drawn_clusters_come_back() {
    for (seed, share, failover) in [(1, 0, true), (2, 50, true), (3, 300, false), (4, 900, true)] {
        for (tables, partitions, nodes) in [(1, 1, 1), (700, 3, 2), (90, 25, 5), (3, 1500, 70)] {
            let plan = Plan {
                tables,
                partitions,
                nodes,
                churn: (share > 0).then(|| Churn::per_thousand(share)),
                failover: failover && nodes > 2,
                ..Plan::new(seed)
            };
            round_trip(&plan.generate());
        }
    }
}

#[test]
fn a_dictionary_keeps_entries_that_no_lease_uses() {
    let batch = Plan::new(9).generate();
    let changed = {
        let mut batch = batch.clone();
        let common = batch.common_expiration().plus_millis(1);
        batch.set_common_expiration(common);
        batch
    };
    assert_eq!(changed.dictionary(), batch.dictionary());
    round_trip(&changed);
}

#[test]
fn one_id_under_two_names_is_refused() {
    let batch = Plan::new(9).generate();
    let mut leases: Vec<_> = batch.leases().take(2).collect();
    leases[1].holder_id = leases[0].holder_id;
    leases[0].holder_name = "one".into();
    leases[1].holder_name = "two".into();
    let batch = LeaseBatch::from_leases(&leases).unwrap();
    let refused = codec::encode(Format::Columnar, &batch).unwrap_err();
    assert_eq!(
        refused,
        EncodeError::IdWithTwoNames {
            group: leases[1].group,
            id: leases[0].holder_id,
            first: "one".into(),
            second: "two".into(),
        }
    );
}

/// The encoder decides by a sample, which may lack the earliest start of an object.
#[test]
fn a_batch_whose_earliest_start_is_not_in_the_sample_comes_back() {
    let lease = |partition: u32| Lease {
        group: GroupId::new(GroupKind::Table, 1, partition.into()).unwrap(),
        holder_name: "a".into(),
        holder_id: NodeId::from_halves(1, 2),
        start: HybridTimestamp::new(if partition == 1 { 1000 } else { 2000 }, 0).unwrap(),
        expiration: HybridTimestamp::new(9000, 0).unwrap(),
        accepted: true,
        prolongable: true,
        proposed_candidate: None,
    };
    let leases: Vec<Lease> = (0..2500).map(lease).collect();
    round_trip(&LeaseBatch::from_leases(&leases).unwrap());
}
