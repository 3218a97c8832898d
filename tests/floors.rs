//! The house rule: a module uses only lower floors and its own; floors 1 to 5 are pure.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules and their floors, the longest path first where one is within another.
const FLOORS: &[(&str, u8)] = &[
    ("metastorage::contract", 3),
    ("metastorage::mvcc", 3),
    ("metastorage", 6),
    ("model", 1),
    ("codec", 2),
    ("sketch", 2),
    ("exchange", 3),
    ("placement", 4),
    ("replica", 4),
    ("cluster", 5),
    ("audit", 5),
    ("sim", 6),
    ("daemon", 7),
    ("server", 8),
    ("cli", 9),
];

/// What floors 1 to 5 must not name, and why.
const IMPURE: &[(&str, &str)] = &[
    ("tokio", "async runtimes belong to the daemon"),
    ("async fn", "async runtimes belong to the daemon"),
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    (
        "std::thread",
        "threads make a trace depend on the scheduler",
    ),
    ("std::fs", "files belong to the stores and the top floors"),
    ("std::net", "sockets belong to the top floors"),
    ("rand::rng()", "a global random source"),
];

/// What floors 3 to 5 must not name either. The codec may look things up in them; who does more
/// than that would iterate one day.
const UNORDERED: &[(&str, &str)] = &[
    ("HashMap", "its order differs from run to run"),
    ("HashSet", "its order differs from run to run"),
];

fn floor_of(module: &str) -> Option<u8> {
    let within = |floor: &&(&str, u8)| {
        let rest = module.strip_prefix(floor.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    FLOORS.iter().find(within).map(|(_, floor)| *floor)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `src/codec/naive/mod.rs` → `codec::naive`.
fn module_of(path: &Path, src: &Path) -> String {
    let path = path.strip_prefix(src).unwrap().with_extension("");
    let mut parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    parts.join("::")
}

/// The code without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every module path that the code names from the crate's root, `super` resolved.
fn named(code: &str, module: &str) -> Vec<String> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (start, _) in code.match_indices(root) {
            let before = code[..start].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':' || c == '{');
            let path = code[start..].split(end).next().unwrap();
            let inner = code[start + path.len()..].split('}').next().unwrap();
            let (path, list) = match path.split_once('{') {
                Some((path, first)) => (path, format!("{first}{inner}")),
                None => (path, String::new()),
            };
            let members: Vec<_> = if list.is_empty() {
                vec![""]
            } else {
                list.split(',').map(str::trim).collect()
            };
            for member in members {
                found.push(resolve(&format!("{path}{member}"), module));
            }
        }
    }
    found
}

fn resolve(path: &str, module: &str) -> String {
    let mut here: Vec<&str> = module.split("::").collect();
    let mut rest = path;
    if let Some(absolute) = rest.strip_prefix("crate::") {
        return absolute.to_owned();
    }
    while let Some(up) = rest.strip_prefix("super::") {
        here.pop();
        rest = up;
    }
    here.push(rest);
    here.join("::")
}

fn violations(module: &str, text: &str) -> Vec<String> {
    let Some(floor) = floor_of(module) else {
        return vec![format!("{module} is on no floor: give it one in this test")];
    };
    let code = code(text);
    let mut found: Vec<String> = named(&code, module)
        .into_iter()
        .filter(|used| floor_of(used).is_some_and(|other| other > floor))
        .map(|used| format!("{module} (floor {floor}) uses {used}, which is above it"))
        .collect();
    // Another module on the same floor is a neighbour, not a ground to stand on.
    let top = |path: &str| path.split("::").next().unwrap().to_owned();
    found.extend(
        named(&code, module)
            .into_iter()
            .filter(|used| floor_of(used) == Some(floor) && top(used) != top(module))
            .map(|used| format!("{module} uses {used}, which is on the same floor")),
    );
    let pure = IMPURE.iter().filter(|_| floor <= 5);
    let ordered = UNORDERED.iter().filter(|_| floor <= 5 && floor != 2);
    for (word, why) in pure.chain(ordered) {
        if code.contains(word) {
            found.push(format!("{module} (floor {floor}) names {word}: {why}"));
        }
    }
    found
}

#[test]
fn no_arrow_goes_upwards_and_the_lower_floors_are_pure() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut found = Vec::new();
    for path in files {
        let module = module_of(&path, &src);
        // The map of the house, the entrance, what is run to build it, and the doors of a folder with two floors.
        let exempt = ["lib", "main", "build", "metastorage"].contains(&module.as_str());
        // Tests may bring a store along.
        if exempt || module.ends_with("::tests") {
            continue;
        }
        found.extend(violations(&module, &fs::read_to_string(&path).unwrap()));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_test_itself_notices() {
    for (module, text) in [
        ("model::batch", "use crate::codec::Format;"),
        ("codec::naive", "use super::super::placement::io::Now;"),
        ("placement::driver", "use crate::{codec, cluster::heap};"),
        ("placement::driver", "use crate::replica::Replica;"),
        ("cluster::world", "let t = std::time::Instant::now();"),
        ("metastorage::contract", "use super::sled::SledStore;"),
        ("attic", "fn nothing() {}"),
    ] {
        assert!(!violations(module, text).is_empty(), "{module}: {text}");
    }
    for (module, text) in [
        (
            "codec::naive",
            "use crate::model::batch::Row; use super::Format;",
        ),
        (
            "metastorage::sled::open",
            "use crate::metastorage::contract::Watch;",
        ),
        ("model::hlc", "// crate::cli is far above"),
    ] {
        assert!(violations(module, text).is_empty(), "{module}: {text}");
    }
}
