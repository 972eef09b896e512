//! What a span says of messages, by OpenTelemetry's semantic conventions, old and new.
//!
//! `messaging.operation` (until 1.25) and `messaging.operation.type` / `messaging.operation.name` (since 1.26) are read
//! alike; `messaging.destination` and `messaging.source.name` are older names of `messaging.destination.name`.

use super::attributes::text;
use super::{Attributes, Context, Span, SpanKind};

/// What an event of a span is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A message goes out; its id is the span's own context.
    Send,
    /// Messages with these ids come in; one without an id where the list is empty.
    Receive(Vec<Context>),
    /// Something within the actor.
    Local,
}

/// What a messaging span does with messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Create,
    Send,
    Receive,
    Process,
    Settle,
}

/// The operation, from its type, else from the words that libraries use for its name.
fn operation(attributes: &Attributes) -> Option<Operation> {
    let name = ["messaging.operation.type", "messaging.operation", "messaging.operation.name"]
        .iter()
        .find_map(|key| text(attributes, key))?;
    Some(match name.to_ascii_lowercase().as_str() {
        "create" => Operation::Create,
        "send" | "publish" | "produce" | "enqueue" => Operation::Send,
        "receive" | "poll" | "pull" | "fetch" | "dequeue" => Operation::Receive,
        "process" | "deliver" | "consume" | "handle" => Operation::Process,
        "settle" | "ack" | "nack" | "acknowledge" | "complete" | "commit" | "reject" | "abandon" => {
            Operation::Settle
        }
        _ => return None,
    })
}

/// Whether a span lasts until messages come, and not from then on.
pub(super) fn waits_for_messages(span: &Span) -> bool {
    operation(&span.attributes) == Some(Operation::Receive)
}

/// The role of a span.
pub(super) fn role(span: &Span) -> Role {
    match (operation(&span.attributes), span.kind) {
        (Some(Operation::Settle), _) => Role::Local,
        // Sends what other spans created: their contexts travel, not this one's.
        (Some(Operation::Send), SpanKind::Client) if !span.links.is_empty() => Role::Local,
        (Some(Operation::Create | Operation::Send), _) => Role::Send,
        // Asking for messages and getting none.
        (Some(Operation::Receive), kind) if kind != SpanKind::Consumer && span.links.is_empty() => {
            Role::Local
        }
        (Some(Operation::Receive | Operation::Process), _) => received(span),
        (None, SpanKind::Producer | SpanKind::Client) => Role::Send,
        (None, SpanKind::Consumer | SpanKind::Server) => received(span),
        (None, SpanKind::Internal | SpanKind::Unspecified) => Role::Local,
    }
}

/// The messages taken: those linked, else the parent, unless the parent is known to be in the same process.
fn received(span: &Span) -> Role {
    let mut contexts: Vec<Context> = Vec::new();
    for link in span.links.iter().filter(|_| span.kind != SpanKind::Server) {
        if !contexts.contains(&link.context) {
            contexts.push(link.context.clone());
        }
    }
    if contexts.is_empty() {
        if span.shared {
            contexts.push(span.context.clone());
        } else if let Some(parent) = span.parent.as_ref().filter(|_| span.remote_parent != Some(false)) {
            contexts.push(Context { trace: span.context.trace.clone(), span: parent.clone() });
        } else if span.parent.is_some() && span.kind != SpanKind::Server {
            // Handled within a span that took the message already.
            return Role::Local;
        }
    }
    Role::Receive(contexts)
}

/// Where messages go to or come from: queue, topic or subscription.
fn destination(attributes: &Attributes) -> Option<String> {
    [
        "messaging.destination.name",
        "messaging.source.name",
        "messaging.destination",
        "messaging.destination.template",
        "messaging.destination.subscription.name",
        "kafka.topic",
        "rabbit.queue",
        "rabbit.exchange",
        "jms.queue",
        "jms.topic",
        "zipkin.remote",
        "messaging.system",
    ]
    .iter()
    .find_map(|key| text(attributes, key))
    .map(str::to_owned)
}

/// The service or address at the other end of a request.
fn peer(attributes: &Attributes, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| {
        let name = text(attributes, key)?;
        let port = match *key {
            "server.address" => attributes.get("server.port"),
            "net.peer.name" | "net.peer.ip" => attributes.get("net.peer.port"),
            "url.full" | "http.url" => return host(name),
            _ => None,
        };
        Some(port.and_then(number).map_or_else(|| name.to_owned(), |port| format!("{name}:{port}")))
    })
}

fn number(value: &serde_json::Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Host and port of a URL.
fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// Unknown, or several.
const ANYONE: &str = "*";

/// The receiver's address of what a span sends. A message to a queue or topic may reach several.
pub(super) fn sent_to(span: &Span) -> String {
    let asked = &[
        "peer.service",
        "service.peer.name",
        "zipkin.remote",
        "server.address",
        "net.peer.name",
        "rpc.service",
        "url.full",
        "http.url",
        "http.host",
        "network.peer.address",
        "net.peer.ip",
        "db.system.name",
        "db.system",
    ];
    let request = !is_messaging(span);
    request.then(|| peer(&span.attributes, asked)).flatten().unwrap_or_else(|| ANYONE.to_owned())
}

/// The sender's address of what a span takes. Who sent to a queue or topic is not told.
pub(super) fn received_from(span: &Span) -> String {
    let asking =
        &["zipkin.remote", "client.address", "network.peer.address", "http.client_ip", "net.peer.ip"];
    let request = !is_messaging(span);
    request.then(|| peer(&span.attributes, asking)).flatten().unwrap_or_else(|| ANYONE.to_owned())
}

/// The type of a message: its queue or topic; for requests what is called.
pub(super) fn message_type(span: &Span) -> String {
    let message = is_messaging(span).then(|| destination(&span.attributes)).flatten();
    message.unwrap_or_else(|| span.name.clone())
}

fn is_messaging(span: &Span) -> bool {
    matches!(span.kind, SpanKind::Producer | SpanKind::Consumer)
        || span.attributes.keys().any(|key| key.starts_with("messaging."))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::otlp::Link;

    fn context(span: &str) -> Context {
        Context { trace: "t".into(), span: span.into() }
    }

    fn span(kind: SpanKind, attributes: Value) -> Span {
        let attributes = attributes.as_object().unwrap().clone();
        Span { context: context("own"), kind, attributes, name: "n".into(), ..Span::default() }
    }

    fn linked(mut span: Span, to: &[&str]) -> Span {
        span.links = to.iter().map(|s| Link { context: context(s), ..Link::default() }).collect();
        span
    }

    fn child(mut span: Span, remote: Option<bool>) -> Span {
        (span.parent, span.remote_parent) = (Some("p".into()), remote);
        span
    }

    #[test]
    fn conventions_old_and_new() {
        use SpanKind::{Client, Consumer, Internal, Producer};
        let receive = |ids: &[&str]| Role::Receive(ids.iter().map(|s| context(s)).collect());
        let cases = [
            (span(Producer, json!({"messaging.operation": "publish"})), Role::Send),
            (span(Producer, json!({"messaging.operation.type": "send"})), Role::Send),
            (span(Producer, json!({"messaging.operation.type": "create"})), Role::Send),
            (span(Internal, json!({"messaging.operation.name": "publish"})), Role::Send),
            (linked(span(Client, json!({"messaging.operation.type": "send"})), &["a", "b"]), Role::Local),
            (
                linked(span(Client, json!({"messaging.operation.type": "receive"})), &["a", "b"]),
                receive(&["a", "b"]),
            ),
            (span(Client, json!({"messaging.operation.type": "receive"})), Role::Local),
            (linked(span(Consumer, json!({"messaging.operation": "process"})), &["a", "a"]), receive(&["a"])),
            (child(span(Consumer, json!({"messaging.operation": "process"})), None), receive(&["p"])),
            (child(span(Consumer, json!({})), Some(true)), receive(&["p"])),
            (child(linked(span(Consumer, json!({})), &["a"]), Some(true)), receive(&["a"])),
            (child(span(Consumer, json!({"messaging.operation.type": "process"})), Some(false)), Role::Local),
            (span(Consumer, json!({})), receive(&[])),
            (linked(span(Client, json!({"messaging.operation.type": "settle"})), &["a"]), Role::Local),
            (linked(span(Internal, json!({})), &["a"]), Role::Local),
        ];
        for (span, expected) in cases {
            assert_eq!(role(&span), expected, "{span:?}");
        }
    }

    #[test]
    fn requests() {
        assert_eq!(role(&span(SpanKind::Client, json!({"rpc.system": "grpc"}))), Role::Send);
        let server = child(linked(span(SpanKind::Server, json!({})), &["x"]), None);
        assert_eq!(role(&server), Role::Receive(vec![context("p")]));
        let shared = Span { shared: true, ..server };
        assert_eq!(role(&shared), Role::Receive(vec![context("own")]));
        assert_eq!(role(&span(SpanKind::Server, json!({}))), Role::Receive(vec![]));
    }

    #[test]
    fn addresses() {
        let to = |kind, attributes| sent_to(&span(kind, attributes));
        assert_eq!(to(SpanKind::Producer, json!({"messaging.destination": "q", "net.peer.name": "h"})), "*");
        assert_eq!(to(SpanKind::Client, json!({"server.address": "db", "server.port": 5432})), "db:5432");
        assert_eq!(to(SpanKind::Client, json!({"http.url": "https://u:p@shop:81/a?b"})), "shop:81");
        assert_eq!(
            to(SpanKind::Client, json!({"peer.service": "cart", "server.address": "10.0.0.1"})),
            "cart"
        );
        assert_eq!(to(SpanKind::Client, json!({})), "*");
        // The queue is nobody who sent.
        assert_eq!(received_from(&span(SpanKind::Consumer, json!({"messaging.source.name": "q"}))), "*");
    }
}
