//! What `run` shows: two live lines on a terminal, log lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing_subscriber::EnvFilter;

use crate::daemon::view::{Status, View};

use super::failure::Failure;
use super::output::{count, decimal};

/// Whether to show live lines: on a terminal, unless log lines were asked for.
pub(super) fn is_wanted(log: Option<&str>) -> bool {
    std::io::stderr().is_terminal() && log.is_none() && std::env::var_os("RUST_LOG").is_none()
}

/// Logs to standard error what `--log` says, else `RUST_LOG`, else `info` (`warn` beside live
/// lines).
pub(super) fn start_logging(log: Option<&str>, live: bool) -> Result<(), Failure> {
    let filter = match log {
        Some(filter) => EnvFilter::try_new(filter)
            .map_err(|error| Failure::Usage(format!("--log {filter}: {error}")))?,
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| {
            let level = if live { "warn" } else { "info" };
            EnvFilter::new(format!("{level},sled=warn"))
        }),
    };
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        .init();
    Ok(())
}

/// Says something on standard error. Nothing is left to do if that is closed.
pub(super) fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Shows the live lines until it is dropped.
pub(super) async fn show(view: Arc<View>, live: bool) {
    if !live {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}\n{prefix}") {
        bar.set_style(style);
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    loop {
        ticks.tick().await;
        let status = view.status();
        bar.set_message(leases(&status));
        bar.set_prefix(bytes(&status));
        bar.tick();
    }
}

/// How the leases are doing, within 80 columns.
fn leases(status: &Status) -> String {
    let trouble = status.trouble.as_ref();
    format!(
        "{} · rev {} · held {}/{} · granted {} · expired {}{}",
        elapsed(status),
        status.revision,
        count(status.accepted),
        count(status.groups),
        count(status.granted),
        count(status.expired),
        trouble.map_or(String::new(), |trouble| format!(" · {trouble}")),
    )
}

/// What the last batch took, within 80 columns.
fn bytes(status: &Status) -> String {
    format!(
        "stored {} B · naive {} B ({}) · encode {} µs · decode {} µs",
        count(status.stored_bytes),
        count(status.naive_bytes),
        ratio(status),
        status.encode_us,
        status.decode_us,
    )
}

fn elapsed(status: &Status) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(status.elapsed_ms / 1000))
}

fn ratio(status: &Status) -> String {
    if status.stored_bytes == 0 {
        return "-".to_owned();
    }
    let ratio = status.naive_bytes as f64 / status.stored_bytes as f64;
    let digits = if ratio < 1000.0 { 1 } else { 0 };
    format!("1/{}", decimal(ratio, digits))
}

/// What is left to say at the end.
pub(super) fn summary(status: &Status) -> String {
    format!(
        "{} of cluster time: {} batches stored, {} of them renewals; {} leases held, {} granted, \
         {} expired; the last batch took {} bytes, naive would have taken {}{}{}",
        elapsed(status),
        count(status.batches),
        count(status.renewals),
        count(status.accepted),
        count(status.granted),
        count(status.expired),
        count(status.stored_bytes),
        count(status.naive_bytes),
        split(status),
        since_settled(status),
    )
}

/// Snapshots and deltas, if there are any.
fn split(status: &Status) -> String {
    let deltas = status.batches.saturating_sub(status.snapshots);
    if deltas == 0 {
        return String::new();
    }
    format!(
        "\n{} snapshots took {} bytes, {} deltas {}",
        count(status.snapshots),
        count(status.snapshot_bytes),
        count(deltas),
        count(status.delta_bytes),
    )
}

/// How fast it went once every group had its lease and nothing went on.
fn since_settled(status: &Status) -> String {
    let Some(settled) = status.settled else {
        return String::new();
    };
    let seconds = |us: u64| decimal(us as f64 / 1e6, 3);
    let cluster = Duration::from_millis(status.elapsed_ms.saturating_sub(settled.elapsed_ms));
    format!(
        "\nquiet with all leases after {}, which took {} s; the {} since then took {} s, {} s of it \
         for snapshots",
        humantime::format_duration(Duration::from_millis(settled.elapsed_ms)),
        seconds(settled.real_us),
        humantime::format_duration(Duration::from_secs(cluster.as_secs())),
        seconds(status.real_us.saturating_sub(settled.real_us)),
        seconds(status.snapshot_us.saturating_sub(settled.snapshot_us)),
    )
}
