//! Every byte of a batch belongs to one part.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use leasehold::codec::{Format, anatomy};
use support::vectors;

#[test]
fn parts_add_up_to_the_size() {
    for vector in vectors() {
        for format in Format::ALL {
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            let anatomy = anatomy::dissect(None, &bytes).unwrap();
            let sum: usize = anatomy.parts.iter().map(|(_, size)| size).sum();
            assert_eq!(sum, bytes.len(), "{} in {format}", vector.name);
            let leases = anatomy.decoded.batch.len();
            let flags = anatomy
                .parts
                .iter()
                .find(|(part, _)| *part == anatomy::Part::Flags);
            let each = if format == Format::Naive { 2 } else { 1 };
            assert_eq!(flags.map_or(0, |(_, size)| *size), each * leases);
        }
    }
}
