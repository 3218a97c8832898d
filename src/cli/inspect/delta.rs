//! A delta frame, change by change.

use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::output::{count, table};
use crate::codec::delta::{Delta, DeltaLease, OwnExpiration};
use crate::model::dictionary::Dictionary;
use crate::model::ids::GroupId;
use crate::placement::record::State;

/// Changes in the text; JSON has all.
const LISTED: usize = 100;

/// A frame, and the state that it was made for if that is known.
pub(super) struct Report {
    delta: Delta,
    bytes: usize,
    changes: Vec<Change>,
}

/// One change.
struct Change {
    what: &'static str,
    /// Place in the state before; an added lease has none.
    position: Option<u32>,
    /// The group, where the frame or the state tells it.
    group: Option<GroupId>,
    /// What the frame says of a lease that is replaced or added.
    lease: Option<DeltaLease>,
    holder: Option<String>,
    candidate: Option<String>,
}

impl Report {
    /// Reads a frame; with the state before it, positions and indexes get names, and it is checked
    /// that it applies.
    pub(super) fn of(name: &str, bytes: &[u8], before: Option<&State>) -> Result<Self, Failure> {
        let delta = Delta::read(bytes).map_err(|error| Failure::about(name, error))?;
        let after = match before {
            None => None,
            Some(state) => {
                let applied = state.chain.apply(bytes);
                Some(applied.map_err(|error| Failure::about(name, error))?.0)
            }
        };
        let names = Names {
            before,
            dictionary: after.as_ref().map(|chain| chain.batch().dictionary()),
        };
        let removed = (delta.removed.iter()).map(|at| Change {
            what: "removed",
            position: Some(*at),
            group: names.group(*at),
            lease: None,
            holder: None,
            candidate: None,
        });
        let replaced = (delta.replaced.iter())
            .map(|(at, lease)| names.change("replaced", Some(*at), names.group(*at), *lease));
        let added = (delta.added.iter())
            .map(|(group, lease)| names.change("added", None, Some(*group), *lease));
        let changes = removed.chain(replaced).chain(added).collect();
        Ok(Self {
            bytes: bytes.len(),
            changes,
            delta,
        })
    }

    pub(super) fn json(&self) -> Value {
        let Self { delta, .. } = self;
        let changes: Vec<_> = self.changes.iter().map(Change::json).collect();
        let nodes: Vec<_> = (delta.new_nodes.iter())
            .map(|node| json!({"id": node.id, "name_index": node.name}))
            .collect();
        json!({
            "format": "delta",
            "version": 1,
            "bytes": self.bytes,
            "base": delta.base,
            "step": delta.step,
            "common_change_ms": delta.common_change,
            "common_logical": delta.common_logical,
            "digest": delta.digest.to_string(),
            "new_names": delta.new_names,
            "new_nodes": nodes,
            "removed": delta.removed.len(),
            "replaced": delta.replaced.len(),
            "added": delta.added.len(),
            "changes": changes,
        })
    }

    pub(super) fn text(&self) -> String {
        let Self { delta, .. } = self;
        let number = |number: usize| count(number as u64);
        let logical = match delta.common_logical {
            0 => String::new(),
            logical => format!(", logical {logical}"),
        };
        let mut facts = vec![
            ("bytes", number(self.bytes)),
            ("snapshot's revision", delta.base.to_string()),
            ("number since the snapshot", delta.step.to_string()),
            (
                "common expiration moves by",
                format!("{} ms{logical}", delta.common_change),
            ),
            ("digest afterwards", delta.digest.to_string()),
            ("removed", number(delta.removed.len())),
            ("replaced", number(delta.replaced.len())),
            ("added", number(delta.added.len())),
        ];
        facts.extend(
            delta
                .new_names
                .iter()
                .map(|name| ("new name", name.to_string())),
        );
        facts.extend(
            delta
                .new_nodes
                .iter()
                .map(|node| ("new node", node.id.to_string())),
        );
        let facts = facts
            .into_iter()
            .map(|(fact, value)| vec![fact.to_owned(), value]);
        let mut text = format!("delta (version 1)\n\n{}", table(&["", ""], facts));
        if self.changes.is_empty() {
            text.push_str("\nNothing but the common expiration changes.\n");
            return text;
        }
        let rows = self.changes.iter().take(LISTED).map(Change::row);
        let head = [
            "change",
            "row",
            "group",
            "holder",
            "start",
            "expiration",
            "flags",
        ];
        text.push_str(&format!("\n{}", table(&head, rows)));
        let more = self.changes.len().saturating_sub(LISTED);
        if more > 0 {
            text.push_str(&format!("{} more: --json has all\n", number(more)));
        }
        if self.changes.iter().any(|change| change.lease.is_some()) {
            text.push_str(
                "\nTimes are relative to the common expiration afterwards (exp) or the start.\n",
            );
        }
        text
    }
}

/// What positions and indexes stand for.
struct Names<'a> {
    before: Option<&'a State>,
    dictionary: Option<&'a Dictionary>,
}

impl Names<'_> {
    fn group(&self, position: u32) -> Option<GroupId> {
        let rows = self.before?.chain.batch().rows();
        rows.get(position as usize).map(|row| row.group())
    }

    fn change(
        &self,
        what: &'static str,
        position: Option<u32>,
        group: Option<GroupId>,
        lease: DeltaLease,
    ) -> Change {
        let name = |index: u32| match self.dictionary {
            Some(dictionary) => dictionary
                .names()
                .get(index as usize)
                .map(ToString::to_string),
            None => Some(format!("name {index}")),
        };
        let holder = |index: u32| match self.dictionary {
            Some(dictionary) => {
                let node = dictionary.nodes().get(index as usize)?;
                name(node.name)
            }
            None => Some(format!("node {index}")),
        };
        Change {
            what,
            position,
            group,
            holder: lease.grant.and_then(|grant| holder(grant.holder)),
            candidate: lease.candidate.and_then(name),
            lease: Some(lease),
        }
    }
}

impl Change {
    fn row(&self) -> Vec<String> {
        let group = self.group.map(|group| group.to_string());
        let mut row = vec![
            self.what.to_owned(),
            self.position.map_or(String::new(), |at| at.to_string()),
            group.unwrap_or_else(|| "?".to_owned()),
        ];
        let Some(lease) = &self.lease else {
            return row;
        };
        let same = || "as before".to_owned();
        row.push(self.holder.clone().unwrap_or_else(same));
        row.push(match lease.grant {
            None => same(),
            Some(grant) => relative("exp", grant.start_offset, grant.start_logical),
        });
        row.push(match lease.expiration {
            OwnExpiration::Common => "exp".to_owned(),
            OwnExpiration::AfterStart(after) => relative("start", after, 0),
            OwnExpiration::At { offset, logical } => relative("exp", offset, logical),
        });
        let mut flags = vec![
            if lease.accepted {
                "accepted"
            } else {
                "waiting"
            }
            .to_owned(),
        ];
        if !lease.prolongable {
            flags.push("denied".to_owned());
        }
        flags.extend(self.candidate.as_ref().map(|name| format!("next {name}")));
        row.push(flags.join(", "));
        row
    }

    fn json(&self) -> Value {
        let mut value = json!({"change": self.what});
        if let Some(position) = self.position {
            value["position"] = position.into();
        }
        if let Some(group) = self.group {
            value["group"] = group.to_string().into();
        }
        let Some(lease) = &self.lease else {
            return value;
        };
        value["accepted"] = lease.accepted.into();
        value["prolongable"] = lease.prolongable.into();
        if let Some(grant) = lease.grant {
            value["holder"] = json!({"index": grant.holder, "name": self.holder});
            value["start"] = json!({
                "offset_ms": grant.start_offset,
                "logical": grant.start_logical,
            });
        }
        value["expiration"] = match lease.expiration {
            OwnExpiration::Common => json!("common"),
            OwnExpiration::AfterStart(after) => json!({"after_start_ms": after}),
            OwnExpiration::At { offset, logical } => {
                json!({"offset_ms": offset, "logical": logical})
            }
        };
        if let Some(candidate) = lease.candidate {
            value["candidate"] = json!({"index": candidate, "name": self.candidate});
        }
        value
    }
}

/// A time relative to another: `exp - 4983 ms`.
fn relative(to: &str, offset: i64, logical: u16) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let logical = match logical {
        0 => String::new(),
        logical => format!(" .{logical}"),
    };
    format!("{to} {sign} {} ms{logical}", offset.unsigned_abs())
}
