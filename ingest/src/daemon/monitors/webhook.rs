//! Posting alerts.

use std::time::Duration;

use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderName};

use super::checkpoint::Told;
use super::config::MonitorConfig;

/// First and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// Longest time that an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// By this the receiver knows an alert that comes again.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Posts an alert until it is taken. It comes again, with the same key, when nobody knows whether it was.
pub(crate) async fn post(config: &MonitorConfig, told: &Told, failed: impl Fn(&str)) {
    let Some(url) = &config.webhook else { return };
    let client = Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
    let client = match client {
        Ok(client) => client,
        Err(error) => return failed(&error.to_string()),
    };
    let body = serde_json::to_vec(told).unwrap_or_default();
    let mut pause = PAUSES.0;
    loop {
        let mut request =
            client.post(url.clone()).header(CONTENT_TYPE, "application/json").header(KEY, &told.id);
        if let Some(token) = &config.token {
            request = request.bearer_auth(token);
        }
        match request.body(body.clone()).send().await {
            Ok(answer) if answer.status().is_success() => return,
            Ok(answer) => failed(&format!("the answer is {}", answer.status())),
            // The address may hold a secret: it is left out.
            Err(error) => failed(&error.without_url().to_string()),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}
