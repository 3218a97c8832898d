//! Whether the cluster recovers when faults have stopped.

use crate::cluster::heap::{MILLI, Micros};
use crate::cluster::scenario::Scenario;
use crate::cluster::world::Cluster;
use crate::model::batch::LeaseBatch;
use crate::placement::candidate::candidates;

use super::bytes::in_words;
use super::{Invariant, Verdict, wrong};

/// How long it may take until each group with a live candidate has an accepted lease.
///
/// The protocol's bound is interval + skew + takeover + 2 × (negotiation + 2 ticks + 2 store
/// latencies). It counts from when the topology is right again: that takes a detection or a join,
/// noticed at the store's next safe time. Whoever still waits for the store gives up first.
pub fn bound(scenario: &Scenario) -> Micros {
    let (timings, network) = (&scenario.timings, &scenario.network);
    let failures = &scenario.failures;
    let message = network.max_us;
    let settled = MILLI * (failures.detection_ms.max(failures.join_ms) + timings.safe_time_ms)
        + MILLI * network.timeout_ms
        + message;
    let skew = MILLI * timings.max_skew_ms;
    // The offer, the replica's catching up, the wait for the predecessor, an election, the answer.
    let negotiation = 2 * message + MILLI * (failures.catch_up_ms + failures.election_ms) + skew;
    let store = network.store_us + 2 * message;
    let round = negotiation + 2 * MILLI * timings.tick_ms + 2 * store;
    let interval = MILLI * timings.lease_interval_ms;
    settled + interval + skew + MILLI * timings.takeover_ms + 2 * round
}

/// Each group that exists and has a candidate must have an accepted lease now.
pub(super) fn check(cluster: &Cluster, batch: &LeaseBatch) -> Verdict {
    let now = cluster.now() / MILLI;
    for group in cluster.catalog().groups() {
        let assignment = cluster.catalog().assignment(group);
        if candidates(&assignment, cluster.topology()).next().is_none() {
            continue;
        }
        let lease = batch.get(group).map(|row| batch.lease(row));
        let held = lease.as_ref().is_some_and(|lease| {
            lease.accepted
                && lease.expiration.physical() > now
                && cluster.topology().is_alive(lease.holder_id)
        });
        if !held {
            return wrong(
                Invariant::Liveness,
                Some(group),
                format!(
                    "all faults had ended {} ms ago",
                    cluster
                        .healed_at()
                        .map_or(0, |healed| (cluster.now() - healed) / MILLI)
                ),
                format!("at {now} there is {}", in_words(lease.as_ref())),
            );
        }
    }
    Ok(())
}
