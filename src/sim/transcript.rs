//! A readable transcript: one line for each event, in words.

use std::fmt::Write;

use crate::cluster::event::{Event, Notice, StoreCall};
use crate::cluster::scenario::Process;
use crate::cluster::world::Cluster;
use crate::metastorage::contract::Metastorage;
use crate::model::ids::GroupId;
use crate::model::message::Verdict;
use crate::placement;
use crate::placement::io::{BatchWrite, Form, StoreReply, StoreRequest};
use crate::placement::tracker::TrackerEvent;
use crate::replica;

use super::Observer;

/// Which events to write down.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only what concerns this group, and what concerns all.
    pub group: Option<GroupId>,
    /// Only what happens at this node, and what concerns all.
    pub node: Option<usize>,
    /// Also ticks, idle progress and what else happens all the time.
    pub routine: bool,
}

/// Writes down what happens.
pub struct Transcript<W> {
    filter: Filter,
    write: W,
}

/// What an event is about.
struct About {
    process: Option<Process>,
    /// The groups concerned; none: it concerns no group.
    groups: Groups,
    routine: bool,
    text: String,
}

enum Groups {
    None,
    One(GroupId),
    Some(Vec<GroupId>),
    All,
}

impl Groups {
    fn contain(&self, group: GroupId) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => *one == group,
            Self::Some(some) => some.contains(&group),
            Self::All => true,
        }
    }
}

impl<W: FnMut(&str)> Transcript<W> {
    /// Gives each line to `write`, without its end.
    pub fn new(filter: Filter, write: W) -> Self {
        Self { filter, write }
    }

    fn tell(&mut self, elapsed_us: u64, about: About) {
        let Filter {
            group,
            node,
            routine,
        } = self.filter;
        let everybody = about.process.is_none() && matches!(about.groups, Groups::All);
        let group_fits = group.is_none_or(|group| about.groups.contain(group));
        let at = |node: usize| about.process == Some(Process::Node(node));
        let node_fits = everybody || node.is_none_or(at);
        if (about.routine && !routine) || !group_fits || !node_fits {
            return;
        }
        let (seconds, micros) = (elapsed_us / 1_000_000, elapsed_us % 1_000_000);
        let process = about.process.map(|process| process.to_string());
        let process = process.unwrap_or_else(|| "cluster".to_owned());
        (self.write)(&format!(
            "{seconds:>6}.{micros:06} s  {process:<8}  {}",
            about.text
        ));
    }
}

impl<W: FnMut(&str)> Observer for Transcript<W> {
    fn before(&mut self, cluster: &Cluster, event: &Event) {
        if let Some(about) = about_event(event) {
            self.tell(cluster.now_at_next() - cluster.begin(), about);
        }
    }

    fn asked(&mut self, cluster: &Cluster, _store: &dyn Metastorage, call: &StoreCall) {
        let about = about_call(call);
        self.tell(cluster.now() - cluster.begin(), about);
    }

    fn answered(&mut self, cluster: &Cluster, _store: &dyn Metastorage, reply: &StoreReply) {
        let (groups, routine) = match reply {
            StoreReply::Written { .. } | StoreReply::Lost(_) => (Groups::All, false),
            StoreReply::Won(_) | StoreReply::Read(_) => (Groups::None, true),
            _ => (Groups::All, false),
        };
        let about = About {
            process: Some(Process::Store),
            groups,
            routine,
            text: format!("it has {}", in_words(reply)),
        };
        self.tell(cluster.now() - cluster.begin(), about);
    }

    fn notice(&mut self, cluster: &Cluster, notice: &Notice) {
        for about in about_notice(notice) {
            self.tell(cluster.now() - cluster.begin(), about);
        }
    }
}

fn about(process: Option<Process>, groups: Groups, text: impl Into<String>) -> Option<About> {
    Some(About {
        process,
        groups,
        routine: false,
        text: text.into(),
    })
}

fn routine(process: Process, text: impl Into<String>) -> Option<About> {
    Some(About {
        process: Some(process),
        groups: Groups::None,
        routine: true,
        text: text.into(),
    })
}

fn about_event(event: &Event) -> Option<About> {
    let node = |index: &usize| Some(Process::Node(*index));
    match event {
        Event::Driver { index, input, .. } => about_driver(*index, input),
        Event::Tick { index, .. } => routine(Process::Driver(*index), "tick"),
        Event::SafeTime => routine(Process::Store, "tells how far it is"),
        Event::Synced { revision, .. } => {
            routine(Process::Store, format!("has synced revision {revision}"))
        }
        Event::Shown { seen, .. } => {
            let process = Some(Process::Store);
            let text = format!("shows revision {} to watchers", seen.revision);
            match &seen.update {
                Some(_) => about(process, Groups::All, text),
                None => routine(Process::Store, text),
            }
        }
        Event::StoreUp => about(Some(Process::Store), Groups::All, "is back"),
        Event::Node { index, input, .. } => match input {
            replica::Input::Granted { offer, leader } => {
                let force = if offer.force {
                    ", which it must accept"
                } else {
                    ""
                };
                let leader = leader.as_deref().unwrap_or("nobody");
                let text = format!(
                    "is offered {} from {}{force}; {leader} leads the group",
                    offer.group, offer.start
                );
                about(node(index), Groups::One(offer.group), text)
            }
            replica::Input::CaughtUp(group, start) => {
                let text = format!("goes on with the offer of {group} from {start}");
                about(node(index), Groups::One(*group), text)
            }
            replica::Input::Applied(_) => None,
            replica::Input::Resign(group, _) => about(
                node(index),
                Groups::One(*group),
                format!("is to give up {group}"),
            ),
        },
        Event::Watch { index, shown, .. } => {
            let update = &shown.update;
            let changed: Vec<_> = (update.changes.iter())
                .filter_map(|change| change.new.as_ref().or(change.old.as_ref()))
                .map(|lease| lease.group)
                .collect();
            let text = format!(
                "sees revision {}: {} leases, {} changed, the others until {}",
                update.revision,
                update.batch.len(),
                changed.len(),
                update.batch.common_expiration()
            );
            // That a lease is prolonged concerns its group too.
            about(node(index), Groups::All, text)
        }
        Event::Progress { index, time, .. } => routine(
            Process::Node(*index),
            format!("hears that it has seen everything up to {time}"),
        ),
        Event::Joined { index, id } => about(
            None,
            Groups::All,
            format!("node{} is seen up as {id}", index + 1),
        ),
        Event::Left { index, .. } => {
            about(None, Groups::All, format!("node{} is seen down", index + 1))
        }
        Event::Moved(groups) => about(
            None,
            Groups::Some(groups.clone()),
            format!("{} groups have moved", groups.len()),
        ),
        Event::Upgraded { process, reads } => about(
            Some(*process),
            Groups::All,
            format!("stops, for a release that reads {reads}"),
        ),
        Event::Request(_)
        | Event::DriverLeft { .. }
        | Event::Served { .. }
        | Event::Operation(_)
        | Event::NodeUp(_)
        | Event::NodeDown(_)
        | Event::DriverUp(_)
        | Event::Resumed(_)
        | Event::Expired
        | Event::Heal => None,
    }
}

fn about_driver(index: usize, input: &placement::io::Input) -> Option<About> {
    use placement::io::Input;
    let driver = Process::Driver(index);
    match input {
        Input::Start => about(Some(driver), Groups::All, "begins"),
        Input::Tick => routine(driver, "tick"),
        Input::Topology(topology) => {
            let mut text = "is told who is up:".to_owned();
            for node in topology.nodes() {
                let _ = write!(text, " {}", node.name);
            }
            about(Some(driver), Groups::All, text)
        }
        Input::Assignments(changes) => {
            let groups = changes.iter().map(|(group, _)| *group).collect();
            let text = format!("is told of {} assignments", changes.len());
            about(Some(driver), Groups::Some(groups), text)
        }
        Input::Reply(_, reply) => {
            let routine = matches!(reply, StoreReply::Unknown(_) | StoreReply::Won(_));
            Some(About {
                process: Some(driver),
                groups: Groups::All,
                routine,
                text: format!("hears from the store that it has {}", in_words(reply)),
            })
        }
        Input::Observed { epoch, .. } => {
            let epoch = epoch.filter(|epoch| *epoch > 0);
            let new = |epoch| format!("sees the new epoch of revision {epoch}");
            match epoch {
                Some(epoch) => about(Some(driver), Groups::All, new(epoch)),
                None => routine(driver, "sees a beat"),
            }
        }
        Input::Answer(answer) => {
            let verdict = match &answer.verdict {
                Verdict::Accepted => "accepts".to_owned(),
                Verdict::Redirect(leader) => format!("names {leader} for"),
            };
            let text = format!(
                "hears that {} {verdict} {} from {}",
                answer.node, answer.group, answer.start
            );
            about(Some(driver), Groups::One(answer.group), text)
        }
        Input::Stop(stop) => {
            let text = format!("hears that {} gives up {}", stop.holder, stop.group);
            about(Some(driver), Groups::One(stop.group), text)
        }
    }
}

fn about_call(call: &StoreCall) -> About {
    let driver = call.driver + 1;
    let (groups, text) = match &call.request {
        StoreRequest::Read => (Groups::All, format!("is read by driver{driver}")),
        StoreRequest::TakeEpoch { known, .. } => (
            Groups::All,
            format!("is asked by driver{driver} for the epoch after that of revision {known}"),
        ),
        StoreRequest::Beat { .. } => (Groups::None, format!("gets a beat of driver{driver}")),
        StoreRequest::Write(write) => (Groups::All, about_write(driver, write)),
        StoreRequest::Compact(revision) => (
            Groups::All,
            format!("is asked by driver{driver} to forget history up to {revision}"),
        ),
        StoreRequest::PruneSizes { .. } => (
            Groups::None,
            format!("is asked by driver{driver} to prune sizes"),
        ),
    };
    About {
        process: Some(Process::Store),
        routine: matches!(groups, Groups::None),
        groups,
        text,
    }
}

fn about_write(driver: usize, write: &BatchWrite) -> String {
    let form = match write.form {
        Form::Full => "batch",
        Form::Snapshot => "snapshot",
        Form::Delta => "delta",
    };
    let (base, step) = (write.chain.base(), write.chain.step());
    format!(
        "gets a {form} of driver{driver} after snapshot {base} with {step} deltas ({}): {} leases, \
         {} touched, the others until {}",
        write.cause,
        write.batch.len(),
        write.changed.len(),
        write.batch.common_expiration()
    )
}

fn in_words(reply: &StoreReply) -> String {
    match reply {
        StoreReply::Won(revision) => format!("done it at revision {revision}"),
        StoreReply::Written { revision, .. } => format!("stored revision {revision}"),
        StoreReply::Lost(stored) => format!("refused: revision {} is there", stored.revision),
        StoreReply::Read(stored) => format!("revision {}", stored.revision),
        StoreReply::Unknown(reason) => format!("perhaps done it: {reason}"),
        StoreReply::Unavailable(reason) => format!("not done it: {reason}"),
        StoreReply::Unreadable(reason) => format!("something unreadable: {reason}"),
        StoreReply::TooNew { needs, .. } => format!("something that takes {needs} to read"),
        StoreReply::Unencodable(reason) => format!("not done it: {reason}"),
    }
}

fn about_notice(notice: &Notice) -> Vec<About> {
    let all = |process, text: String| about(process, Groups::All, text).into_iter().collect();
    match notice {
        Notice::Driver(index, said) => {
            use placement::io::Notice as Said;
            let text = match said {
                Said::Active { epoch } => format!("is active in the epoch of revision {epoch}"),
                Said::SteppedDown => "stands by".to_owned(),
                Said::WriteLost => "has lost to another write".to_owned(),
                Said::WriteUnknown(_) => "does not know whether it has written".to_owned(),
                Said::WriteFailed(reason) => format!("could not write: {reason}"),
                Said::ClockTooFarAhead(reason) => format!("drops a message: {reason}"),
                Said::TooNew(needs) => format!("waits: to read what is stored takes {needs}"),
                Said::Halted(reason) => format!("halts: {reason}"),
                Said::Stored { .. } | Said::Redirected(_) => return Vec::new(),
            };
            all(Some(Process::Driver(*index)), text)
        }
        Notice::NodeUp(node) => all(None, format!("{} starts as {}", node.name, node.id)),
        Notice::NodeDown(name) => all(None, format!("{name} crashes")),
        Notice::DriverUp(index) => all(None, format!("driver{} starts", index + 1)),
        Notice::DriverDown(index) => all(None, format!("driver{} crashes", index + 1)),
        Notice::Done(action) => all(None, format!("fault: {action}")),
        Notice::Healed => all(None, "all faults end".to_owned()),
        Notice::ReadAgain(process) => all(
            Some(*process),
            "was behind a compaction and reads again".to_owned(),
        ),
        Notice::MessageLost(from, to) => {
            let text = format!("a message to {to} is lost");
            let lost = About {
                process: Some(*from),
                groups: Groups::None,
                routine: true,
                text,
            };
            vec![lost]
        }
        Notice::Tracked(index, _, events) => events
            .iter()
            .map(|event| {
                let lease = event.lease();
                let what = match event {
                    TrackerEvent::Expired { .. } => "EXPIRED",
                    TrackerEvent::Elected { .. } => "ELECTED",
                };
                About {
                    process: Some(Process::Node(*index)),
                    groups: Groups::One(lease.group),
                    routine: false,
                    text: format!(
                        "{what} {} of {} from {}",
                        lease.group, lease.holder_name, lease.start
                    ),
                }
            })
            .collect(),
        Notice::CannotRead(index, revision) => all(
            Some(Process::Node(*index)),
            format!("can't read revision {revision}"),
        ),
        Notice::Answered(index, answer) => {
            let verdict = match &answer.verdict {
                Verdict::Accepted => "accepts".to_owned(),
                Verdict::Redirect(leader) => format!("names {leader} for"),
            };
            let text = format!("{verdict} {} from {}", answer.group, answer.start);
            about(Some(Process::Node(*index)), Groups::One(answer.group), text)
                .into_iter()
                .collect()
        }
        Notice::Created(groups) => all(None, format!("{groups} groups are created")),
        Notice::Dropped(groups) => all(None, format!("{groups} groups are dropped")),
        Notice::Stopped(stopped) => {
            let not = if *stopped { "" } else { "not " };
            let text = format!("a lease is {not}going to end as its holder asked");
            vec![About {
                process: None,
                groups: Groups::None,
                routine: false,
                text,
            }]
        }
    }
}
