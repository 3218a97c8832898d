//! What the checker knows of the store: the leases as they are, how the chain of records stands,
//! and what each group has been through.

use std::collections::{BTreeMap, VecDeque};

use crate::cluster::event::StoreCall;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::Metastorage;
use crate::model::batch::LeaseBatch;
use crate::model::diff::LeaseUpdate;
use crate::model::hlc::HybridTimestamp;
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::model::reads::Reads;
use crate::placement::io::{BatchWrite, Revision, StoreReply, StoreRequest};
use crate::placement::record::{self, EPOCH};

use super::told::Told;
use super::transitions::{self, Meant};
use super::{EXHAUSTIVE, Invariant, Verdict, bytes, wrong};

/// What is stored, as the checker has read it.
#[derive(Clone, Debug, Default)]
struct Known {
    revision: Revision,
    base: Revision,
    step: u64,
    batch: LeaseBatch,
}

/// The leases that a group had before.
#[derive(Clone, Debug, Default)]
pub(super) struct Past {
    /// The latest start.
    pub start: Option<HybridTimestamp>,
    /// The latest expiration of those that were accepted.
    pub accepted_until: Option<HybridTimestamp>,
    /// The last of these.
    pub lease: Option<Lease>,
}

/// A write that the store may still lose.
#[derive(Debug)]
struct Undo {
    revision: Revision,
    known: Known,
    past: Vec<(GroupId, Option<Past>)>,
}

/// A write that is being carried out.
#[derive(Debug)]
struct Writing {
    driver: usize,
    sent: u64,
    write: Box<BatchWrite>,
    epoch: Revision,
    /// Whether it has been stored.
    stored: bool,
}

#[derive(Debug, Default)]
pub(super) struct Stored {
    known: Known,
    past: BTreeMap<GroupId, Past>,
    undo: VecDeque<Undo>,
    writing: Option<Writing>,
    writes: u64,
    /// What it takes to read what is stored.
    needs: Reads,
}

impl Stored {
    /// The leases that are stored.
    pub fn batch(&self) -> &LeaseBatch {
        &self.known.batch
    }

    /// What a group has been through.
    pub fn past(&self, group: GroupId) -> Option<&Past> {
        self.past.get(&group)
    }

    pub fn asked(&mut self, store: &dyn Metastorage, call: &StoreCall) {
        self.writing = match &call.request {
            StoreRequest::Write(write) => Some(Writing {
                driver: call.driver,
                sent: call.sent,
                write: write.clone(),
                epoch: epoch_of(store),
                stored: false,
            }),
            _ => None,
        };
    }

    pub fn answered(
        &mut self,
        store: &dyn Metastorage,
        reply: &StoreReply,
        told: &Told,
    ) -> Verdict {
        let (Some(writing), StoreReply::Written { revision, .. }) = (&mut self.writing, reply)
        else {
            return Ok(());
        };
        writing.stored = true;
        self.writes += 1;
        let Some(writing) = &self.writing else {
            return Ok(());
        };
        let write = &writing.write;
        if write.epoch != writing.epoch {
            return wrong(
                Invariant::NoLostUpdate,
                None,
                format!("the epoch is that of revision {}", writing.epoch),
                format!(
                    "driver{} has stored revision {revision} in the epoch of revision {}",
                    writing.driver + 1,
                    write.epoch
                ),
            );
        }
        let derives = (write.chain.base(), write.chain.step());
        let stands = (self.known.base, self.known.step);
        if derives != stands {
            return wrong(
                Invariant::NoLostUpdate,
                None,
                format!("snapshot {} with {} deltas was stored", stands.0, stands.1),
                format!(
                    "driver{} has stored revision {revision}, derived from snapshot {} with {} \
                     deltas",
                    writing.driver + 1,
                    derives.0,
                    derives.1
                ),
            );
        }
        self.needs = bytes::needs(store, *revision)?;
        if !told.all_read(writing.driver, writing.sent, self.needs) {
            return wrong(
                Invariant::Readable,
                None,
                format!(
                    "driver{} knew of somebody who can't read {}",
                    writing.driver + 1,
                    self.needs
                ),
                format!("it has stored revision {revision}, which takes that to read"),
            );
        }
        if self.is_looked_at(write.batch.len()) {
            let known = bytes::read_back(store, *revision)?;
            bytes::compare(*revision, &write.batch, known.chain.batch())?;
        }
        Ok(())
    }

    /// Everything is looked at, or this write's turn has come.
    fn is_looked_at(&self, leases: usize) -> bool {
        leases <= EXHAUSTIVE || self.writes.is_multiple_of(leases as u64 / 128)
    }

    pub fn rewritten(&mut self, store: &dyn Metastorage) -> Verdict {
        self.writing = None;
        bytes::compare(
            0,
            &self.known.batch,
            bytes::read_back(store, 0)?.chain.batch(),
        )
    }

    /// The watch shows a batch that was just written.
    pub fn stored(&mut self, cluster: &Cluster, update: &LeaseUpdate, told: &Told) -> Verdict {
        if update.revision <= self.known.revision {
            return wrong(
                Invariant::NoLostUpdate,
                None,
                format!("revision {} was stored", self.known.revision),
                format!("revision {} came after it", update.revision),
            );
        }
        let writing = self.writing.take().filter(|writing| writing.stored);
        let exhaustive = self.is_looked_at(update.batch.len());
        if let Some(writing) = &writing
            && exhaustive
        {
            bytes::compare(update.revision, &writing.write.batch, &update.batch)?;
        }
        let meant = writing.as_ref().map(|writing| Meant {
            driver: writing.driver,
            sent: writing.sent,
            write: &writing.write,
        });
        let groups = transitions::groups(&self.known.batch, update, meant.as_ref(), exhaustive);
        let timings = cluster.scenario().timings;
        let mut changed = Vec::new();
        transitions::check_common(&self.known.batch, update, meant.as_ref())?;
        for group in groups {
            let old = lease(&self.known.batch, group);
            let new = lease(&update.batch, group);
            let past = self.past.get(&group);
            transitions::check(group, &old, &new, past, meant.as_ref(), told, &timings)?;
            if let Some(new) = &new
                && old.as_ref().is_none_or(|old| old.start != new.start)
            {
                self.is_readable_by_holder(cluster, new)?;
            }
            let ended = old.filter(|old| new.as_ref().is_none_or(|new| new.start != old.start));
            if let Some(old) = ended {
                changed.push((group, past.cloned()));
                let past = self.past.entry(group).or_default();
                past.start = past.start.max(Some(old.start));
                if old.accepted {
                    past.accepted_until = past.accepted_until.max(Some(old.expiration));
                    past.lease = Some(old);
                }
            }
        }
        let (base, step) = match (&writing, update_is_snapshot(&writing)) {
            (Some(writing), false) => (self.known.base, writing.write.chain.step() + 1),
            _ => (update.revision, 0),
        };
        let known = Known {
            revision: update.revision,
            base,
            step,
            batch: update.batch.clone(),
        };
        self.undo.push_back(Undo {
            revision: update.revision,
            known: std::mem::replace(&mut self.known, known),
            past: changed,
        });
        Ok(())
    }

    fn is_readable_by_holder(&self, cluster: &Cluster, new: &Lease) -> Verdict {
        let mut nodes = cluster.nodes().iter();
        let holder = nodes.find(|node| node.id() == Some(new.holder_id));
        let Some(holder) = holder.filter(|node| node.reads() < self.needs) else {
            return Ok(());
        };
        wrong(
            Invariant::Readable,
            Some(new.group),
            format!("{} reads no more than {}", holder.name, holder.reads()),
            format!(
                "what takes {} to read begins {}",
                self.needs,
                bytes::in_words(Some(new))
            ),
        )
    }

    /// Nothing up to this revision can be lost any more.
    pub fn settle(&mut self, durable: Revision) {
        while self
            .undo
            .front()
            .is_some_and(|undo| undo.revision <= durable)
        {
            self.undo.pop_front();
        }
    }

    /// The store has lost what came after a revision.
    pub fn crashed(&mut self, store: &dyn Metastorage, kept: Revision) -> Verdict {
        self.writing = None;
        while self.undo.back().is_some_and(|undo| undo.revision > kept) {
            let Some(undo) = self.undo.pop_back() else {
                break;
            };
            self.known = undo.known;
            for (group, past) in undo.past.into_iter().rev() {
                match past {
                    Some(past) => self.past.insert(group, past),
                    None => self.past.remove(&group),
                };
            }
        }
        if self.known.revision == 0 {
            return Ok(());
        }
        let state = bytes::read_back(store, kept)?;
        if state.revision != self.known.revision {
            return wrong(
                Invariant::NothingLost,
                None,
                format!("the batch of revision {} was synced", self.known.revision),
                format!(
                    "after a crash the newest batch is of revision {}",
                    state.revision
                ),
            );
        }
        bytes::compare(kept, &self.known.batch, state.chain.batch())
    }
}

/// Somebody else's write is a snapshot.
fn update_is_snapshot(writing: &Option<Writing>) -> bool {
    use crate::placement::io::Form;
    let form = writing.as_ref().map(|writing| writing.write.form);
    form != Some(Form::Delta)
}

fn lease(batch: &LeaseBatch, group: GroupId) -> Option<Lease> {
    batch.get(group).map(|row| batch.lease(row))
}

/// Revision of the epoch; 0 if there is none, or if it can't be read.
fn epoch_of(store: &dyn Metastorage) -> Revision {
    let entry = store.get(EPOCH, None).ok().flatten();
    entry.map_or(0, |entry| entry.mod_revision)
}

/// The batch and chain as [`record::read`] finds them.
pub(super) type State = record::State;
