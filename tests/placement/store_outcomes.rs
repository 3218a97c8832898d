//! Won, lost, unknown.

use leasehold::model::message::{StopProlongation, Verdict};
use leasehold::placement::io::{Input, Notice, StoreReply, StoreRequest};

use crate::stage::{Stage, at, group};

/// Takes the batch write that is held back, leaving later requests to be carried out.
fn held_write(stage: &mut Stage) -> (u64, StoreRequest) {
    let held = stage.held.take().unwrap();
    let is_write = |(_, request): &(u64, StoreRequest)| matches!(request, StoreRequest::Write(_));
    held.into_iter().find(is_write).expect("a write")
}

#[test]
fn nothing_is_offered_before_the_batch_is_stored() {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    stage.held = Some(Vec::new());
    stage.run(500);
    assert!(stage.offers.is_empty());
    let (id, request) = held_write(&mut stage);
    let reply = stage.shelf.execute(request);
    stage.input(Input::Reply(id, reply));
    assert_eq!(stage.offers.len(), 1);
}

#[test]
fn while_a_write_is_under_way_no_other_begins() {
    let mut stage = Stage::published(1);
    stage.run(2000);
    stage.held = Some(Vec::new());
    stage.run(2000);
    let held = stage.held.as_ref().unwrap();
    let writes = held
        .iter()
        .filter(|(_, r)| matches!(r, StoreRequest::Write(_)));
    assert_eq!(writes.count(), 1);
}

#[test]
fn after_a_lost_write_what_is_there_is_adopted_and_tried_again() {
    let mut stage = Stage::new(2);
    stage.input(Input::Start);
    stage.held = Some(Vec::new());
    stage.run(500);
    let (id, _) = held_write(&mut stage);
    // Under the same epoch somebody stored something else.
    stage.shelf.revision += 1;
    stage.shelf.stored.revision = stage.shelf.revision;
    let lost = StoreReply::Lost(stage.shelf.stored.clone());
    stage.input(Input::Reply(id, lost));
    assert!(stage.offers.is_empty(), "new negotiations are dropped");
    assert!(stage.notices.contains(&Notice::WriteLost));
    stage.run(500);
    assert_eq!(stage.leases().len(), 2);
    assert_eq!(stage.offers.len(), 2);
}

#[test]
fn an_unknown_outcome_is_read_again_when_it_did_take_place() {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    stage.held = Some(Vec::new());
    stage.run(500);
    let (id, request) = held_write(&mut stage);
    stage.shelf.execute(request);
    stage.input(Input::Reply(id, StoreReply::Unknown("timed out".into())));
    assert_eq!(stage.offers.len(), 1, "the stored lease is offered");
    let (holder, offer) = stage.offers[0].clone();
    assert_eq!(offer.start, stage.lease(0).start);
    stage.answer(&offer, holder, Verdict::Accepted);
    stage.run(500);
    assert!(stage.lease(0).accepted);
}

#[test]
fn an_unknown_outcome_is_read_again_when_it_did_not() {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    stage.held = Some(Vec::new());
    stage.run(500);
    let (id, _) = held_write(&mut stage);
    stage.input(Input::Reply(id, StoreReply::Unknown("timed out".into())));
    assert!(
        stage.offers.is_empty(),
        "nothing is stored, nothing is offered"
    );
    stage.run(500);
    assert_eq!(stage.leases().len(), 1);
}

#[test]
fn a_holder_is_told_when_its_stop_was_lost() {
    let mut stage = Stage::published(1);
    let lease = stage.lease(0);
    stage.held = Some(Vec::new());
    stage.input(Input::Stop(StopProlongation {
        group: group(0),
        holder: lease.holder_id,
        candidate: None,
    }));
    stage.run(500);
    let (id, _) = held_write(&mut stage);
    let lost = StoreReply::Lost(stage.shelf.stored.clone());
    stage.input(Input::Reply(id, lost));
    assert_eq!(stage.stopped, [(lease.holder_id, None)]);
}

#[test]
fn failures_back_off_and_are_bounded() {
    let mut stage = Stage::published(1);
    stage.held = Some(Vec::new());
    let mut attempts = 0;
    for _ in 0..40 {
        stage.run(500);
        for (id, request) in stage.held.replace(Vec::new()).unwrap() {
            let reply = match request {
                StoreRequest::Write(_) => {
                    attempts += 1;
                    StoreReply::Unavailable("the disk is full".into())
                }
                other => stage.shelf.execute(other),
            };
            stage.input(Input::Reply(id, reply));
        }
    }
    assert!((15..=40).contains(&attempts), "{attempts}");
    stage.held = None;
    stage.run(7000);
    assert!(stage.lease(0).expiration > at(stage.time), "it recovers");
}

#[test]
fn what_cannot_be_read_is_not_overwritten() {
    let mut stage = Stage::new(1);
    stage.held = Some(Vec::new());
    stage.input(Input::Start);
    let (id, _) = stage.held.take().unwrap().remove(0);
    stage.input(Input::Reply(id, StoreReply::Unreadable("format 9".into())));
    stage.run(10_000);
    assert!(stage.shelf.writes.is_empty());
    assert_eq!(stage.shelf.revision, 0);
    assert!(stage.notices.contains(&Notice::Halted("format 9".into())));
}

#[test]
fn talks_about_leases_that_are_no_longer_stored_end() {
    let mut stage = Stage::new(2);
    stage.input(Input::Start);
    stage.run(500);
    assert_eq!(stage.driver.negotiations().len(), 2);
    stage.accept_all();
    stage.held = Some(Vec::new());
    stage.run(500);
    let (id, _) = held_write(&mut stage);
    // Under the same epoch somebody removed all leases.
    stage.shelf.revision += 1;
    stage.shelf.stored.revision = stage.shelf.revision;
    stage.shelf.stored.chain = leasehold::codec::delta::Chain::default();
    let lost = StoreReply::Lost(stage.shelf.stored.clone());
    stage.input(Input::Reply(id, lost));
    assert!(stage.driver.negotiations().is_empty());
    stage.run(500);
    assert!(
        stage.leases().iter().all(|lease| !lease.accepted),
        "they begin anew"
    );
}
