//! What a watcher does with deltas that do not fit what it knows: it reads again.

use leasehold::metastorage::contract::{Change, Metastorage, Op, WatchEvent};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::placement::feed::{Feed, Seen};
use leasehold::placement::record::{self, BATCH, DELTAS, ReadError, delta_key};

use super::support::{delta, events, run, run_into_deltas, write};

/// A feed that has followed all but the last `left` events, and these.
fn before_the_end(store: &MemoryStore, left: usize) -> (Feed, Vec<WatchEvent>) {
    let mut events = events(store);
    let rest = events.split_off(events.len() - left);
    let mut feed = Feed::default();
    for event in &events {
        assert_eq!(feed.follow(store, event).unwrap().read_again, None);
    }
    (feed, rest)
}

/// Checks that a feed ended up with what is stored.
fn knows_what_is_stored(store: &MemoryStore, seen: &Seen) {
    let state = record::read(store, None).unwrap().unwrap();
    let update = seen.update.as_ref().unwrap();
    assert_eq!(update.batch, *state.chain.batch());
    assert_eq!(update.revision, state.revision);
}

/// The number of events from the last delta on.
fn from_last_delta(store: &MemoryStore) -> usize {
    let events = events(store);
    let last = events.iter().rposition(|event| delta(event).is_some());
    events.len() - last.unwrap()
}

fn altered(event: &WatchEvent, alter: impl Fn(&mut Vec<u8>)) -> WatchEvent {
    let mut event = event.clone();
    for change in &mut event.changes {
        if change.key.starts_with(DELTAS)
            && let Some(entry) = &mut change.entry
        {
            let mut value = entry.value.to_vec();
            alter(&mut value);
            entry.value = value.into();
        }
    }
    event
}

#[test]
fn damage_in_a_shown_delta_is_answered_by_reading() {
    let (store, _) = run(60);
    let (feed, rest) = before_the_end(&store, from_last_delta(&store));
    let len = delta(&rest[0]).unwrap().entry.as_ref().unwrap().value.len();
    drop(feed);
    for byte in 0..len {
        let (mut feed, rest) = before_the_end(&store, from_last_delta(&store));
        let seen = feed
            .follow(&store, &altered(&rest[0], |value| value[byte] ^= 4))
            .unwrap();
        assert!(seen.read_again.is_some(), "byte {byte}");
        knows_what_is_stored(&store, &seen);
        // The watch goes on, over what the reading has found already.
        for event in &rest {
            let seen = feed.follow(&store, event).unwrap();
            assert!(seen.update.is_none() && seen.read_again.is_none());
        }
    }
}

#[test]
fn a_missed_delta_is_noticed() {
    let (store, _) = run(60);
    let events = events(&store);
    let deltas: Vec<_> = (1..events.len())
        .filter(|at| delta(&events[*at]).is_some() && delta(&events[*at - 1]).is_some())
        .collect();
    assert!(!deltas.is_empty());
    for at in deltas {
        let mut feed = Feed::default();
        for event in &events[..at - 1] {
            feed.follow(&store, event).unwrap();
        }
        let seen = feed.follow(&store, &events[at]).unwrap();
        assert!(seen.read_again.is_some(), "event {at}");
        knows_what_is_stored(&store, &seen);
    }
}

#[test]
fn a_replayed_delta_is_not_applied_twice() {
    let (store, _) = run(60);
    let (mut feed, rest) = before_the_end(&store, from_last_delta(&store));
    feed.follow(&store, &rest[0]).unwrap();
    assert!(feed.follow(&store, &rest[0]).unwrap().update.is_none());
    // The same frame under a later revision.
    let mut replayed = rest[0].clone();
    replayed.revision += 1000;
    let seen = feed.follow(&store, &replayed).unwrap();
    assert!(seen.read_again.is_some());
    // Or under the key that would be next.
    let (mut feed, _) = before_the_end(&store, from_last_delta(&store) - 1);
    let state = record::read(&store, Some(rest[0].revision))
        .unwrap()
        .unwrap();
    let next = delta_key(state.chain.step() + 1);
    for change in &mut replayed.changes {
        if change.key.starts_with(DELTAS) {
            change.key = next.clone();
        }
    }
    let seen = feed.follow(&store, &replayed).unwrap();
    assert!(seen.read_again.is_some());
}

#[test]
fn a_late_reader_goes_on_from_what_it_read() {
    let (store, updates) = run(60);
    let events = events(&store);
    for (at, event) in events.iter().enumerate().skip(events.len() / 2) {
        let state = record::read(&store, Some(event.revision)).unwrap().unwrap();
        let mut feed = Feed::starting_from(&state);
        let mut last = state.chain.batch().clone();
        for event in &events[at + 1..] {
            let seen = feed.follow(&store, event).unwrap();
            assert_eq!(seen.read_again, None);
            last = seen.update.map_or(last, |update| update.batch.clone());
        }
        assert_eq!(last, updates.last().unwrap().batch);
    }
}

#[test]
fn damage_in_the_store_itself_is_an_error() {
    let (store, _) = run_into_deltas();
    let state = record::read(&store, None).unwrap().unwrap();
    assert!(state.chain.step() > 1);
    let key = delta_key(1);
    let mut value = store.get(&key, None).unwrap().unwrap().value.to_vec();
    let last = value.len() - 1;
    value[last] ^= 1;
    let damage = vec![Op::Put(key.clone(), value.into())];
    let gap = vec![Op::Delete(key)];
    let bare = vec![Op::Delete(BATCH.into())];
    for harm in [damage, gap, bare] {
        write(&store, harm);
        assert!(matches!(
            record::read(&store, None),
            Err(ReadError::Record(_))
        ));
        let last = events(&store).pop().unwrap();
        let mut feed = Feed::starting_from(&state);
        let next = WatchEvent {
            revision: last.revision + 1,
            changes: vec![Change {
                key: delta_key(state.chain.step() + 2),
                entry: store.get(&delta_key(2), None).unwrap(),
            }],
        };
        assert!(feed.follow(&store, &next).is_err());
    }
}
