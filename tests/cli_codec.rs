//! The commands for stored batches, run as a user runs them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic, and this one starts threads"
)]

mod support;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use leasehold::codec::{self, Format};
use leasehold::model::lease::Lease;
use leasehold::model::workload::Workload;
use serde_json::Value;
use support::{LOSSY, malformed, sorted, vectors};

fn leasehold(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = leasehold(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that refuses its arguments does not read its input.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

fn sound(output: Output) -> Vec<u8> {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    output.stdout
}

/// Exit code and what was said.
fn refused(output: Output) -> (i32, String) {
    assert!(output.stdout.is_empty());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains("panicked"), "{error}");
    (output.status.code().unwrap(), error)
}

fn lines(leases: &[Lease]) -> Vec<u8> {
    let lines = leases
        .iter()
        .map(|lease| serde_json::to_string(lease).unwrap() + "\n");
    lines.collect::<String>().into_bytes()
}

#[test]
fn vectors_go_both_ways() {
    for vector in vectors() {
        for format in Format::ALL {
            let compact = format != Format::Naive;
            if compact && (vector.is_tie() || vector.name == LOSSY) {
                continue;
            }
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            let text = lines(&vector.leases);
            let written = sound(run(&["encode", "--format", format.name()], &text));
            assert_eq!(written, bytes, "{} in {format}", vector.name);
            let expected = if compact {
                lines(&sorted(vector.leases.clone()))
            } else {
                text
            };
            let read = sound(run(&["decode"], &bytes));
            assert_eq!(read, expected, "{} in {format}", vector.name);
        }
    }
}

#[test]
fn a_stored_record_is_read_like_its_payload() {
    let leases = vectors()[4].leases.clone();
    let arguments = ["encode", "--record", "--format", "compact-v1-tables-only"];
    let mut record = sound(run(&arguments, &lines(&leases)));
    assert_eq!(sound(run(&["decode"], &record)), lines(&leases));
    let inspected: Value =
        serde_json::from_slice(&sound(run(&["inspect", "-", "--json"], &record))).unwrap();
    assert_eq!(inspected["stored_record"], true);
    assert_eq!(sum_of_parts(&inspected), record.len() as u64);
    let last = record.len() - 1;
    record[last] ^= 1;
    let (code, error) = refused(run(&["decode"], &record));
    assert!(code == 1 && error.contains("checksum"), "{error}");
}

fn sum_of_parts(inspected: &Value) -> u64 {
    let parts = inspected["parts"].as_array().unwrap();
    parts
        .iter()
        .map(|part| part["bytes"].as_u64().unwrap())
        .sum()
}

#[test]
fn inspect_accounts_for_every_byte() {
    for vector in vectors() {
        for format in Format::ALL {
            let Some(bytes) = vector.bytes(format) else {
                continue;
            };
            let json = sound(run(&["inspect", "--json", "-"], &bytes));
            let inspected: Value = serde_json::from_slice(&json).unwrap();
            assert_eq!(inspected["format"], format.name());
            assert_eq!(inspected["leases"], vector.leases.len());
            assert_eq!(inspected["bytes"], bytes.len());
            assert_eq!(
                sum_of_parts(&inspected),
                bytes.len() as u64,
                "{}",
                vector.name
            );
        }
    }
    let reference = codec::encode(Format::CompactV2, &Workload::Reference.generate()).unwrap();
    let text = String::from_utf8(sound(run(&["inspect", "-"], &reference))).unwrap();
    for expected in ["compact-v2", "25,000", "126,504", "1,000", "start logicals"] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

#[test]
fn hostile_files_fail_with_their_place() {
    for case in malformed() {
        for command in [&["decode"][..], &["inspect", "-"], &["compare", "-"]] {
            if case.expect == "error" {
                let (code, error) = refused(run(command, &case.bytes()));
                assert_eq!(code, 1, "{}: {error}", case.name);
                assert!(error.starts_with("error: standard input: byte "), "{error}");
            }
        }
    }
}

#[test]
fn ambiguous_leases_are_read_with_a_warning() {
    let vector = vectors()
        .into_iter()
        .find_map(|vector| vector.broken())
        .unwrap();
    let output = run(&["decode"], &vector);
    assert!(output.status.success());
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("more than one way"), "{warning}");
}

#[test]
fn nine_ids_under_eight_names_need_version_2() {
    let vectors = vectors();
    let vector = vectors
        .iter()
        .find(|v| v.name == "restart_names_8_ids_9")
        .unwrap();
    let text = lines(&vector.leases);
    let (code, error) = refused(run(&["encode", "--format", "compact-v1"], &text));
    assert_eq!(code, 1);
    assert!(
        error.contains("8 ids") && error.contains("compact-v2"),
        "{error}"
    );
    let written = sound(run(&["encode", "--format", "compact-v2"], &text));
    assert_eq!(Some(written), vector.bytes(Format::CompactV2));
}

#[test]
fn faulty_lines_are_named() {
    let good = String::from_utf8(lines(&vectors()[1].leases)).unwrap();
    let good = good.trim();
    let other = good.replace("\"partition_id\":0", "\"partition_id\":1");
    for (from, to, expected) in [
        (
            "\"partition_id\":0",
            "\"partition_id\":-1",
            "group: partition -1",
        ),
        ("\"accepted\":true", "\"accepted\":1", "accepted: "),
        ("\"accepted\":true,", "", "accepted: missing"),
        ("\"accepted\"", "\"agreed\"", "accepted: missing"),
        ("{\"group\"", "{\"more\":1,\"group\"", "more: no such field"),
        ("1111-a0a0", "1111-g0g0", "holder_id: "),
        ("1729500000000", "140737488355328", "start: physical time"),
        ("\"logical\":0", "\"logical\":65536", "start: "),
        ("{\"group\"", "[\"group\"", "not a JSON object"),
    ] {
        let bad = good.replacen(from, to, 1);
        // Empty lines hold no lease, but count.
        let text = format!("{other}\n\n\n{bad}\n");
        let (code, error) = refused(run(&["encode", "--format", "naive"], text.as_bytes()));
        assert_eq!(code, 1);
        let expected = format!("standard input: line 4, {expected}");
        assert!(error.contains(&expected), "{expected}: {error}");
    }
    let twice = format!("{good}\n{other}\n{good}\n");
    let (_, error) = refused(run(&["encode", "--format", "naive"], twice.as_bytes()));
    let expected = "line 3, group: table/1/0 has a lease on line 1 already";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn output_is_replaced_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.bin");
    std::fs::write(&path, "old").unwrap();
    let out = path.to_str().unwrap();
    let arguments = ["encode", "--format", "compact-v1-tables-only", "-o", out];
    let zones = vectors()
        .into_iter()
        .find(|v| v.name == "zone_only")
        .unwrap();
    let (code, error) = refused(run(&arguments, &lines(&zones.leases)));
    assert!(code == 1 && error.contains("zones"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    let vector = &vectors()[1];
    sound(run(&arguments, &lines(&vector.leases)));
    let expected = vector.bytes(Format::CompactV1TablesOnly);
    assert_eq!(std::fs::read(&path).ok(), expected);
    let missing = folder.path().join("no such folder").join("batch.bin");
    let arguments = [
        "encode",
        "--format",
        "naive",
        "-o",
        missing.to_str().unwrap(),
    ];
    let (code, error) = refused(run(&arguments, b""));
    assert!(code == 1 && error.contains("no such folder"), "{error}");
    let names: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names, [path], "nothing is left beside it");
}

#[test]
fn wrong_use_ends_with_2_and_help_with_0() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["encode"],
        &["encode", "--format", "compact-v9"],
        &["decode", "--format", "compact"],
        &["inspect", "x", "--revision", "3"],
        &["inspect", "--revision", "3"],
        &["inspect", "--raw"],
        &["decode", "--revision", "3"],
        &["decode", "x", "--data", "y"],
        &["compare", "--workload", "unknown"],
        &["compare", "--workload", "steady", "--tables", "3"],
        &["compare", "--nodes", "0"],
        &["compare", "--age", "99999y"],
        &["compare", "--interval", "0s"],
        &["compare", "--tables", "1000000", "--partitions", "1000"],
    ] {
        let (code, error) = refused(run(arguments, b""));
        assert_eq!(code, 2, "{arguments:?}: {error}");
    }
    for command in ["decode", "encode", "inspect", "compare"] {
        let help = String::from_utf8(sound(run(&[command, "--help"], b""))).unwrap();
        assert!(help.contains("Example") && help.contains(&format!("leasehold {command}")));
    }
    let (code, error) = refused(run(&["decode", "/no/such/file"], b""));
    assert!(code == 1 && error.contains("/no/such/file"), "{error}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let batch = codec::encode(Format::CompactV2, &Workload::Reference.generate()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("batch.bin");
    std::fs::write(&path, batch).unwrap();
    let mut child = leasehold(&["decode", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

fn compare(arguments: &[&str], input: &[u8]) -> Value {
    let arguments = [&["compare", "--json"], arguments].concat();
    serde_json::from_slice(&sound(run(&arguments, input))).unwrap()
}

fn entry<'a>(compared: &'a Value, format: &str) -> &'a Value {
    let formats = compared["formats"].as_array().unwrap();
    formats
        .iter()
        .find(|entry| entry["format"] == format)
        .unwrap()
}

#[test]
fn compare_has_the_published_sizes() {
    let compared = compare(&[], b"");
    assert_eq!(compared["leases"], 25_000);
    for (format, bytes) in [
        ("naive", 4_712_658u64),
        ("compact-v1-tables-only", 126_503),
        ("compact-v1", 126_504),
        ("compact-v2", 126_504),
    ] {
        let entry = entry(&compared, format);
        assert_eq!(entry["bytes"], bytes);
        assert_eq!(entry["bytes_per_day"], bytes * 34_560);
        for time in ["serialize_us", "deserialize_us"] {
            assert!(entry[time].as_f64().unwrap() > 0.0);
        }
    }
    assert_eq!(entry(&compared, "naive")["ratio_to_naive"], 1.0);
    let squeezed = entry(&compared, "compact-v2+zstd");
    assert!(squeezed["bytes"].as_u64().unwrap() < 126_504);
}

#[test]
fn compare_says_what_a_format_can_not_carry() {
    let vectors = vectors();
    let zones = vectors.iter().find(|v| v.name == "table_and_zone").unwrap();
    let compared = compare(&["-"], &zones.bytes(Format::CompactV2).unwrap());
    for format in ["naive", "naive+zstd", "compact-v1-tables-only"] {
        let error = entry(&compared, format)["error"].as_str().unwrap();
        assert!(error.contains("zone"), "{error}");
    }
    assert!(entry(&compared, "compact-v1")["error"].is_null());
    let planned = [
        "--tables",
        "3",
        "--partitions",
        "2",
        "--nodes",
        "12",
        "--churn",
        "100",
    ];
    let planned = compare(&planned, b"");
    assert_eq!(planned["leases"], 6);
    let empty = compare(&["-"], &[0, 0, 0, 0]);
    assert!(entry(&empty, "naive")["bytes_per_lease"].is_null());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_pipe_is_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let leases = "{\"group\":{\"kind\":\"table\",\"object_id\":1,\"partition_id\":0},\
        \"holder_name\":\"a\",\"holder_id\":\"11111111-1111-1111-a0a0-a0a0a0a0a0a1\",\
        \"start\":{\"physical\":5,\"logical\":0},\"expiration\":{\"physical\":9,\"logical\":0},\
        \"accepted\":true,\"prolongable\":true,\"proposed_candidate\":null}\n";
    std::fs::write(at("leases"), leases).unwrap();
    let encode = |output: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["encode", "--format", "compact-v2"]);
        command.arg(at("leases")).arg("-o").arg(at(output));
        command
    };
    assert!(encode("plain").status().unwrap().success());
    let expected = std::fs::read(at("plain")).unwrap();

    std::fs::write(at("target"), "old").unwrap();
    std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
    assert!(encode("link").status().unwrap().success());
    assert!(at("link").is_symlink());
    assert_eq!(std::fs::read(at("target")).unwrap(), expected);

    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    let mut writer = encode("pipe").spawn().unwrap();
    assert_eq!(std::fs::read(at("pipe")).unwrap(), expected);
    assert!(writer.wait().unwrap().success());
}
