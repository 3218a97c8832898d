//! Editing a batch is the same as editing a map of leases, whatever the order of edits.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use leasehold::codec::{self, Format, naive_size};
use leasehold::model::batch::{LeaseBatch, LeaseDraft};
use leasehold::model::diff::diff;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, GroupKind, Incarnation, NodeId};
use leasehold::model::lease::Lease;
use proptest::prelude::*;

/// Holder, restarts, expiration, accepted.
type Draft = (u64, u64, u64, bool);

#[derive(Clone, Debug)]
struct Edit {
    /// Groups to set and to remove (`None`).
    changes: BTreeMap<(i32, i64), Option<Draft>>,
    /// The common expiration moves first.
    common: Option<u64>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let group = (1..4i32, 0..4i64);
    let draft = (1..4u64, 0..3u64, 1000..1004u64, any::<bool>());
    let changes = prop::collection::btree_map(group, prop::option::weighted(0.8, draft), 0..6);
    (changes, prop::option::of(1000..1010u64))
        .prop_map(|(changes, common)| Edit { changes, common })
}

fn ts(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap()
}

fn holder(number: u64, restarts: u64) -> Incarnation {
    Incarnation {
        name: format!("node{number}").into(),
        id: NodeId::from_halves(number, restarts),
    }
}

/// The edits done to a map. `None` as expiration: the common one.
type Model = BTreeMap<GroupId, (LeaseDraft, bool)>;

fn lease(group: GroupId, draft: &LeaseDraft, common: HybridTimestamp) -> Lease {
    Lease {
        group,
        holder_name: draft.holder.name.clone(),
        holder_id: draft.holder.id,
        start: draft.start,
        expiration: draft.expiration.unwrap_or(common),
        accepted: draft.accepted,
        prolongable: draft.prolongable,
        proposed_candidate: draft.candidate.clone(),
    }
}

proptest! {
    #[test]
    fn as_a_map(edits in prop::collection::vec(edit(), 1..12)) {
        let mut batch = LeaseBatch::default();
        let mut model = Model::new();
        for edit in edits {
            let before = batch.clone();
            if let Some(common) = edit.common {
                // Whoever moves the common expiration pins the leases whose own one equals it.
                let common = ts(common);
                let pinned = batch.rows().iter().any(|row| row.own_expiration() == Some(common));
                if !pinned {
                    batch.set_common_expiration(common);
                }
            }
            let common = batch.common_expiration();
            let mut changes = BTreeMap::new();
            for ((object, partition), change) in &edit.changes {
                let group = GroupId::new(GroupKind::Table, *object, *partition).unwrap();
                let draft = change.map(|(number, restarts, expiration, accepted)| LeaseDraft {
                    holder: holder(number, restarts),
                    start: ts(500 + restarts),
                    expiration: (expiration > 1000).then(|| ts(expiration)),
                    accepted,
                    prolongable: number != 2,
                    candidate: (number == 2).then(|| "heir".into()),
                });
                match &draft {
                    Some(draft) => {
                        let follows = draft.expiration.is_none_or(|own| own == common);
                        model.insert(group, (draft.clone(), follows));
                    }
                    None => {
                        model.remove(&group);
                    }
                }
                changes.insert(group, draft);
            }
            batch.apply(&changes);

            for (draft, follows) in model.values_mut() {
                draft.expiration = if *follows { None } else { draft.expiration };
            }
            let expected: Vec<Lease> = model.iter()
                .map(|(group, (draft, _))| lease(*group, draft, common))
                .collect();
            prop_assert_eq!(batch.leases().collect::<Vec<_>>(), expected.clone());

            // The dictionary is what a batch made of the same leases from the start has.
            let fresh = LeaseBatch::from_leases(&expected).unwrap();
            prop_assert_eq!(batch.dictionary(), fresh.dictionary());
            prop_assert_eq!(diff(&batch, &fresh), vec![]);

            let naive = codec::encode(Format::Naive, &batch).unwrap();
            prop_assert_eq!(naive.len(), naive_size(&batch));
            let compact = codec::encode(Format::CompactV2, &batch).unwrap();
            prop_assert_eq!(&compact, &codec::encode(Format::CompactV2, &fresh).unwrap());
            prop_assert_eq!(&codec::decode(&compact).unwrap().batch, &batch);

            // What differs is what was edited and was not edited into the same.
            for change in diff(&before, &batch) {
                let group = change.old.or(change.new).unwrap().group;
                prop_assert!(changes.contains_key(&group));
            }
        }
    }
}
