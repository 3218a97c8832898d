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

/// Most rows in an answer.
const MOST_ROWS: u64 = 1_000_000;

/// Answers with the rows asked for, oldest first.
pub async fn batches(State(app): State<App>, parameters: Parameters) -> Result<Response, ApiError> {
    parameters.only(&["last", "since"])?;
    let last = parameters.number("last", 1..=MOST_ROWS)?;
    let since = parameters.number("since", 0..=MAX_PHYSICAL)?;
    let rows = match since {
        None => DEFAULT_ROWS,
        Some(_) => MOST_ROWS,
    };
    let last = usize::try_from(last.unwrap_or(rows)).unwrap_or(usize::MAX);
    app.blocking(move |view| {
        let since = since.and_then(sizes::at);
        let rows = sizes::read(&**view.store(), since, Some(last))?;
        json(&Batches::from(rows))
    })
    .await
}

/// A JSON answer, written where it may take a while.
pub fn json(answer: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(answer).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}
