//! `columnar`: one column per field, each in as few bits as its values need, and every value
//! found without reading the others.
//!
//! docs/FORMATS.md has the byte tables. A column is a set of positions (`set`), integers as
//! digits (`ints`), or both: the numbers of some rows. `layout` finds the columns, `rows`
//! reads a block of them, for `decode` all blocks and for `view` those that are asked for.

mod bits;
mod column;
pub(crate) mod decode;
mod dense;
mod dictionary;
mod digits;
pub(crate) mod encode;
mod groups;
mod ints;
mod layout;
mod nodes;
mod notes;
mod picks;
mod rows;
mod sample;
mod scan;
pub(crate) mod seal;
mod set;
mod set_write;
mod starts;
mod survey;
mod tally;
mod view;

pub(crate) use seal::MAGIC;
pub(crate) use tally::tally;
pub use view::{LeaseBatchView, ObjectRows, Position};
