//! `/v1/leases`: who holds what.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;

use crate::audit::state::LeaseState;
use crate::daemon::view::View;
use crate::model::ids::GroupId;
use crate::placement::record::{self, BEAT, ReadError, time_of};

use super::App;
use super::answers::{LeaseEntry, Leases, OneLease};
use super::error::ApiError;
use super::query::Parameters;
use super::sizes::json;

/// Leases of a page if nothing else is asked for.
const DEFAULT_PAGE: u64 = 1_000;

/// Most leases of a page.
const LARGEST_PAGE: u64 = 10_000;

/// All leases, page by page.
pub async fn list(State(app): State<App>, parameters: Parameters) -> Result<Response, ApiError> {
    parameters.only(&["after", "limit", "holder"])?;
    let after = parameters.parsed::<GroupId>("after")?;
    let limit = parameters.number("limit", 1..=LARGEST_PAGE)?;
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_PAGE)).unwrap_or(usize::MAX);
    let holder = parameters.text("holder").map(str::to_owned);
    app.blocking(move |view| json(&page(view, after, limit, holder.as_deref())))
        .await
}

fn page(view: &View, after: Option<GroupId>, limit: usize, holder: Option<&str>) -> Leases {
    let time = view.status().time;
    let mut page = Leases {
        revision: 0,
        time,
        leases: Vec::new(),
        next: None,
    };
    let Some(update) = view.leases() else {
        return page;
    };
    page.revision = update.revision;
    let batch = &update.batch;
    let rows = batch.rows();
    let skipped = rows.partition_point(|row| Some(row.group()) <= after);
    let mut wanted = rows
        .iter()
        .skip(skipped)
        .filter(|row| holder.is_none_or(|name| **batch.dictionary().node(row.holder()).1 == *name));
    for row in wanted.by_ref().take(limit) {
        let lease = batch.lease(row);
        page.leases.push(LeaseEntry {
            state: LeaseState::at(&lease, time),
            lease,
        });
    }
    if wanted.next().is_some() {
        page.next = page.leases.last().map(|entry| entry.lease.group);
    }
    page
}

/// The lease of one group, now or at a revision.
pub async fn one(
    State(app): State<App>,
    path: Result<Path<(String, String, String)>, axum::extract::rejection::PathRejection>,
    parameters: Parameters,
) -> Result<axum::Json<OneLease>, ApiError> {
    parameters.only(&["revision"])?;
    let revision = parameters.number("revision", 1..=u64::MAX)?;
    let Path((kind, object, partition)) =
        path.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let group: GroupId = format!("{kind}/{object}/{partition}")
        .parse()
        .map_err(|error| ApiError::bad_request(format!("{error}")))?;
    if let Some(revision) = revision {
        let past = app.blocking(move |view| past(view, group, revision));
        return Ok(axum::Json(past.await?));
    }
    let update = app.view.leases();
    let lease = update.as_ref().and_then(|update| {
        let row = update.batch.get(group)?;
        Some((update.revision, update.batch.lease(row)))
    });
    match lease {
        Some((revision, lease)) => {
            let time = app.view.status().time;
            Ok(axum::Json(OneLease::new(revision, time, lease)))
        }
        None => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            format!("{group} has no lease"),
        )),
    }
}

/// The lease of a group at a revision, read from the store without the others where the format
/// allows it. Its state is that of the time of the driver's last beat before.
fn past(view: &View, group: GroupId, revision: u64) -> Result<OneLease, ApiError> {
    let store = &**view.store();
    let found = record::lookup(store, Some(revision), group)?;
    let beat = store.get(BEAT, Some(revision))?;
    let time = beat.as_ref().map(time_of).transpose();
    let time = time
        .map_err(ReadError::from)?
        .map_or(0, |time| time.physical());
    let lease = found.and_then(|found| Some((found.revision, found.lease?)));
    let (revision, lease) = lease.ok_or_else(|| {
        ApiError::new(
            StatusCode::NOT_FOUND,
            format!("{group} had no lease at revision {revision}"),
        )
    })?;
    Ok(OneLease::new(revision, time, lease))
}
