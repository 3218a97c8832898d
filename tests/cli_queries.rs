//! The commands that read what is stored: the binary, on directories and running instances.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "a server runs on a real thread and clock"
)]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "support/serving.rs"]
mod serving;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use leasehold::daemon::instance::{Instance, store_path};
use leasehold::daemon::view::LiveEvent;
use leasehold::metastorage::contract::Metastorage;
use leasehold::placement::record::{BATCH, SizeRow, size_range};
use serde_json::Value;
use serving::{Newest, Serving, view};
use tempfile::TempDir;

/// A cluster of two virtual minutes in a data directory.
fn stored() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (_, store) = cluster::run(120, &mut ());
    cluster::save(directory.path(), &store);
    directory
}

fn served() -> Serving {
    let mut newest = Newest::default();
    let (simulation, store) = cluster::run(120, &mut newest);
    Serving::start(view(&simulation, &store, newest))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// Runs a command that reads a directory.
fn on(data: &Path, arguments: &[&str]) -> Output {
    let data = data.to_str().unwrap();
    run(&[arguments, &["--data", data]].concat())
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert_eq!(error, "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// What a command that fails says, on standard error.
fn failure(output: &Output, code: i32) -> String {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    error
}

fn names(object: &Value) -> Vec<&str> {
    let names = object.as_object().unwrap().keys();
    names.map(String::as_str).collect()
}

#[test]
fn sizes_from_a_directory() {
    let data = stored();
    let data = data.path();
    let all = json(&on(data, &["sizes", "--json"]));
    assert_eq!(names(&all), ["rows", "summary"]);
    let rows = all["rows"].as_array().unwrap();
    assert!(rows.len() > 40);
    let fields = [
        "cause",
        "changed",
        "format",
        "leases",
        "naive_bytes",
        "revision",
        "stored_bytes",
        "time",
    ];
    assert_eq!(names(&rows[0]), fields);

    let last = json(&on(data, &["sizes", "--json", "--last", "2"]));
    assert_eq!(last["rows"].as_array().unwrap()[..], rows[rows.len() - 2..]);
    let minute = json(&on(data, &["sizes", "--json", "--since", "60s"]));
    let minute = &minute["summary"];
    let span = minute["last_time"].as_u64().unwrap() - minute["first_time"].as_u64().unwrap();
    assert!((57_000..=60_000).contains(&span), "{span}");

    let csv = text(&on(data, &["sizes", "--csv"]));
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), rows.len() + 1);
    assert!(lines[0].starts_with("revision,time,cause,leases"));
    assert!(lines[1].contains(",grant,"), "{}", lines[1]);

    let table = text(&on(data, &["sizes", "--last", "3"]));
    assert!(table.contains("2026-03-20 09:48:3"), "{table}");
    assert!(table.contains("times as much") && table.contains("a day"));
}

#[test]
fn leases_from_a_directory() {
    let data = stored();
    let data = data.path();
    let all = json(&on(data, &["leases", "--json"]));
    assert_eq!(names(&all), ["leases", "revision", "time"]);
    let leases = all["leases"].as_array().unwrap();
    assert_eq!(leases.len(), cluster::GROUPS);
    assert!(leases.iter().all(|entry| entry["state"] == "accepted"));
    let held = json(&on(data, &["leases", "--json", "--holder", "node1"]));
    let held = held["leases"].as_array().unwrap().len();
    assert!((1..cluster::GROUPS).contains(&held));

    let one = json(&on(data, &["leases", "table/7/3", "--json"]));
    assert_eq!(names(&one), ["lease", "revision", "state", "time", "valid"]);
    assert_eq!(one["valid"], true);
    let said = text(&on(data, &["leases", "table/7/3"]));
    assert!(said.contains("holder  node"), "{said}");
    let listed = text(&on(data, &["leases"]));
    assert!(
        listed.contains("52 leases at 2026-03-20 09:48:"),
        "{listed}"
    );

    let missing = failure(&on(data, &["leases", "table/99/0"]), 1);
    assert_eq!(missing, "error: table/99/0 has no lease\n");
    let malformed = failure(&on(data, &["leases", "table/99"]), 2);
    assert!(malformed.contains("is not a group"), "{malformed}");
    let beyond = failure(&on(data, &["leases", "table/99999999999/0"]), 2);
    let expected = "table or zone 99999999999 is outside";
    assert!(beyond.contains(expected), "{beyond}");
}

#[test]
fn a_query_never_makes_a_directory() {
    let parent = tempfile::tempdir().unwrap();
    for command in ["sizes", "leases", "verify"] {
        let nowhere = parent.path().join("nowhere");
        let said = failure(&on(&nowhere, &[command]), 1);
        assert!(said.contains("there is no directory"), "{said}");
        assert!(said.contains("leasehold run --data"), "{said}");
        assert!(!nowhere.exists());

        let empty = parent.path().join("empty");
        fs::create_dir_all(&empty).unwrap();
        let said = failure(&on(&empty, &[command]), 1);
        assert!(said.contains("nothing is stored in"), "{said}");
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    }
    // The default directory is in the present one.
    let output = command(&["sizes"])
        .current_dir(parent.path())
        .output()
        .unwrap();
    let said = failure(&output, 1);
    assert!(
        said.contains("there is no directory leasehold-data"),
        "{said}"
    );
    assert!(!parent.path().join("leasehold-data").exists());
}

#[test]
fn a_running_instance_is_asked_by_url() {
    let server = served();
    let ask = |arguments: &[&str]| run(&[arguments, &["--url", &server.url]].concat());
    let all = json(&ask(&["sizes", "--json"]));
    let direct = stored();
    let same = json(&on(direct.path(), &["sizes", "--json"]));
    assert_eq!(all, same, "over HTTP as from the directory");
    let minute = ["sizes", "--json", "--since", "1m"];
    assert_eq!(json(&ask(&minute)), json(&on(direct.path(), &minute)));

    let leases = json(&ask(&["leases", "--json", "--holder", "node3"]));
    assert!(!leases["leases"].as_array().unwrap().is_empty());
    let one = json(&ask(&["leases", "zone/1/0", "--json"]));
    assert_eq!(one["valid"], true);
    let missing = failure(&ask(&["leases", "zone/9/0"]), 1);
    assert_eq!(missing, "error: zone/9/0 has no lease\n");
}

#[test]
fn a_locked_directory_leads_to_its_instance() {
    let data = stored();
    let data = data.path();
    let store = cluster::open(data);
    let said = failure(&on(data, &["sizes"]), 1);
    assert!(
        said.contains("another process") && said.contains("--url"),
        "{said}"
    );

    let mut server = served();
    let note = Instance {
        pid: 4711,
        url: server.url.clone(),
    };
    note.write(data).unwrap();
    assert!(json(&on(data, &["sizes", "--json"]))["rows"].is_array());
    assert!(json(&on(data, &["leases", "--json"]))["leases"].is_array());
    let said = failure(&on(data, &["verify"]), 1);
    assert!(
        said.contains("process 4711") && said.contains("end it"),
        "{said}"
    );

    server.stop();
    let said = failure(&on(data, &["leases"]), 1);
    assert!(said.contains("in use by process 4711"), "{said}");
    assert!(said.contains("does not answer"), "{said}");
    // A note that was left behind does no harm.
    drop(store);
    assert!(json(&on(data, &["sizes", "--json"]))["rows"].is_array());
}

#[test]
fn stored_leases_come_out_as_lines() {
    let data = stored();
    let data = data.path();
    let all = json(&on(data, &["leases", "--json"]));
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let lines = text(&on(data, arguments));
        let lines = lines.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect()
    };
    let now = lines(&["decode"]);
    let expected = all["leases"].as_array().unwrap();
    assert_eq!(now.len(), expected.len());
    for (line, entry) in now.iter().zip(expected) {
        assert_eq!(line["group"], entry["lease"]["group"]);
        assert_eq!(line["start"], entry["lease"]["start"]);
    }
    let revision = all["revision"].as_u64().unwrap() - 10;
    let then = lines(&["decode", "--revision", &revision.to_string()]);
    assert_eq!(then.len(), now.len());
    assert_ne!(then, now, "renewed since");
    let none = failure(&on(data, &["decode", "--revision", "1"]), 1);
    let expected = "at or before revision 1";
    assert!(none.contains(expected), "{none}");
}

#[test]
fn wrong_use_is_told_apart_from_failure() {
    for arguments in [
        &["sizes", "--last", "0"][..],
        &["sizes", "--since", "soon"],
        &["sizes", "--json", "--csv"],
        &["sizes", "--last", "3", "--since", "1m"],
        &["sizes", "--url", "http://localhost:1", "--data", "x"],
        &["sizes", "--url", "localhost:1"],
        &["verify", "--url", "http://localhost:1"],
        &["leases", "--url"],
    ] {
        failure(&run(arguments), 2);
    }
    // Nothing listens on the port of a listener that is gone.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let said = failure(&run(&["sizes", "--url", &url]), 1);
    assert!(said.starts_with(&format!("error: {url}: ")), "{said}");
}

#[test]
fn help_has_an_example() {
    for command in ["sizes", "leases", "verify"] {
        let help = text(&run(&[command, "--help"]));
        assert!(
            help.contains(&format!("\n  leasehold {command} ")),
            "{help}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let data = stored();
    let data = data.path().to_str().unwrap();
    for arguments in [
        &["sizes", "--json", "--data", data][..],
        &["leases", "--data", data],
        &["verify", "--data", data],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(arguments).stdout(writer).output().unwrap();
        assert_eq!(failure(&output, 0), "");
    }
}

#[test]
fn watching_follows_elections_and_expiries() {
    let mut server = served();
    let mut child = command(&[
        "leases",
        "table/7/3",
        "--watch",
        "--json",
        "--url",
        &server.url,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let update = server.view.leases().unwrap();
    let leases: Vec<_> = update.batch.leases().collect();
    // Told again and again, as there is no telling when the child has begun to listen.
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let view = std::sync::Arc::clone(&server.view);
    let teller = std::thread::spawn(move || {
        while is_done.recv_timeout(Duration::from_millis(20)).is_err() {
            for lease in &leases {
                view.tell(|| LiveEvent::Expired {
                    revision: 9,
                    time: 1_774_000_000_000,
                    lease: lease.clone(),
                });
            }
        }
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(event["event"], "expired");
        assert_eq!(event["lease"]["group"]["object_id"], 7);
        assert_eq!(event["lease"]["group"]["partition_id"], 3);
    }
    done.send(()).unwrap();
    teller.join().unwrap();
    server.stop();
    drop(lines);
    let said = failure(&child.wait_with_output().unwrap(), 1);
    assert!(said.contains("the instance has ended"), "{said}");
}

#[test]
fn watching_needs_an_instance() {
    let data = stored();
    let said = failure(&on(data.path(), &["leases", "--watch"]), 1);
    assert!(said.contains("no instance runs on"), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_watching() {
    let server = served();
    let mut child = command(&["leases", "--watch", "--url", &server.url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lease = server.view.leases().unwrap().batch.leases().next().unwrap();
    let mut first = String::new();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let view = std::sync::Arc::clone(&server.view);
    let teller = std::thread::spawn(move || {
        while is_done.recv_timeout(Duration::from_millis(20)).is_err() {
            view.tell(|| LiveEvent::Elected {
                revision: 9,
                time: 1_774_000_000_000,
                lease: lease.clone(),
            });
        }
    });
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(
        first.starts_with("2026-03-20 09:46:40.000  elected  table/1/0  node"),
        "{first}"
    );
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    done.send(()).unwrap();
    teller.join().unwrap();
}

#[test]
fn verify_finds_nothing_in_a_good_store_and_changes_nothing() {
    let data = stored();
    let before = json(&on(data.path(), &["sizes", "--json"]));
    let report = json(&on(data.path(), &["verify", "--json"]));
    assert_eq!(report["damaged"], 0);
    let rows = before["rows"].as_array().unwrap().len();
    assert_eq!(report["batches"], rows);
    assert_eq!(report["size_rows"], rows);
    let said = text(&on(data.path(), &["verify"]));
    assert!(said.contains("all is well"), "{said}");
    assert_eq!(json(&on(data.path(), &["sizes", "--json"])), before);
}

/// Flips a bit in the middle of the rows whose keys contain a text; says how many there were.
fn corrupt(data: &Path, which: impl Fn(&[u8]) -> bool) -> usize {
    // What had it open may give its lock back a little late.
    drop(cluster::open(data));
    let db = (0..100).find_map(|_| {
        #[allow(clippy::disallowed_methods, reason = "waits for the lock")]
        std::thread::sleep(Duration::from_millis(20));
        let config = sled::Config::new().path(store_path(data));
        config.segment_size(512 << 10).open().ok()
    });
    let Some(db) = db else {
        panic!("no lock within two seconds")
    };
    let rows: Vec<_> = db.iter().map(Result::unwrap).collect();
    let mut damaged = 0;
    for (key, record) in rows {
        if which(&key) {
            let mut record = record.to_vec();
            let middle = record.len() / 2;
            record[middle] ^= 4;
            db.insert(key, record).unwrap();
            damaged += 1;
        }
    }
    db.flush().unwrap();
    damaged
}

fn contains(row: &[u8], part: &[u8]) -> bool {
    row.windows(part.len()).any(|window| window == part)
}

#[test]
fn verify_finds_flipped_bits() {
    let data = stored();
    let data = data.path();
    let rows: Vec<_> = {
        let rows = cluster::open(data).range(&size_range(None)).unwrap();
        let row = rows.iter().map(|row| SizeRow::from_entry(row).unwrap());
        row.collect()
    };
    let revisions: Vec<u64> = rows.iter().map(|row| row.revision).collect();
    let snapshot = rows.iter().skip(1).find(|row| !row.is_delta()).unwrap();
    let early = snapshot.revision.to_be_bytes();
    let batch = |row: &[u8]| contains(row, BATCH) && row.ends_with(&early);
    assert_eq!(corrupt(data, batch), 1);
    let late = revisions[20].to_be_bytes();
    let size = |row: &[u8]| contains(row, b"sizes/") && row.ends_with(&late);
    assert_eq!(corrupt(data, size), 1);

    let output = on(data, &["verify", "--json"]);
    assert!(failure(&output, 1).contains("2 things are wrong"));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let damage = report["damage"].as_array().unwrap();
    assert_eq!(damage.len(), 2, "{damage:?}");
    assert_eq!(damage[0]["revision"], snapshot.revision);
    assert_eq!(damage[0]["key"], "lease/batch");
    assert!(damage[0]["what"].as_str().unwrap().contains("checksum"));
    assert_eq!(damage[1]["revision"], revisions[20]);
    assert!(damage[1]["key"].as_str().unwrap().starts_with("sizes/"));
    assert_eq!(report["batches"], revisions.len() - 1);
    assert_eq!(report["size_rows"], revisions.len() - 1);

    let said = failure(&on(data, &["sizes"]), 1);
    assert!(
        said.contains("damaged") && said.contains("leasehold verify"),
        "{said}"
    );
    assert!(json(&on(data, &["leases", "--json"]))["leases"].is_array());
}

#[test]
fn verify_copes_with_rows_that_are_all_damaged() {
    let data = stored();
    assert!(corrupt(data.path(), |row| row.starts_with(b"k")) > 100);
    let output = on(data.path(), &["verify"]);
    failure(&output, 1);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("0 batches and 0 size rows read"), "{said}");
    let data = stored();
    assert!(corrupt(data.path(), |row| row.starts_with(b"m")) > 0);
    failure(&on(data.path(), &["verify", "--json"]), 1);
}
