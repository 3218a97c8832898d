//! Writer and reader agree, whatever is edited and for however long.

use std::collections::BTreeMap;

use leasehold::codec::{self, Chain, Delta, Format};
use leasehold::model::batch::{LeaseBatch, LeaseDraft};
use leasehold::model::diff::diff;
use leasehold::model::digest::Digest;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, GroupKind};
use leasehold::model::workload::Workload;
use proptest::prelude::*;

use crate::support::{Changes, advance, incarnation, table, ts};

/// What an edit does to a lease; the holder is (number, restarts).
#[derive(Clone, Debug)]
enum Change {
    Remove,
    Set {
        holder: (u64, u64),
        start: (u64, u16),
        expiration: Option<(u64, u16)>,
        flags: (bool, bool),
        candidate: Option<u64>,
    },
    /// The lease stays, its flags turn.
    Publish,
    /// The lease is listed but stays what it is.
    Nothing,
}

#[derive(Clone, Debug)]
struct Edit {
    common: (u64, u16),
    changes: BTreeMap<GroupId, Change>,
    /// A table or zone that is made with so many partitions, or dropped (none).
    object: Option<(GroupKind, i32, i64)>,
}

fn group() -> impl Strategy<Value = GroupId> {
    let kind = prop_oneof![3 => Just(GroupKind::Table), 1 => Just(GroupKind::Zone)];
    let object = prop_oneof![Just(i32::MIN), -2..4i32, Just(i32::MAX)];
    (kind, object, 0..4i64)
        .prop_map(|(kind, object, partition)| GroupId::new(kind, object, partition).unwrap())
}

fn time() -> impl Strategy<Value = (u64, u16)> {
    let logical = prop_oneof![3 => Just(0u16), 1 => Just(7), 1 => Just(u16::MAX)];
    let physical = prop_oneof![
        8 => 1000..1006u64,
        1 => Just(1),
        1 => Just((1 << 47) - 1),
        1 => 121_000..121_006u64
    ];
    (physical, logical)
}

fn change() -> impl Strategy<Value = Change> {
    let set = (
        (1..4u64, 0..3u64),
        time(),
        prop::option::of(time()),
        any::<(bool, bool)>(),
        prop::option::weighted(0.2, 0..6u64),
    );
    let set = set.prop_map(
        |(holder, start, expiration, flags, candidate)| Change::Set {
            holder,
            start,
            expiration,
            flags,
            candidate,
        },
    );
    prop_oneof![
        2 => Just(Change::Remove),
        6 => set,
        2 => Just(Change::Publish),
        1 => Just(Change::Nothing)
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let changes = prop::collection::btree_map(group(), change(), 0..8);
    let object = (group(), 0..9i64)
        .prop_map(|(group, partitions)| (group.kind(), group.object(), partitions));
    (time(), changes, prop::option::weighted(0.3, object)).prop_map(|(common, changes, object)| {
        Edit {
            common,
            changes,
            object,
        }
    })
}

fn timestamp((physical, logical): (u64, u16)) -> HybridTimestamp {
    HybridTimestamp::new(physical, logical).unwrap()
}

fn kept(batch: &LeaseBatch, group: GroupId) -> Option<LeaseDraft> {
    let row = batch.get(group)?;
    let lease = batch.lease(row);
    Some(LeaseDraft {
        holder: lease.holder(),
        start: lease.start,
        expiration: row.own_expiration(),
        accepted: lease.accepted,
        prolongable: lease.prolongable,
        candidate: lease.proposed_candidate,
    })
}

/// The edit as the driver would make it of a batch.
fn changes(batch: &LeaseBatch, edit: &Edit) -> Changes {
    let mut changes = Changes::new();
    if let Some((kind, object, partitions)) = edit.object {
        for partition in 0..partitions {
            let group = GroupId::new(kind, object, partition).unwrap();
            let draft = LeaseDraft {
                holder: incarnation(1 + partition as u64 % 3, 0),
                start: ts(1003),
                expiration: Some(ts(121_003)),
                accepted: false,
                prolongable: true,
                candidate: None,
            };
            changes.insert(group, Some(draft));
        }
        if partitions == 0 {
            let of_object = |group: &GroupId| group.kind() == kind && group.object() == object;
            let groups = batch.rows().iter().map(|row| row.group());
            changes.extend(groups.filter(of_object).map(|group| (group, None)));
        }
    }
    for (group, change) in &edit.changes {
        let draft = match change {
            Change::Remove => None,
            Change::Set {
                holder,
                start,
                expiration,
                flags,
                candidate,
            } => Some(LeaseDraft {
                holder: incarnation(holder.0, holder.1),
                start: timestamp(*start),
                expiration: expiration.map(timestamp),
                accepted: flags.0,
                prolongable: flags.1,
                candidate: candidate.map(|number| format!("node{number}").into()),
            }),
            Change::Publish => kept(batch, *group).map(|mut draft| {
                draft.accepted ^= true;
                draft
            }),
            Change::Nothing => kept(batch, *group),
        };
        changes.insert(*group, draft);
    }
    changes
}

/// Leases whose own expiration the common one is about to become are edited too, so that no row
/// is left that names it.
fn pin(batch: &LeaseBatch, common: HybridTimestamp, changes: &mut Changes) {
    for row in batch.rows() {
        if row.own_expiration() == Some(common) {
            let unchanged = || kept(batch, row.group());
            changes.entry(row.group()).or_insert_with(unchanged);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reader_follows_a_writer(
        start in prop::collection::btree_map(group(), change(), 0..20),
        edits in prop::collection::vec(edit(), 1..24),
        base in any::<u64>(),
        shuffled in any::<bool>(),
    ) {
        let mut batch = LeaseBatch::default();
        let first = Edit { common: (1000, 0), changes: start, object: None };
        batch.set_common_expiration(timestamp(edits[0].common));
        batch.apply(&changes(&batch, &first));
        // Each reader has what it decoded: with another dictionary, another common expiration.
        let mut writer = Chain::new(base, batch.clone());
        let leases: Vec<_> = batch.leases().collect();
        let read = if shuffled {
            LeaseBatch::from_leases(leases.iter().rev()).unwrap()
        } else {
            codec::decode(&codec::encode(Format::CompactV2, &batch).unwrap()).unwrap().batch
        };
        let mut reader = Chain::new(base, read);
        prop_assert_eq!(reader.digest(), writer.digest());
        // The driver goes on from the batch that the chain has.
        let mut held = writer.batch().clone();
        for edit in edits {
            let common = timestamp(edit.common);
            let mut changes = changes(&held, &edit);
            pin(&held, common, &mut changes);
            held.set_common_expiration(common);
            held.apply(&changes);
            let groups: Vec<GroupId> = changes.keys().copied().collect();
            let (written, frame) = writer.advance(held.clone(), &groups).unwrap();
            let (read, told) = reader.apply(&frame).unwrap();
            prop_assert_eq!(read.batch(), written.batch());
            prop_assert_eq!(read.batch().common_expiration(), common);
            prop_assert_eq!(read.digest(), written.digest());
            prop_assert_eq!(Digest::of(read.batch()), written.digest());
            prop_assert_eq!(Digest::of(written.batch()), written.digest());
            prop_assert_eq!((read.base(), read.step()), (base, written.step()));
            prop_assert_eq!(&told, &diff(writer.batch(), written.batch()));
            prop_assert_eq!(&told, &diff(reader.batch(), read.batch()));
            let rows = |chain: &Chain| {
                let own = chain.batch().rows().iter().map(|row| row.own_expiration());
                own.collect::<Vec<_>>()
            };
            prop_assert_eq!(rows(&read), rows(&written));
            let delta = Delta::read(&frame).unwrap();
            prop_assert_eq!((delta.base, delta.step), (base, written.step()));
            if delta.is_quiet() {
                prop_assert!(read.batch().shares_rows(reader.batch()));
            }
            (writer, reader) = (written, read);
        }
        // The next snapshot starts a chain with the same digest on both sides.
        let fresh = Chain::new(base, writer.batch().clone());
        let read = Chain::new(base, reader.batch().clone());
        prop_assert_eq!(read.digest(), fresh.digest());
        prop_assert_eq!(Digest::of(fresh.batch()), fresh.digest());
        prop_assert_eq!(fresh.batch(), writer.batch());
    }
}

#[test]
fn chains_start_alike_whatever_the_format_and_the_dictionary() {
    let batch = Workload::Churn.with_tables(10);
    let mut writer = Chain::new(7, batch.clone());
    let reversed: Vec<_> = batch.leases().collect();
    let reversed = LeaseBatch::from_leases(reversed.iter().rev()).unwrap();
    assert_ne!(reversed.dictionary(), batch.dictionary());
    let mut readers = vec![Chain::new(7, reversed)];
    for format in Format::ALL {
        let bytes = codec::encode(format, &batch).unwrap();
        readers.push(Chain::new(7, codec::decode(&bytes).unwrap().batch));
    }
    for round in 0..5 {
        let group = batch.rows()[40 * round].group();
        let mut draft = kept(writer.batch(), group).unwrap();
        draft.holder = incarnation(77, round as u64);
        draft.candidate = Some("node3".into());
        let changes = Changes::from([(group, Some(draft)), (table(1, round as i64), None)]);
        let common = batch.common_expiration().plus_millis(2500 * round as u64);
        let frame;
        (writer, frame) = advance(&writer, common, &changes);
        for reader in &mut readers {
            *reader = reader.apply(&frame).unwrap().0;
            assert_eq!(reader.batch(), writer.batch());
        }
    }
}

#[test]
fn a_quiet_renewal_shares_the_rows() {
    let batch = Workload::Steady.with_tables(10);
    let writer = Chain::new(7, batch.clone());
    let reader = Chain::new(7, batch.clone());
    assert!(writer.batch().shares_rows(&batch), "in order already");
    let common = batch.common_expiration().plus_millis(2500);
    let (written, frame) = advance(&writer, common, &Changes::new());
    let (read, told) = reader.apply(&frame).unwrap();
    assert_eq!(told, []);
    assert!(read.batch().shares_rows(reader.batch()));
    assert!(written.batch().shares_rows(writer.batch()));
}

/// The usual renewal of a new cluster: nobody was on the common expiration, so that a format
/// makes another one common than the driver has.
#[test]
fn a_snapshot_of_grants_is_the_same_for_all() {
    let mut held = LeaseBatch::default();
    let mut changes = Changes::new();
    for partition in 0..10 {
        let mut random = leasehold::model::workload::SplitMix64::new(partition);
        let lease = crate::support::grant(&mut random, &[incarnation(1, 1)], 1000);
        changes.insert(
            table(1, partition as i64),
            Some(LeaseDraft {
                start: ts(1000),
                expiration: Some(ts(121_000)),
                ..lease
            }),
        );
    }
    held.apply(&changes);
    assert_eq!(held.common_expiration(), HybridTimestamp::MIN);
    let mut writer = Chain::new(7, held.clone());
    assert_eq!(writer.batch().common_expiration(), ts(121_000));
    let stored = codec::encode(Format::CompactV2, &held).unwrap();
    let mut reader = Chain::new(7, codec::decode(&stored).unwrap().batch);
    // One is accepted and starts a common expiration of its own; the others keep theirs.
    let accepted = table(1, 4);
    let drafts = writer.batch().leases().map(|lease| {
        let mut draft = LeaseDraft::of(&lease);
        if lease.group == accepted {
            (draft.accepted, draft.expiration) = (true, None);
        }
        (lease.group, Some(draft))
    });
    let mut changes: Changes = drafts.collect();
    for renewal in 0..3 {
        let mut held = writer.batch().clone();
        held.set_common_expiration(ts(6000 + 2500 * renewal));
        held.apply(&changes);
        let groups: Vec<GroupId> = std::mem::take(&mut changes).into_keys().collect();
        let frame;
        (writer, frame) = writer.advance(held.clone(), &groups).unwrap();
        (reader, _) = reader.apply(&frame).unwrap();
        assert_eq!(reader.batch(), &held);
        let own = |row: &leasehold::model::batch::Row| row.own_expiration();
        let own = reader.batch().rows().iter().filter_map(own);
        assert_eq!(own.collect::<Vec<_>>(), [ts(121_000); 9]);
    }
}

/// When the common expiration moves onto a row's own one, the row stays what it is as long as
/// nobody edits it, for writer and reader alike; edited, it has none of its own any more.
#[test]
fn the_common_expiration_moves_onto_an_own_one() {
    let mut batch = Workload::Steady.with_tables(1);
    let common = batch.common_expiration();
    let moved = common.plus_millis(2500);
    let group = batch.rows()[3].group();
    let mut draft = kept(&batch, group).unwrap();
    draft.expiration = Some(moved);
    batch.apply(&Changes::from([(group, Some(draft.clone()))]));
    let chain = Chain::new(7, batch);
    for edited in [true, false] {
        let mut changes = Changes::new();
        if edited {
            changes.insert(group, Some(draft.clone()));
        }
        let (writer, frame) = advance(&chain, moved, &changes);
        let (reader, told) = chain.apply(&frame).unwrap();
        assert_eq!(told, []);
        for side in [&writer, &reader] {
            let own = side.batch().get(group).unwrap().own_expiration();
            assert_eq!(own, (!edited).then_some(moved));
            assert_eq!(Digest::of(side.batch()), side.digest());
        }
        // It goes on from there: whoever has an own expiration keeps it.
        let (writer, frame) = advance(&writer, moved.plus_millis(1), &Changes::new());
        let (reader, _) = reader.apply(&frame).unwrap();
        assert_eq!(reader.batch(), writer.batch());
        let lease = reader.batch().lease(reader.batch().get(group).unwrap());
        assert_eq!(lease.expiration == moved, !edited);
    }
}
