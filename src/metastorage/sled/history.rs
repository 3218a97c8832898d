//! Reading the rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use ::sled::{IVec, Tree};

use crate::metastorage::contract::{Bytes, Revision, StoreError};
use crate::metastorage::mvcc::{History, Version, Visit};

use super::failure::read_error;
use super::layout::{self, Chunks, Stored, damaged};

/// The rows of a tree.
#[derive(Clone, Copy)]
pub struct Rows<'a>(pub &'a Tree);

impl Rows<'_> {
    /// The value of a number's row, if it is there.
    pub fn number(&self, row: &[u8]) -> Result<Option<u64>, StoreError> {
        let record = self.0.get(row).map_err(read_error)?;
        record
            .map(|record| layout::read_number(row, &record))
            .transpose()
    }

    /// The revisions of the first and the last event.
    pub fn events(&self) -> Result<Option<(Revision, Revision)>, StoreError> {
        let mut rows = self.0.range(layout::event_rows(0..=Revision::MAX)).keys();
        let Some(first) = rows.next().transpose().map_err(read_error)? else {
            return Ok(None);
        };
        let last = rows.next_back().transpose().map_err(read_error)?;
        let first = layout::event_revision(&first)?;
        let last = last.map_or(Ok(first), |last| layout::event_revision(&last))?;
        Ok(Some((first, last)))
    }

    /// Row keys of a revision's event.
    pub fn event_rows(
        &self,
        revision: Revision,
    ) -> impl Iterator<Item = Result<IVec, StoreError>> + use<> {
        let rows = self.0.range(layout::event_rows(revision..=revision));
        rows.keys().map(|row| row.map_err(read_error))
    }

    fn chunks(&self, revision: Revision, chunks: Chunks) -> Result<Bytes, StoreError> {
        // The length is from a checked record, but memory is only taken as chunks turn up.
        let mut value = Vec::new();
        for row in chunks.rows(revision) {
            let chunk = self.0.get(row).map_err(read_error)?;
            let chunk = chunk.ok_or_else(|| damaged(&row, "this part of a value is missing"))?;
            if value.is_empty() {
                value.reserve_exact(usize::try_from(chunks.len).unwrap_or(0));
            }
            value.extend_from_slice(&chunk);
        }
        if value.len() as u64 != chunks.len || crc32fast::hash(&value) != chunks.checksum {
            let row = layout::chunk_row(revision, chunks.slot, 0);
            return Err(damaged(
                &row,
                "the value that begins here fails its checksum",
            ));
        }
        Ok(value.into())
    }
}

impl History for Rows<'_> {
    type Value = Stored;

    fn newest(&self, key: &[u8], at: Revision) -> Result<Option<Version<Stored>>, StoreError> {
        let rows = layout::version_row(key, 0)..=layout::version_row(key, at);
        let newest = self.0.range(rows).next_back().transpose();
        let newest = newest.map_err(read_error)?;
        newest
            .map(|(row, record)| layout::read_version(&row, &record))
            .transpose()
    }

    fn load(&self, _: &[u8], revision: Revision, value: &Stored) -> Result<Bytes, StoreError> {
        match value {
            Stored::Inline(value) => Ok(value.as_ref().into()),
            Stored::Chunked(chunks) => self.chunks(revision, *chunks),
        }
    }

    fn scan(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        at: Revision,
        reverse: bool,
        visit: &mut Visit<'_, Stored>,
    ) -> Result<(), StoreError> {
        let end = end.map_or_else(layout::versions_end, layout::version_prefix);
        let mut rows = self.0.range(layout::version_prefix(start)..end);
        let mut newest: Option<(IVec, IVec)> = None;
        let mut tell = |(row, record): (IVec, IVec)| {
            let version = layout::read_version(&row, &record)?;
            visit(layout::key_of(layout::split_version_row(&row)?.0)?, version)
        };
        while let Some(next) = if reverse {
            rows.next_back()
        } else {
            rows.next()
        } {
            let (row, record) = next.map_err(read_error)?;
            let (prefix, revision) = layout::split_version_row(&row)?;
            if revision > at {
                continue;
            }
            let same = match &newest {
                Some((newest, _)) => layout::split_version_row(newest)?.0 == prefix,
                None => false,
            };
            if same && reverse {
                continue;
            }
            if !same
                && let Some(newest) = newest.take()
                && let ControlFlow::Break(()) = tell(newest)?
            {
                return Ok(());
            }
            newest = Some((row, record));
        }
        if let Some(newest) = newest {
            let _ended_anyway = tell(newest)?;
        }
        Ok(())
    }

    fn changed(&self, revision: Revision) -> Result<Arc<[Bytes]>, StoreError> {
        let mut keys = Vec::new();
        let mut found = 0;
        let mut wanted = 1;
        for next in self.0.range(layout::event_rows(revision..=revision)) {
            let (row, record) = next.map_err(read_error)?;
            let (parts, mut part) = layout::read_event(&row, &record)?;
            keys.append(&mut part);
            wanted = parts;
            found += 1;
        }
        if found != wanted {
            let row = layout::event_row(revision, 0);
            return Err(damaged(&row, "what this revision changed is missing"));
        }
        Ok(keys.into())
    }
}
