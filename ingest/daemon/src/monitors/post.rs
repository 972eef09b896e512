//! What all posts to other services share.

use std::time::Duration;

use reqwest::ClientBuilder;
use url::Url;

/// Longest time that an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client for one address, which follows no redirect.
pub(crate) fn builder(url: &Url) -> ClientBuilder {
    let builder = ClientBuilder::new().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none());
    match url.scheme() {
        // It needs no certificates, and works where there are none.
        "http" => builder.tls_certs_only([]),
        _ => builder,
    }
}

/// An error with its causes.
pub(crate) fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut all: Vec<String> = causes.map(ToString::to_string).collect();
    all.dedup();
    all.join(": ")
}
