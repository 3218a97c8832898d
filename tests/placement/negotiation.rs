//! The talk between driver and candidate.

use leasehold::model::message::Verdict;
use leasehold::model::topology::Topology;
use leasehold::placement::io::Input;

use crate::stage::{Stage, node};

fn offered() -> Stage {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    stage.run(500);
    stage
}

#[test]
fn an_offer_is_repeated_at_each_tick_until_answered() {
    let mut stage = offered();
    let first = stage.offers[0].1.clone();
    stage.run(1500);
    assert_eq!(stage.offers.len(), 4);
    for (_, offer) in &stage.offers {
        assert_eq!((offer.group, offer.start), (first.group, first.start));
    }
    stage.accept_all();
    stage.run(1500);
    assert!(stage.offers.is_empty());
}

#[test]
fn a_redirect_leads_to_the_named_node_with_a_new_start() {
    let mut stage = offered();
    let (holder, offer) = stage.offers.remove(0);
    let leader = (1..=3).map(node).find(|n| n.id != holder).unwrap();
    stage.answer(&offer, holder, Verdict::Redirect(leader.name.clone()));
    stage.run(500);
    let (next, second) = stage.offers.last().unwrap().clone();
    assert_eq!(next, leader.id);
    assert!(second.start > offer.start);
    assert!(!second.force);
}

#[test]
fn the_same_node_is_forced_after_it_refused() {
    let mut stage = offered();
    let (holder, offer) = stage.offers.remove(0);
    stage.answer(&offer, holder, Verdict::Redirect("nobody".into()));
    stage.run(500);
    let (next, second) = stage.offers.last().unwrap().clone();
    assert_eq!(next, holder, "the named leader is no candidate");
    assert!(second.force);
}

#[test]
fn two_nodes_that_name_each_other_do_not_go_on_for_ever() {
    let mut stage = offered();
    for _ in 0..3 {
        let (holder, offer) = stage.offers.last().unwrap().clone();
        if offer.force {
            return;
        }
        let other = (1..=2).map(node).find(|n| n.id != holder).unwrap();
        stage.answer(&offer, holder, Verdict::Redirect(other.name));
        stage.run(500);
    }
    assert!(stage.offers.last().unwrap().1.force);
}

#[test]
fn answers_to_another_start_or_from_another_incarnation_are_ignored() {
    let mut stage = offered();
    let (holder, offer) = stage.offers[0].clone();
    let mut stale = offer.clone();
    stale.start = stale.start.tick();
    stage.answer(&stale, holder, Verdict::Accepted);
    let other = (1..=3).map(node).find(|n| n.id != holder).unwrap();
    stage.answer(&offer, other.id, Verdict::Accepted);
    stage.run(1000);
    assert!(!stage.lease(0).accepted);
}

#[test]
fn a_candidate_that_leaves_cancels_the_talk() {
    let mut stage = offered();
    let before = stage.lease(0);
    let others = (1..=3).map(node).filter(|n| n.id != before.holder_id);
    stage.input(Input::Topology(Topology::new(others)));
    stage.run(500);
    let next = stage.lease(0);
    assert_ne!(next.holder_id, before.holder_id);
    assert!(next.start > before.start);
}

#[test]
fn an_offer_without_an_answer_ends_at_its_expiration() {
    let mut stage = offered();
    let before = stage.lease(0);
    stage.run(119_500);
    assert_eq!(stage.lease(0), before);
    stage.run(500);
    assert!(stage.lease(0).start > before.start);
}

#[test]
fn a_node_whose_clock_is_too_far_ahead_is_not_believed() {
    let mut stage = offered();
    let (holder, offer) = stage.offers[0].clone();
    stage.time += 501;
    let answer_from_the_future = stage.now().physical;
    stage.time -= 501;
    let mut answer = leasehold::model::message::GrantAnswer {
        group: offer.group,
        start: offer.start,
        node: holder,
        verdict: Verdict::Accepted,
        sent: leasehold::model::hlc::HybridTimestamp::new(answer_from_the_future, 0).unwrap(),
    };
    stage.input(Input::Answer(answer.clone()));
    stage.run(500);
    assert!(!stage.lease(0).accepted);
    answer.sent = crate::stage::at(stage.time);
    stage.input(Input::Answer(answer));
    stage.run(500);
    assert!(stage.lease(0).accepted);
}
