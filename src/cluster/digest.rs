//! What each event adds to the hash of the trace.

use crate::placement;
use crate::placement::io::{StoreReply, StoreRequest};
use crate::replica;

use super::event::Event;
use super::heap::TraceHash;
use super::scenario::Process;

impl Event {
    /// Adds the event to the hash of the trace.
    pub(super) fn digest(&self, hash: &mut TraceHash) {
        let mut words = |words: &[u64]| words.iter().for_each(|word| hash.word(*word));
        match self {
            Self::Driver {
                index,
                generation,
                input,
            } => {
                words(&[1, *index as u64, *generation]);
                digest_driver_input(input, hash);
            }
            Self::Tick { index, generation } => words(&[2, *index as u64, *generation]),
            Self::Request(call) => {
                words(&[3, call.driver as u64, call.generation, call.id]);
                if let StoreRequest::Write(write) = &call.request {
                    let common = write.batch.common_expiration().composite();
                    hash.word(write.chain.base());
                    hash.word(write.chain.step());
                    hash.word(common);
                    hash.word(write.batch.len() as u64);
                    hash.word(u64::from(write.cause.changed()));
                }
            }
            Self::Node { index, id, input } => {
                words(&[4, *index as u64, id.halves().0]);
                digest_node_input(input, hash);
            }
            Self::Watch { index, id, shown } => {
                let time = shown.update.time.composite();
                let (revision, needs) = (shown.update.revision, shown.needs as u64);
                words(&[5, *index as u64, id.halves().0, revision, time, needs]);
            }
            Self::Progress { index, id, time } => {
                words(&[6, *index as u64, id.halves().0, time.composite()]);
            }
            Self::SafeTime => words(&[7]),
            Self::Operation(index) => words(&[8, *index as u64]),
            Self::NodeUp(index) => words(&[9, *index as u64]),
            Self::Joined { index, id } => words(&[10, *index as u64, id.halves().0]),
            Self::Left { index, id } => words(&[11, *index as u64, id.halves().0]),
            Self::DriverUp(index) => words(&[12, *index as u64]),
            Self::NodeDown(index) => words(&[13, *index as u64]),
            Self::Served {
                incarnation,
                call,
                reply,
            } => {
                words(&[
                    14,
                    *incarnation,
                    call.driver as u64,
                    call.generation,
                    call.id,
                ]);
                digest_reply(reply, hash);
            }
            Self::Synced {
                incarnation,
                revision,
            } => words(&[15, *incarnation, *revision]),
            Self::Shown { incarnation, seen } => words(&[16, *incarnation, seen.revision]),
            Self::StoreUp => words(&[17]),
            Self::Resumed(process) => words(&[18, number(*process)]),
            Self::Expired => words(&[19]),
            Self::Moved(groups) => {
                words(&[20, groups.len() as u64]);
                groups.iter().for_each(|group| hash.word(group.packed()));
            }
            Self::Heal => words(&[21]),
            Self::DriverLeft { index, generation } => words(&[22, *index as u64, *generation]),
            Self::Upgraded { process, reads } => words(&[23, number(*process), *reads as u64]),
        }
    }
}

fn number(process: Process) -> u64 {
    match process {
        Process::Store => 0,
        Process::Driver(index) => 1 + 2 * index as u64,
        Process::Node(index) => 2 + 2 * index as u64,
    }
}

fn digest_reply(reply: &StoreReply, hash: &mut TraceHash) {
    let (kind, revision) = match reply {
        StoreReply::Won(revision) => (1, *revision),
        StoreReply::Written { revision, .. } => (8, *revision),
        StoreReply::Lost(stored) => (2, stored.revision),
        StoreReply::Read(stored) => (3, stored.revision),
        StoreReply::Unknown(_) => (4, 0),
        StoreReply::Unavailable(_) => (5, 0),
        StoreReply::Unreadable(_) => (6, 0),
        StoreReply::Unencodable(_) => (7, 0),
        StoreReply::TooNew { epoch, .. } => (9, *epoch),
    };
    hash.word(kind);
    hash.word(revision);
}

fn digest_driver_input(input: &placement::io::Input, hash: &mut TraceHash) {
    use placement::io::Input;
    let mut words = |words: &[u64]| words.iter().for_each(|word| hash.word(*word));
    match input {
        Input::Start => words(&[1]),
        Input::Tick => words(&[2]),
        Input::Topology(topology) => {
            words(&[3, topology.len() as u64, topology.all_read() as u64]);
            for node in topology.nodes() {
                hash.text(&node.name);
                hash.word(node.id.halves().0);
            }
        }
        Input::Assignments(changes) => {
            words(&[4, changes.len() as u64]);
            for (group, change) in changes {
                hash.word(group.packed());
                hash.word(u64::from(change.is_some()));
            }
        }
        Input::Reply(id, reply) => {
            words(&[5, *id]);
            digest_reply(reply, hash);
        }
        Input::Observed { epoch, beat } => words(&[6, epoch.unwrap_or(0), u64::from(*beat)]),
        Input::Answer(answer) => words(&[
            7,
            answer.group.packed(),
            answer.start.composite(),
            answer.node.halves().0,
            answer.sent.composite(),
        ]),
        Input::Stop(stop) => words(&[8, stop.group.packed(), stop.holder.halves().0]),
    }
}

fn digest_node_input(input: &replica::Input, hash: &mut TraceHash) {
    use replica::Input;
    let (kind, group, time) = match input {
        Input::Granted { offer, .. } => (1, offer.group.packed(), offer.start.composite()),
        Input::CaughtUp(group, start) => (2, group.packed(), start.composite()),
        Input::Applied(update) => (3, update.revision, update.time.composite()),
        Input::Resign(group, _) => (4, group.packed(), 0),
    };
    for word in [kind, group, time] {
        hash.word(word);
    }
}
