//! Floor 8: HTTP. Sees the daemon through its [`View`] and nothing else; docs/HTTP.md shows the
//! answers.
//!
//! * `routes` says what is where; `answers` how it looks in JSON; `error` what a refusal
//!   looks like; `query` reads query parameters.
//! * `events` is the stream of what happens; `host` refuses the requests that a web page
//!   makes to a server on this machine under another name.
//!
//! The store's methods may block, and so may going through a million leases: both happen on
//! blocking threads, a few at a time.

pub mod answers;
mod error;
mod events;
mod host;
mod leases;
mod query;
mod routes;
mod sizes;

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::daemon::view::View;

use error::ApiError;

/// How long answers that are under way may take once the server is to end.
const GRACE: Duration = Duration::from_secs(3);

/// Requests that may block, at once; others wait.
const BLOCKING: usize = 4;

/// What the routes need.
#[derive(Clone)]
struct App {
    view: Arc<View>,
    stopping: watch::Receiver<bool>,
    blocking: Arc<Semaphore>,
}

impl App {
    /// Runs something that may block or take long, and not more than a few at a time.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = Arc::clone(&self.blocking).acquire_owned().await;
        let permit = permit.map_err(|_| ApiError::internal("the server is ending"))?;
        let view = Arc::clone(&self.view);
        let done = tokio::task::spawn_blocking(move || {
            let result = work(&view);
            drop(permit);
            result
        });
        done.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a request failed");
            Err(ApiError::internal("this request failed inside the server"))
        })
    }
}

/// Answers requests until `shutdown` is ready, then for at most three more seconds those that
/// are under way. Event streams end at once.
///
/// # Errors
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    view: Arc<View>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let local = listener.local_addr()?.ip().is_loopback();
    let (stop, mut stopping) = watch::channel(false);
    let app = App {
        view,
        stopping: stopping.clone(),
        blocking: Arc::new(Semaphore::new(BLOCKING)),
    };
    let signal = async move {
        shutdown.await;
        let _ = stop.send(true);
    };
    let server = axum::serve(listener, routes::router(app, local));
    let mut server = pin!(server.with_graceful_shutdown(signal).into_future());
    tokio::select! {
        ended = &mut server => return ended,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    timeout(GRACE, server).await.unwrap_or(Ok(()))
}
