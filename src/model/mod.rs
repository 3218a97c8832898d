//! Floor 1: the values that everything else is about. Pure.
//!
//! Clock values ([`hlc`]), names ([`ids`]), leases one by one ([`lease`]) and all of a cluster
//! ([`batch`], over a [`dictionary`] of nodes), the nodes that are up and where replicas are
//! ([`topology`]) with what they can read ([`reads`]), what driver and nodes say to each other
//! ([`message`]), the protocol's settings ([`timings`]), and reproducible batches to measure with
//! ([`workload`]), which go on ([`renewals`]).

pub mod batch;
pub mod dictionary;
pub mod diff;
pub mod digest;
mod first_seen;
pub mod hlc;
pub mod ids;
pub mod lease;
pub mod message;
pub mod reads;
pub mod renewals;
pub mod timings;
pub mod topology;
pub mod workload;
