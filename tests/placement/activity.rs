//! One active driver at a time.

use leasehold::placement::activity::Role;
use leasehold::placement::io::{Input, Notice, StoreRequest};

use crate::stage::{Stage, at};

#[test]
fn the_first_driver_takes_the_epoch_at_once() {
    let mut stage = Stage::new(1);
    stage.input(Input::Start);
    stage.run(500);
    assert!(matches!(stage.driver.role(), Role::Active { .. }));
}

#[test]
fn a_standby_takes_over_after_1500_ms_without_a_beat_and_loses_no_lease() {
    let mut first = Stage::published(5);
    first.run(2500);
    let mut second = first.rival();
    for _ in 0..10 {
        second.run(500);
        second.input(Input::Observed {
            epoch: None,
            beat: true,
        });
        assert!(matches!(second.driver.role(), Role::Standby { .. }));
    }
    // A rival that has watched in vain for as long as the leases last: go back to the last beat.
    let mut second = first.rival();
    let before = second.leases();
    second.run(1000);
    assert!(matches!(second.driver.role(), Role::Standby { .. }));
    second.run(500);
    assert!(matches!(second.driver.role(), Role::Active { .. }));
    second.run(1000);
    for (old, new) in before.iter().zip(second.leases()) {
        assert_eq!(new.start, old.start);
        assert_eq!(new.expiration, at(second.time).plus_millis(5000));
    }
}

#[test]
fn after_a_takeover_the_former_driver_cannot_write_and_steps_down() {
    let mut first = Stage::published(1);
    let mut second = first.rival();
    second.run(1500);
    assert!(matches!(second.driver.role(), Role::Active { .. }));
    first.shelf = second.shelf.clone();
    first.shelf.writes.clear();
    first.run(1000);
    assert!(first.shelf.writes.is_empty(), "the epoch is another's");
    assert!(first.notices.contains(&Notice::SteppedDown));
}

#[test]
fn a_new_driver_offers_every_unaccepted_lease_again() {
    let mut first = Stage::new(3);
    first.input(Input::Start);
    first.run(500);
    let mut second = first.rival();
    second.run(1500);
    let starts = |offers: &[(_, leasehold::model::message::LeaseGranted)]| {
        offers
            .iter()
            .map(|(_, offer)| offer.start)
            .collect::<Vec<_>>()
    };
    assert_eq!(starts(&second.offers[..3]), starts(&first.offers[..3]));
    let offer = &second.offers[0].1;
    assert_eq!(
        offer.predecessor_expiration,
        Some(offer.start),
        "what went before is not known, so the holder waits out the skew"
    );
}

#[test]
fn of_two_that_take_over_one_wins() {
    let first = Stage::published(1);
    let mut a = first.rival();
    let mut b = first.rival();
    a.run(1500);
    b.shelf = a.shelf.clone();
    b.run(1500);
    assert!(matches!(b.driver.role(), Role::Standby { .. }));
}

#[test]
fn an_idle_driver_beats_and_a_batch_carries_a_beat() {
    let mut stage = Stage::published(1);
    stage.held = Some(Vec::new());
    let mut counts = (0, 0);
    for _ in 0..50 {
        stage.run(500);
        for (id, request) in stage.held.replace(Vec::new()).unwrap() {
            match request {
                StoreRequest::Beat { .. } => counts.0 += 1,
                StoreRequest::Write(_) => counts.1 += 1,
                _ => {}
            }
            let reply = stage.shelf.execute(request);
            stage.input(Input::Reply(id, reply));
        }
    }
    assert_eq!(counts, (40, 10));
}

#[test]
fn the_watch_may_show_the_own_epoch_before_its_acknowledgement() {
    let mut driver = Stage::published(1).rival();
    driver.run(1000);
    driver.held = Some(Vec::new());
    driver.run(500);
    let (id, request) = driver.held.take().unwrap().remove(0);
    assert!(matches!(request, StoreRequest::TakeEpoch { .. }));
    let won = driver.shelf.execute(request);
    driver.input(Input::Observed {
        epoch: Some(driver.shelf.stored.epoch),
        beat: true,
    });
    driver.input(Input::Reply(id, won));
    assert!(matches!(driver.driver.role(), Role::Active { .. }));
}
