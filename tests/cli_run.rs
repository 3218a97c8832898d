//! `leasehold run` as a process: ends by itself, goes on where it stopped, survives being killed.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use leasehold::daemon::instance::{Instance, store_path};
use leasehold::daemon::view::Status;
use leasehold::metastorage::contract::Metastorage;
use leasehold::metastorage::sled::SledStore;
use leasehold::placement::record::{BATCH, SizeRow, batch_of, size_range};

fn run(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["run", "--listen", "127.0.0.1:0", "--tables", "20", "--data"]);
    command.arg(data).args(arguments);
    command.stdin(Stdio::null());
    command
}

fn output(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let said = [&output.stderr[..], &output.stdout].concat();
    let text = String::from_utf8(said).unwrap();
    (output, text)
}

/// Waits until the process has left its note.
fn wait_for_note(data: &Path, child: &mut Child) -> Instance {
    for _ in 0..500 {
        if let Some(instance) = Instance::read(data)
            && instance.pid == child.id()
        {
            return instance;
        }
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        #[allow(clippy::disallowed_methods, reason = "waits for another process")]
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no note after ten seconds");
}

/// Waits until the process has stored a batch.
fn wait_for_batches(instance: &Instance) {
    let url = format!("{}/v1/status", instance.url);
    for _ in 0..500 {
        if let Ok(mut answer) = ureq::get(&url).call() {
            let status: Status = answer.body_mut().read_json().unwrap();
            if status.batches > 0 {
                return;
            }
        }
        #[allow(clippy::disallowed_methods, reason = "waits for another process")]
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no batch after ten seconds");
}

fn rows(data: &Path) -> Vec<SizeRow> {
    let store = SledStore::open_existing(store_path(data)).unwrap();
    let rows = store.range(&size_range(None)).unwrap();
    rows.iter()
        .map(|row| SizeRow::from_entry(row).unwrap())
        .collect()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn ends_after_the_time_given_and_goes_on_when_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (first, text) = output(run(&data, &["--speed", "max", "--for", "60s"]));
    assert!(first.status.success(), "{text}");
    assert!(text.contains("500 leases held"), "{text}");
    let before = rows(&data);
    let store = SledStore::open_existing(store_path(&data)).unwrap();
    let entry = store.get(BATCH, None).unwrap().unwrap();
    let leases: Vec<_> = batch_of(&entry).unwrap().batch.leases().collect();
    drop(store);

    let (second, text) = output(run(&data, &["--speed", "max", "--for", "60s"]));
    assert!(second.status.success(), "{text}");
    assert!(text.contains("going on"), "{text}");
    assert!(
        text.contains("0 expired"),
        "no lease is lost by a restart: {text}"
    );
    let after = rows(&data);
    assert_eq!(
        after[..before.len()],
        before,
        "sizes of the earlier run stay"
    );
    let gap = after[before.len()].time - before.last().unwrap().time;
    assert!(gap < 5_000, "cluster time goes on: {gap} ms");
    let store = SledStore::open_existing(store_path(&data)).unwrap();
    let entry = store.get(BATCH, None).unwrap().unwrap();
    for (old, new) in leases.iter().zip(batch_of(&entry).unwrap().batch.leases()) {
        assert_eq!((old.start, old.holder_id), (new.start, new.holder_id));
    }
}

#[test]
fn changed_tables_are_applied_and_another_cluster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let short = ["--speed", "max", "--for", "20s"];
    assert!(output(run(&data, &short)).0.status.success());
    for (arguments, what) in [
        (["--seed", "7"], "seed is 1"),
        (["--nodes", "4"], "nodes is 3"),
    ] {
        let (refused, text) = output(run(&data, &[&short[..], &arguments].concat()));
        assert_eq!(refused.status.code(), Some(1));
        assert!(text.contains(what), "{text}");
    }
    let mut fewer = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    fewer.args(["run", "--listen", "127.0.0.1:0", "--tables", "15"]);
    fewer
        .args(["--partitions", "30", "--data"])
        .arg(&data)
        .args(short);
    let (_, text) = output(fewer);
    assert!(text.contains("450 leases held"), "{text}");
}

#[test]
fn a_signal_ends_it_cleanly() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = run(folder.path(), &[])
            .stderr(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_note(folder.path(), &mut child);
        signal(&child, name);
        let ended = child.wait_with_output().unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{text}");
        assert!(text.contains("of cluster time"), "{text}");
        assert_eq!(
            Instance::read(folder.path()),
            None,
            "the note is taken away"
        );
    }
}

#[test]
fn two_at_once_the_second_says_who_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = run(folder.path(), &[])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let instance = wait_for_note(folder.path(), &mut first);
    let (second, text) = output(run(folder.path(), &["--for", "1s"]));
    assert_eq!(second.status.code(), Some(1));
    assert!(text.contains(&format!("process {}", first.id())), "{text}");
    assert!(text.contains(&instance.url), "{text}");
    signal(&first, "-TERM");
    assert!(first.wait().unwrap().success());
}

#[test]
fn killed_at_any_time_it_loses_nothing_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = Vec::new();
    for round in 0..8 {
        let mut child = run(folder.path(), &["--speed", "max"])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let instance = wait_for_note(folder.path(), &mut child);
        wait_for_batches(&instance);
        #[allow(clippy::disallowed_methods, reason = "lets another process get on")]
        std::thread::sleep(Duration::from_millis(37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = rows(folder.path());
        assert_eq!(now[..last.len()], last, "an earlier row is gone");
        assert!(now.len() > last.len(), "nothing was stored");
        last = now;
        let verify = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .arg("verify")
            .arg("--data")
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(
            verify.status.success(),
            "{}",
            String::from_utf8_lossy(&verify.stdout)
        );
    }
}

#[test]
fn wrong_use_is_told_with_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, hint) in [
        (&["--speed", "warp"][..], "not a speed"),
        (&["--format", "zip"], "not a format"),
        (&["--for", "soon"], "--for"),
        (&["--nodes", "0"], "nodes = 0"),
        (&["--replicas", "4"], "replicas = 4 is more than nodes = 3"),
        (&["stedy"], "did you mean `steady`?"),
        (&["missing.toml"], "can't read the scenario missing.toml"),
    ] {
        let (refused, text) = output(run(&folder.path().join("none"), arguments));
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(hint), "{arguments:?}: {text}");
    }
    assert!(!folder.path().join("none").exists(), "nothing was made");
    // What the file says has to be sound only together with the flags.
    let file = folder.path().join("zones.toml");
    let text = "[cluster]\ntables = 2\nzones = 3\n[store]\nformat = \"naive\"\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let arguments = |rest| {
        let short = ["--store", "memory", "--for", "5s", "--speed", "max"];
        [&[file][..], &short, rest].concat()
    };
    let none = folder.path().join("none");
    let (refused, text) = output(run(&none, &arguments(&[])));
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("zones.toml: zones = 3, but naive"), "{text}");
    let (done, text) = output(run(&none, &arguments(&["--format", "columnar"])));
    assert_eq!(done.status.code(), Some(0), "{text}");
}
