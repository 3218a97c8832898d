//! `leasehold leases`

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::audit::state::LeaseState;
use crate::cli::failure::Failure;
use crate::cli::output::count;
use crate::metastorage::contract::Metastorage;
use crate::metastorage::sled::SledStore;
use crate::model::batch::LeaseBatch;
use crate::model::ids::GroupId;
use crate::placement::record::{self, BEAT, ReadError, time_of};
use crate::server::answers::{self, LeaseEntry, OneLease};

use super::http::Client;
use super::print::{json, json_lines, printing, to_terminal, utc};
use super::source::{Source, SourceArgs, unreadable};
use super::table::{self, Side};
use super::watch;

/// Leases on a terminal.
const ON_TERMINAL: usize = 100;

/// Leases that an instance is asked for at once.
const PAGE: &str = "10000";

/// Show who holds which lease
///
/// Asks the instance that runs on the data directory or, if none does, reads the directory itself.
/// A lease is accepted, waiting for its holder's answer, denied (it will not be prolonged) or
/// expired, as of the last stored time. Ends with 1 if the group asked for has no lease.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    leasehold leases table/7/3\n  \
    leasehold leases table/7/3 --revision 1200\n  \
    leasehold leases --holder node1 --json\n  \
    leasehold leases --watch")]
pub(in crate::cli) struct Leases {
    /// One group only, such as table/7/3 or zone/1/0
    group: Option<GroupId>,
    #[command(flatten)]
    source: SourceArgs,
    /// Only what this node holds
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
    /// The lease as it was at a revision whose history is kept
    #[arg(long, value_name = "R", requires = "group", conflicts_with = "watch")]
    revision: Option<u64>,
    /// Follow elections and expiries, one line each, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Leases at a time.
#[derive(Debug, Serialize)]
struct Listing {
    revision: u64,
    time: u64,
    leases: Vec<LeaseEntry>,
}

impl Leases {
    pub(in crate::cli) fn run(self) -> Result<(), Failure> {
        let holder = self.holder.as_deref();
        if self.watch {
            let client = self.source.instance()?;
            return watch::follow(&client, self.group, holder, self.json);
        }
        let source = self.source.open()?;
        let Some(group) = self.group else {
            let listing = match &source {
                Source::Instance(client) => ask(client, holder)?,
                Source::Store(store) => Stored::read(store)?.listing(holder),
            };
            return printing(|out| match self.json {
                true => print_json(out, &listing),
                false => print_listing(out, &listing),
            });
        };
        let lease = match &source {
            Source::Instance(client) => self.ask_one(client, group)?,
            Source::Store(store) => read_one(store, group, self.revision)?,
        };
        if let Some(holder) = holder.filter(|name| **name != *lease.lease.holder_name) {
            return Err(Failure::Failed(format!(
                "{group} is not held by {holder}, but by {}",
                lease.lease.holder_name
            )));
        }
        printing(|out| match self.json {
            true => json(out, &lease),
            false => print_one(out, &lease),
        })
    }
}

impl Leases {
    fn ask_one(&self, client: &Client, group: GroupId) -> Result<OneLease, Failure> {
        let path = format!("/v1/leases/{group}");
        match self.revision.map(|revision| revision.to_string()) {
            None => client.get(&path, &[]),
            Some(revision) => client.get(&path, &[("revision", &revision)]),
        }
    }
}

/// The lease of one group, without reading the others where the format allows it.
fn read_one(store: &SledStore, group: GroupId, revision: Option<u64>) -> Result<OneLease, Failure> {
    let found = record::lookup(store, revision, group).map_err(unreadable)?;
    let none = || match revision {
        None => Failure::Failed(format!("{group} has no lease")),
        Some(revision) => Failure::Failed(format!("{group} had no lease at revision {revision}")),
    };
    let found = found.ok_or_else(none)?;
    let time = store_time(store, revision)?;
    let lease = found.lease.ok_or_else(none)?;
    Ok(OneLease::new(found.revision, time, lease))
}

/// The active driver's clock at its last write or beat, milliseconds.
fn store_time(store: &SledStore, revision: Option<u64>) -> Result<u64, Failure> {
    let beat = store.get(BEAT, revision).map_err(ReadError::from);
    let time = beat.and_then(|beat| Ok(beat.as_ref().map(time_of).transpose()?));
    let time = time.map_err(unreadable)?;
    Ok(time.map_or(0, |time| time.physical()))
}

/// What is stored.
struct Stored {
    revision: u64,
    time: u64,
    batch: LeaseBatch,
}

impl Stored {
    fn read(store: &SledStore) -> Result<Self, Failure> {
        let state = record::read(store, None).map_err(unreadable)?;
        let (revision, batch) = match state {
            Some(state) => (state.revision, state.chain.batch().clone()),
            None => (0, LeaseBatch::default()),
        };
        Ok(Self {
            revision,
            time: store_time(store, None)?,
            batch,
        })
    }

    fn listing(&self, holder: Option<&str>) -> Listing {
        let wanted = |name: &str| holder.is_none_or(|holder| *holder == *name);
        let rows = self.batch.rows().iter();
        let rows = rows.filter(|row| wanted(self.batch.dictionary().node(row.holder()).1));
        let leases = rows.map(|row| {
            let lease = self.batch.lease(row);
            LeaseEntry {
                state: LeaseState::at(&lease, self.time),
                lease,
            }
        });
        Listing {
            revision: self.revision,
            time: self.time,
            leases: leases.collect(),
        }
    }
}

/// All pages of an instance's answer.
fn ask(client: &Client, holder: Option<&str>) -> Result<Listing, Failure> {
    let mut listing = Listing {
        revision: 0,
        time: 0,
        leases: Vec::new(),
    };
    let mut after: Option<GroupId> = None;
    loop {
        let start = after.map(|group| group.to_string());
        let mut query = vec![("limit", PAGE)];
        query.extend(start.as_deref().map(|start| ("after", start)));
        query.extend(holder.map(|name| ("holder", name)));
        let page: answers::Leases = client.get("/v1/leases", &query)?;
        listing.revision = page.revision;
        listing.time = page.time;
        listing.leases.extend(page.leases);
        match page.next {
            Some(next) if Some(next) > after => after = Some(next),
            _ => return Ok(listing),
        }
    }
}

fn print_json(out: &mut impl Write, listing: &Listing) -> io::Result<()> {
    let Listing { revision, time, .. } = listing;
    write!(out, "{{\"revision\":{revision},\"time\":{time},\"leases\":")?;
    json_lines(out, &listing.leases)?;
    writeln!(out, "}}")
}

fn print_listing(out: &mut impl Write, listing: &Listing) -> io::Result<()> {
    let head = [
        ("group", Side::Left),
        ("holder", Side::Left),
        ("state", Side::Left),
        ("since (UTC)", Side::Left),
        ("until (UTC)", Side::Left),
        ("next", Side::Left),
    ];
    let most = if to_terminal() {
        ON_TERMINAL
    } else {
        usize::MAX
    };
    let cells = |entry: &LeaseEntry| {
        let lease = &entry.lease;
        [
            lease.group.to_string(),
            lease.holder_name.to_string(),
            entry.state.to_string(),
            utc(lease.start.physical()),
            utc(lease.expiration.physical()),
            match &lease.proposed_candidate {
                Some(name) => name.to_string(),
                None => String::new(),
            },
        ]
    };
    let rows: Vec<_> = listing.leases.iter().take(most).map(cells).collect();
    if !rows.is_empty() {
        table::write(out, head, &rows)?;
        writeln!(out)?;
    }
    let total = listing.leases.len();
    if total > rows.len() {
        writeln!(
            out,
            "{} more: GROUP or --holder picks some, and a pipe or --json gets all.",
            count((total - rows.len()) as u64)
        )?;
    }
    let in_state = |state| {
        let leases = listing.leases.iter();
        count(leases.filter(|entry| entry.state == state).count() as u64)
    };
    writeln!(
        out,
        "{} leases at {}, revision {}: {} accepted, {} waiting, {} denied, {} expired",
        count(total as u64),
        utc(listing.time),
        listing.revision,
        in_state(LeaseState::Accepted),
        in_state(LeaseState::Waiting),
        in_state(LeaseState::Denied),
        in_state(LeaseState::Expired),
    )
}

fn print_one(out: &mut impl Write, one: &OneLease) -> io::Result<()> {
    let lease = &one.lease;
    let next = lease.proposed_candidate.as_deref();
    let lines = [
        ("group", lease.group.to_string()),
        (
            "holder",
            format!("{} ({})", lease.holder_name, lease.holder_id),
        ),
        ("state", one.state.to_string()),
        ("since", format!("{} UTC", utc(lease.start.physical()))),
        ("until", format!("{} UTC", utc(lease.expiration.physical()))),
        ("start", format!("{} (fencing token)", lease.start)),
        ("next", next.unwrap_or("nobody proposed").to_owned()),
        (
            "as of",
            format!("{} UTC, revision {}", utc(one.time), one.revision),
        ),
    ];
    for (name, value) in lines {
        writeln!(out, "{name:<7} {value}")?;
    }
    Ok(())
}
