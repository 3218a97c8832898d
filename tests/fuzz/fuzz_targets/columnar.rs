#![no_main]
//! `columnar` with its seal put right: reading all and reading parts agree.

use leasehold::codec::columnar::Position;
use leasehold::codec::{self, DecodeLimits, Format, LeaseBatchView};
use libfuzzer_sys::fuzz_target;

const HEADER_SIZE: usize = 13;

/// The bytes with magic, version, length and checksum as they should be.
fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let len = u32::try_from(bytes.len()).ok()?;
    let (header, columns) = bytes.split_first_chunk_mut::<HEADER_SIZE>()?;
    header[..5].copy_from_slice(b"\x89LHC\x01");
    header[5..9].copy_from_slice(&len.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..9]);
    hasher.update(columns);
    header[9..].copy_from_slice(&hasher.finalize().to_le_bytes());
    Some(bytes)
}

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = sealed(data) else { return };
    let limits = DecodeLimits { max_leases: 10_000 };
    let decoded = codec::decode_with(&bytes, limits);
    let view = LeaseBatchView::open(&bytes);
    let batch = match (decoded, &view) {
        (Ok(decoded), _) => decoded.batch,
        (Err(_), Err(_)) => return,
        // Something is wrong with a part: the others may be read, or refused.
        (Err(_), Ok(view)) => {
            for index in [0, 1, view.len() / 2, view.len()] {
                if let Ok(Some(row)) = view.row_at(index) {
                    let group = row.group();
                    let _ = view.position(group);
                    let _ = view.to_lease(&row);
                    if view.len() <= limits.max_leases {
                        let _ = view.leases_of(group.kind(), group.object());
                    }
                }
            }
            return;
        }
    };
    let view = view.expect("what decodes can be opened");
    assert_eq!(view.len(), batch.len());
    assert!(batch.rows().is_sorted_by(|a, b| a.group() < b.group()));
    let step = 1 + batch.len() / 64;
    for (index, row) in batch.rows().iter().enumerate().step_by(step) {
        let group = row.group();
        assert_eq!(view.row_at(index).expect("sound"), Some(*row));
        assert_eq!(view.position(group).expect("sound"), Position::Found(index));
        let of_object = view.rows_of(group.kind(), group.object()).expect("sound");
        let of_object = of_object.expect("it has a row");
        assert_eq!(of_object.rows[index - of_object.first], *row);
    }
    let again = codec::encode(Format::Columnar, &batch).expect("it was carried");
    let decoded = codec::decode(&again).expect("it was written");
    assert_eq!(decoded.batch, batch);
    assert_eq!(decoded.batch.dictionary(), batch.dictionary());
});
