//! Refuses requests under a foreign host name on a server that only this machine can reach: a web
//! page could otherwise read it, by a name of its own that it lets point to 127.0.0.1 (DNS
//! rebinding).

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::ApiError;

/// Lets a request pass whose host is an address or `localhost`, or not said at all.
pub async fn check(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST);
    if host.is_none_or(is_local) {
        return next.run(request).await;
    }
    let message = "this server answers only to localhost or an IP address as host";
    ApiError::new(StatusCode::FORBIDDEN, message).into_response()
}

fn is_local(host: &HeaderValue) -> bool {
    let Ok(host) = host.to_str() else {
        return false;
    };
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split_once(']').map(|(address, _)| address.parse());
        return matches!(address, Some(Ok(IpAddr::V6(_))));
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_only() {
        for (host, local) in [
            ("localhost", true),
            ("LocalHost:7117", true),
            ("a.localhost:1", true),
            ("127.0.0.1:7117", true),
            ("[::1]:7117", true),
            ("example.org", false),
            ("localhost.example.org:80", false),
            ("127.0.0.1.example.org", false),
            ("[evil]", false),
            ("[::1", false),
            ("", false),
        ] {
            assert_eq!(is_local(&HeaderValue::from_static(host)), local, "{host}");
        }
    }
}
