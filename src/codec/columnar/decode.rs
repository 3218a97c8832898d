//! Reading a whole batch.

use crate::model::batch::LeaseBatch;

use super::super::error::DecodeError;
use super::super::{Decoded, Format};
use super::groups::Place;
use super::ints::BLOCK;
use super::layout::Layout;
use super::rows::Rows;
use super::seal;

/// Reads a batch of at most so many leases.
pub(crate) fn decode(bytes: &[u8], max_leases: usize) -> Result<Decoded, DecodeError> {
    seal::verify(bytes)?;
    decode_verified(bytes, max_leases)
}

/// The same where the seal has been verified.
pub(crate) fn decode_verified(bytes: &[u8], max_leases: usize) -> Result<Decoded, DecodeError> {
    let layout = Layout::find(bytes, max_leases, &mut |_, _| {})?;
    let mut rows = Vec::new();
    if let Some(columns) = &layout.columns {
        let leases = columns.leases;
        // Columns without a width take no bytes, so that a count proves nothing: the rows of a
        // batch that is small for it are reserved as they come.
        rows.reserve(leases.min(bytes.len().saturating_mul(EXPECTED)));
        let mut scan = Rows::at(columns, layout.common, Place::default())?;
        let mut near = Vec::new();
        while rows.len() < leases {
            let len = BLOCK.min(leases - rows.len());
            if leases < FAR {
                scan.block(len, &mut rows)?;
            } else {
                near.clear();
                scan.block(len, &mut near)?;
                rows.extend_from_slice(&near);
            }
        }
        scan.finish()?;
    }
    Ok(Decoded {
        batch: LeaseBatch::from_checked(layout.common, layout.dictionary, rows),
        format: Format::Columnar,
        zones_section: true,
        ambiguous: 0,
    })
}

/// Leases to a byte for which all rows are reserved at once.
const EXPECTED: usize = 2;

/// Leases whose rows are more than a core's own caches hold. Single rows would wait for the lines
/// they are written to; a block that was written nearby is copied in whole lines.
const FAR: usize = 1 << 16;
