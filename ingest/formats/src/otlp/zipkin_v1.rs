//! Spans of version 1 of Zipkin's JSON, brought into version 2.
//!
//! A span of version 1 has no kind and no service. Its annotations say both: each has a stamp, a value and the endpoint that made it. `cs` and
//! `cr` are of the client, `sr` and `ss` of the server, `ms` of a producer and `mr` of a consumer. Client and server share an id, and both may be
//! in one span. Binary annotations are tags; `sa`, `ca` and `ma` among them name the other end. What has none of these values is local.

use serde_json::{Map, Value};

/// A side of a request or message: its kind, the annotation that begins it, the one that ends it, and the address of the other end.
struct Side {
    kind: &'static str,
    begins: &'static str,
    ends: &'static str,
    remote: &'static str,
}

const SIDES: [Side; 4] = [
    Side { kind: "CLIENT", begins: "cs", ends: "cr", remote: "sa" },
    Side { kind: "SERVER", begins: "sr", ends: "ss", remote: "ca" },
    Side { kind: "PRODUCER", begins: "ms", ends: "ws", remote: "ma" },
    Side { kind: "CONSUMER", begins: "mr", ends: "wr", remote: "ma" },
];

/// Names of binary annotations that are addresses of other ends.
const REMOTES: [&str; 3] = ["sa", "ca", "ma"];

/// The spans of version 2 that an element stands for: itself, unless it is a span of version 1.
pub(super) fn upgraded(element: Value) -> Vec<Value> {
    match element.as_object().filter(|span| is_v1(span)).map(upgrade) {
        Some(spans) => spans,
        None => vec![element],
    }
}

fn list<'a>(span: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> + Clone {
    span.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a span is of version 1: it has binary annotations, or annotations with an endpoint.
fn is_v1(span: &Map<String, Value>) -> bool {
    let of_v2 = ["kind", "localEndpoint", "remoteEndpoint", "shared", "tags"];
    !of_v2.iter().any(|name| span.contains_key(*name))
        && (span.contains_key("binaryAnnotations")
            || list(span, "annotations").any(|a| a.get("endpoint").is_some()))
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn stamp(annotation: &Value) -> Option<u64> {
    let stamp = annotation.get("timestamp")?;
    stamp.as_u64().or_else(|| stamp.as_str()?.parse().ok()).filter(|stamp| *stamp > 0)
}

fn service(of: &Value) -> Option<&str> {
    of.get("endpoint").and_then(|endpoint| text(endpoint, "serviceName")).filter(|name| !name.is_empty())
}

fn upgrade(span: &Map<String, Value>) -> Vec<Value> {
    let annotations = || list(span, "annotations");
    let binary = || list(span, "binaryAnnotations");
    let with = |value: &str| annotations().find(|a| text(a, "value") == Some(value));
    let is_core =
        |a: &Value| SIDES.iter().any(|side| [Some(side.begins), Some(side.ends)].contains(&text(a, "value")));
    let is_remote =
        |b: &Value| text(b, "key").is_some_and(|key| REMOTES.contains(&key)) && !b["value"].is_string();
    let mut made: Vec<(Map<String, Value>, Option<String>)> = Vec::new();
    let begin = |kind: Option<&str>, endpoint: Option<&Value>, start: Option<u64>, end: Option<u64>| {
        let mut one = Map::new();
        for name in ["traceId", "id", "parentId", "name", "debug"] {
            one.extend(span.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        one.extend(kind.map(|kind| ("kind".to_owned(), Value::from(kind))));
        one.extend(endpoint.map(|endpoint| ("localEndpoint".to_owned(), endpoint.clone())));
        one.extend(start.map(|start| ("timestamp".to_owned(), Value::from(start))));
        let duration = start.zip(end).and_then(|(start, end)| end.checked_sub(start)).filter(|d| *d > 0);
        one.extend(duration.map(|duration| ("duration".to_owned(), Value::from(duration))));
        one
    };
    let whole = |name: &str| span.get(name).filter(|value| !value.is_null()).cloned();
    for side in &SIDES {
        let (begins, ends) = (with(side.begins), with(side.ends));
        let remote = binary().find(|b| text(b, "key") == Some(side.remote) && is_remote(b));
        let Some(core) = begins.or(ends) else { continue };
        let (start, end) = (begins.and_then(stamp), ends.and_then(stamp));
        let mut one = begin(Some(side.kind), core.get("endpoint"), start, end);
        one.extend(remote.and_then(|b| b.get("endpoint")).map(|e| ("remoteEndpoint".to_owned(), e.clone())));
        let client = made.first().is_some_and(|(one, _)| one.get("kind") == Some(&Value::from("CLIENT")));
        // A server that goes on with the client's span does not say when that began.
        if side.kind == "SERVER" && (client || whole("timestamp").is_none() && whole("parentId").is_some()) {
            one.insert("shared".to_owned(), Value::from(true));
        }
        made.push((one, service(core).map(str::to_owned)));
    }
    if made.is_empty() {
        let other = binary().find(|b| text(b, "key") == Some("sa") && is_remote(b));
        let own = annotations().chain(binary().filter(|b| !is_remote(b))).find(|of| service(of).is_some());
        let first = annotations().filter_map(stamp).min();
        // A span that knows only whom it asked was the client.
        let mut one = begin(other.map(|_| "CLIENT"), own.and_then(|of| of.get("endpoint")), first, None);
        one.extend(other.and_then(|b| b.get("endpoint")).map(|e| ("remoteEndpoint".to_owned(), e.clone())));
        made.push((one, own.and_then(service).map(str::to_owned)));
    }
    // What is said of the span as a whole is of who began it.
    let (one, _) = &mut made[0];
    for name in ["timestamp", "duration"] {
        if one.get("shared").is_none() {
            one.extend(
                whole(name).filter(|value| value.as_u64() != Some(0)).map(|value| (name.to_owned(), value)),
            );
        }
    }
    let of = |made: &[(Map<String, Value>, Option<String>)], who: Option<&str>| {
        made.iter().position(|(_, service)| service.is_some() && service.as_deref() == who).unwrap_or(0)
    };
    for annotation in annotations().filter(|a| !is_core(a)) {
        let place = of(&made, service(annotation));
        let mut kept = annotation.clone();
        if let Some(kept) = kept.as_object_mut() {
            kept.remove("endpoint");
        }
        let events = made[place].0.entry("annotations").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(events) = events.as_array_mut() {
            events.push(kept);
        }
    }
    for tag in binary().filter(|b| !is_remote(b)) {
        let (Some(key), Some(value)) = (text(tag, "key"), tag.get("value")) else { continue };
        let place = of(&made, service(tag));
        let tags = made[place].0.entry("tags").or_insert_with(|| Value::Object(Map::new()));
        if let Some(tags) = tags.as_object_mut() {
            tags.insert(key.to_owned(), value.clone());
        }
    }
    made.into_iter().map(|(one, _)| Value::Object(one)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(value: &str, stamp: u64, service: &str) -> Value {
        json!({"timestamp": stamp, "value": value, "endpoint": {"serviceName": service}})
    }

    #[test]
    fn both_sides_of_a_request_become_spans_that_share_their_id() {
        let spans = upgraded(json!({
            "traceId": "a", "id": "1", "name": "get", "timestamp": 10, "duration": 30,
            "annotations": [at("cs", 10, "front"), at("sr", 20, "back"), at("ss", 25, "back"), at("cr", 40, "front"),
                            at("retry", 12, "front"), at("cache miss", 22, "back")],
            "binaryAnnotations": [
                {"key": "http.path", "value": "/x", "endpoint": {"serviceName": "back"}},
                {"key": "sa", "value": true, "endpoint": {"serviceName": "balancer"}}],
        }));
        assert_eq!(
            spans,
            [
                json!({"traceId": "a", "id": "1", "name": "get", "kind": "CLIENT", "timestamp": 10, "duration": 30,
                       "localEndpoint": {"serviceName": "front"}, "remoteEndpoint": {"serviceName": "balancer"},
                       "annotations": [{"timestamp": 12, "value": "retry"}]}),
                json!({"traceId": "a", "id": "1", "name": "get", "kind": "SERVER", "timestamp": 20, "duration": 5, "shared": true,
                       "localEndpoint": {"serviceName": "back"}, "tags": {"http.path": "/x"},
                       "annotations": [{"timestamp": 22, "value": "cache miss"}]}),
            ]
        );
    }

    #[test]
    fn a_side_alone_a_message_and_something_local() {
        let one = |span: Value| {
            let spans = upgraded(span);
            assert_eq!(spans.len(), 1, "{spans:?}");
            spans.into_iter().next().unwrap_or_default()
        };
        let server =
            one(json!({"traceId": "a", "id": "2", "parentId": "1", "annotations": [at("sr", 5, "b")]}));
        assert_eq!(
            (&server["kind"], &server["shared"], &server["timestamp"]),
            (&json!("SERVER"), &json!(true), &json!(5))
        );
        let root = one(json!({"traceId": "a", "id": "2", "timestamp": 4, "annotations": [at("sr", 5, "b")]}));
        assert_eq!((&root["shared"], &root["timestamp"]), (&Value::Null, &json!(4)));
        let message = one(json!({"traceId": "a", "id": "2", "annotations": [at("ms", 5, "b")]}));
        assert_eq!(
            (&message["kind"], &message["localEndpoint"]["serviceName"]),
            (&json!("PRODUCER"), &json!("b"))
        );
        let local =
            one(json!({"traceId": "a", "id": "2", "timestamp": 7, "duration": 2, "binaryAnnotations": [
            {"key": "lc", "value": "work", "endpoint": {"serviceName": "b"}}]}));
        assert_eq!((&local["kind"], &local["localEndpoint"]["serviceName"]), (&Value::Null, &json!("b")));
        assert_eq!((&local["timestamp"], &local["tags"]), (&json!(7), &json!({"lc": "work"})));
        let asks = one(json!({"traceId": "a", "id": "2", "timestamp": 7, "binaryAnnotations": [
            {"key": "sa", "value": true, "endpoint": {"serviceName": "db"}}]}));
        assert_eq!((&asks["kind"], &asks["remoteEndpoint"]["serviceName"]), (&json!("CLIENT"), &json!("db")));
        let answered = one(json!({"traceId": "a", "id": "2", "annotations": [at("cr", 5, "b")]}));
        assert_eq!((&answered["kind"], answered.get("timestamp")), (&json!("CLIENT"), None));
    }

    #[test]
    fn version_2_stays_as_it_is() {
        for span in [
            json!({"traceId": "a", "id": "1", "kind": "CLIENT", "timestamp": 1, "annotations": [{"timestamp": 2, "value": "cs"}]}),
            json!({"traceId": "a", "id": "1", "timestamp": 1}),
            json!(7),
        ] {
            assert_eq!(upgraded(span.clone()), [span]);
        }
    }
}
