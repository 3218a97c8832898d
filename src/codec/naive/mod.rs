//! `naive`: one self-contained record per lease, the group as a Java-serialized object.
//!
//! docs/FORMATS.md has the byte table. Carries the leases of tables only, in the order in which
//! they arrived, and as the only format one id under two names.

mod decode;
mod encode;
mod tally;

pub(crate) use decode::{decode, plausible};
pub(crate) use encode::encode;
pub(crate) use tally::tally;

use crate::model::batch::LeaseBatch;

/// Java's serialization stream of the table partition class, up to the two numbers.
const GROUP_PREFIX: &[u8; 94] = b"\xac\xed\x00\x05sr\x00\x36org.apache.ignite.internal.replicator\
    .TablePartitionIdN\xdfD\xd4\x1f\xc2\x80\x9a\x02\x00\x02I\x00\x06partIdI\x00\x07tableIdxp";

/// Bytes of a group: the prefix, partition and table.
const GROUP_SIZE: usize = GROUP_PREFIX.len() + 8;

/// Bytes of a node id as text.
const ID_SIZE: usize = 36;

/// Bytes of a record but for the names.
pub(crate) const RECORD_SIZE: usize = 2 + 2 * 8 + 4 + (4 + ID_SIZE) + 4 + (4 + GROUP_SIZE);

/// Bytes before the first record.
const COUNT_SIZE: usize = 4;

/// What one lease takes: `holder_name` and `candidate` are the lengths of the names in bytes.
pub const fn naive_row_size(holder_name: usize, candidate: Option<usize>) -> usize {
    RECORD_SIZE
        + holder_name
        + match candidate {
            Some(len) => len,
            None => 0,
        }
}

/// What a batch takes (or, if it has zones, would take if they were tables).
pub fn naive_size(batch: &LeaseBatch) -> usize {
    let dictionary = batch.dictionary();
    let name_of = |name: u32| dictionary.name(name).len();
    let rows = batch.rows().iter().map(|row| {
        let (_, holder) = dictionary.node(row.holder());
        naive_row_size(holder.len(), row.candidate().map(name_of))
    });
    COUNT_SIZE + rows.sum::<usize>()
}
