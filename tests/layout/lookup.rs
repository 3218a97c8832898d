//! A group looked up by itself is what a reading of everything says.

use leasehold::metastorage::contract::{Metastorage, Op};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::ids::GroupId;
use leasehold::placement::record::{self, BATCH, ReadError, lookup};

use super::support::{SCENARIO, run_scenario, write};

fn groups() -> impl Iterator<Item = GroupId> {
    let objects = (0..40).flat_map(|object| (0..5).map(move |partition| (object, partition)));
    objects.map(|(object, partition)| format!("table/{object}/{partition}").parse().unwrap())
}

fn columnar(every: u32) -> String {
    SCENARIO
        .replace("compact-v2", "columnar")
        .replace("snapshot_every = 5", &format!("snapshot_every = {every}"))
}

#[test]
fn agrees_with_reading_everything() {
    let mut quick = 0;
    let mut all = 0;
    for every in [5, 40] {
        let (store, updates) = run_scenario(&columnar(every), 90);
        for update in &updates {
            let at = Some(update.revision);
            for group in groups() {
                let found = lookup(&store, at, group).unwrap().unwrap();
                let row = update.batch.get(group);
                let lease = row.map(|row| update.batch.lease(row));
                assert_eq!(found.lease, lease, "{group} at {at:?}");
                assert_eq!(found.revision, update.revision);
                quick += u32::from(found.quick);
                all += 1;
            }
        }
    }
    assert!(quick > all / 2, "{quick} of {all} without reading all");
}

#[test]
fn other_formats_are_read_as_a_whole() {
    let (store, updates) = run_scenario(SCENARIO, 30);
    let last = updates.last().unwrap();
    for group in groups() {
        let found = lookup(&store, None, group).unwrap().unwrap();
        let row = last.batch.get(group);
        assert_eq!(found.lease, row.map(|row| last.batch.lease(row)));
        assert!(!found.quick);
    }
}

#[test]
fn damage_is_an_error() {
    let group = "table/3/1".parse().unwrap();
    assert_eq!(lookup(&MemoryStore::new(), None, group), Ok(None));
    let (store, _) = run_scenario(&columnar(40), 30);
    let state = record::read(&store, None).unwrap().unwrap();
    // The snapshot comes last: written again it has another revision, and no delta fits.
    let keys = [
        record::delta_key(1),
        record::delta_key(state.chain.step()),
        BATCH.into(),
    ];
    for key in keys {
        let sound = store.get(&key, None).unwrap().unwrap().value;
        for position in [4, sound.len() / 2, sound.len() - 1] {
            let mut damaged = sound.to_vec();
            damaged[position] ^= 16;
            write(&store, vec![Op::Put(key.clone(), damaged.into())]);
            let found = lookup(&store, None, group);
            assert!(matches!(found, Err(ReadError::Record(_))), "{found:?}");
        }
        write(&store, vec![Op::Delete(key.clone())]);
        let found = lookup(&store, None, group);
        let last = key == record::delta_key(state.chain.step());
        // The last delta is not missed by whoever reads only; without the snapshot nothing fits.
        assert_eq!(found.is_ok(), last, "{found:?}");
        write(&store, vec![Op::Put(key, sound)]);
    }
}
