//! **leasehold**: a lease manager for a cluster's metadata that you can simulate, run and measure.
#![forbid(unsafe_code)]

pub mod cli;
pub mod cluster;
pub mod codec;
pub mod daemon;
pub mod metastorage;
pub mod model;
pub mod placement;
pub mod replica;
pub mod server;
pub mod sim;
