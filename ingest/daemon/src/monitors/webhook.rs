//! Posting alerts.

use std::time::Duration;

use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderName};
use url::Url;

use super::checkpoint::Told;
use super::config::{MonitorConfig, is_loopback};
use super::post::{builder, said};
use crate::backoff::Backoff;

/// First and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// By this the receiver knows an alert that comes again.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Posts an alert until it is taken. It comes again, with the same key, when nobody knows whether it was.
pub(crate) async fn post(config: &MonitorConfig, told: &Told, failed: impl Fn(&str)) {
    let Some(url) = &config.webhook else { return };
    let body = serde_json::to_vec(told).unwrap_or_default();
    let (mut client, mut backoff) = (None, Backoff::new(PAUSES.0, PAUSES.1));
    loop {
        match attempt(config, url, &mut client, &told.id, body.clone()).await {
            Ok(()) => return,
            Err(reason) => failed(&reason),
        }
        tokio::time::sleep(backoff.after(Duration::ZERO)).await;
    }
}

/// Posts once. Without a client one is made, which may not be possible now and be later: certificates may be installed.
async fn attempt(
    config: &MonitorConfig,
    url: &Url,
    client: &mut Option<Client>,
    id: &str,
    body: Vec<u8>,
) -> Result<(), String> {
    let client = match client {
        Some(client) => client,
        None => client.insert(build(config, url).map_err(|error| said(&error))?),
    };
    let mut request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").header(KEY, id);
    if let Some(token) = &config.token {
        request = request.bearer_auth(token);
    }
    match request.body(body).send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("the answer is {}", answer.status())),
        // The address may hold a secret: it is left out.
        Err(error) => Err(said(&error.without_url())),
    }
}

fn build(config: &MonitorConfig, url: &Url) -> reqwest::Result<Client> {
    let mut builder = builder(url);
    // A proxy reads what is posted over http, the token too.
    if !config.proxy || is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}
