//! Sorts the bytes of a sound batch by what they are for.

use super::super::anatomy::{Part, Tally};
use super::super::error::DecodeError;

pub(crate) fn tally(tally: &mut Tally<'_>) -> Result<(), DecodeError> {
    let count = tally.reader.i32("lease count")?;
    tally.add(Part::Header);
    for _ in 0..count {
        tally.skip(2, Part::Flags)?;
        tally.skip(8, Part::Starts)?;
        tally.skip(8, Part::Expirations)?;
        for part in [
            Part::HolderNames,
            Part::HolderIds,
            Part::Candidates,
            Part::GroupIds,
        ] {
            let len = tally.reader.i32(part.name())?;
            tally.skip(len.max(0) as usize, part)?;
        }
    }
    Ok(())
}
