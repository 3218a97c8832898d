//! Sorts the bytes of a sound batch by what they are for.

use super::super::anatomy::{Part, Tally};
use super::super::error::DecodeError;
use super::layout::{Field, Layout};

impl Field {
    fn part(self) -> Part {
        match self {
            Self::Header => Part::Header,
            Self::Names => Part::Names,
            Self::Nodes => Part::NodeIds,
            Self::ObjectIds => Part::ObjectIds,
            Self::Partitions => Part::Counts,
            Self::Holes => Part::Holes,
            Self::Holders | Self::RareHolders => Part::Holders,
            Self::Candidates => Part::Candidates,
            Self::Flags => Part::Flags,
            Self::Expirations => Part::Expirations,
            Self::StartBases => Part::StartBases,
            Self::StartEvent => Part::EventStarts,
            Self::StartOffsets => Part::StartOffsets,
            Self::OddStarts => Part::OddStarts,
            Self::StartLogicals => Part::StartLogicals,
        }
    }
}

pub(crate) fn tally(bytes: &[u8], tally: &mut Tally<'_>) -> Result<(), DecodeError> {
    let mut mark = |field: Field, end: usize| {
        tally.reader.seek(end);
        tally.add(field.part());
    };
    let layout = Layout::find(bytes, usize::MAX, &mut mark)?;
    tally.holes = Some(0);
    let Some(columns) = &layout.columns else {
        return Ok(());
    };
    let slots = columns.objects.present.universe();
    tally.holes = Some((slots - columns.leases as u64) as usize);
    for (part, note) in columns.notes() {
        tally.note(part, note);
    }
    Ok(())
}
