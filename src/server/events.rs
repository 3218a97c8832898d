//! `/v1/events`: what happens from now on, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use crate::daemon::view::LiveEvent;

use super::App;
use super::answers::Lagged;
use super::error::ApiError;
use super::query::Parameters;

/// Events on their way to a connection; the others wait where they come from.
const AHEAD: usize = 256;

/// Streams events until the reader goes or the server ends.
pub async fn stream(
    State(app): State<App>,
    parameters: Parameters,
) -> Result<Sse<impl futures_core::Stream<Item = Result<Event, Infallible>>>, ApiError> {
    parameters.only(&[])?;
    let (to, events) = mpsc::channel(AHEAD);
    // Subscribed before the answer begins: whoever has seen its head misses nothing.
    let from = app.view.subscribe();
    tokio::spawn(pass_on(from, to, app.stopping));
    Ok(Sse::new(ReceiverStream::new(events)).keep_alive(KeepAlive::default()))
}

async fn pass_on(
    mut from: Receiver<Arc<LiveEvent>>,
    to: mpsc::Sender<Result<Event, Infallible>>,
    mut stopping: watch::Receiver<bool>,
) {
    let all = async {
        let mut id = 0_u64;
        loop {
            let event = match from.recv().await {
                Ok(event) => {
                    id += 1;
                    let data = serde_json::to_string(&*event);
                    Event::default().event(event.name()).data(written(data))
                }
                Err(RecvError::Lagged(lost)) => {
                    // Counted, so that ids number all events since the stream began.
                    id += lost;
                    let data = serde_json::to_string(&Lagged { lost });
                    Event::default().event("lagged").data(written(data))
                }
                Err(RecvError::Closed) => break,
            };
            if to.send(Ok(event.id(id.to_string()))).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = all => {}
        () = to.closed() => {}
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

fn written(data: Result<String, serde_json::Error>) -> String {
    data.unwrap_or_else(|error| {
        tracing::error!(%error, "an event can't be written");
        "{}".to_owned()
    })
}
