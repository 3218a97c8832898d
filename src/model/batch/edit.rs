//! Changing leases, and bringing a batch into the one form that its leases have.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{LeaseBatch, Row, most_frequent};
use crate::model::dictionary::{Dictionary, DictionaryBuilder};
use crate::model::first_seen::FirstSeen;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, Incarnation, NodeName};
use crate::model::lease::Lease;

/// What a lease of a group is to become; see [`LeaseBatch::apply`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseDraft {
    /// The holder.
    pub holder: Incarnation,
    /// Start of the lease.
    pub start: HybridTimestamp,
    /// Its expiration, or `None` for the common one, whatever that becomes.
    pub expiration: Option<HybridTimestamp>,
    /// Whether the holder has agreed.
    pub accepted: bool,
    /// Whether the driver may prolong it.
    pub prolongable: bool,
    /// Who should get the next lease of the group.
    pub candidate: Option<NodeName>,
}

impl LeaseDraft {
    /// A lease as it is, with its expiration made its own.
    pub fn of(lease: &Lease) -> Self {
        Self {
            holder: lease.holder(),
            start: lease.start,
            expiration: Some(lease.expiration),
            accepted: lease.accepted,
            prolongable: lease.prolongable,
            candidate: lease.proposed_candidate.clone(),
        }
    }
}

impl LeaseBatch {
    /// The same leases in the form that a [chain](crate::codec::delta) has them: sorted, the most
    /// frequent expiration the common one, the dictionary in order of first appearance.
    #[must_use]
    pub(crate) fn settled(mut self) -> Self {
        self.arrival = None;
        self.settle_expirations();
        self.order_dictionary();
        self
    }

    /// Brings the expirations into their one form: the common one is the most frequent (of
    /// equally frequent ones the earliest; the smallest timestamp if there is no lease), and no
    /// row has it as its own. The leases are the same.
    pub(crate) fn settle_expirations(&mut self) {
        let old = self.common;
        let on_common = |row: &&Row| row.expiration(old) == old;
        let most = 2 * self.rows.iter().filter(on_common).count() > self.rows.len();
        let common = if most {
            old
        } else {
            let all = self.rows.iter().map(|row| row.expiration(old));
            most_frequent(all).unwrap_or(HybridTimestamp::MIN)
        };
        if common == old && self.rows.iter().all(|row| row.expiration != Some(old)) {
            return;
        }
        self.common = common;
        for row in Arc::make_mut(&mut self.rows) {
            row.expiration = Some(row.expiration(old)).filter(|own| *own != common);
        }
    }

    /// Replaces, adds (`Some`) and removes (`None`) leases. The dictionary afterwards holds the
    /// used entries in order of first appearance.
    pub fn apply(&mut self, changes: &BTreeMap<GroupId, Option<LeaseDraft>>) {
        if changes.is_empty() {
            return;
        }
        let common = self.common;
        let mut builder = DictionaryBuilder::from_dictionary(Dictionary::clone(&self.dictionary));
        let mut row_of = |group: GroupId, draft: &LeaseDraft| {
            let holder = builder.node(draft.holder.id, &draft.holder.name);
            let candidate = draft.candidate.as_ref().map(|name| builder.name(name));
            let own = draft.expiration.filter(|own| *own != common);
            let LeaseDraft {
                accepted,
                prolongable,
                ..
            } = *draft;
            Row::new(
                group,
                draft.start,
                own,
                holder,
                candidate,
                accepted,
                prolongable,
            )
        };
        let rows = Arc::make_mut(&mut self.rows);
        let in_place = changes.iter().all(|(group, change)| {
            change.is_some() && rows.binary_search_by_key(group, Row::group).is_ok()
        });
        if in_place {
            for (group, draft) in changes {
                if let (Some(draft), Ok(position)) =
                    (draft, rows.binary_search_by_key(group, Row::group))
                {
                    rows[position] = row_of(*group, draft);
                }
            }
        } else {
            let mut merged = Vec::with_capacity(rows.len() + changes.len());
            let mut old = rows.iter().peekable();
            for (group, change) in changes {
                while let Some(row) = old.next_if(|row| row.group < *group) {
                    merged.push(*row);
                }
                old.next_if(|row| row.group == *group);
                merged.extend(change.as_ref().map(|draft| row_of(*group, draft)));
            }
            merged.extend(old);
            *rows = merged;
        }
        self.dictionary = Arc::new(builder.finish());
        self.arrival = None;
        self.order_dictionary();
    }

    /// Brings the dictionary into order of first appearance and drops what no row uses.
    pub(crate) fn order_dictionary(&mut self) {
        let old = &self.dictionary;
        let mut ordered = FirstSeen::new(old);
        for row in self.rows.iter() {
            ordered.see(row);
            if ordered.complete() {
                break;
            }
        }
        if ordered.is_identity() {
            return;
        }
        for row in Arc::make_mut(&mut self.rows) {
            let candidate = row.candidate().map(|name| ordered.name(name));
            *row = row.reindexed(
                ordered.node(row.holder()),
                candidate.unwrap_or(Row::NO_CANDIDATE),
            );
        }
        self.dictionary = Arc::new(ordered.rebuilt());
    }
}
