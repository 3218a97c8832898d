//! Floor 7: the daemon: turns the cluster at the pace of the real clock, against a real store.

pub mod instance;
pub mod view;
