//! Writing `naive`.

use crate::model::batch::{LeaseBatch, Row};
use crate::model::ids::{GroupKind, NodeName};

use super::super::Format;
use super::super::error::EncodeError;
use super::{GROUP_PREFIX, GROUP_SIZE, naive_size};

/// Appends a batch.
pub(crate) fn encode(batch: &LeaseBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let zones = |row: &&Row| row.group().kind() == GroupKind::Zone;
    if let Some(zone) = batch.rows().iter().find(zones) {
        return Err(EncodeError::ZonesNotCarried {
            format: Format::Naive,
            group: zone.group(),
        });
    }
    let count = length("a number of leases", batch.len())?;
    let dictionary = batch.dictionary();
    let names: Vec<_> = (dictionary.names().iter())
        .map(string)
        .collect::<Result<_, _>>()?;
    // A holder's name and id stand next to each other: rendered once for all of its leases.
    let holders: Vec<_> = (dictionary.nodes().iter())
        .map(|node| {
            let mut rendered = names[node.name as usize].clone();
            rendered.extend(string(&node.id.to_string().into())?);
            Ok(rendered)
        })
        .collect::<Result<_, EncodeError>>()?;

    let mut group = [0; 4 + GROUP_SIZE];
    let (size, rest) = group.split_at_mut(4);
    size.copy_from_slice(&(GROUP_SIZE as i32).to_le_bytes());
    let (prefix, _) = rest.split_at_mut(GROUP_PREFIX.len());
    prefix.copy_from_slice(GROUP_PREFIX);

    out.reserve(naive_size(batch));
    out.extend_from_slice(&count);
    for row in batch.rows_as_arrived() {
        let mut head = [0; 18];
        let (flags, times) = head.split_at_mut(2);
        flags.copy_from_slice(&[row.accepted().into(), row.prolongable().into()]);
        let (start, expiration) = times.split_at_mut(8);
        start.copy_from_slice(&row.packed_start().to_le_bytes());
        let until = row.expiration(batch.common_expiration());
        expiration.copy_from_slice(&until.composite().to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(&holders[row.holder() as usize]);
        match row.candidate() {
            Some(candidate) => out.extend_from_slice(&names[candidate as usize]),
            None => out.extend_from_slice(&(-1i32).to_le_bytes()),
        }
        if let Some(numbers) = group.last_chunk_mut::<8>() {
            let (partition, table) = numbers.split_at_mut(4);
            partition.copy_from_slice(&row.group().partition().to_be_bytes());
            table.copy_from_slice(&row.group().object().to_be_bytes());
        }
        out.extend_from_slice(&group);
    }
    Ok(())
}

/// A text with its length before it.
fn string(text: &NodeName) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = length("a node name", text.len())?.to_vec();
    bytes.extend_from_slice(text.as_bytes());
    Ok(bytes)
}

fn length(what: &'static str, size: usize) -> Result<[u8; 4], EncodeError> {
    match i32::try_from(size) {
        Ok(size) => Ok(size.to_le_bytes()),
        Err(_) => Err(EncodeError::TooLarge {
            what,
            size: size as u64,
            limit: i32::MAX as u64,
        }),
    }
}
