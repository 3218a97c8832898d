//! One element of an object, read with care: every defect has its offset and field.

use crate::model::dictionary::Dictionary;
use crate::model::hlc::HybridTimestamp;

use super::super::error::DecodeError;
use super::super::reader::{Reader, invalid, out_of_range};
use super::header::{self, Header};
use super::{
    ACCEPTED, HAS_CANDIDATE, HOLE, LOGICAL, PACKED_MAX, PACKED_SHIFT, PROLONGABLE, UNCOMMON,
};

/// What an element needs to be understood.
pub(crate) struct Elements {
    pub(super) common: HybridTimestamp,
    minimum: i64,
    names: i64,
    nodes: i64,
    pub(super) packed: bool,
    /// Bit n: several pairs of the dictionary are packed as the number n.
    ambiguous: u64,
}

/// A lease but for its group.
pub(crate) struct Element {
    pub(super) holder: u32,
    pub(super) candidate: Option<u32>,
    pub(super) accepted: bool,
    pub(super) prolongable: bool,
    /// Where it is not the common one.
    pub(super) expiration: Option<HybridTimestamp>,
    pub(super) start: HybridTimestamp,
    /// Whether its packed number can be read as several pairs of holder and candidate.
    pub(super) ambiguous: bool,
}

impl Elements {
    pub(super) fn new(header: &Header, dictionary: &Dictionary) -> Self {
        let (names, nodes) = (dictionary.names().len(), dictionary.nodes().len());
        Self {
            common: header.common,
            minimum: header.minimum,
            names: names as i64,
            nodes: nodes as i64,
            packed: super::packed(header.version, names, nodes),
            ambiguous: ambiguous(names, nodes),
        }
    }

    /// Reads an element; `None` is a hole.
    #[cold]
    pub(super) fn read(&self, reader: &mut Reader<'_>) -> Result<Option<Element>, DecodeError> {
        let offset = reader.offset();
        let flags = reader.u8("flags")?;
        if flags == HOLE {
            return Ok(None);
        }
        if flags & !(ACCEPTED | PROLONGABLE | HAS_CANDIDATE | UNCOMMON | LOGICAL) != 0 {
            let what = if flags & HOLE != 0 {
                format!("{flags:#04x} is a hole (0x20) with further bits")
            } else {
                format!("{flags:#04x} has bits that are unknown to this reader")
            };
            return Err(invalid(offset, "flags", what));
        }
        let (holder, candidate, ambiguous) = self.nodes(reader, flags & HAS_CANDIDATE != 0)?;
        let expiration = self.expiration(reader, flags)?;
        let offset = reader.offset();
        let period = reader.varint("period")?;
        let physical = (expiration.physical() as i64).saturating_sub(period);
        if !header::PHYSICAL.contains(&physical) {
            return Err(out_of_range(offset, "start", physical, header::PHYSICAL));
        }
        let logical = reader.ranged("start logical", header::LOGICAL)?;
        Ok(Some(Element {
            holder,
            candidate,
            accepted: flags & ACCEPTED != 0,
            prolongable: flags & PROLONGABLE != 0,
            expiration: (expiration != self.common).then_some(expiration),
            start: header::timestamp(offset, "start", physical, logical)?,
            ambiguous,
        }))
    }

    fn nodes(
        &self,
        reader: &mut Reader<'_>,
        has_candidate: bool,
    ) -> Result<(u32, Option<u32>, bool), DecodeError> {
        // Without a candidate the packed number is the holder, whatever the number of ids.
        if !has_candidate {
            let holder = reader.ranged("holder index", 0..=self.nodes - 1)?;
            return Ok((holder as u32, None, false));
        }
        if !self.packed {
            let holder = reader.ranged("holder index", 0..=self.nodes - 1)?;
            let candidate = reader.ranged("candidate index", 0..=self.names - 1)?;
            return Ok((holder as u32, Some(candidate as u32), false));
        }
        let offset = reader.offset();
        let most = (PACKED_MAX * PACKED_MAX - 1) as i64;
        let number = reader.ranged("packed nodes", 0..=most)?;
        let (holder, candidate) = (number & (PACKED_MAX as i64 - 1), number >> PACKED_SHIFT);
        if holder >= self.nodes {
            let range = 0..=self.nodes - 1;
            return Err(out_of_range(offset, "holder index", holder, range));
        }
        if candidate >= self.names {
            let range = 0..=self.names - 1;
            return Err(out_of_range(offset, "candidate index", candidate, range));
        }
        let ambiguous = self.ambiguous >> number & 1 == 1;
        Ok((holder as u32, Some(candidate as u32), ambiguous))
    }

    fn expiration(
        &self,
        reader: &mut Reader<'_>,
        flags: u8,
    ) -> Result<HybridTimestamp, DecodeError> {
        if flags & UNCOMMON == 0 {
            return Ok(self.common);
        }
        let offset = reader.offset();
        let physical = header::delta(reader, "expiration", self.minimum)?;
        let mut logical = 0;
        if flags & LOGICAL != 0 {
            logical = reader.ranged("expiration logical", header::LOGICAL)?;
        }
        header::timestamp(offset, "expiration", physical, logical)
    }
}

/// The packed numbers that several pairs of holder and candidate share: only where version 1
/// packs indexes of more than 8 ids, so that the two overlap.
fn ambiguous(names: usize, nodes: usize) -> u64 {
    let (mut once, mut again) = (0u64, 0u64);
    for candidate in 0..names.min(PACKED_MAX) {
        for holder in 0..nodes.min(PACKED_MAX * PACKED_MAX) {
            let number = 1 << (holder | candidate << PACKED_SHIFT);
            again |= once & number;
            once |= number;
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::ambiguous;

    #[test]
    fn numbers_are_shared_from_the_ninth_id_on() {
        assert_eq!(ambiguous(8, 8), 0);
        // 8 is the pairs (0, 1) and (8, 0), and (8, 1).
        assert_eq!(ambiguous(2, 9), 1 << 8);
        assert_eq!(ambiguous(1, 20), 0);
        assert_eq!(ambiguous(0, 0), 0);
    }
}
