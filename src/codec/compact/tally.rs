//! Sorts the bytes of a sound batch by what they are for.

use super::super::anatomy::{Part, Tally};
use super::super::error::DecodeError;
use super::{HAS_CANDIDATE, HOLE, LOGICAL, UNCOMMON, packed};

pub(crate) fn tally(tally: &mut Tally<'_>) -> Result<(), DecodeError> {
    let [version, ..] = tally.reader.array::<4>("magic")?;
    for _ in 0..3 {
        tally.varint(Part::Header)?;
    }
    let names = tally.varint(Part::Names)?;
    for _ in 0..names {
        let len = tally.varint(Part::Names)?;
        tally.skip(len as usize, Part::Names)?;
    }
    let ids = tally.varint(Part::NodeIds)?;
    for _ in 0..ids {
        tally.skip(16, Part::NodeIds)?;
        tally.varint(Part::NodeIds)?;
    }
    let packed = packed(version, names as usize, ids as usize);
    while !tally.reader.rest().is_empty() {
        let objects = tally.varint(Part::Counts)?;
        for _ in 0..objects {
            tally.varint(Part::ObjectIds)?;
            for _ in 0..tally.varint(Part::Counts)? {
                element(tally, packed)?;
            }
        }
    }
    Ok(())
}

fn element(tally: &mut Tally<'_>, packed: bool) -> Result<(), DecodeError> {
    let flags = tally.reader.u8("flags")?;
    if flags == HOLE {
        tally.add(Part::Holes);
        return Ok(());
    }
    tally.add(Part::Flags);
    tally.varint(Part::Nodes)?;
    if !packed && flags & HAS_CANDIDATE != 0 {
        tally.varint(Part::Nodes)?;
    }
    if flags & UNCOMMON != 0 {
        tally.varint(Part::Expirations)?;
        if flags & LOGICAL != 0 {
            tally.varint(Part::Expirations)?;
        }
    }
    tally.varint(Part::Periods)?;
    tally.varint(Part::StartLogicals)?;
    Ok(())
}
