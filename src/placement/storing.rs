//! In which form batches are stored, so that everybody who is there can read them.
//!
//! Nodes and standby drivers advertise what their releases can read. The driver writes the newest
//! form that all can read, up to what is wished; when somebody older comes, it first falls back
//! to what that one reads, and only then offers it leases. Source of the idea: the cluster version
//! of etcd, which is the lowest version of its members.

use crate::codec::Format;
use crate::model::reads::Reads;

/// A form of batches in the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storing {
    /// Format of batches in full.
    pub format: Format,
    /// Of so many batches one is stored in full, the others as deltas; with 1, all are in full.
    pub snapshot_every: u32,
}

impl Storing {
    /// The newest form, no newer than this one, that can be read with `reads`.
    #[must_use]
    pub fn readable_with(self, reads: Reads) -> Self {
        if reads >= Reads::Deltas {
            return self;
        }
        let format = match reads {
            _ if needed_for(self.format) <= reads => self.format,
            Reads::CompactV1 => Format::CompactV1,
            _ => Format::CompactV2,
        };
        Self {
            format,
            snapshot_every: 1,
        }
    }

    /// What carries leases that the format can't (more than 8 ids under at most 8 names in
    /// `compact-v1`), for readers with `reads`.
    pub fn substitute(self, reads: Reads) -> Format {
        match self.format {
            Format::CompactV1 | Format::CompactV1TablesOnly if reads >= Reads::CompactV2 => {
                Format::CompactV2
            }
            Format::CompactV1 | Format::CompactV1TablesOnly => Format::Naive,
            format => format,
        }
    }
}

/// What a reader of a batch in full must be able to read.
pub fn needed_for(format: Format) -> Reads {
    match format {
        Format::Naive | Format::CompactV1TablesOnly | Format::CompactV1 => Reads::CompactV1,
        Format::CompactV2 => Reads::CompactV2,
        Format::Columnar => Reads::Columnar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_newer_than_can_be_read_nor_than_is_wished() {
        for format in Format::ALL {
            for snapshot_every in [1, 64] {
                let wished = Storing {
                    format,
                    snapshot_every,
                };
                for reads in Reads::ALL {
                    let form = wished.readable_with(reads);
                    assert!(needed_for(form.format) <= reads);
                    assert!(needed_for(form.format) <= needed_for(format));
                    assert!(needed_for(form.substitute(reads)) <= reads);
                    assert!(form.snapshot_every == 1 || reads == Reads::Deltas);
                    if reads == Reads::Deltas {
                        assert_eq!(form, wished);
                    }
                }
            }
        }
    }
}
