//! All leases of a cluster at one revision.
//!
//! Rows are sorted by group, 32 bytes each, and refer to nodes by index into a dictionary. The
//! **common expiration** is stored once, so that renewing a million quiet leases is one
//! assignment. Cloning a batch shares its rows.

use std::sync::Arc;

use thiserror::Error;

use super::dictionary::{Dictionary, DictionaryBuilder};
use super::hlc::HybridTimestamp;
use super::ids::GroupId;
use super::lease::Lease;

mod edit;
mod sharing;

pub use edit::LeaseDraft;

/// One lease of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    group: GroupId,
    /// Packed; a plain word, so that rows are written without looking at it.
    start: u64,
    expiration: Option<HybridTimestamp>,
    /// Bits 0 to 29 the holder, 30 accepted, 31 prolongable, 32 to 63 the candidate: one word, as
    /// rows are written and compared more often than looked into.
    who: u64,
}

const FLAGS_SHIFT: u32 = 30;
const ACCEPTED: u32 = 1 << FLAGS_SHIFT;
const PROLONGABLE: u32 = 2 << FLAGS_SHIFT;
const NO_CANDIDATE: u32 = u32::MAX;

#[inline]
const fn who(holder_and_flags: u32, candidate: u32) -> u64 {
    (candidate as u64) << 32 | holder_and_flags as u64
}

impl Row {
    /// Indexes (holder among the nodes, candidate among the names) are below this.
    pub const INDEX_LIMIT: u32 = 1 << 30;

    /// A row; `expiration` is `None` where it equals the common one of the batch.
    #[inline]
    pub(crate) fn new(
        group: GroupId,
        start: HybridTimestamp,
        expiration: Option<HybridTimestamp>,
        holder: u32,
        candidate: Option<u32>,
        accepted: bool,
        prolongable: bool,
    ) -> Self {
        debug_assert!(holder < Self::INDEX_LIMIT);
        Self {
            group,
            start: start.composite(),
            expiration,
            who: who(
                holder
                    | u32::from(accepted) << FLAGS_SHIFT
                    | u32::from(prolongable) << (FLAGS_SHIFT + 1),
                candidate.unwrap_or(NO_CANDIDATE),
            ),
        }
    }

    /// What [`words`](Self::words) has for a row without a candidate.
    pub(crate) const NO_CANDIDATE: u32 = NO_CANDIDATE;

    /// A row with the common expiration from its words, the packed start among them; of `flags`,
    /// bit 0 is accepted and bit 1 is prolongable.
    #[inline]
    pub(crate) fn from_words(
        group: GroupId,
        start: u64,
        holder: u32,
        candidate: u32,
        flags: u8,
    ) -> Self {
        debug_assert!(holder < Self::INDEX_LIMIT);
        Self {
            group,
            start,
            expiration: None,
            who: who(holder | u32::from(flags) << FLAGS_SHIFT, candidate),
        }
    }

    /// Holder, candidate or [`NO_CANDIDATE`](Self::NO_CANDIDATE), and the flags as
    /// [`from_words`](Self::from_words) takes them.
    #[inline]
    pub(crate) fn words(&self) -> (u32, u32, u8) {
        let flags = (self.holder_and_flags() >> FLAGS_SHIFT) as u8;
        (self.holder(), self.candidate_word(), flags)
    }

    /// The same lease with its holder and its candidate, or
    /// [`NO_CANDIDATE`](Self::NO_CANDIDATE), under other indexes.
    #[inline]
    pub(crate) fn reindexed(self, holder: u32, candidate: u32) -> Self {
        debug_assert!(holder < Self::INDEX_LIMIT);
        let flags = self.holder_and_flags() & (ACCEPTED | PROLONGABLE);
        Self {
            who: who(holder | flags, candidate),
            ..self
        }
    }

    /// Gives the lease another start.
    #[inline]
    pub(crate) fn set_start(&mut self, packed: u64) {
        self.start = packed;
    }

    /// Gives the lease a candidate, and takes the flag prolongable from it.
    #[inline]
    pub(crate) fn set_candidate(&mut self, candidate: u32) {
        let holder_and_flags = self.holder_and_flags() & !PROLONGABLE;
        self.who = who(holder_and_flags, candidate);
    }

    /// Turns flags over, as [`from_words`](Self::from_words) takes them.
    #[inline]
    pub(crate) fn flip(&mut self, flags: u8) {
        self.who ^= u64::from(u32::from(flags) << FLAGS_SHIFT);
    }

    /// Gives the lease an expiration, or the common one.
    #[inline]
    pub(crate) fn set_expiration(&mut self, own: Option<HybridTimestamp>) {
        self.expiration = own;
    }

    /// The start, packed.
    #[inline]
    pub(crate) fn packed_start(&self) -> u64 {
        self.start
    }

    /// The start's physical part.
    #[inline]
    pub(crate) fn physical_start(&self) -> u64 {
        self.start >> 16
    }

    /// The start's logical part.
    #[inline]
    pub(crate) fn logical_start(&self) -> u16 {
        self.start as u16
    }

    /// Not 0 if the lease has anything but a holder and a start without logical part: a candidate,
    /// an expiration of its own, or if it is unaccepted or not prolongable.
    #[inline]
    pub(crate) fn unquiet(&self) -> u64 {
        const USUAL: u64 = (NO_CANDIDATE as u64) << 32 | (ACCEPTED | PROLONGABLE) as u64;
        let own = self.expiration.map_or(0, HybridTimestamp::composite);
        (!self.who & USUAL) | own | self.start & 0xFFFF
    }

    /// The group that may be served.
    #[inline]
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Start of the lease, its fencing token.
    #[inline]
    pub fn start(&self) -> HybridTimestamp {
        HybridTimestamp::from_checked(self.start)
    }

    /// The expiration where it differs from the common one.
    #[inline]
    pub fn own_expiration(&self) -> Option<HybridTimestamp> {
        self.expiration
    }

    /// The expiration, given the batch's common one.
    #[inline]
    pub fn expiration(&self, common: HybridTimestamp) -> HybridTimestamp {
        self.expiration.unwrap_or(common)
    }

    /// Index of the holder among the nodes of the dictionary.
    #[inline]
    pub fn holder(&self) -> u32 {
        self.holder_and_flags() & !(ACCEPTED | PROLONGABLE)
    }

    /// Index of the proposed candidate among the names of the dictionary.
    #[inline]
    pub fn candidate(&self) -> Option<u32> {
        let candidate = self.candidate_word();
        (candidate != NO_CANDIDATE).then_some(candidate)
    }

    #[inline]
    fn holder_and_flags(&self) -> u32 {
        self.who as u32
    }

    #[inline]
    fn candidate_word(&self) -> u32 {
        (self.who >> 32) as u32
    }

    /// Whether the holder has agreed.
    #[inline]
    pub fn accepted(&self) -> bool {
        self.holder_and_flags() & ACCEPTED != 0
    }

    /// Whether the driver may prolong the lease.
    #[inline]
    pub fn prolongable(&self) -> bool {
        self.holder_and_flags() & PROLONGABLE != 0
    }
}

/// Leases sorted by group, with a dictionary of nodes and a common expiration.
#[derive(Clone, Debug)]
pub struct LeaseBatch {
    common: HybridTimestamp,
    dictionary: Arc<Dictionary>,
    rows: Arc<Vec<Row>>,
    /// Positions of the rows in the order in which the leases arrived, where that was another.
    arrival: Option<Arc<[u32]>>,
}

impl Default for LeaseBatch {
    fn default() -> Self {
        Self {
            common: HybridTimestamp::MIN,
            dictionary: Arc::default(),
            rows: Arc::default(),
            arrival: None,
        }
    }
}

impl LeaseBatch {
    /// From leases in any order, which the dictionary follows. The most frequent expiration
    /// becomes the common one; of equally frequent ones the earliest.
    pub fn from_leases<'a>(
        leases: impl IntoIterator<Item = &'a Lease>,
    ) -> Result<Self, BatchError> {
        let leases = leases.into_iter();
        let mut dictionary = DictionaryBuilder::default();
        let mut rows = Vec::with_capacity(leases.size_hint().0);
        for lease in leases {
            let holder = dictionary.node(lease.holder_id, &lease.holder_name);
            let candidate = lease.proposed_candidate.as_ref();
            rows.push(Row::new(
                lease.group,
                lease.start,
                Some(lease.expiration),
                holder,
                candidate.map(|name| dictionary.name(name)),
                lease.accepted,
                lease.prolongable,
            ));
        }
        Self::from_arrived(dictionary.finish(), rows)
    }

    /// From rows in arrival order, each with its own expiration, over their dictionary.
    pub(crate) fn from_arrived(
        dictionary: Dictionary,
        mut rows: Vec<Row>,
    ) -> Result<Self, BatchError> {
        let mut arrival = None;
        if !rows.is_sorted_by_key(Row::group) {
            let mut by_group: Vec<u32> = (0..rows.len() as u32).collect();
            by_group.sort_by_key(|position| rows[*position as usize].group);
            let mut order = vec![0; rows.len()];
            for (sorted, arrived) in by_group.iter().enumerate() {
                order[*arrived as usize] = sorted as u32;
            }
            rows = (by_group.iter())
                .map(|position| rows[*position as usize])
                .collect();
            arrival = Some(order.into());
        }
        if let Some(pair) = rows.windows(2).find(|pair| pair[0].group == pair[1].group) {
            return Err(BatchError::DuplicateGroup(pair[0].group));
        }
        let common = most_frequent(rows.iter().filter_map(|row| row.expiration))
            .unwrap_or(HybridTimestamp::MIN);
        for row in &mut rows {
            row.expiration = row.expiration.filter(|own| *own != common);
        }
        Ok(Self {
            common,
            dictionary: Arc::new(dictionary),
            rows: Arc::new(rows),
            arrival,
        })
    }

    /// From rows that the caller has checked: strictly ascending by group, indexes within the
    /// dictionary, no own expiration equal to the common one.
    pub(crate) fn from_checked(
        common: HybridTimestamp,
        dictionary: Dictionary,
        rows: Vec<Row>,
    ) -> Self {
        debug_assert!(rows.is_sorted_by(|a, b| a.group < b.group));
        debug_assert!(rows.iter().all(|row| row.expiration != Some(common)));
        Self {
            common,
            dictionary: Arc::new(dictionary),
            rows: Arc::new(rows),
            arrival: None,
        }
    }

    /// From parts that other batches share; the caller has checked them as for
    /// [`from_checked`](Self::from_checked).
    pub(crate) fn from_shared(
        common: HybridTimestamp,
        dictionary: Arc<Dictionary>,
        rows: Arc<Vec<Row>>,
    ) -> Self {
        debug_assert!(rows.is_sorted_by(|a, b| a.group < b.group));
        Self {
            common,
            dictionary,
            rows,
            arrival: None,
        }
    }

    /// The rows, to be shared with another batch.
    pub(crate) fn shared_rows(&self) -> &Arc<Vec<Row>> {
        &self.rows
    }

    /// The dictionary, to be shared with another batch.
    pub(crate) fn shared_dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// Number of leases.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no lease.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows, ascending by group.
    #[inline]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The expiration of every row that has none of its own.
    #[inline]
    pub fn common_expiration(&self) -> HybridTimestamp {
        self.common
    }

    /// What the rows' indexes refer to.
    #[inline]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Whether both batches share the same rows in memory, so that only the common expiration
    /// can differ.
    pub fn shares_rows(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows) && Arc::ptr_eq(&self.dictionary, &other.dictionary)
    }

    /// The row of a group.
    pub fn get(&self, group: GroupId) -> Option<&Row> {
        let position = self.rows.binary_search_by_key(&group, Row::group).ok()?;
        self.rows.get(position)
    }

    /// The rows in the order in which the leases arrived (sorted, if they did not come from a
    /// list in another order).
    pub fn rows_as_arrived(&self) -> impl Iterator<Item = &Row> {
        let arrival = self.arrival.as_deref();
        (0..self.rows.len()).map(move |position| {
            let sorted = arrival.map_or(position, |order| order[position] as usize);
            &self.rows[sorted]
        })
    }

    /// The self-contained form of a row of this batch.
    pub fn lease(&self, row: &Row) -> Lease {
        let (holder_id, holder_name) = self.dictionary.node(row.holder());
        Lease {
            group: row.group,
            holder_name: holder_name.clone(),
            holder_id,
            start: row.start(),
            expiration: row.expiration(self.common),
            accepted: row.accepted(),
            prolongable: row.prolongable(),
            proposed_candidate: row
                .candidate()
                .map(|index| self.dictionary.name(index).clone()),
        }
    }

    /// All leases, in the order in which they arrived.
    pub fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.rows_as_arrived().map(|row| self.lease(row))
    }

    /// Moves the common expiration, and with it that of every row without one of its own.
    /// O(1), unless a row's own expiration happens to equal the new one: then call
    /// [`apply`](Self::apply) for that row.
    pub fn set_common_expiration(&mut self, common: HybridTimestamp) {
        self.common = common;
    }
}

impl PartialEq for LeaseBatch {
    /// Whether both hold the same leases, whatever their dictionaries and arrival orders.
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Row, &Row)| {
            a.group == b.group
                && a.start == b.start
                && a.expiration(self.common) == b.expiration(other.common)
                && a.accepted() == b.accepted()
                && a.prolongable() == b.prolongable()
                && self.dictionary.node(a.holder()) == other.dictionary.node(b.holder())
                && a.candidate().map(|index| self.dictionary.name(index))
                    == b.candidate().map(|index| other.dictionary.name(index))
        };
        self.len() == other.len() && self.rows.iter().zip(other.rows.iter()).all(same)
    }
}

/// The most frequent of some timestamps; of equally frequent ones the earliest.
pub(crate) fn most_frequent(
    timestamps: impl Iterator<Item = HybridTimestamp>,
) -> Option<HybridTimestamp> {
    let mut all: Vec<_> = timestamps.collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b);
    let mut best: &[HybridTimestamp] = &[];
    for run in runs {
        if run.len() > best.len() {
            best = run;
        }
    }
    best.first().copied()
}

/// Why leases do not make a batch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Two leases for one group.
    #[error("group {0} has two leases: a batch holds at most one lease of a group")]
    DuplicateGroup(GroupId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Incarnation;
    use crate::model::ids::{GroupKind, NodeId};
    use std::collections::BTreeMap;

    fn ts(physical: u64) -> HybridTimestamp {
        HybridTimestamp::new(physical, 0).unwrap()
    }

    fn lease(object: i32, holder: &str, expiration: u64) -> Lease {
        Lease {
            group: GroupId::new(GroupKind::Table, object, 0).unwrap(),
            holder_name: holder.into(),
            holder_id: NodeId::from_halves(1, holder.len() as u64),
            start: ts(5),
            expiration: ts(expiration),
            accepted: true,
            prolongable: true,
            proposed_candidate: None,
        }
    }

    fn draft(holder: &str) -> LeaseDraft {
        LeaseDraft {
            holder: Incarnation {
                name: holder.into(),
                id: NodeId::from_halves(1, holder.len() as u64),
            },
            start: ts(6),
            expiration: Some(ts(77)),
            accepted: false,
            prolongable: true,
            candidate: Some("candidate".into()),
        }
    }

    #[test]
    fn a_row_takes_32_bytes() {
        assert_eq!(size_of::<Row>(), 32);
    }

    #[test]
    fn sorts_and_remembers_the_order_of_arrival() {
        let leases = [lease(3, "c", 9), lease(1, "aa", 8), lease(2, "c", 9)];
        let batch = LeaseBatch::from_leases(&leases).unwrap();
        assert_eq!(batch.common_expiration(), ts(9));
        assert!(batch.rows().is_sorted_by_key(Row::group));
        assert_eq!(batch.leases().collect::<Vec<_>>(), leases);
        let names: Vec<_> = batch.dictionary().names().iter().map(|n| &**n).collect();
        assert_eq!(names, ["c", "aa"], "the dictionary follows the arrival");
        assert_eq!(batch.lease(batch.get(leases[1].group).unwrap()), leases[1]);
    }

    #[test]
    fn a_tie_takes_the_earliest_expiration() {
        let leases = [lease(1, "a", 9), lease(2, "a", 8)];
        let batch = LeaseBatch::from_leases(&leases).unwrap();
        assert_eq!(batch.common_expiration(), ts(8));
    }

    #[test]
    fn refuses_two_leases_of_a_group() {
        let twice = [lease(1, "a", 9), lease(2, "a", 8), lease(1, "b", 9)];
        assert_eq!(
            LeaseBatch::from_leases(&twice),
            Err(BatchError::DuplicateGroup(twice[0].group))
        );
    }

    #[test]
    fn apply_replaces_adds_removes_and_tidies_the_dictionary() {
        let leases = [lease(1, "a", 9), lease(3, "bb", 9), lease(5, "a", 9)];
        let mut batch = LeaseBatch::from_leases(&leases).unwrap();
        let shared = batch.clone();
        let group = |object| GroupId::new(GroupKind::Table, object, 0).unwrap();
        let changes = BTreeMap::from([
            (group(0), Some(draft("ccc"))),
            (group(3), None),
            (group(5), Some(draft("dddd"))),
        ]);
        batch.apply(&changes);
        let holders: Vec<_> = batch.leases().map(|l| l.holder_name.to_string()).collect();
        assert_eq!(holders, ["ccc", "a", "dddd"]);
        let names: Vec<_> = batch.dictionary().names().iter().map(|n| &**n).collect();
        assert_eq!(names, ["ccc", "candidate", "a", "dddd"]);
        assert_eq!(batch.lease(&batch.rows()[0]).expiration, ts(77));
        assert_eq!(shared.leases().collect::<Vec<_>>(), leases, "copy on write");
    }

    #[test]
    fn moving_the_common_expiration_shares_the_rows() {
        let batch = LeaseBatch::from_leases(&[lease(1, "a", 9)]).unwrap();
        let mut renewed = batch.clone();
        renewed.set_common_expiration(ts(14));
        assert!(renewed.shares_rows(&batch));
        assert_eq!(renewed.leases().next().unwrap().expiration, ts(14));
        assert_ne!(renewed, batch);
    }
}
