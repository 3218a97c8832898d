//! A node's side of a lease, driven by hand.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use leasehold::model::batch::LeaseBatch;
use leasehold::model::diff::{LeaseUpdate, diff};
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, Incarnation, NodeId, NodeName};
use leasehold::model::lease::Lease;
use leasehold::model::message::{LeaseGranted, Verdict};
use leasehold::replica::{Input, Output, Replica};

const SKEW: u64 = 500;

fn ts(physical: u64) -> HybridTimestamp {
    HybridTimestamp::new(physical, 0).unwrap()
}

fn group() -> GroupId {
    "table/1/0".parse().unwrap()
}

fn me() -> Incarnation {
    Incarnation {
        name: "me".into(),
        id: NodeId::from_halves(1, 1),
    }
}

fn offer(start: u64, force: bool) -> LeaseGranted {
    LeaseGranted {
        group: group(),
        start: ts(start),
        expiration: ts(start + 120_000),
        predecessor_expiration: None,
        force,
        sent: ts(start),
    }
}

fn stored(revision: u64, holder: NodeId, start: u64, accepted: bool) -> LeaseUpdate {
    let lease = Lease {
        group: group(),
        holder_name: "me".into(),
        holder_id: holder,
        start: ts(start),
        expiration: ts(start + 5_000),
        accepted,
        prolongable: true,
        proposed_candidate: None,
    };
    let batch = LeaseBatch::from_leases(&[lease]).unwrap();
    LeaseUpdate {
        revision,
        previous: revision - 1,
        time: ts(start),
        changes: diff(&LeaseBatch::default(), &batch).into(),
        batch,
    }
}

fn step(replica: &mut Replica, physical: u64, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    replica.step(physical, input, &mut out);
    out
}

fn granted(offer: LeaseGranted, leader: Option<&str>) -> Input {
    Input::Granted {
        offer,
        leader: leader.map(NodeName::from),
    }
}

fn verdict(outputs: &[Output]) -> Option<&Verdict> {
    outputs.iter().find_map(|output| match output {
        Output::Answer(answer) => Some(&answer.verdict),
        _ => None,
    })
}

#[test]
fn the_leader_catches_up_and_accepts() {
    let mut replica = Replica::new(me(), SKEW);
    let out = step(&mut replica, 1000, granted(offer(1000, false), Some("me")));
    assert_eq!(out, [Output::CatchUp(group(), ts(1000))]);
    let out = step(&mut replica, 1010, Input::CaughtUp(group(), ts(1000)));
    assert_eq!(verdict(&out), Some(&Verdict::Accepted));
    let again = step(&mut replica, 1500, granted(offer(1000, false), Some("me")));
    assert_eq!(
        verdict(&again),
        Some(&Verdict::Accepted),
        "idempotent by (group, start)"
    );
}

#[test]
fn another_redirects_to_the_leader_unless_forced() {
    let mut replica = Replica::new(me(), SKEW);
    let out = step(
        &mut replica,
        1000,
        granted(offer(1000, false), Some("boss")),
    );
    assert_eq!(verdict(&out), Some(&Verdict::Redirect("boss".into())));
    let out = step(&mut replica, 1000, granted(offer(1001, true), Some("boss")));
    assert_eq!(out, [Output::CatchUp(group(), ts(1001))]);
    let out = step(&mut replica, 1010, Input::CaughtUp(group(), ts(1001)));
    assert!(out.contains(&Output::TakeLeadership(group())));
    assert_eq!(verdict(&out), Some(&Verdict::Accepted));
}

#[test]
fn during_an_election_there_is_no_answer() {
    let mut replica = Replica::new(me(), SKEW);
    assert_eq!(
        step(&mut replica, 1000, granted(offer(1000, false), None)),
        []
    );
}

#[test]
fn it_waits_until_the_former_holder_can_no_longer_serve_on_any_clock() {
    let mut replica = Replica::new(me(), SKEW);
    let mut after_another = offer(1000, false);
    after_another.predecessor_expiration = Some(ts(900));
    step(&mut replica, 1000, granted(after_another, Some("me")));
    let out = step(&mut replica, 1010, Input::CaughtUp(group(), ts(1000)));
    assert_eq!(out, [Output::Wait(group(), ts(1000), 391)]);
    let out = step(&mut replica, 1401, Input::CaughtUp(group(), ts(1000)));
    assert_eq!(verdict(&out), Some(&Verdict::Accepted));
}

#[test]
fn an_answer_gives_no_right_to_serve_and_a_stored_accepted_lease_does() {
    let mut replica = Replica::new(me(), SKEW);
    step(&mut replica, 1000, granted(offer(1000, false), Some("me")));
    step(&mut replica, 1010, Input::CaughtUp(group(), ts(1000)));
    assert!(!replica.serves(group(), 1020));
    step(
        &mut replica,
        1020,
        Input::Applied(stored(1, me().id, 1000, false)),
    );
    assert!(!replica.serves(group(), 1030), "stored, not accepted");
    step(
        &mut replica,
        1030,
        Input::Applied(stored(2, me().id, 1000, true)),
    );
    assert!(replica.serves(group(), 5999));
    assert!(!replica.serves(group(), 6000), "expired on its clock");
    step(
        &mut replica,
        1040,
        Input::Applied(stored(1, me().id, 1000, false)),
    );
    assert!(
        replica.serves(group(), 1050),
        "an older revision is ignored"
    );
}

#[test]
fn a_lease_of_a_former_incarnation_is_not_served() {
    let mut replica = Replica::new(me(), SKEW);
    let former = NodeId::from_halves(1, 0);
    step(
        &mut replica,
        1000,
        Input::Applied(stored(1, former, 1000, true)),
    );
    assert!(!replica.serves(group(), 1010));
}

#[test]
fn a_clock_that_was_stepped_back_does_not_serve_longer() {
    let mut replica = Replica::new(me(), SKEW);
    step(
        &mut replica,
        1000,
        Input::Applied(stored(1, me().id, 1000, true)),
    );
    step(
        &mut replica,
        6000,
        granted(offer(6000, false), Some("boss")),
    );
    assert!(!replica.serves(group(), 3000));
}

#[test]
fn offers_older_than_what_is_known_are_ignored() {
    let mut replica = Replica::new(me(), SKEW);
    step(
        &mut replica,
        1000,
        Input::Applied(stored(1, me().id, 1000, true)),
    );
    assert_eq!(
        step(&mut replica, 1000, granted(offer(999, false), Some("me"))),
        []
    );
    step(&mut replica, 2000, granted(offer(2000, false), Some("me")));
    assert_eq!(
        step(&mut replica, 2000, granted(offer(1999, true), Some("me"))),
        []
    );
}

#[test]
fn an_offer_is_not_accepted_after_its_expiration_nor_from_a_clock_too_far_ahead() {
    let mut replica = Replica::new(me(), SKEW);
    step(&mut replica, 1000, granted(offer(1000, false), Some("me")));
    let late = step(&mut replica, 121_000, Input::CaughtUp(group(), ts(1000)));
    assert_eq!(verdict(&late), None);
    let mut replica = Replica::new(me(), SKEW);
    assert_eq!(
        step(&mut replica, 1000, granted(offer(1501, false), Some("me"))),
        []
    );
}

#[test]
fn only_what_is_served_can_be_resigned() {
    let mut replica = Replica::new(me(), SKEW);
    let resign = || Input::Resign(group(), Some("heir".into()));
    assert_eq!(step(&mut replica, 1000, resign()), []);
    step(
        &mut replica,
        1000,
        Input::Applied(stored(1, me().id, 1000, true)),
    );
    let out = step(&mut replica, 1010, resign());
    assert!(matches!(&out[..], [Output::Stop(stop)] if stop.holder == me().id));
}
