//! Telling a receiver: one queue for each, so that one that is away holds up no other.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use demi_incidents::event::Event;
use demi_incidents::fold::Sent;
use demi_incidents::tell::{self, Form, Letter};
use demi_incidents::{Anywhere, Journal, hex_of};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, StatusCode};

use super::config::{ReceiverConfig, all_pass, is_literal};
use super::shared::Shared;
use crate::backoff::Backoff;
use crate::monitors::post;
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;

/// First and longest pause between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));
/// How long a message is tried whose receiver is away.
const AWAY: Duration = Duration::from_secs(72 * 3600);
/// How often a message is tried that its receiver refuses.
const REFUSED: u32 = 3;
/// Longest pause that a receiver may ask for.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often it is looked whether there is something to tell.
const LOOK: Duration = Duration::from_millis(250);

/// What tells one receiver.
#[derive(Clone)]
pub(super) struct Telling {
    pub(super) name: String,
    pub(super) config: ReceiverConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) public_url: String,
    pub(super) shutdown: Shutdown,
    pub(super) tasks: Tasks,
}

/// A message that is to be sent.
struct Message {
    key: String,
    body: Vec<u8>,
}

/// What came of an attempt.
enum Answer {
    Taken,
    /// It may be taken later; not before this pause, where the receiver asked for one.
    Later(Option<Duration>, String),
    Refused(String),
}

impl Telling {
    /// The name of its task.
    pub(super) fn task(&self) -> String {
        format!("incidents receiver {}", self.name)
    }

    /// Tells until the daemon stops. What is left is told at its next start.
    pub(super) async fn run(self) {
        let mut journal = None;
        let mut client = None;
        while !self.shutdown.is_thrown() {
            self.tasks.may_break(&self.task());
            if self.one(&mut journal, &mut client).await.is_none() {
                let _ = self.shutdown.unless(tokio::time::sleep(self.shared.pause(LOOK))).await;
            }
        }
    }

    /// Sends one message to its end; nothing where there is none.
    async fn one(&self, kept: &mut Option<Journal<Anywhere>>, client: &mut Option<Client>) -> Option<()> {
        let (name, shared) = (self.name.clone(), self.shared.clone());
        let (config, public_url) = (self.config.clone(), self.public_url.clone());
        let journal = kept.take();
        let next = move || -> Result<(Journal<Anywhere>, Option<Message>), String> {
            let mut journal = journal.unwrap_or_else(|| shared.part(&format!("receiver {name}")));
            let message = next(&mut journal, &name, &config, &public_url)?;
            Ok((journal, message))
        };
        let (journal, message) = match tokio::task::spawn_blocking(next).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::error!(
                    receiver = self.name,
                    error,
                    "nobody can be told: the journal cannot be used"
                );
                return None;
            }
            Err(_) => return None,
        };
        let Some(message) = message else {
            *kept = Some(journal);
            return None;
        };
        let ended = self.send(&message, client).await;
        let key = message.key;
        let write = move || {
            let mut journal = journal;
            let event = match ended {
                Some(Ok(())) => Event::Sent { key },
                Some(Err(reason)) => Event::Dead { key, reason },
                None => return Ok(journal),
            };
            journal.say(event).map(|_| journal)
        };
        if let Ok(Ok(journal)) = tokio::task::spawn_blocking(write).await {
            *kept = Some(journal);
        }
        Some(())
    }

    /// Sends a message: until it is taken, or is given up with a reason; nothing where the daemon stops.
    async fn send(&self, message: &Message, client: &mut Option<Client>) -> Option<Result<(), String>> {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let (began, mut refused) = (Instant::now(), 0);
        loop {
            self.tasks.may_break(&self.task());
            let asked = match attempt(&self.config, message, client).await {
                Answer::Taken => return Some(Ok(())),
                Answer::Later(_, reason) if began.elapsed() > AWAY => return Some(Err(reason)),
                Answer::Later(asked, reason) => {
                    tracing::warn!(
                        receiver = self.name,
                        message.key,
                        reason,
                        "a message was not taken; trying again"
                    );
                    asked
                }
                Answer::Refused(reason) => {
                    refused += 1;
                    tracing::warn!(receiver = self.name, message.key, reason, "a message was refused");
                    if refused >= REFUSED {
                        return Some(Err(reason));
                    }
                    None
                }
            };
            let pause = backoff.after(Duration::ZERO).max(asked.unwrap_or_default().min(LONGEST));
            self.shutdown.unless(tokio::time::sleep(pause)).await?;
        }
    }
}

/// Posts a message once.
async fn attempt(config: &ReceiverConfig, message: &Message, client: &mut Option<Client>) -> Answer {
    let client = match client {
        Some(client) => client,
        None => match client_of(config) {
            Ok(new) => client.insert(new),
            Err(error) => return Answer::Later(None, post::said(&error)),
        },
    };
    let mut request = client.post(config.url.clone()).header(CONTENT_TYPE, "application/json");
    request = request.header("idempotency-key", &message.key);
    if config.form == Form::Webhook {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
        request = request.header("webhook-id", &message.key).header("webhook-timestamp", seconds);
        let sign = |secret: &String| sign(secret, &message.key, seconds, &message.body);
        let signatures: Vec<String> = config.secrets.iter().map(sign).collect();
        if !signatures.is_empty() {
            request = request.header("webhook-signature", signatures.join(" "));
        }
    }
    match request.body(message.body.clone()).send().await {
        Ok(answer) if answer.status().is_success() => Answer::Taken,
        Ok(answer) => {
            let status = answer.status();
            let reason = format!("the answer is {status}");
            let later = status.is_server_error()
                || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS]
                    .contains(&status);
            let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            if later {
                Answer::Later(asked.map(Duration::from_secs), reason)
            } else {
                Answer::Refused(reason)
            }
        }
        // The address may hold a secret: it is left out.
        Err(error) => Answer::Later(None, post::said(&error.without_url())),
    }
}

fn client_of(config: &ReceiverConfig) -> reqwest::Result<Client> {
    let builder = post::builder(&config.url).no_proxy();
    let builder = match is_literal(&config.url) {
        true => builder,
        false => builder.dns_resolver(Arc::new(Guarded(config.clone()))),
    };
    builder.build()
}

/// Sends a receiver a message that says that it is a test, once: what was answered, or why it was not taken.
pub(super) async fn test(name: &str, config: &ReceiverConfig, public_url: &str) -> Result<(), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_nanos());
    let key = format!("test.{name}.{}", hex_of(&[name.as_bytes(), &now.to_le_bytes()]));
    let routing_key = config.secrets.first().map(String::as_str).unwrap_or_default();
    let mut client = None;
    for (at, body) in tell::test(config.form, &key, public_url, routing_key).iter().enumerate() {
        let key = if at == 0 { key.clone() } else { format!("{key}.{at}") };
        let body = serde_json::to_vec(body).unwrap_or_default();
        match attempt(config, &Message { key, body }, &mut client).await {
            Answer::Taken => {}
            Answer::Later(_, reason) | Answer::Refused(reason) => return Err(reason),
        }
    }
    Ok(())
}

/// Looks up names, and gives out addresses only if all of them may be reached; the connection then goes to these.
struct Guarded(ReceiverConfig);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let config = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let passed = all_pass(&config, found)?;
            Ok(Box::new(passed.into_iter()) as Addrs)
        })
    }
}

/// The next message of a receiver, which is being sent from now on.
fn next(
    journal: &mut Journal<Anywhere>,
    name: &str,
    config: &ReceiverConfig,
    public_url: &str,
) -> Result<Option<Message>, String> {
    journal.follow().map_err(|error| error.to_string())?;
    let waiting = {
        let state = journal.state();
        let waiting = state.deliveries().iter().find(|(_, delivery)| {
            delivery.receiver == name && matches!(delivery.sent, Sent::Queued | Sent::Sending)
        });
        waiting.map(|(key, delivery)| (key.clone(), delivery.clone()))
    };
    let Some((key, delivery)) = waiting else { return Ok(None) };
    let again = delivery.sent == Sent::Sending;
    if !again {
        journal.say(Event::Sending { key: key.clone() }).map_err(|error| error.to_string())?;
    }
    let routing_key = config.secrets.first().map(String::as_str).unwrap_or_default();
    let story = journal.story(delivery.id).map_err(|error| error.to_string())?;
    let state = journal.state();
    let (delivery, story) = (&delivery, story.as_slice());
    let letter = Letter { state: &state, delivery, story, key: &key, public_url, again, routing_key };
    let body = serde_json::to_vec(&letter.body(config.form)).unwrap_or_default();
    Ok(Some(Message { key, body }))
}

/// A signature of Standard Webhooks. A secret that begins with `whsec_` is base64, any other one counts as it stands.
fn sign(secret: &str, id: &str, seconds: u64, body: &[u8]) -> String {
    let decoded = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let mut content = format!("{id}.{seconds}.").into_bytes();
    content.extend_from_slice(body);
    format!("v1,{}", STANDARD.encode(hmac_sha256(&key, &content)))
}

fn hmac_sha256(key: &[u8], content: &[u8]) -> Vec<u8> {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, key);
    aws_lc_rs::hmac::sign(&key, content).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn a_message_is_signed_as_the_specification_says() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
