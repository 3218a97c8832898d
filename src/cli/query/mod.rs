//! Commands that read what is stored: from a running instance, or else from its directory.
//!
//! `source` finds out which; `http` asks an instance; `print` and `table` write. No
//! command here makes a directory or writes to a store.

mod http;
pub(super) mod leases;
mod print;
pub(super) mod sizes;
mod source;
mod table;
pub(super) mod verify;
mod watch;
