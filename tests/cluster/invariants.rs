//! An observer that checks, from outside, what must always hold.

use std::collections::BTreeMap;

use leasehold::cluster::event::Notice;
use leasehold::cluster::heap::Micros;
use leasehold::cluster::world::Cluster;
use leasehold::metastorage::contract::Metastorage;
use leasehold::model::batch::LeaseBatch;
use leasehold::model::diff::LeaseUpdate;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::GroupId;
use leasehold::model::lease::Lease;
use leasehold::sim::Observer;

#[derive(Default)]
pub struct Invariants {
    last: LeaseBatch,
    revision: u64,
    /// The last accepted lease of each group, also after it left the batch.
    accepted: BTreeMap<GroupId, Lease>,
    starts: BTreeMap<GroupId, HybridTimestamp>,
    pub updates: Vec<(Micros, LeaseUpdate)>,
    pub notices: Vec<Notice>,
    steps: u64,
}

impl Invariants {
    fn check_lease(&mut self, lease: &Lease, skew: u64) {
        let group = lease.group;
        let start = self.starts.insert(group, lease.start);
        assert!(
            start.is_none_or(|start| start <= lease.start),
            "starts of {group} go back"
        );
        if let Some(old) = self.last.get(group).map(|row| self.last.lease(row))
            && old.start == lease.start
        {
            assert_eq!(
                old.holder_id, lease.holder_id,
                "{group}: another holder, same start"
            );
            if old.accepted && lease.accepted {
                assert!(
                    old.expiration <= lease.expiration,
                    "{group}: expiration goes back"
                );
            }
            assert!(
                old.prolongable || !lease.prolongable,
                "{group}: denied, then prolonged"
            );
            if !old.prolongable {
                assert_eq!(
                    old.expiration, lease.expiration,
                    "{group}: denied and prolonged"
                );
            }
        }
        if lease.accepted {
            if let Some(before) = self.accepted.get(&group)
                && before.start != lease.start
            {
                assert!(
                    lease.start.after(before.expiration, skew),
                    "{group}: {lease:?} begins within the skew of {before:?}"
                );
            }
            self.accepted.insert(group, lease.clone());
        }
    }
}

impl Observer for Invariants {
    fn stored(&mut self, cluster: &Cluster, update: &LeaseUpdate) {
        assert_eq!(update.previous, self.revision, "no lost update");
        self.revision = update.revision;
        let skew = cluster.scenario().timings.max_skew_ms;
        for lease in update.batch.leases() {
            self.check_lease(&lease, skew);
        }
        self.last = update.batch.clone();
        self.updates.push((cluster.now(), update.clone()));
    }

    fn notice(&mut self, _cluster: &Cluster, notice: &Notice) {
        self.notices.push(notice.clone());
    }

    /// At no instant do two nodes serve one group.
    fn stepped(&mut self, cluster: &Cluster, _store: &dyn Metastorage) {
        self.steps += 1;
        if !self.steps.is_multiple_of(50) {
            return;
        }
        for group in cluster.catalog().groups() {
            let serving = cluster.nodes().iter().filter(|node| {
                let physical = node.physical(cluster.now());
                let up = node.up.as_ref();
                up.is_some_and(|up| up.replica.serves(group, physical))
            });
            assert!(serving.count() <= 1, "two nodes serve {group}");
        }
    }
}
