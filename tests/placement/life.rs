//! Grant, publish, renew, deny, expire, remove.

use leasehold::model::message::{StopProlongation, Verdict};
use leasehold::model::topology::{Assignment, Topology};
use leasehold::placement::io::Input;

use crate::stage::{Stage, at, group, node, restarted};

#[test]
fn a_lease_is_granted_accepted_published_and_prolonged() {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    assert!(stage.leases().is_empty());

    stage.run(500);
    let granted = stage.lease(0);
    assert!(!granted.accepted && granted.prolongable);
    assert_eq!(
        granted.expiration.physical(),
        granted.start.physical() + 120_000
    );
    let (holder, offer) = stage.offers[0].clone();
    assert_eq!((holder, offer.start), (granted.holder_id, granted.start));
    assert!(!offer.force);

    stage.answer(&offer, holder, Verdict::Accepted);
    assert!(!stage.lease(0).accepted, "an answer alone changes nothing");
    stage.run(500);
    let published = stage.lease(0);
    assert!(published.accepted);
    assert_eq!(published.start, granted.start);
    assert_eq!(published.expiration, at(1000).plus_millis(5000));

    stage.run(2000);
    assert_eq!(stage.lease(0), published, "not due yet");
    stage.run(500);
    let prolonged = stage.lease(0);
    assert_eq!(prolonged.start, published.start);
    assert_eq!(prolonged.expiration, at(3500).plus_millis(5000));
}

#[test]
fn quiet_leases_cost_one_write_in_2500_ms_that_shares_the_rows() {
    let mut stage = Stage::published(100);
    stage.run(2500);
    stage.shelf.writes.clear();
    stage.run(25_000);
    let writes = &stage.shelf.writes;
    assert_eq!(writes.len(), 10);
    for pair in writes.windows(2) {
        assert_eq!(pair[1].time.physical() - pair[0].time.physical(), 2500);
        assert!(pair[1].batch.shares_rows(&pair[0].batch));
        assert_eq!(pair[1].cause.to_string(), "renewal");
    }
}

#[test]
fn leases_accepted_at_different_times_align_at_the_next_renewal() {
    let mut stage = Stage::new(2);
    stage.input(Input::Start);
    stage.run(500);
    let offers = std::mem::take(&mut stage.offers);
    for (node, offer) in &offers {
        stage.answer(offer, *node, Verdict::Accepted);
        stage.run(500);
    }
    assert_ne!(stage.lease(0).expiration, stage.lease(1).expiration);
    stage.run(2500);
    assert_eq!(stage.lease(0).expiration, stage.lease(1).expiration);
}

#[test]
fn a_stopped_lease_keeps_its_expiration_and_goes_to_the_named_candidate() {
    let mut stage = Stage::published(2);
    let before = stage.lease(0);
    let heir = (1..=3).map(node).find(|n| n.name != before.holder_name);
    let heir = heir.unwrap();
    stage.input(Input::Stop(StopProlongation {
        group: group(0),
        holder: before.holder_id,
        candidate: Some(heir.name.clone()),
    }));
    stage.run(500);
    assert_eq!(stage.stopped, [(before.holder_id, Some(before.expiration))]);
    let denied = stage.lease(0);
    assert!(denied.accepted && !denied.prolongable);
    assert_eq!(denied.expiration, before.expiration);

    stage.run(4500);
    assert_eq!(stage.lease(0), denied, "not prolonged with the others");
    assert!(stage.lease(1).expiration > denied.expiration);
    stage.offers.clear();
    stage.run(1000);
    let next = stage.lease(0);
    assert_eq!(next.holder_name, heir.name);
    assert!(next.start.after(denied.expiration, 500));
    let (_, offer) = stage.offers[0].clone();
    assert!(offer.force, "the named candidate must accept");
    assert_eq!(offer.predecessor_expiration, Some(denied.expiration));
}

#[test]
fn only_the_holder_can_stop_its_lease() {
    let mut stage = Stage::published(1);
    let before = stage.lease(0);
    let other = (1..=3).map(node).find(|n| n.id != before.holder_id);
    let holder = other.unwrap().id;
    stage.input(Input::Stop(StopProlongation {
        group: group(0),
        holder,
        candidate: None,
    }));
    stage.run(500);
    assert_eq!(stage.stopped, [(holder, None)]);
    assert_eq!(stage.lease(0), before);
}

#[test]
fn a_restarted_holder_is_another_and_its_old_lease_must_expire() {
    let mut stage = Stage::published(1);
    let before = stage.lease(0);
    let number = before
        .holder_name
        .trim_start_matches("node")
        .parse()
        .unwrap();
    let again = restarted(number, 1);
    let nodes = (1..=3).map(|n| if n == number { again.clone() } else { node(n) });
    stage.input(Input::Topology(Topology::new(nodes)));
    stage.run(5000);
    assert_eq!(stage.lease(0), before, "neither prolonged nor replaced");
    stage.run(1000);
    let next = stage.lease(0);
    assert_eq!(next.holder_id, again.id);
    assert!(next.start > before.expiration);
}

#[test]
fn when_the_holder_leaves_another_replica_gets_the_group() {
    let mut stage = Stage::published(1);
    let before = stage.lease(0);
    let others = (1..=3).map(node).filter(|n| n.id != before.holder_id);
    stage.input(Input::Topology(Topology::new(others)));
    stage.run(6000);
    let next = stage.lease(0);
    assert_ne!(next.holder_id, before.holder_id);
    assert!(next.start.after(before.expiration, 500));
}

#[test]
fn groups_of_a_dropped_table_leave_when_their_leases_are_over() {
    let mut stage = Stage::published(2);
    stage.input(Input::Assignments(vec![(group(0), None)]));
    stage.run(5000);
    assert_eq!(stage.leases().len(), 2);
    stage.run(1000);
    assert_eq!(stage.leases().len(), 1);
    assert_eq!(stage.lease(1).group, group(1));
}

#[test]
fn a_new_table_is_granted_at_the_next_tick() {
    let mut stage = Stage::published(1);
    let names = (1..=3).map(|n| node(n).name);
    let assignment = Assignment::stable(names);
    stage.input(Input::Assignments(vec![(group(1), Some(assignment))]));
    stage.run(500);
    assert!(!stage.lease(1).accepted);
}

#[test]
fn groups_without_a_candidate_are_counted_and_their_leases_removed() {
    let mut stage = Stage::published(3);
    stage.input(Input::Topology(Topology::default()));
    stage.run(6000);
    assert!(stage.leases().is_empty());
    stage.run(500);
    assert_eq!(stage.driver.groups_without_candidate(), 3);
}

#[test]
fn leases_that_lapsed_while_the_driver_slept_are_granted_anew() {
    let mut stage = Stage::published(3);
    let before = stage.leases();
    stage.time += 60_000;
    stage.offers.clear();
    stage.run(500);
    for (old, new) in before.iter().zip(stage.leases()) {
        assert!(!new.accepted);
        assert_eq!(new.holder_id, old.holder_id, "the holder is proposed again");
        assert!(new.start > old.expiration);
    }
}

#[test]
fn the_naive_size_is_kept_up() {
    let mut stage = Stage::published(40);
    stage.input(Input::Topology(Topology::new([node(1), node(2)])));
    stage.input(Input::Assignments(vec![(group(3), None)]));
    stage.run(10_000);
    for write in &stage.shelf.writes {
        let size = leasehold::codec::naive_size(&write.batch) as u64;
        assert_eq!(write.naive_bytes, size);
    }
}
