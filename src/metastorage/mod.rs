//! The metastorage: its rules ([`contract`] says what is promised, [`mvcc`] how it follows from a
//! history of versions) and, one module each, the stores.

pub mod contract;
pub mod memory;
pub mod mvcc;
pub mod sled;
mod waiting;
