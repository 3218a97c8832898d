//! `leasehold run`: the long-lived simulation.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tracing::info;

use crate::cluster::scenario::{Layout, Scenario};
use crate::codec::Format;
use crate::daemon::DaemonError;
use crate::daemon::boot::{self, Given, OpenStore, StoreKind};
use crate::daemon::crank::{Command, Crank};
use crate::daemon::instance::Instance;
use crate::daemon::pace::Speed;
use crate::daemon::view::{Status, View};

use super::failure::Failure;
use super::signals::Signals;
use super::{live, output, scenarios};

/// Run a simulated cluster that grants and renews leases, until it is stopped
///
/// The leases of all partitions are renewed every 2.5 s of cluster time; each renewal stores one
/// batch. Meanwhile everything can be queried over HTTP. Started again on the same data directory,
/// the cluster goes on where it stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  leasehold run                                     25,000 leases in real time
  leasehold run --speed max --for 1h                an hour of cluster time, as fast as possible
  leasehold run failover --speed 10                 a scenario, ten times as fast as real time
  leasehold run my.toml --store memory --listen 127.0.0.1:0
  leasehold run --tables 40000 --data /var/lib/leasehold")]
pub(super) struct Run {
    /// steady, rolling-restart, failover, table-churn, or a scenario file
    scenario: Option<String>,
    /// Tables at the start [default: the scenario's, or 1000]
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// Partitions of each table [default: the scenario's, or 25]
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,
    /// Nodes [default: the scenario's, those of the data directory, or 3]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Replicas of each partition [default: the scenario's, or 3; not more than nodes]
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// Format of new batches: naive, compact-v1-tables-only, compact-v1, compact-v2 or columnar
    /// [default: the scenario's, or columnar]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Whether each batch is stored in full, or what has changed since the last snapshot: full or
    /// delta [default: the scenario's, or delta]
    #[arg(long, value_name = "LAYOUT", value_parser = layout_parser())]
    layout: Option<Layout>,
    /// In the layout delta: of so many batches one is stored in full [default: the scenario's, or
    /// 64]
    #[arg(long, value_name = "K")]
    snapshot_every: Option<u32>,
    /// Data directory
    #[arg(long, value_name = "DIR", default_value = "leasehold-data")]
    data: PathBuf,
    /// Address to serve HTTP on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7117")]
    listen: SocketAddr,
    /// Where batches are stored
    #[arg(long, value_enum, default_value_t = Store::Sled)]
    store: Store,
    /// How fast cluster time passes: a factor, or max for as fast as the store acknowledges
    #[arg(long, value_name = "N|max", default_value = "1")]
    speed: Speed,
    /// End after so much cluster time, such as 90s or 1h [default: the scenario's, or never]
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    run_for: Option<Duration>,
    /// Seed of all that is drawn [default: the scenario's, that of the data directory, or 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Keep superseded batches for so much cluster time [default: the scenario's, or 10m]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    retain: Option<Duration>,
    /// What to log, as in RUST_LOG: error, warn, info, debug or a filter
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

/// Parses the name of a layout on the command line.
pub(super) fn layout_parser() -> impl TypedValueParser<Value = Layout> {
    PossibleValuesParser::new(Layout::ALL.map(Layout::name)).map(|name| {
        let named = |layout: &Layout| layout.name() == name;
        Layout::ALL.into_iter().find(named).unwrap_or(Layout::Full)
    })
}

/// Where batches are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    /// On disk, in the data directory
    Sled,
    /// In memory: gone when the process ends
    Memory,
}

impl Run {
    pub(super) fn run(self) -> Result<(), Failure> {
        let live = live::is_wanted(self.log.as_deref());
        live::start_logging(self.log.as_deref(), live)?;
        let scenario = self.scenario()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| Failure::about("can't start", error))?;
        // From here on a signal ends the process in good order, also while it starts.
        let signals = runtime
            .block_on(async { Signals::catch() })
            .map_err(|error| Failure::about("can't catch signals", error))?;
        let listener = runtime
            .block_on(TcpListener::bind(self.listen))
            .map_err(|error| self.cannot_listen(&error))?;
        let url = (listener.local_addr())
            .map(|address| format!("http://{address}"))
            .map_err(|error| Failure::about("can't listen", error))?;

        let store = boot::open(&self.store_kind(), self.speed)?;
        let run_for = self.run_for.or(scenario.duration);
        let booted = boot::boot(&*store.store, scenario, self.given())?;
        let note = self.leave_note(&url)?;
        let settings = booted.cluster.scenario();
        let status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url: url.clone(),
            store: match self.store {
                Store::Sled => "sled".to_owned(),
                Store::Memory => "memory".to_owned(),
            },
            data: (self.store == Store::Sled).then(|| self.data.display().to_string()),
            format: settings.store.format.name().to_owned(),
            layout: settings.store.layout.name().to_owned(),
            snapshot_every: settings.store.batches_per_snapshot().into(),
            speed: self.speed.to_string(),
            seed: settings.seed,
            ..Status::default()
        };
        if booted.resumed {
            live::say("going on where the cluster in this data directory stopped");
        }
        live::say(&format!(
            "{} leases on {} nodes, {}, layout {}; listening on {url}",
            booted.cluster.catalog().group_count(),
            settings.cluster.nodes,
            settings.store.format,
            settings.store.layout.name(),
        ));
        info!(
            seed = settings.seed,
            speed = %self.speed,
            store = status.store,
            "leasehold {}",
            status.version
        );
        let view = Arc::new(View::new(store.store.clone(), status));
        let crank = Crank::new(booted, store.clone(), view.clone(), self.speed, run_for)?;
        let result = turn(&runtime, listener, crank, &view, signals, live);
        drop(note);
        finish(result, runtime, view, store)
    }

    fn store_kind(&self) -> StoreKind {
        match self.store {
            Store::Sled => StoreKind::Sled(self.data.clone()),
            Store::Memory => StoreKind::Memory,
        }
    }

    fn given(&self) -> Given {
        Given {
            seed: self.seed.is_some() || self.scenario.is_some(),
            nodes: self.nodes.is_some() || self.scenario.is_some(),
        }
    }

    /// The scenario, with what the command line overrides.
    fn scenario(&self) -> Result<Scenario, Failure> {
        let mut scenario = match &self.scenario {
            Some(name) => scenarios::load(name)?,
            None => Scenario::default(),
        };
        let shape = &mut scenario.cluster;
        for (setting, given) in [
            (&mut shape.tables, self.tables),
            (&mut shape.partitions, self.partitions),
            (&mut shape.nodes, self.nodes),
            (&mut shape.replicas, self.replicas),
        ] {
            *setting = given.unwrap_or(*setting);
        }
        if self.replicas.is_none() {
            shape.replicas = shape.replicas.min(shape.nodes);
        }
        scenario.store.format = self.format.unwrap_or(scenario.store.format);
        scenario.store.layout = self.layout.unwrap_or(scenario.store.layout);
        if let Some(every) = self.snapshot_every {
            if scenario.store.layout == Layout::Full {
                return Err(Failure::Usage(
                    "--snapshot-every has no meaning with --layout full, where each batch is \
                     stored in full"
                        .to_owned(),
                ));
            }
            scenario.store.snapshot_every = every;
        }
        scenario.store.retain = self.retain.unwrap_or(scenario.store.retain);
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        let name = self
            .scenario
            .as_deref()
            .map(|name| format!("scenario {name}: "));
        let name = name.unwrap_or_default();
        let valid = scenario.validate();
        valid.map_err(|error| Failure::Usage(format!("{name}{error}")))?;
        Ok(scenario)
    }

    fn cannot_listen(&self, error: &std::io::Error) -> Failure {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                ": is another instance running? Choose another address with --listen"
            }
            _ => "",
        };
        Failure::Failed(format!("can't listen on {}: {error}{hint}", self.listen))
    }

    /// Leaves the note by which queries find this process.
    fn leave_note(&self, url: &str) -> Result<Option<Note>, Failure> {
        if self.store == Store::Memory {
            return Ok(None);
        }
        let instance = Instance {
            pid: std::process::id(),
            url: url.to_owned(),
        };
        let name = self.data.display().to_string();
        (instance.write(&self.data)).map_err(|error| Failure::about(&name, error))?;
        Ok(Some(Note(self.data.clone())))
    }
}

/// The note in the data directory; taken away when dropped.
struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        Instance::remove(&self.0);
    }
}

/// Turns the crank on a thread of its own and serves, until a signal or the crank ends it.
fn turn(
    runtime: &Runtime,
    listener: TcpListener,
    mut crank: Crank,
    view: &Arc<View>,
    mut signals: Signals,
    live: bool,
) -> Result<(), DaemonError> {
    let (command, commands) = mpsc::channel();
    let (ended, mut end) = oneshot::channel();
    #[allow(
        clippy::disallowed_methods,
        reason = "the crank blocks on the store, so it needs a thread of its own"
    )]
    let thread = std::thread::spawn(move || {
        let result = crank.turn(&commands);
        // Nobody may be listening any more: the process is on its way out.
        let _ = ended.send(());
        (result, crank)
    });
    runtime.block_on(async {
        let (stop_server, server_stops) = oneshot::channel::<()>();
        let shutdown = async {
            let _ = server_stops.await;
        };
        let server = tokio::spawn(crate::server::serve(listener, view.clone(), shutdown));
        let line = tokio::spawn(live::show(view.clone(), live));
        tokio::select! {
            _ = &mut end => {}
            signal = signals.ended() => {
                live::say(&format!("{signal}, ending"));
                // If the crank has ended meanwhile, so much the better.
                let _ = command.send(Command::Stop);
                let _ = end.await;
            }
        }
        line.abort();
        let _ = line.await;
        let _ = stop_server.send(());
        let _ = server.await;
    });
    match thread.join() {
        Ok((Err(error @ DaemonError::StoreFailed(_)), crank)) => {
            // After a failed write sled may hang when it is dropped.
            std::mem::forget(crank);
            Err(error)
        }
        Ok((result, _)) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn finish(
    result: Result<(), DaemonError>,
    runtime: Runtime,
    view: Arc<View>,
    store: OpenStore,
) -> Result<(), Failure> {
    let status = view.status();
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Err(DaemonError::StoreFailed(_)) = &result {
        std::mem::forget((view, store));
    }
    result?;
    output::print(&format!("{}\n", live::summary(&status)))
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Scenario(error) => Self::Usage(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}
