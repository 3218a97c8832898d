//! Keeps the view up to date, at the cost of what changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::event::Notice;
use crate::cluster::heap::MILLI;
use crate::cluster::world::Cluster;
use crate::model::diff::LeaseUpdate;
use crate::model::ids::NodeId;
use crate::placement;
use crate::placement::activity::Role;
use crate::placement::record::SizeRow;
use crate::placement::tracker::{TrackerEvent, events};

use super::view::{LiveEvent, NodeStatus, Status, View};

/// Counts that follow the changes.
#[derive(Debug, Default)]
pub struct Tally {
    accepted: u64,
    held: BTreeMap<NodeId, u64>,
    granted: u64,
    expired: u64,
    renewals: u64,
    batches: u64,
    writes_lost: u64,
    snapshots: u64,
    snapshot_bytes: u64,
    delta_bytes: u64,
    snapshot_time: Duration,
}

impl Tally {
    /// The leases that were stored when the daemon began: they count as held, not as news.
    pub fn begin(&mut self, view: &View, update: &Arc<LeaseUpdate>) {
        self.count(update);
        self.expired = 0;
        view.set_leases(update.clone());
    }

    /// A revision of the leases was stored.
    pub fn stored(&mut self, view: &View, update: &Arc<LeaseUpdate>) {
        self.batches += 1;
        self.count(update);
        view.set_leases(update.clone());
        let (revision, time) = (update.revision, update.time.physical());
        for event in events(update.revision, &update.changes) {
            view.tell(|| match event {
                TrackerEvent::Elected { lease, .. } => LiveEvent::Elected {
                    revision,
                    time,
                    lease,
                },
                TrackerEvent::Expired { lease, .. } => LiveEvent::Expired {
                    revision,
                    time,
                    lease,
                },
            });
        }
    }

    /// A record was stored: what it took, and how long to encode and store it.
    pub fn record(&mut self, row: &SizeRow, took: Duration) {
        if row.is_delta() {
            self.delta_bytes += row.stored_bytes;
        } else {
            self.snapshots += 1;
            self.snapshot_bytes += row.stored_bytes;
            self.snapshot_took(took);
        }
    }

    /// Something was done for a snapshot.
    pub fn snapshot_took(&mut self, time: Duration) {
        self.snapshot_time += time;
    }

    /// Leases that are accepted now.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Time spent on snapshots, microseconds.
    pub fn snapshot_us(&self) -> u64 {
        self.snapshot_time.as_micros() as u64
    }

    fn count(&mut self, update: &LeaseUpdate) {
        for change in update.changes.iter() {
            if let Some(lease) = change.old.as_ref().filter(|lease| lease.accepted) {
                self.accepted -= 1;
                *self.held.entry(lease.holder_id).or_default() -= 1;
                let goes_on = (change.new.as_ref()).is_some_and(|new| new.start == lease.start);
                self.expired += u64::from(!goes_on);
            }
            if let Some(lease) = change.new.as_ref().filter(|lease| lease.accepted) {
                self.accepted += 1;
                *self.held.entry(lease.holder_id).or_default() += 1;
            }
        }
    }

    /// Something worth telling has happened.
    pub fn notice(&mut self, view: &View, cluster: &Cluster, notice: &Notice) {
        use placement::io::Notice as Said;
        let time = cluster.now() / MILLI;
        match notice {
            Notice::Driver(_, Said::Stored { cause, .. }) => {
                self.granted += u64::from(cause.granted);
                self.renewals += u64::from(cause.renewal);
            }
            Notice::Driver(_, Said::WriteLost | Said::WriteUnknown(_) | Said::WriteFailed(_)) => {
                self.writes_lost += 1;
            }
            Notice::NodeUp(node) => view.tell(|| LiveEvent::NodeUp {
                time,
                name: node.name.clone(),
                id: node.id,
            }),
            Notice::NodeDown(name) => view.tell(|| LiveEvent::NodeDown {
                time,
                name: name.clone(),
            }),
            _ => {}
        }
    }

    /// Writes the counts into the status.
    pub fn show(&self, status: &mut Status, cluster: &Cluster, update: Option<&LeaseUpdate>) {
        status.time = cluster.now() / MILLI;
        status.elapsed_ms = (cluster.now() - cluster.begin()) / MILLI;
        status.tables = cluster.catalog().table_count() as u64;
        status.groups = cluster.catalog().group_count();
        status.without_candidate = cluster.groups_without_candidate() as u64;
        if let Some(update) = update {
            status.revision = update.revision;
            status.leases = update.batch.len() as u64;
        }
        status.accepted = self.accepted;
        status.granted = self.granted;
        status.expired = self.expired;
        status.renewals = self.renewals;
        status.batches = self.batches;
        status.writes_lost = self.writes_lost;
        status.snapshots = self.snapshots;
        status.snapshot_bytes = self.snapshot_bytes;
        status.delta_bytes = self.delta_bytes;
        status.snapshot_us = self.snapshot_us();
        let held = |id: NodeId| self.held.get(&id).copied().unwrap_or(0);
        status.nodes = (cluster.nodes().iter())
            .map(|node| NodeStatus {
                name: node.name.clone(),
                id: node.id(),
                leases: node.id().map_or(0, held),
            })
            .collect();
        status.drivers = cluster.roles().map(role_name).collect();
    }
}

fn role_name(role: Option<&Role>) -> String {
    match role {
        None => "down",
        Some(Role::Active { .. }) => "active",
        Some(Role::Standby { .. }) => "standby",
        Some(Role::Halted(_)) => "halted",
        Some(_) => "starting",
    }
    .to_owned()
}
