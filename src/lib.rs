//! **leasehold**: a lease manager for a cluster's metadata that you can simulate, run and measure.
#![forbid(unsafe_code)]

pub mod cli;
pub mod codec;
pub mod metastorage;
pub mod model;
