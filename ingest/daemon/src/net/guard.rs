//! Keeps pages of elsewhere out, which a browser on this machine shows.
//!
//! A listener without tokens trusts whoever reaches its loopback address. A browser reaches it too, for any page that it shows: a page may
//! post without reading the answer (CSRF), and may let a name of its own point here (DNS rebinding). Browsers say on whose behalf they ask, in
//! `Origin` and `Sec-Fetch-Site`, and by which name, in `Host`. Every HTTP listener asks [`Guard::check`] before anything else.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, Version, header};

use super::security::Tokens;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who may ask a listener.
#[derive(Clone, Debug)]
pub struct Guard {
    tokens: Tokens,
    /// Whether it listens on a loopback address.
    local: bool,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Status of the answer.
    pub status: StatusCode,
    /// A short, stable word.
    pub reason: &'static str,
    /// A sentence.
    pub text: &'static str,
}

const FOREIGN_HOST: Kept = Kept {
    status: StatusCode::MISDIRECTED_REQUEST,
    reason: "foreign_host",
    text: "without a token this listener answers by the names of this machine's loopback address only: localhost, 127.0.0.1, [::1]",
};
const FOREIGN_ORIGIN: Kept = Kept {
    status: StatusCode::FORBIDDEN,
    reason: "foreign_origin",
    text: "without a token this listener answers no page of another origin",
};

impl Guard {
    /// That of a listener with these tokens.
    pub(super) fn new(tokens: Tokens, address: IpAddr) -> Self {
        Guard { tokens, local: address.is_loopback() }
    }

    /// Whether a request may go on. Where tokens are asked for, no page can send one that it does not know.
    ///
    /// # Errors
    /// Why it may not.
    pub fn check(&self, request: &Parts) -> Result<(), Kept> {
        if self.tokens.required() {
            return Ok(());
        }
        check(request, self.local)
    }
}

/// Whether a request comes from a page of its own origin, or from no page: what a session of a browser asks for counts only then.
#[must_use]
pub fn own_page(request: &Parts) -> bool {
    check(request, false).is_ok()
}

fn check(request: &Parts, local: bool) -> Result<(), Kept> {
    let headers = &request.headers;
    let named = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    // HTTP/2 names the host in the target, and HTTP/1 may.
    let hosts: Vec<&str> = named.chain(request.uri.authority().map(|host| host.as_str())).collect();
    // Only what is no browser leaves it out: before version 1.1 it may.
    let unnamed = hosts.is_empty() && request.version > Version::HTTP_10;
    if local && (unnamed || !hosts.iter().all(|host| is_local(host))) {
        return Err(FOREIGN_HOST);
    }
    for origin in headers.get_all(header::ORIGIN) {
        let authority =
            origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
        let own = authority
            .is_some_and(|own| !hosts.is_empty() && hosts.iter().all(|host| host.eq_ignore_ascii_case(own)));
        if !own {
            return Err(FOREIGN_ORIGIN);
        }
    }
    let reads = matches!(request.method, Method::GET | Method::HEAD);
    let site = headers.get_all(SITE).iter().any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    if site && !reads { Err(FOREIGN_ORIGIN) } else { Ok(()) }
}

/// Whether a host, with or without a port, is this machine by a name that nobody else can give away.
fn is_local(host: &str) -> bool {
    // Only within brackets an address has colons.
    let (name, port) = match host.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((name, port))) if name.contains(':') => (name, port),
        Some(_) => return false,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.is_empty() || port.strip_prefix(':').is_some_and(digits);
    let address = || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    port && (name.eq_ignore_ascii_case("localhost") || address())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<&'static str> {
        let mut request = axum::http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts, true).err().map(|kept| kept.reason)
    }

    #[test]
    fn only_what_is_asked_for_on_this_machine_is_answered() {
        let host = |host| ask("GET", "/metrics", &[("host", host)]);
        for own in ["localhost", "LOCALHOST:9464", "127.0.0.1:9464", "127.3.2.1", "[::1]:80", "[::1]"] {
            assert_eq!(host(own), None, "{own}");
        }
        let foreign = [
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "[::1",
            "[::1]x",
            "192.168.0.1",
            "[::2]",
            "127.0.0.1@evil.example",
            "localhost@evil",
            "evil#localhost",
            "::1:9464x",
        ];
        for host_of in foreign {
            assert_eq!(host(host_of), Some("foreign_host"), "{host_of}");
        }
        assert_eq!(ask("GET", "/metrics", &[]), Some("foreign_host"));
        assert_eq!(ask("GET", "http://evil.example/", &[("host", "localhost")]), Some("foreign_host"));
        assert_eq!(ask("GET", "/", &[("host", "localhost"), ("host", "evil.example")]), Some("foreign_host"));
        let from = |method, origin| ask(method, "/", &[("host", "localhost:1"), ("origin", origin)]);
        for method in ["GET", "POST", "OPTIONS"] {
            assert_eq!(from(method, "http://localhost:1"), None);
            for origin in [
                "http://evil.example",
                "null",
                "http://localhost",
                "http://localhost:2",
                "file://",
                "",
                "http://127.0.0.1:1",
            ] {
                assert_eq!(from(method, origin), Some("foreign_origin"), "{origin}");
            }
        }
        let site = |method, site| ask(method, "/", &[("host", "localhost"), ("sec-fetch-site", site)]);
        assert_eq!((site("POST", "same-origin"), site("GET", "cross-site")), (None, None));
        assert_eq!(
            (site("POST", "cross-site"), site("PUT", "same-site")),
            (Some("foreign_origin"), Some("foreign_origin"))
        );
    }
}
