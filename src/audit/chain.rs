//! What must always hold from one stored batch to the next, checked afterwards.
//!
//! Every check also holds between batches that are not neighbours, so that an audit may go on
//! after a batch that can't be read.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::codec::naive_size;
use crate::model::batch::{LeaseBatch, Row};
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::{GroupId, NodeId};

use crate::placement::record::SizeRow;

/// Goes through batches in the order of their revisions.
#[derive(Debug)]
pub struct Audit {
    max_skew: u64,
    last: LeaseBatch,
    past: BTreeMap<GroupId, Past>,
}

/// What is known of the earlier leases of a group.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// The latest start.
    start: HybridTimestamp,
    /// Until when an accepted one lasted.
    accepted_until: Option<HybridTimestamp>,
}

impl Audit {
    /// An audit that has seen nothing; `max_skew` in milliseconds.
    pub fn new(max_skew: u64) -> Self {
        Self {
            max_skew,
            last: LeaseBatch::default(),
            past: BTreeMap::new(),
        }
    }

    /// Checks the next batch against those before it.
    pub fn next(&mut self, batch: &LeaseBatch) -> Vec<Violation> {
        let mut found = Vec::new();
        let last = std::mem::replace(&mut self.last, batch.clone());
        let mut before = last.rows().iter().peekable();
        for row in batch.rows() {
            while let Some(gone) = before.next_if(|old| old.group() < row.group()) {
                self.bury(&last, gone);
            }
            let old = before.next_if(|old| old.group() == row.group());
            match old {
                Some(old) if old.start() == row.start() => {
                    same_lease(&last, old, batch, row, &mut found);
                    if row.accepted() && !old.accepted() {
                        self.begins(row, &mut found);
                    }
                }
                _ => {
                    if let Some(old) = old {
                        self.bury(&last, old);
                    }
                    if let Some(past) = self.past.get(&row.group())
                        && row.start() <= past.start
                    {
                        found.push(Violation::Start {
                            group: row.group(),
                            start: row.start(),
                            before: past.start,
                        });
                    }
                    if row.accepted() {
                        self.begins(row, &mut found);
                    }
                }
            }
        }
        for gone in before {
            self.bury(&last, gone);
        }
        found
    }

    /// A lease has become accepted.
    fn begins(&self, row: &Row, found: &mut Vec<Violation>) {
        let past = self.past.get(&row.group());
        if let Some(until) = past.and_then(|past| past.accepted_until)
            && !row.start().after(until, self.max_skew)
        {
            found.push(Violation::Overlap {
                group: row.group(),
                start: row.start(),
                until,
                max_skew: self.max_skew,
            });
        }
    }

    /// A lease has been replaced or has left the batch.
    fn bury(&mut self, batch: &LeaseBatch, row: &Row) {
        let until = (row.accepted()).then(|| row.expiration(batch.common_expiration()));
        let past = self.past.entry(row.group()).or_insert(Past {
            start: row.start(),
            accepted_until: None,
        });
        past.start = past.start.max(row.start());
        past.accepted_until = past.accepted_until.max(until);
    }
}

/// Checks one lease as it was and as it is.
fn same_lease(
    old_batch: &LeaseBatch,
    old: &Row,
    batch: &LeaseBatch,
    row: &Row,
    found: &mut Vec<Violation>,
) {
    let group = row.group();
    let start = row.start();
    let before = old_batch.dictionary().node(old.holder()).0;
    let holder = batch.dictionary().node(row.holder()).0;
    if before != holder {
        found.push(Violation::Holder {
            group,
            start,
            before,
            holder,
        });
    }
    let until = old.expiration(old_batch.common_expiration());
    let expiration = row.expiration(batch.common_expiration());
    if old.accepted() && !row.accepted() {
        found.push(Violation::Unaccepted { group, start });
    } else if old.accepted() && expiration < until {
        found.push(Violation::Expiration {
            group,
            expiration,
            before: until,
        });
    }
    if !old.prolongable() && (row.prolongable() || expiration > until) {
        found.push(Violation::Prolonged { group, start });
    }
}

/// Checks a size row against the batch that it was written with: its record has `stored_bytes`.
pub fn check_size_row(
    row: &SizeRow,
    batch: &LeaseBatch,
    format: &str,
    stored_bytes: u64,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let numbers = [
        ("leases", row.leases, batch.len() as u64),
        ("stored_bytes", row.stored_bytes, stored_bytes),
        ("naive_bytes", row.naive_bytes, naive_size(batch) as u64),
    ];
    for (field, said, is) in numbers {
        if said != is {
            found.push(Violation::SizeRow {
                field,
                said: said.to_string(),
                is: is.to_string(),
            });
        }
    }
    if row.format != format {
        found.push(Violation::SizeRow {
            field: "format",
            said: row.format.clone(),
            is: format.to_owned(),
        });
    }
    found
}

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Violation {
    /// The start of a new lease is not above that of the ones before.
    #[error("{group}: start {start} is not above {before}, an earlier one")]
    Start {
        /// The group.
        group: GroupId,
        /// Start of the new lease.
        start: HybridTimestamp,
        /// The latest start before.
        before: HybridTimestamp,
    },
    /// One start, two holders.
    #[error("{group}: the lease of start {start} went from holder {before} to {holder}")]
    Holder {
        /// The group.
        group: GroupId,
        /// Start of the lease.
        start: HybridTimestamp,
        /// Who held it.
        before: NodeId,
        /// Who holds it.
        holder: NodeId,
    },
    /// The expiration of an accepted lease went back.
    #[error("{group}: the expiration of an accepted lease went back from {before} to {expiration}")]
    Expiration {
        /// The group.
        group: GroupId,
        /// Its expiration.
        expiration: HybridTimestamp,
        /// What it was.
        before: HybridTimestamp,
    },
    /// A lease was accepted and then was not.
    #[error("{group}: the accepted lease of start {start} is no longer accepted")]
    Unaccepted {
        /// The group.
        group: GroupId,
        /// Start of the lease.
        start: HybridTimestamp,
    },
    /// A denied lease was prolonged.
    #[error("{group}: the lease of start {start} was denied and then prolonged")]
    Prolonged {
        /// The group.
        group: GroupId,
        /// Start of the lease.
        start: HybridTimestamp,
    },
    /// Two accepted leases of a group are too close.
    #[error(
        "{group}: the accepted lease of start {start} begins within {max_skew} ms of {until}, \
         when the one before expired"
    )]
    Overlap {
        /// The group.
        group: GroupId,
        /// Start of the later lease.
        start: HybridTimestamp,
        /// Expiration of the earlier one.
        until: HybridTimestamp,
        /// The skew, milliseconds.
        max_skew: u64,
    },
    /// A size row says something else than its batch.
    #[error("the size row says {field} = {said}, but it is {is}")]
    SizeRow {
        /// Which number.
        field: &'static str,
        /// What the row says.
        said: String,
        /// What is right.
        is: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Format, encode, frame};
    use crate::model::ids::GroupKind;
    use crate::model::lease::Lease;

    const SKEW: u64 = 500;

    fn ts(physical: u64) -> HybridTimestamp {
        HybridTimestamp::new(physical, 0).unwrap()
    }

    fn lease(start: u64, expiration: u64) -> Lease {
        Lease {
            group: GroupId::new(GroupKind::Table, 1, 0).unwrap(),
            holder_name: "a".into(),
            holder_id: NodeId::from_halves(0, 1),
            start: ts(start),
            expiration: ts(expiration),
            accepted: true,
            prolongable: true,
            proposed_candidate: None,
        }
    }

    /// What is found in the last of some batches of one lease each (or none).
    fn audit(steps: &[Option<Lease>]) -> Vec<Violation> {
        let mut audit = Audit::new(SKEW);
        let mut found = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            found = audit.next(&LeaseBatch::from_leases(step).unwrap());
            assert!(index + 1 == steps.len() || found.is_empty(), "{found:?}");
        }
        found
    }

    #[test]
    fn a_life_without_fault() {
        let granted = Lease {
            accepted: false,
            ..lease(10, 120_000)
        };
        let denied = Lease {
            prolongable: false,
            ..lease(10, 8_000)
        };
        let waiting = Lease {
            accepted: false,
            ..lease(9_000, 129_000)
        };
        let steps = [
            Some(granted),
            // Publishing cuts the long wait to the lease interval: not a step back.
            Some(lease(10, 5_000)),
            Some(lease(10, 8_000)),
            Some(denied.clone()),
            Some(denied),
            Some(waiting),
            Some(lease(9_000, 14_000)),
            None,
            Some(lease(20_000, 25_000)),
        ];
        assert_eq!(audit(&steps), []);
    }

    #[test]
    fn starts_strictly_increase() {
        let waiting = |start| Lease {
            accepted: false,
            ..lease(start, 90_000)
        };
        for between in [vec![], vec![None]] {
            let mut steps = vec![Some(waiting(10))];
            steps.extend(between);
            steps.push(Some(waiting(9)));
            assert!(matches!(audit(&steps)[..], [Violation::Start { .. }]));
        }
        let back_again = [Some(waiting(10)), None, Some(waiting(10))];
        assert!(matches!(audit(&back_again)[..], [Violation::Start { .. }]));
    }

    #[test]
    fn one_start_has_one_holder() {
        let other = Lease {
            holder_id: NodeId::from_halves(0, 2),
            ..lease(10, 5_000)
        };
        let found = audit(&[Some(lease(10, 5_000)), Some(other)]);
        assert!(matches!(found[..], [Violation::Holder { .. }]));
    }

    #[test]
    fn accepted_stays_so_and_never_expires_earlier() {
        let found = audit(&[Some(lease(10, 5_000)), Some(lease(10, 4_999))]);
        assert!(matches!(found[..], [Violation::Expiration { .. }]));
        let waiting = Lease {
            accepted: false,
            ..lease(10, 5_000)
        };
        let found = audit(&[Some(lease(10, 5_000)), Some(waiting)]);
        assert!(matches!(found[..], [Violation::Unaccepted { .. }]));
    }

    #[test]
    fn denied_is_never_prolonged() {
        let denied = |expiration| Lease {
            prolongable: false,
            ..lease(10, expiration)
        };
        for after in [denied(5_001), lease(10, 5_000)] {
            let found = audit(&[Some(denied(5_000)), Some(after)]);
            assert!(matches!(found[..], [Violation::Prolonged { .. }]));
        }
    }

    #[test]
    fn accepted_leases_keep_the_skew_between_them() {
        let near = [Some(lease(10, 5_000)), Some(lease(5_500, 9_000))];
        assert!(matches!(audit(&near)[..], [Violation::Overlap { .. }]));
        let far = [Some(lease(10, 5_000)), Some(lease(5_501, 9_000))];
        assert_eq!(audit(&far), []);
        // The later one may wait in between, or the group may have no lease for a while.
        let waiting = Lease {
            accepted: false,
            ..lease(5_500, 90_000)
        };
        let late = [
            Some(lease(10, 5_000)),
            Some(waiting),
            Some(lease(5_500, 9_000)),
        ];
        assert!(matches!(audit(&late)[..], [Violation::Overlap { .. }]));
        let gone = [Some(lease(10, 5_000)), None, Some(lease(5_500, 9_000))];
        assert!(matches!(audit(&gone)[..], [Violation::Overlap { .. }]));
    }

    #[test]
    fn a_size_row_says_what_its_batch_is() {
        let batch = LeaseBatch::from_leases(&[lease(10, 5_000)]).unwrap();
        let format = Format::CompactV2;
        let record = frame::wrap(format, &encode(format, &batch).unwrap()).unwrap();
        let stored = record.len() as u64;
        let right = SizeRow {
            revision: 1,
            time: 10,
            cause: "grant".to_owned(),
            leases: 1,
            changed: 1,
            format: format.to_string(),
            stored_bytes: stored,
            naive_bytes: naive_size(&batch) as u64,
        };
        assert_eq!(check_size_row(&right, &batch, format.name(), stored), []);
        let fields = |row: SizeRow| -> Vec<&str> {
            let found = check_size_row(&row, &batch, format.name(), stored);
            let field = |violation: &Violation| match violation {
                Violation::SizeRow { field, .. } => *field,
                _ => "",
            };
            found.iter().map(field).collect()
        };
        let wrong = SizeRow {
            leases: 2,
            ..right.clone()
        };
        assert_eq!(fields(wrong), ["leases"]);
        let wrong = SizeRow {
            stored_bytes: 0,
            naive_bytes: 0,
            format: "naive".to_owned(),
            ..right
        };
        assert_eq!(fields(wrong), ["stored_bytes", "naive_bytes", "format"]);
    }
}
