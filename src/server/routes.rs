//! What is where.

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};

use crate::daemon::view::Status;

use super::answers::Health;
use super::error::ApiError;
use super::{App, events, host, leases, sizes};

/// The routes; `local` if the server listens on a loopback address only.
pub fn router(app: App, local: bool) -> Router {
    let router = Router::new()
        .route("/healthz", get(health))
        .route("/v1/status", get(status))
        .route("/v1/batches", get(sizes::batches))
        .route("/v1/leases", get(leases::list))
        .route("/v1/leases/{kind}/{object}/{partition}", get(leases::one))
        .route("/v1/events", get(events::stream))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app);
    if local {
        router.layer(middleware::from_fn(host::check))
    } else {
        router
    }
}

async fn status(State(app): State<App>) -> Json<Status> {
    Json(app.view.status())
}

async fn health(State(app): State<App>) -> Response {
    let trouble = app.view.status().trouble;
    let (code, status) = match &trouble {
        None => (StatusCode::OK, "ok"),
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "trouble"),
    };
    let status = status.to_owned();
    (code, Json(Health { status, trouble })).into_response()
}

async fn nowhere(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(
        StatusCode::NOT_FOUND,
        format!(
            "there is nothing at {path}: see /healthz, /v1/status, /v1/batches, /v1/leases, \
             /v1/leases/KIND/OBJECT/PARTITION and /v1/events"
        ),
    )
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let path = uri.path();
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{path} does not answer to {method}, only to GET and HEAD"),
    )
}
