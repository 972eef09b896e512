//! Maelstrom's services: key-value stores and a source of timestamps, as actors beside the nodes.
//!
//! Their freedom is the order of messages. `seq-kv` has a replica for each node, which answers the node's reads: what it has not been told yet is the
//! past in which that node lives. `lww-kv` has five replicas, and a request goes to any of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::checkers::canonical;

/// Names of the services.
pub const SERVICES: [&str; 4] = ["lin-kv", "seq-kv", "lww-kv", "lin-tso"];

/// Replicas of `lww-kv`.
pub(crate) const REPLICAS: usize = 5;

/// Which part of which service an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    LinKv,
    LinTso,
    /// Takes updates.
    Master,
    /// Answers the node of that number.
    Follower(usize),
    /// One of several, by its number.
    Replica(usize),
}

impl Part {
    /// The service, by its name.
    pub(crate) fn service(self) -> &'static str {
        let [lin_kv, seq_kv, lww_kv, lin_tso] = SERVICES;
        match self {
            Part::LinKv => lin_kv,
            Part::Master | Part::Follower(_) => seq_kv,
            Part::Replica(_) => lww_kv,
            Part::LinTso => lin_tso,
        }
    }
}

/// When a value was written: the replica's counter, and the replica.
type Stamp = (u64, usize);

/// The state of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Service {
    part: Part,
    /// By canonical key: the value as text, and when it was written.
    values: BTreeMap<String, (String, Stamp)>,
    /// Updates so far, or timestamps.
    count: u64,
    /// Updates that came too early.
    early: BTreeMap<u64, String>,
    /// What was answered, by node and number of the request.
    answers: BTreeMap<(String, u64), String>,
}

/// What a part sends.
pub(crate) enum Sent {
    /// To a node, in the name of the service.
    Answer { to: String, body: Value },
    /// To all other parts of the service.
    Others(Value),
}

impl Service {
    pub(crate) fn new(part: Part) -> Service {
        Service { part, values: BTreeMap::new(), count: 0, early: BTreeMap::new(), answers: BTreeMap::new() }
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// For people.
    pub(crate) fn describe(&self) -> Value {
        let values: serde_json::Map<String, Value> = self
            .values
            .iter()
            .map(|(key, (value, _))| (key.clone(), serde_json::from_str(value).unwrap_or_default()))
            .collect();
        match self.part {
            Part::LinTso => json!({ "next": self.count }),
            _ => json!({ "values": values }),
        }
    }

    /// What it answered to a request.
    pub(crate) fn answer(&self, node: &str, id: u64) -> Option<&str> {
        self.answers.get(&(node.to_owned(), id)).map(String::as_str)
    }

    /// Whether it has something to tell other replicas.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// All that it has, for other replicas.
    pub(crate) fn gossip(&self) -> Value {
        let all = self.values.iter().map(|(key, (value, stamp))| json!([key, value, stamp.0, stamp.1]));
        json!({ "type": "gossip", "values": all.collect::<Vec<_>>() })
    }

    /// One store that knows what any of these knows.
    pub(crate) fn merged<'a>(mut parts: impl Iterator<Item = &'a Service>) -> Option<Service> {
        let mut all = parts.next()?.clone();
        for other in parts {
            all.answers.extend(other.answers.clone());
            match (all.part, other.part) {
                (Part::Replica(_), Part::Replica(_)) => {
                    all.count = all.count.max(other.count);
                    other.values.iter().for_each(|(key, new)| all.later(key, new.clone()));
                }
                (Part::Follower(_), Part::Master) => {
                    let answers = std::mem::take(&mut all.answers);
                    all = Service { answers, ..other.clone() };
                }
                _ => {}
            }
        }
        // Nobody lives in the past any more.
        all.part = match all.part {
            Part::LinTso => Part::LinTso,
            _ => Part::LinKv,
        };
        Some(all)
    }

    fn later(&mut self, key: &str, new: (String, Stamp)) {
        if self.values.get(key).is_none_or(|known| known.1 < new.1) {
            self.values.insert(key.to_owned(), new);
        }
    }

    /// Takes a message of a node.
    pub(crate) fn request(&mut self, node: &str, body: &Value) -> Vec<Sent> {
        let id = body.get("msg_id").and_then(Value::as_u64);
        let kind = body.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut answer = match (self.part, kind.as_str()) {
            (Part::LinTso, "ts") => {
                self.count += 1;
                json!({ "type": "ts_ok", "ts": self.count - 1 })
            }
            (Part::LinTso, _) => unsupported(&kind),
            _ => self.asked(&kind, body),
        };
        let Some(id) = id else { return Vec::new() };
        if let Some(object) = answer.as_object_mut() {
            object.insert("in_reply_to".into(), id.into());
        }
        if self.part == Part::Master {
            // The answer comes from the replica that the node sees, once that has seen the update.
            self.count += 1;
            let key = canonical(body.get("key").unwrap_or(&Value::Null));
            let value = self.values.get(&key).map(|(value, _)| value.clone());
            let update = json!({
                "type": "update", "version": self.count, "key": key, "value": value, "node": node, "answer": answer,
            });
            return vec![Sent::Others(update)];
        }
        self.answered(node, id, answer)
    }

    fn answered(&mut self, node: &str, id: u64, body: Value) -> Vec<Sent> {
        self.answers.insert((node.to_owned(), id), body.to_string());
        vec![Sent::Answer { to: node.to_owned(), body }]
    }

    fn asked(&mut self, kind: &str, body: &Value) -> Value {
        let none = Value::Null;
        let key = canonical(body.get("key").unwrap_or(&none));
        let known = self.values.get(&key).map(|(value, _)| value.clone());
        let part = |name: &str| body.get(name).unwrap_or(&none);
        match (kind, known) {
            ("read", None) => missing(),
            ("read", Some(value)) => {
                json!({ "type": "read_ok", "value": serde_json::from_str::<Value>(&value).unwrap_or_default() })
            }
            ("write", _) => {
                self.write(&key, part("value"));
                json!({ "type": "write_ok" })
            }
            ("cas", None) if part("create_if_not_exists").as_bool() != Some(true) => missing(),
            ("cas", Some(value))
                if canonical(&serde_json::from_str(&value).unwrap_or_default())
                    != canonical(part("from")) =>
            {
                json!({ "type": "error", "code": 22, "text": format!("expected {}, but had {value}", part("from")) })
            }
            ("cas", _) => {
                self.write(&key, part("to"));
                json!({ "type": "cas_ok" })
            }
            _ => unsupported(kind),
        }
    }

    fn write(&mut self, key: &str, value: &Value) {
        let stamp = match self.part {
            Part::Replica(number) => {
                self.count += 1;
                (self.count, number)
            }
            _ => (0, 0),
        };
        self.values.insert(key.to_owned(), (value.to_string(), stamp));
    }

    /// Takes a message of another part.
    pub(crate) fn told(&mut self, body: &Value, own: &str) -> Vec<Sent> {
        if let Part::Replica(_) = self.part {
            for new in body.get("values").and_then(Value::as_array).into_iter().flatten() {
                let Some([key, value, count, replica]) = new.as_array().map(Vec::as_slice) else { continue };
                if let (Some(key), Some(value), Some(count), Some(replica)) =
                    (key.as_str(), value.as_str(), count.as_u64(), replica.as_u64())
                {
                    self.count = self.count.max(count);
                    self.later(key, (value.to_owned(), (count, replica as usize)));
                }
            }
            return Vec::new();
        }
        if let Some(version) = body.get("version").and_then(Value::as_u64) {
            self.early.insert(version, body.to_string());
        }
        let mut sent = Vec::new();
        while let Some(next) = self.early.remove(&(self.count + 1)) {
            self.count += 1;
            let update: Value = serde_json::from_str(&next).unwrap_or_default();
            let text = |name: &str| update.get(name).and_then(Value::as_str);
            if let (Some(key), Some(value)) = (text("key"), text("value")) {
                self.values.insert(key.to_owned(), (value.to_owned(), (0, 0)));
            }
            let answer = update.get("answer").cloned().unwrap_or_default();
            if let (true, Some(id)) =
                (text("node") == Some(own), answer.get("in_reply_to").and_then(Value::as_u64))
            {
                sent.extend(self.answered(own, id, answer));
            }
        }
        sent
    }
}

fn missing() -> Value {
    json!({ "type": "error", "code": 20, "text": "key does not exist" })
}

fn unsupported(kind: &str) -> Value {
    json!({ "type": "error", "code": 10, "text": format!("'{kind}' is not supported") })
}
