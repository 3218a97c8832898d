#![no_main]
//! Any bytes in whichever format they seem to be.

use leasehold::codec::{self, DecodeLimits, EncodeError, anatomy, frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = codec::sniff(data);
    if let Ok(record) = frame::open(data) {
        let _ = record.decode();
    }
    let limits = DecodeLimits { max_leases: 10_000 };
    let Ok(decoded) = codec::decode_with(data, limits) else {
        return;
    };
    let parts = anatomy::dissect(None, data).expect("it decodes").parts;
    assert_eq!(parts.iter().map(|(_, size)| size).sum::<usize>(), data.len());
    match codec::encode(decoded.format, &decoded.batch) {
        Ok(again) => {
            let again = codec::decode(&again).expect("it was written");
            assert_eq!(again.batch, decoded.batch);
        }
        Err(EncodeError::TooManyIdsForV1 { .. } | EncodeError::TooLarge { .. }) => {}
        Err(error) => panic!("{error}"),
    }
});
