//! The scenarios that come with the program, and those in files.

use std::path::Path;

use crate::cluster::scenario::Scenario;

use super::failure::Failure;

/// Name and text of the scenarios that come with the program.
const BUILT_IN: [(&str, &str); 5] = [
    ("steady", include_str!("../../sims/steady.toml")),
    (
        "rolling-restart",
        include_str!("../../sims/rolling-restart.toml"),
    ),
    ("failover", include_str!("../../sims/failover.toml")),
    ("swarm", include_str!("../../sims/swarm.toml")),
    ("table-churn", include_str!("../../sims/table-churn.toml")),
];

/// The scenario of a name or of a file, to be validated once the command line had its say.
pub(super) fn load(name: &str) -> Result<Scenario, Failure> {
    let known = BUILT_IN.iter().find(|(known, _)| *known == name);
    let is_path = name.contains(['/', '\\', '.']) || Path::new(name).exists();
    let text = match known {
        Some((_, text)) => (*text).to_owned(),
        None if is_path => std::fs::read_to_string(name)
            .map_err(|error| Failure::Usage(format!("can't read the scenario {name}: {error}")))?,
        None => return Err(unknown(name)),
    };
    Scenario::read(&text).map_err(|error| Failure::Usage(format!("scenario {name}: {error}")))
}

fn unknown(name: &str) -> Failure {
    let names = BUILT_IN.map(|(name, _)| name);
    let nearest = names
        .into_iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, name));
    Failure::Usage(format!(
        "there is no scenario `{name}`: did you mean `{}`? The built-in ones are {}; a file is \
         given by its path",
        nearest.unwrap_or_default(),
        names.join(", ")
    ))
}
