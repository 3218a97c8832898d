//! Reading a part agrees with reading all.

use leasehold::codec::columnar::Position;
use leasehold::codec::{self, Format, LeaseBatchView, frame};
use leasehold::model::batch::{LeaseBatch, Row};
use leasehold::model::ids::{GroupId, GroupKind};
use leasehold::model::workload::Workload;
use proptest::prelude::*;

use crate::batches::batch;

fn agrees(batch: &LeaseBatch, step: usize) {
    let bytes = codec::encode(Format::Columnar, batch).unwrap();
    let view = LeaseBatchView::open(&bytes).unwrap();
    assert_eq!(view.len(), batch.len());
    assert_eq!(view.is_empty(), batch.is_empty());
    assert_eq!(view.common_expiration(), batch.common_expiration());
    assert_eq!(view.dictionary(), batch.dictionary());
    let rows = batch.rows();
    for (index, row) in rows.iter().enumerate().step_by(step) {
        assert_eq!(view.row_at(index).unwrap(), Some(*row), "row {index}");
        assert_eq!(view.position(row.group()).unwrap(), Position::Found(index));
        let lease = view.lease(row.group()).unwrap().unwrap();
        assert_eq!(lease, batch.lease(row));
    }
    assert_eq!(view.row_at(rows.len()).unwrap(), None);
    let mut first = 0;
    for object in rows.chunk_by(|a, b| a.group().same_object(b.group())) {
        let group = object[0].group();
        if first % step == 0 {
            let found = view.rows_of(group.kind(), group.object()).unwrap().unwrap();
            assert_eq!((found.first, &found.rows[..]), (first, object));
            let leases = view.leases_of(group.kind(), group.object()).unwrap();
            let expected: Vec<_> = object.iter().map(|row| batch.lease(row)).collect();
            assert_eq!(leases, expected);
        }
        first += object.len();
    }
}

fn misses(batch: &LeaseBatch, groups: impl IntoIterator<Item = GroupId>) {
    let bytes = codec::encode(Format::Columnar, batch).unwrap();
    let view = frame::open(&bytes).unwrap().view().unwrap().unwrap();
    for group in groups {
        let place = batch.rows().binary_search_by_key(&group, Row::group);
        let expected = match place {
            Ok(index) => Position::Found(index),
            Err(index) => Position::WouldBe(index),
        };
        assert_eq!(view.position(group).unwrap(), expected, "{group}");
        assert_eq!(view.row(group).unwrap().is_some(), place.is_ok());
        let has = batch
            .rows()
            .iter()
            .any(|row| row.group().same_object(group));
        let found = view.rows_of(group.kind(), group.object()).unwrap();
        assert_eq!(found.is_some(), has, "{group}");
    }
}

/// Groups around those of a batch.
fn around(batch: &LeaseBatch) -> Vec<GroupId> {
    let mut groups = Vec::new();
    for kind in [GroupKind::Table, GroupKind::Zone] {
        for object in [i32::MIN, -1, 0, 1, 2, 3, 101, 107, 108, 400, i32::MAX] {
            for partition in [0, 1, 24, 25, 599, 600, GroupId::MAX_PARTITION] {
                groups.push(GroupId::first_of(kind, object).with_partition(partition));
            }
        }
    }
    for row in batch.rows().iter().step_by(5) {
        let group = row.group();
        groups.push(group.with_partition(group.partition().saturating_sub(1)));
        groups.push(group.with_partition((group.partition() + 1).min(GroupId::MAX_PARTITION)));
        groups.push(GroupId::first_of(
            group.kind(),
            group.object().wrapping_add(1),
        ));
        groups.push(GroupId::first_of(
            group.kind(),
            group.object().wrapping_sub(1),
        ));
    }
    groups
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_view_agrees_with_the_batch(batch in batch()) {
        agrees(&batch, 1 + batch.len() / 200);
        misses(&batch, around(&batch));
    }
}

#[test]
fn a_view_agrees_on_the_workloads() {
    for workload in [
        Workload::Reference,
        Workload::Steady,
        Workload::Churn,
        Workload::Failover,
    ] {
        let batch = workload.with_tables(400);
        agrees(&batch, 5);
        misses(&batch, around(&batch));
    }
}

#[test]
fn other_formats_have_no_view() {
    let batch = Workload::Steady.with_tables(1);
    let payload = codec::encode(Format::CompactV2, &batch).unwrap();
    let record = frame::wrap(Format::CompactV2, &payload).unwrap();
    assert!(frame::open(&record).unwrap().view().is_none());
    assert!(LeaseBatchView::open(&payload).is_err());
}
