use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Mostly bytes that the escaping is about.
    vec(prop_oneof![Just(0), Just(1), Just(0xFF), any::<u8>()], 0..6)
}

fn version() -> impl Strategy<Value = Version<Stored>> {
    let chunks = (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>());
    let value = prop_oneof![
        vec(any::<u8>(), 0..40).prop_map(|value| Some(Stored::Inline(value.into()))),
        chunks.prop_map(|(slot, len, chunk, checksum)| Some(Stored::Chunked(Chunks {
            slot,
            len,
            chunk,
            checksum,
        }))),
        Just(None),
    ];
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    (numbers, value).prop_map(
        |((create_revision, mod_revision, version), value)| Version {
            create_revision,
            mod_revision,
            version,
            value,
        },
    )
}

proptest! {
    #[test]
    fn versions_sort_by_key_and_revision(
        one in (key(), any::<u64>()),
        other in (key(), any::<u64>()),
    ) {
        let rows = [&one, &other].map(|(key, revision)| version_row(key, *revision));
        prop_assert_eq!(one.cmp(&other), rows[0].cmp(&rows[1]));
    }

    #[test]
    fn rows_tell_their_key_and_revision(key in key(), revision: u64) {
        let row = version_row(&key, revision);
        let (prefix, found) = split_version_row(&row).unwrap();
        prop_assert_eq!(&*key_of(prefix).unwrap(), &*key);
        prop_assert_eq!(found, revision);
        prop_assert_eq!(event_revision(&event_row(revision, 3)).unwrap(), revision);
    }

    #[test]
    fn versions_read_back(key in key(), version in version()) {
        let row = version_row(&key, version.mod_revision);
        let record = write_version(&row, &version).into();
        prop_assert_eq!(read_version(&row, &record).unwrap(), version.clone());
        // Under another key it is damaged.
        let other = version_row(&key, version.mod_revision.wrapping_add(1));
        prop_assert!(read_version(&other, &record).is_err());
    }

    #[test]
    fn events_read_back(keys in vec(key(), 0..40), size in 1usize..100) {
        let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
        let parts = write_event(7, keys.iter(), size);
        let mut found = Vec::new();
        for (row, record) in &parts {
            let (count, mut keys) = read_event(row, record).unwrap();
            prop_assert_eq!(count as usize, parts.len());
            found.append(&mut keys);
        }
        prop_assert_eq!(found, keys);
    }

    #[test]
    fn what_is_no_record_is_told(row in vec(any::<u8>(), 0..30), content in vec(any::<u8>(), 0..60)) {
        // With a checksum that matches, to get behind it.
        for record in [content.clone(), sealed(&row, content)] {
            let _ = read_event(&row, &record);
            let _ = read_number(&row, &record);
            let _ = read_version(&row, &record.into());
        }
        let _ = split_version_row(&row);
        let _ = key_of(&row);
        let _ = event_revision(&row);
    }
}
