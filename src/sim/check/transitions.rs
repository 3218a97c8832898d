//! What may become of a lease from one stored batch to the next.

use std::collections::BTreeSet;

use crate::model::batch::LeaseBatch;
use crate::model::diff::LeaseUpdate;
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::model::timings::Timings;
use crate::placement::io::BatchWrite;

use super::bytes::in_words;
use super::stored::Past;
use super::told::Told;
use super::{Invariant, Verdict, wrong};

/// What a driver meant to write.
pub(super) struct Meant<'a> {
    pub driver: usize,
    /// When it decided, in true time.
    pub sent: u64,
    pub write: &'a BatchWrite,
}

/// The groups to look at: all, or those that are said to have changed.
pub(super) fn groups(
    known: &LeaseBatch,
    update: &LeaseUpdate,
    meant: Option<&Meant<'_>>,
    exhaustive: bool,
) -> BTreeSet<GroupId> {
    if exhaustive {
        let rows = known.rows().iter().chain(update.batch.rows());
        return rows.map(|row| row.group()).collect();
    }
    let changed = update.changes.iter().filter_map(|change| {
        let lease = change.new.as_ref().or(change.old.as_ref());
        lease.map(|lease| lease.group)
    });
    let meant = meant.iter().flat_map(|meant| &meant.write.changed).copied();
    changed.chain(meant).collect()
}

/// The common expiration never goes back under leases that follow it, nor forward when it is over.
pub(super) fn check_common(
    known: &LeaseBatch,
    update: &LeaseUpdate,
    meant: Option<&Meant<'_>>,
) -> Verdict {
    let (old, new) = (known.common_expiration(), update.batch.common_expiration());
    let shared = known.shares_rows(&update.batch);
    let Some(meant) = meant else {
        return Ok(());
    };
    let rests_on_it = || {
        known
            .rows()
            .iter()
            .any(|row| row.own_expiration().is_none())
    };
    if shared && new > old && old <= meant.write.time && rests_on_it() {
        return wrong(
            Invariant::LegalProlonging,
            None,
            format!("the common expiration was {old}"),
            format!(
                "driver{} has prolonged all leases to {new} when its clock showed {}",
                meant.driver + 1,
                meant.write.time
            ),
        );
    }
    Ok(())
}

/// One group's lease before and after.
pub(super) fn check(
    group: GroupId,
    old: &Option<Lease>,
    new: &Option<Lease>,
    past: Option<&Past>,
    meant: Option<&Meant<'_>>,
    told: &Told,
    timings: &Timings,
) -> Verdict {
    let transition = Transition {
        group,
        old,
        new,
        past,
        meant,
        told,
        skew: timings.max_skew_ms,
    };
    transition.is_meant()?;
    match (old, new) {
        (_, None) => transition.removed(),
        (Some(old), Some(new)) if old.start == new.start => transition.kept(old, new),
        (_, Some(new)) => transition.begun(new),
    }
}

struct Transition<'a> {
    group: GroupId,
    old: &'a Option<Lease>,
    new: &'a Option<Lease>,
    past: Option<&'a Past>,
    meant: Option<&'a Meant<'a>>,
    told: &'a Told,
    skew: u64,
}

impl Transition<'_> {
    fn wrong(&self, invariant: Invariant) -> Verdict {
        self.wrong_after(invariant, in_words(self.old.as_ref()))
    }

    fn wrong_after(&self, invariant: Invariant, first: String) -> Verdict {
        let by = self.meant.map_or("somebody".to_owned(), |meant| {
            let time = meant.write.time;
            format!("driver{} at its time {time}", meant.driver + 1)
        });
        let second = format!("{by} has stored {}", in_words(self.new.as_ref()));
        wrong(invariant, Some(self.group), first, second)
    }

    /// Only what the driver says it changed has changed, but for what moves along with the common
    /// expiration. Somebody else changes nothing.
    fn is_meant(&self) -> Verdict {
        let said = self.meant.is_some_and(|meant| {
            let changed = &meant.write.changed;
            changed.binary_search(&self.group).is_ok()
        });
        if said || self.old == self.new {
            return Ok(());
        }
        let prolonged = match (self.old, self.new) {
            (Some(old), Some(new)) => {
                let mut prolonged = old.clone();
                prolonged.expiration = new.expiration;
                self.meant.is_some() && prolonged == *new
            }
            _ => false,
        };
        if prolonged {
            return Ok(());
        }
        self.wrong(Invariant::NoLostUpdate)
    }

    fn removed(&self) -> Verdict {
        let (Some(old), Some(meant)) = (self.old, self.meant) else {
            return Ok(());
        };
        if old.accepted && old.expiration >= meant.write.time {
            return self.wrong(Invariant::NoLostUpdate);
        }
        Ok(())
    }

    fn kept(&self, old: &Lease, new: &Lease) -> Verdict {
        if old.holder_id != new.holder_id || old.holder_name != new.holder_name {
            return self.wrong(Invariant::StartsIncrease);
        }
        let undenied = !old.prolongable && new.prolongable;
        let denied_moved = !old.prolongable && old.expiration != new.expiration;
        let back = old.accepted && (!new.accepted || new.expiration < old.expiration);
        if undenied || denied_moved || back {
            return self.wrong(Invariant::NoStepBack);
        }
        if !old.accepted && new.accepted {
            return self.published(new);
        }
        if new.expiration > old.expiration {
            return self.prolonged(old, new);
        }
        Ok(())
    }

    fn prolonged(&self, old: &Lease, new: &Lease) -> Verdict {
        let Some(meant) = self.meant else {
            return self.wrong(Invariant::NoLostUpdate);
        };
        if !old.accepted || old.expiration <= meant.write.time {
            return self.wrong(Invariant::LegalProlonging);
        }
        if !self
            .told
            .knew(meant.driver, meant.sent, &new.holder_name, new.holder_id)
        {
            let first = format!(
                "driver{} was told last that {} is not up as {}",
                meant.driver + 1,
                new.holder_name,
                new.holder_id
            );
            return self.wrong_after(Invariant::LegalProlonging, first);
        }
        Ok(())
    }

    fn begun(&self, new: &Lease) -> Verdict {
        let latest = self.past.and_then(|past| past.start);
        let latest = latest.max(self.old.as_ref().map(|old| old.start));
        if latest.is_some_and(|latest| new.start <= latest) {
            return self.wrong(Invariant::StartsIncrease);
        }
        if new.accepted {
            return self.wrong(Invariant::AnsweredAcceptance);
        }
        Ok(())
    }

    fn published(&self, new: &Lease) -> Verdict {
        if !self.told.has_accepted(self.group, new.start, new.holder_id) {
            return self.wrong(Invariant::AnsweredAcceptance);
        }
        if let Some(past) = self.past
            && let Some(until) = past.accepted_until
            && !new.start.after(until, self.skew)
        {
            let first = in_words(past.lease.as_ref());
            return self.wrong_after(Invariant::DisjointLeases, first);
        }
        Ok(())
    }
}
