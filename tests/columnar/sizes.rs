//! The named workloads stay below the sizes on record, close to their entropy.

use std::collections::BTreeMap;

use leasehold::codec::{self, Format};
use leasehold::model::workload::Workload;
use serde_json::Value;

#[test]
fn the_workloads_are_near_their_entropy() {
    let recorded: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("../data/workloads.json")).unwrap();
    for workload in Workload::ALL {
        let batch = workload.generate();
        let bytes = codec::encode(Format::Columnar, &batch).unwrap();
        let number = |name: &str| recorded[workload.name()][name].as_u64().unwrap();
        let (size, most) = (bytes.len() as u64, number("columnar_at_most"));
        let floor = number("entropy_floor_bytes");
        println!(
            "{workload}: {size} bytes, {:.4}",
            size as f64 / floor as f64
        );
        assert!(size <= most, "{workload}: {size} bytes, more than {most}");
        assert!(
            size >= floor,
            "{workload}: {size} bytes, less than is in it"
        );
        let decoded = codec::decode(&bytes).unwrap();
        assert_eq!(decoded.format, Format::Columnar);
        assert_eq!(decoded.batch, batch, "{workload}");
        assert_eq!(decoded.batch.dictionary(), batch.dictionary());
    }
}

#[test]
fn a_small_batch_is_small() {
    let one = Workload::Steady.with_tables(1);
    let lease = one.leases().next().unwrap();
    let one = leasehold::model::batch::LeaseBatch::from_leases([&lease]).unwrap();
    let size = |batch| codec::encode(Format::Columnar, batch).unwrap().len();
    assert!(size(&one) <= 90, "{}", size(&one));
    let none = leasehold::model::batch::LeaseBatch::default();
    assert!(size(&none) <= 20, "{}", size(&none));
}
