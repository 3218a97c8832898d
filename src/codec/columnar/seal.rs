//! What stands before the columns: magic, version, length and checksum. It is what a stored
//! record's header says about other formats, so that under a key this format stands as it is.

use super::super::error::{DecodeError, Defect};
use super::super::reader::{fault, invalid};

/// The first four bytes.
pub(crate) const MAGIC: [u8; 4] = *b"\x89LHC";

/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u8 = 1;

/// Bytes before the columns: magic, version, length of all, CRC-32 of all else.
pub(crate) const HEADER_SIZE: usize = 13;

/// Bytes before the checksum.
const CHECKED_SIZE: usize = HEADER_SIZE - 4;

/// Why bytes are not a sealed batch, in the words of a stored record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// Other bytes than the magic.
    Magic,
    /// A later layout.
    Version(u8),
    /// Cut, or something follows.
    Length { expected: u64, found: usize },
    /// Damaged.
    Checksum { stored: u32, computed: u32 },
}

/// Puts the header before the columns that follow `start` + [`HEADER_SIZE`] bytes. `None` if
/// that is more than 4 GiB.
pub(super) fn seal(out: &mut [u8], start: usize) -> Option<()> {
    let batch = out.get_mut(start..)?;
    let len = u32::try_from(batch.len()).ok()?;
    let (header, columns) = batch.split_first_chunk_mut::<HEADER_SIZE>()?;
    let [l0, l1, l2, l3] = len.to_le_bytes();
    let [m0, m1, m2, m3] = MAGIC;
    let checked = [m0, m1, m2, m3, VERSION, l0, l1, l2, l3];
    let [c0, c1, c2, c3] = checksum(&checked, columns).to_le_bytes();
    *header = [m0, m1, m2, m3, VERSION, l0, l1, l2, l3, c0, c1, c2, c3];
    Some(())
}

/// Verifies magic, version, length and checksum.
pub(crate) fn verify(bytes: &[u8]) -> Result<(), Broken> {
    if !bytes.starts_with(&MAGIC) {
        let differ = bytes
            .iter()
            .zip(&MAGIC)
            .any(|(found, magic)| found != magic);
        return Err(if differ {
            Broken::Magic
        } else {
            too_short(bytes)
        });
    }
    // Another version may have another layout: nothing after it can be trusted.
    if let Some(version) = bytes.get(4).filter(|version| **version != VERSION) {
        return Err(Broken::Version(*version));
    }
    let Some((header, columns)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
        return Err(too_short(bytes));
    };
    let [_, _, _, _, _, l0, l1, l2, l3, c0, c1, c2, c3] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if bytes.len() as u64 != u64::from(len) {
        return Err(Broken::Length {
            expected: len.into(),
            found: bytes.len(),
        });
    }
    let stored = u32::from_le_bytes([c0, c1, c2, c3]);
    let checked = header.get(..CHECKED_SIZE).unwrap_or_default();
    let computed = checksum(checked, columns);
    if stored != computed {
        return Err(Broken::Checksum { stored, computed });
    }
    Ok(())
}

fn too_short(bytes: &[u8]) -> Broken {
    Broken::Length {
        expected: HEADER_SIZE as u64,
        found: bytes.len(),
    }
}

fn checksum(header: &[u8], columns: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(columns);
    hasher.finalize()
}

impl From<Broken> for DecodeError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Magic => invalid(0, "magic", "not the magic of columnar, 89 4c 48 43"),
            Broken::Version(version) => {
                let what = format!("{version} is unknown to this reader, which knows {VERSION}");
                invalid(4, "version", what)
            }
            Broken::Length { expected, found } if expected > found as u64 => {
                let missing = usize::try_from(expected - found as u64).unwrap_or(usize::MAX);
                fault(found, "length", Defect::Truncated { missing })
            }
            Broken::Length { expected, found } => {
                let what = format!("should be {found}, the number of bytes, but is {expected}");
                invalid(5, "length", what)
            }
            Broken::Checksum { stored, computed } => {
                let what = format!("{stored:08x} does not match the content ({computed:08x})");
                invalid(9, "checksum", what)
            }
        }
    }
}
