//! The named workloads have the sizes and digests that are on record, in every format.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use leasehold::codec::{self, Format};
use leasehold::model::workload::Workload;
use serde_json::Value;
use sha2::{Digest, Sha256};

#[test]
fn sizes_and_digests() {
    let recorded: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("data/workloads.json")).unwrap();
    let mut compared = 0;
    for workload in Workload::ALL {
        let recorded = &recorded[workload.name()];
        let batch = workload.generate();
        assert_eq!(Some(batch.len() as u64), recorded["leases"].as_u64());
        for format in Format::ALL {
            let Some(expected) = recorded.get(format.name()) else {
                continue;
            };
            compared += 1;
            let bytes = codec::encode(format, &batch).unwrap();
            let name = format!("{workload} in {format}");
            assert_eq!(
                Some(bytes.len() as u64),
                expected["bytes"].as_u64(),
                "{name}"
            );
            let digest = hex::encode(Sha256::digest(&bytes));
            assert_eq!(Some(digest.as_str()), expected["sha256"].as_str(), "{name}");
            assert_eq!(codec::decode(&bytes).unwrap().batch, batch, "{name}");
        }
    }
    assert_eq!(compared, 8);
}
