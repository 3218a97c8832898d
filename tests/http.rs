//! The HTTP server: what each route answers, and refuses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(
    clippy::disallowed_methods,
    reason = "a server runs on a real thread and clock"
)]

#[path = "support/cluster.rs"]
mod cluster;
#[path = "support/serving.rs"]
mod serving;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::daemon::view::LiveEvent;
use leasehold::model::ids::{GroupId, NodeId};
use serde_json::{Value, json};
use serving::{Newest, Serving, view};

/// A cluster of three virtual minutes, served.
fn served() -> Serving {
    let mut newest = Newest::default();
    let (simulation, store) = cluster::run(180, &mut newest);
    Serving::start(view(&simulation, &store, newest))
}

/// Sends a request as it is; the head and the body of the answer.
fn raw(url: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn request(url: &str, method: &str, path: &str) -> (u16, Value) {
    let close = "Host: localhost\r\nConnection: close\r\n\r\n";
    let (head, body) = raw(url, &format!("{method} {path} HTTP/1.1\r\n{close}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(head.contains("application/json"), "{path}: {head}");
    (status, serde_json::from_str(&body).unwrap())
}

fn get(url: &str, path: &str) -> Value {
    let (status, body) = request(url, "GET", path);
    assert_eq!(status, 200, "{path}: {body}");
    body
}

/// The message of a refusal.
fn refused(url: &str, path: &str, expected: u16) -> String {
    let (status, body) = request(url, "GET", path);
    assert_eq!(status, expected, "{path}: {body}");
    assert_eq!(body["error"]["status"], expected);
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn batches_are_listed_oldest_first_with_a_summary() {
    let server = served();
    let all = get(&server.url, "/v1/batches?since=0");
    let rows = all["rows"].as_array().unwrap();
    let column =
        |name: &str| -> Vec<u64> { rows.iter().map(|row| row[name].as_u64().unwrap()).collect() };
    assert!(column("revision").is_sorted() && column("time").is_sorted());
    assert!(rows.len() > 60, "{}", rows.len());
    let names: Vec<_> = rows[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "cause",
            "changed",
            "format",
            "leases",
            "naive_bytes",
            "revision",
            "stored_bytes",
            "time"
        ]
    );
    let summary = &all["summary"];
    assert_eq!(summary["rows"], rows.len());
    assert_eq!(
        summary["stored_bytes"],
        column("stored_bytes").iter().sum::<u64>()
    );
    assert!(summary["longest_renewal_gap_ms"].as_u64().unwrap() <= 3_000);

    let last = get(&server.url, "/v1/batches?last=3");
    assert_eq!(last["rows"].as_array().unwrap()[..], rows[rows.len() - 3..]);
    let since = column("time")[5];
    let later = get(&server.url, &format!("/v1/batches?since={since}"));
    assert_eq!(later["rows"].as_array().unwrap()[..], rows[5..]);
    let both = get(&server.url, &format!("/v1/batches?since={since}&last=1"));
    assert_eq!(both["rows"].as_array().unwrap()[..], rows[rows.len() - 1..]);
    assert_eq!(get(&server.url, "/v1/batches"), all, "fewer than a hundred");
    let none = get(&server.url, "/v1/batches?since=140737488355327");
    assert_eq!(none["rows"], json!([]));
    assert_eq!(none["summary"]["ratio"], Value::Null);
}

#[test]
fn leases_come_in_pages() {
    let server = served();
    let all = get(&server.url, "/v1/leases");
    assert_eq!(all["leases"].as_array().unwrap().len(), cluster::GROUPS);
    assert_eq!(all["next"], Value::Null);
    let mut pages = Vec::new();
    let mut path = "/v1/leases?limit=20".to_owned();
    for _ in 0..3 {
        let page = get(&server.url, &path);
        pages.extend(page["leases"].as_array().unwrap().clone());
        if let Some(next) = page["next"].as_str() {
            path = format!("/v1/leases?limit=20&after={next}");
        }
    }
    assert_eq!(pages, *all["leases"].as_array().unwrap());
    let held = get(&server.url, "/v1/leases?holder=node1");
    let held = held["leases"].as_array().unwrap();
    assert!((5..40).contains(&held.len()), "{}", held.len());
    assert!(
        held.iter()
            .all(|entry| entry["lease"]["holder_name"] == "node1")
    );
    let nobody = get(&server.url, "/v1/leases?holder=nobody");
    assert_eq!(nobody["leases"], json!([]));
}

#[test]
fn one_lease_is_valid_until_it_expires() {
    let server = served();
    let path = "/v1/leases/zone/1/3";
    let lease = get(&server.url, path);
    assert_eq!(lease["valid"], true);
    assert_eq!(lease["state"], "accepted");
    assert_eq!(lease["lease"]["group"]["partition_id"], 3);
    assert_eq!(
        lease["revision"],
        get(&server.url, "/v1/leases")["revision"]
    );
    server.view.update_status(|status| status.time += 10_000);
    let lease = get(&server.url, path);
    assert_eq!(lease["valid"], false);
    assert_eq!(lease["state"], "expired");
}

#[test]
fn status_and_health() {
    let server = served();
    assert_eq!(get(&server.url, "/v1/status")["version"], "0.1.0");
    assert_eq!(get(&server.url, "/healthz"), json!({"status": "ok"}));
    let trouble = Some("the disk is full".to_owned());
    server.view.update_status(|status| status.trouble = trouble);
    let (status, body) = request(&server.url, "GET", "/healthz");
    assert_eq!(status, 503);
    assert_eq!(body["trouble"], "the disk is full");
}

#[test]
fn refusals_say_what_was_wrong() {
    let server = served();
    let url = &server.url;
    for (path, status, part) in [
        ("/v1/batches?last=0", 400, "`last`: is `0`"),
        ("/v1/batches?last=-1", 400, "`last`"),
        (
            "/v1/batches?since=yesterday",
            400,
            "`since`: is `yesterday`",
        ),
        ("/v1/batches?latest=3", 400, "`latest`: is unknown"),
        ("/v1/batches?last=3&last=4", 400, "`last`: is given twice"),
        (
            "/v1/leases?after=table/7",
            400,
            "`after`: `table/7` is not a group",
        ),
        ("/v1/leases?limit=99999999999999999999", 400, "`limit`"),
        ("/v1/leases/table/x/3", 400, "`table/x/3` is not a group"),
        ("/v1/leases/index/1/3", 400, "`index/1/3`"),
        ("/v1/leases/table/1/%ff", 400, ""),
        ("/v1/leases/table/99/0", 404, "table/99/0 has no lease"),
        ("/v1/leases/table/1", 404, "nothing at /v1/leases/table/1"),
        ("/", 404, "/v1/status"),
    ] {
        let message = refused(url, path, status);
        assert!(message.contains(part), "{path}: {message}");
    }
    let (status, body) = request(url, "POST", "/v1/leases");
    assert_eq!(status, 405);
    assert!(body["error"]["message"].as_str().unwrap().contains("POST"));
}

#[test]
fn a_foreign_host_name_is_refused() {
    let server = served();
    let request = |host: &str| {
        let (head, _) = raw(
            &server.url,
            &format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        );
        head.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(request("127.0.0.1:7117"), "200");
    assert_eq!(request("rebound.example.org:7117"), "403");
}

/// The head of an event stream and the stream.
fn events(url: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let request = "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0);
    }
    assert!(head.contains("text/event-stream"), "{head}");
    stream
}

/// The next value of a field.
fn field(stream: &mut impl BufRead, name: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "no `{name}`");
        if let Some(value) = line.strip_prefix(&format!("{name}: ")) {
            return value.trim_end().to_owned();
        }
    }
}

#[test]
fn events_are_streamed_until_the_server_ends() {
    let mut server = served();
    let mut stream = events(&server.url);
    let group: GroupId = "table/7/3".parse().unwrap();
    let update = server.view.leases().unwrap();
    let lease = update.batch.lease(update.batch.get(group).unwrap());
    server.view.tell(|| LiveEvent::Elected {
        revision: 7,
        time: 1_774_000_000_000,
        lease,
    });
    server.view.tell(|| LiveEvent::NodeUp {
        time: 1_774_000_000_001,
        name: "node9".into(),
        id: NodeId::from_halves(1, 2),
    });
    assert_eq!(field(&mut stream, "event"), "elected");
    let data: Value = serde_json::from_str(&field(&mut stream, "data")).unwrap();
    assert_eq!(data["event"], "elected");
    assert_eq!(data["lease"]["group"]["object_id"], 7);
    assert_eq!(field(&mut stream, "id"), "1");
    assert_eq!(field(&mut stream, "event"), "node-up");
    assert_eq!(field(&mut stream, "id"), "2");

    let begin = Instant::now();
    server.stop();
    assert!(begin.elapsed() < Duration::from_secs(2), "it waited");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
}

#[test]
fn a_slow_reader_is_told_what_it_lost() {
    let server = served();
    let mut stream = events(&server.url);
    // More than is kept, at once: the server's thread gets behind even without a slow network.
    let told = 400_000;
    for revision in 0..told {
        server.view.tell(|| LiveEvent::NodeDown {
            time: revision,
            name: "node1".into(),
        });
    }
    let mut lost = 0;
    let mut id = 0;
    while id < told {
        let event = field(&mut stream, "event");
        let data: Value = serde_json::from_str(&field(&mut stream, "data")).unwrap();
        id = field(&mut stream, "id").parse().unwrap();
        match &*event {
            "lagged" => lost += data["lost"].as_u64().unwrap(),
            _ => assert_eq!(data["time"], id - 1, "ids count what was lost as well"),
        }
    }
    assert!(lost > 0);
}

#[test]
fn a_connection_that_says_nothing_does_not_hold_up_the_end() {
    let mut server = served();
    let silent = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    let mut cut = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
    cut.write_all(b"GET /v1/leases HTT").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let begin = Instant::now();
    server.stop();
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop((silent, cut));
}

#[test]
fn before_the_first_batch() {
    let store = Arc::new(leasehold::metastorage::memory::MemoryStore::new());
    let view = leasehold::daemon::view::View::new(store, Default::default());
    let server = Serving::start(view);
    assert_eq!(get(&server.url, "/v1/batches")["rows"], json!([]));
    let leases = get(&server.url, "/v1/leases");
    assert_eq!(leases["leases"], json!([]));
    assert_eq!(leases["revision"], 0);
    refused(&server.url, "/v1/leases/table/1/0", 404);
}
