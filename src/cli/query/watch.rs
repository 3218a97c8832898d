//! `leasehold leases --watch`: an instance's events as lines.

use std::io::{BufRead, IsTerminal, Write};

use serde::Deserialize;

use crate::cli::failure::{Failure, warn};
use crate::model::ids::GroupId;
use crate::model::lease::Lease;
use crate::server::answers::Lagged;

use super::http::Client;
use super::print::{printing, utc};

/// An election or an expiry.
#[derive(Debug, Deserialize)]
struct Turn {
    event: String,
    revision: u64,
    time: u64,
    lease: Lease,
}

/// Prints elections and expiries, one line each, until interrupted or the instance ends.
pub(super) fn follow(
    client: &Client,
    group: Option<GroupId>,
    holder: Option<&str>,
    json: bool,
) -> Result<(), Failure> {
    end_on_interrupt()?;
    let failed = |why: &dyn std::fmt::Display| Failure::about(client.url(), why);
    let mut lines = client.stream("/v1/events")?;
    if std::io::stderr().is_terminal() {
        let _ = writeln!(std::io::stderr(), "following {}, Ctrl-C ends", client.url());
    }
    while let Some(event) = Event::read(&mut lines).map_err(|error| failed(&error))? {
        match &*event.name {
            "elected" | "expired" => {}
            "lagged" => {
                let lagged: Lagged =
                    serde_json::from_str(&event.data).map_err(|error| failed(&error))?;
                warn(format!("too slow: {} events were lost", lagged.lost));
                continue;
            }
            _ => continue,
        }
        let turn: Turn = serde_json::from_str(&event.data).map_err(|error| failed(&error))?;
        let lease = &turn.lease;
        if group.is_some_and(|group| group != lease.group)
            || holder.is_some_and(|name| *name != *lease.holder_name)
        {
            continue;
        }
        printing(|out| {
            if json {
                return writeln!(out, "{}", event.data);
            }
            let (time, name) = (utc(turn.time), &turn.event);
            let Lease {
                group, holder_name, ..
            } = lease;
            writeln!(
                out,
                "{time}  {name}  {group}  {holder_name}  since {}  revision {}",
                utc(lease.start.physical()),
                turn.revision
            )
        })?;
    }
    Err(failed(&"the instance has ended"))
}

/// One server-sent event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    name: String,
    data: String,
}

impl Event {
    /// The next one; none at the end of the stream.
    fn read(lines: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut event = Self::default();
        let mut line = String::new();
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let text = line.trim_end_matches(['\r', '\n']);
            if text.is_empty() {
                if event != Self::default() {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "data" if event.data.is_empty() => value.clone_into(&mut event.data),
                "data" => {
                    event.data.push('\n');
                    event.data.push_str(value);
                }
                // Ids, and comments that keep the connection alive.
                _ => {}
            }
        }
    }
}

/// Lets an interrupt end the process as something that was wanted. Each line is written at once,
/// so that none is cut.
#[allow(
    clippy::disallowed_methods,
    reason = "the main thread waits for the instance: only another one can wait for the interrupt"
)]
fn end_on_interrupt() -> Result<(), Failure> {
    let cannot = |error| Failure::about("cannot wait for interrupts", error);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().build().map_err(cannot)?;
    std::thread::spawn(move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            std::process::exit(0);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_among_comments() {
        let text =
            ":\n\n: alive\nid: 1\nevent: elected\ndata: {\"a\":\ndata:1}\n\nevent: x\ndata: y";
        let mut lines = text.as_bytes();
        let event = Event::read(&mut lines).unwrap().unwrap();
        assert_eq!((&*event.name, &*event.data), ("elected", "{\"a\":\n1}"));
        assert_eq!(Event::read(&mut lines).unwrap(), None, "cut off");
    }
}
