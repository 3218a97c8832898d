//! The metastorage: its rules ([`contract`]) and, one file each, the stores.

pub mod contract;
