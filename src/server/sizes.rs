//! `/v1/batches`: what the stored batches took.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::audit::sizes;
use crate::model::hlc::MAX_PHYSICAL;

use super::App;
use super::answers::Batches;
use super::error::ApiError;
use super::query::Parameters;

/// Rows if nothing else is asked for.
const DEFAULT_ROWS: u64 = 100;

/// Most rows in an answer: it is whole in memory until it is read.
const MOST_ROWS: usize = 10_000;

/// Answers with the rows asked for, oldest first: the newest, or from a time on.
pub async fn batches(State(app): State<App>, parameters: Parameters) -> Result<Response, ApiError> {
    parameters.only(&["last", "since"])?;
    let last = parameters.number("last", 1..=MOST_ROWS as u64)?;
    let since = parameters.number("since", 0..=MAX_PHYSICAL)?;
    app.blocking(move |view| {
        let store = &**view.store();
        let since_time = since.and_then(sizes::at);
        let batches = if since.is_some() && last.is_none() {
            let (rows, next) = sizes::page(store, since_time, MOST_ROWS)?;
            Batches {
                next,
                ..Batches::from(rows)
            }
        } else {
            let last = usize::try_from(last.unwrap_or(DEFAULT_ROWS)).unwrap_or(MOST_ROWS);
            Batches::from(sizes::read(store, since_time, Some(last))?)
        };
        json(&batches)
    })
    .await
}

/// A JSON answer, written where it may take a while.
pub fn json(answer: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(answer).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}
