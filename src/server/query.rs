//! Query parameters: each known, given once, and well-formed; a refusal says which is not.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use super::error::ApiError;

/// The parameters of a request.
#[derive(Debug)]
pub struct Parameters(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(pairs) = pairs.map_err(|error| ApiError::bad_request(error.body_text()))?;
        let mut parameters = BTreeMap::new();
        for (name, value) in pairs {
            if parameters.insert(name.clone(), value).is_some() {
                return Err(refused(&name, "is given twice"));
            }
        }
        Ok(Self(parameters))
    }
}

impl Parameters {
    /// Refuses all but these names.
    pub fn only(&self, names: &[&str]) -> Result<(), ApiError> {
        match self.0.keys().find(|name| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) if names.is_empty() => Err(refused(name, "is unknown: there are none here")),
            Some(name) => {
                let known = names.join("`, `");
                Err(refused(name, format!("is unknown: there are `{known}`")))
            }
        }
    }

    /// A parameter as it is.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A whole number; one above the range is cut to it.
    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse::<u64>() {
            Ok(number) if number >= *range.start() => Ok(Some(number.min(*range.end()))),
            _ => Err(refused(
                name,
                format!(
                    "is `{}`, not a whole number from {} to {}",
                    shortened(text),
                    range.start(),
                    range.end()
                ),
            )),
        }
    }

    /// Something that can be parsed.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parsed = self.text(name).map(str::parse).transpose();
        parsed.map_err(|error| refused(name, error))
    }
}

fn refused(name: &str, why: impl Display) -> ApiError {
    ApiError::bad_request(format!("query parameter `{}`: {why}", shortened(name)))
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
