//! Where a query gets its answer from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::cli::failure::Failure;
use crate::daemon::instance::{Instance, store_path};
use crate::metastorage::contract::StoreError;
use crate::metastorage::sled::{SledOptions, SledStore};
use crate::placement::record::ReadError;

use super::http::Client;

/// Where `leasehold run` keeps its data if not told otherwise.
const DEFAULT_DATA: &str = "leasehold-data";

/// A directory, and nothing else.
#[derive(Debug, Args)]
pub(super) struct DataArgs {
    /// Directory of the data
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA)]
    data: PathBuf,
}

/// An instance or a directory.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Ask the instance that listens there, for example http://127.0.0.1:7117
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    url: Option<String>,
    #[command(flatten)]
    data: DataArgs,
}

/// Where the answer comes from.
pub(super) enum Source {
    /// A running instance.
    Instance(Client),
    /// A directory on which no instance runs.
    Store(SledStore),
}

impl SourceArgs {
    /// The instance named, or the one that runs on the directory, or the directory itself.
    pub(super) fn open(&self) -> Result<Source, Failure> {
        if let Some(url) = &self.url {
            return Client::new(url).map(Source::Instance);
        }
        let data = &self.data;
        let note = data.note()?;
        let refused = match data.open_store(note.is_some()) {
            Ok(store) => return Ok(Source::Store(store)),
            Err(refused) => refused,
        };
        let (StoreError::Locked(_), Some(note)) = (&refused, note) else {
            return Err(data.refusal(refused));
        };
        let why = match Client::reach(&note.url) {
            Ok(client) => return Ok(Source::Instance(client)),
            Err(why) => why,
        };
        // It may just have ended, and left the lock a moment later.
        match data.open_store(false) {
            Ok(store) => Ok(Source::Store(store)),
            Err(StoreError::Locked(_)) => Err(Failure::Failed(format!(
                "{} is in use by process {}, which said that it listens at {} but does not \
                 answer: {why}",
                data.data.display(),
                note.pid,
                note.url
            ))),
            Err(refused) => Err(data.refusal(refused)),
        }
    }

    /// The instance named or the one that runs on the directory.
    pub(super) fn instance(&self) -> Result<Client, Failure> {
        if let Some(url) = &self.url {
            return Client::new(url);
        }
        let none = |why: &str| {
            let data = self.data.data.display();
            Failure::Failed(format!(
                "no instance runs on {data}{why}: start one with `leasehold run --data {data}`, \
                 or name one with --url"
            ))
        };
        let note = self.data.note()?.ok_or_else(|| none(""))?;
        Client::reach(&note.url).map_err(|why| {
            none(&format!(
                " (process {} said that it listens at {}, but it does not answer: {why})",
                note.pid, note.url
            ))
        })
    }
}

impl DataArgs {
    /// The store in the directory.
    pub(super) fn open(&self) -> Result<SledStore, StoreFailure> {
        let note = self.note().map_err(StoreFailure::Other)?;
        self.open_store(false).map_err(|error| match (error, note) {
            (StoreError::Damaged(what), _) => StoreFailure::Damaged(what),
            (StoreError::Locked(_), Some(note)) => StoreFailure::Other(Failure::Failed(format!(
                "{} is in use by process {} at {}: end it first",
                self.data.display(),
                note.pid,
                note.url
            ))),
            (error, _) => StoreFailure::Other(self.refusal(error)),
        })
    }

    /// The note of a running instance, in a directory that must be there.
    fn note(&self) -> Result<Option<Instance>, Failure> {
        if !self.data.is_dir() {
            let data = self.data.display();
            if self.data.exists() {
                return Err(Failure::Failed(format!(
                    "{data} is a file, not a data directory"
                )));
            }
            return Err(Failure::Failed(format!(
                "there is no directory {data}: `leasehold run --data {data}` makes one, \
                 --data DIR reads another, and --url URL asks a running instance"
            )));
        }
        Ok(Instance::read(&self.data))
    }

    fn open_store(&self, impatient: bool) -> Result<SledStore, StoreError> {
        let mut options = SledOptions::default();
        if impatient {
            options.lock_wait = Duration::from_millis(20);
        }
        SledStore::open(store_path(&self.data), options)
    }

    fn refusal(&self, error: StoreError) -> Failure {
        match error {
            StoreError::Locked(_) => Failure::Failed(format!(
                "{} is in use by another process that left no note where it listens: end it, or \
                 ask it with --url",
                self.data.display()
            )),
            _ if !is_store(&store_path(&self.data)) => Failure::Failed(format!(
                "nothing is stored in {}: `leasehold run --data {0}` does that, and --data DIR \
                 reads another directory",
                self.data.display()
            )),
            error => Failure::Failed(error.to_string()),
        }
    }
}

/// The store in a directory on which no instance runs.
pub(super) fn open(data: &Path) -> Result<SledStore, Failure> {
    let arguments = DataArgs {
        data: data.to_owned(),
    };
    arguments.open().map_err(|failure| match failure {
        StoreFailure::Damaged(what) => unreadable(StoreError::Damaged(what).into()),
        StoreFailure::Other(failure) => failure,
    })
}

/// What is stored can't be read.
pub(super) fn unreadable(error: ReadError) -> Failure {
    match error {
        ReadError::Store(StoreError::Compacted { .. } | StoreError::Future { .. }) => {
            Failure::Failed(error.to_string())
        }
        error => Failure::Failed(format!(
            "{error}: `leasehold verify` tells what else is damaged"
        )),
    }
}

/// Why a store can't be opened.
pub(super) enum StoreFailure {
    /// It is damaged as a whole.
    Damaged(String),
    /// Anything else.
    Other(Failure),
}

fn is_store(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut files| files.next().is_some())
}
