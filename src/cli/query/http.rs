//! Asking a running instance.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde::de::{DeserializeOwned, IgnoredAny};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::cli::failure::Failure;
use crate::server::answers::ErrorAnswer;

/// Largest answer: pages are far below it.
const LARGEST: u64 = 1 << 30;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long to wait for the head of an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// One instance.
#[derive(Debug)]
pub(super) struct Client {
    url: String,
    agent: Agent,
}

impl Client {
    /// For the instance at `http://HOST:PORT`.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        if !url.starts_with("http://") {
            return Err(Failure::Usage(format!(
                "`{url}` is not the URL of an instance: expected http://HOST:PORT"
            )));
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .proxy(None)
            .build()
            .into();
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            agent,
        })
    }

    /// Its URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// For an instance that said it listens there, if something answers, in whichever state; or
    /// why not.
    pub(super) fn reach(url: &str) -> Result<Self, String> {
        let client = Self::new(url).map_err(|_| "that is no URL".to_owned())?;
        let answer = client.call("/healthz", &[]);
        let answer = answer.and_then(|mut answer| answer.body_mut().read_json::<IgnoredAny>());
        answer.map_err(|error| error.to_string())?;
        Ok(client)
    }

    /// Reads a JSON answer.
    pub(super) fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let mut response = self.answer(path, query)?;
        let body = response.body_mut().with_config().limit(LARGEST);
        body.read_json()
            .map_err(|error| Failure::about(&self.url, error))
    }

    /// Reads an answer that does not end.
    pub(super) fn stream(&self, path: &str) -> Result<impl BufRead + use<>, Failure> {
        let response = self.answer(path, &[])?;
        Ok(BufReader::new(response.into_body().into_reader()))
    }

    fn answer(&self, path: &str, query: &[(&str, &str)]) -> Result<Response<Body>, Failure> {
        let called = self.call(path, query);
        let mut response = called.map_err(|error| Failure::about(&self.url, error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let answer = response.body_mut().read_json::<ErrorAnswer>();
        Err(match answer {
            Ok(answer) => Failure::Failed(answer.error.message),
            Err(_) => Failure::about(&self.url, format!("answered {status}")),
        })
    }

    fn call(&self, path: &str, query: &[(&str, &str)]) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.get(format!("{}{path}", self.url));
        request.query_pairs(query.iter().copied()).call()
    }
}
