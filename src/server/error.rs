//! Refusals and failures, as JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::audit::sizes::SizesError;
use crate::metastorage::contract::StoreError;

use crate::placement::record::ReadError;

use super::answers::{ErrorAnswer, ErrorDetail};

/// Why a request is not answered.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    /// With a status and what was wrong.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Something is wrong with the server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = ErrorDetail {
            status: self.status.as_u16(),
            message: self.message,
        };
        (self.status, Json(ErrorAnswer { error })).into_response()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::Unknown(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            StoreError::Compacted { .. } | StoreError::Future { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Store(error) => error.into(),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<SizesError> for ApiError {
    fn from(error: SizesError) -> Self {
        match error {
            SizesError::Store(error) => error.into(),
            SizesError::Record(error) => Self::internal(error.to_string()),
        }
    }
}
