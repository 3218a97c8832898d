//! How the values of a scenario file are written: durations, formats, names.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use crate::codec::Format;

/// Durations, as `humantime` writes them.
pub(super) mod duration {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        humantime::parse_duration(&text).map_err(|error| {
            D::Error::custom(format!(
                "`{text}` is not a duration ({error}): write for example \"2500ms\", \"10m\" or \
                 \"30d\""
            ))
        })
    }

    pub fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&humantime::format_duration(*value))
    }
}

/// The same where there may be none.
pub(super) mod optional_duration {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        duration::deserialize(from).map(Some)
    }

    pub fn serialize<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => duration::serialize(value, to),
            None => to.serialize_none(),
        }
    }
}

/// The name of a format.
pub(super) mod format {
    use super::*;

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Format, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }

    pub fn serialize<S: Serializer>(value: &Format, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.name())
    }
}

/// From serde's message about an unknown name, a hint at the nearest valid one.
pub(super) fn nearest_name(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let (true, Some(given)) = (unknown, quoted.next()) else {
        return String::new();
    };
    // The begin of a name is a better hint than a few changed letters.
    let nearest = quoted.min_by_key(|valid| {
        let distance = strsim::damerau_levenshtein(given, valid);
        (!valid.starts_with(given), distance)
    });
    nearest.map_or(String::new(), |valid| format!("\ndid you mean `{valid}`?"))
}
