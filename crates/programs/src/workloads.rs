//! What clients do to a program, and the property that their history must have.
//!
//! The workloads are Maelstrom's: requests, answers and error codes are those of its protocol.

use demi_common::nearest;
use demi_schemas::scenario::WorkloadSettings;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};

use crate::book::{Book, Operation, Outcome};
use crate::checkers::{
    Action, Anomaly, Consistency, Interval, counter, is_linearizable, kafka, list_append, rw_register, set,
};
use crate::history::{Done, Fate, History};

/// Names of the workloads.
pub const WORKLOADS: [&str; 10] = [
    "echo",
    "unique-ids",
    "broadcast",
    "g-set",
    "g-counter",
    "pn-counter",
    "lin-kv",
    "kafka",
    "txn-list-append",
    "txn-rw-register",
];

/// Names of the topologies of `broadcast`.
const TOPOLOGIES: [&str; 4] = ["grid", "line", "tree4", "total"];

/// The last offset of a key that a poll told.
fn last_offset(told: &Value, key: &str) -> Option<u64> {
    let pairs = told.get(0)?.get(1)?.get(key)?.as_array()?;
    pairs.iter().filter_map(|pair| pair.get(0)?.as_u64()).max()
}

/// How many values are written again and again.
const FEW: u64 = 4;

/// Elements of a key's list at most, so that they stay short.
const TXN: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Echo,
    UniqueIds,
    Broadcast,
    GSet,
    GCounter,
    PnCounter,
    LinKv,
    Kafka,
    ListAppend,
    RwRegister,
}

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    kind: Kind,
    keys: u64,
    consistency: Consistency,
    topology: usize,
}

/// The one of some names that is meant, or which there are.
fn one_of(what: &str, wanted: &str, names: &[&str]) -> Result<usize, String> {
    names.iter().position(|name| *name == wanted).ok_or_else(|| {
        let near = nearest(wanted, names.iter().copied());
        let near = near.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
        format!("there is no {what} '{wanted}'; there are {}{near}", names.join(", "))
    })
}

impl Workload {
    /// The workload of a scenario.
    ///
    /// # Errors
    /// When there is none of that name, or none of its settings.
    pub fn new(settings: &WorkloadSettings) -> Result<Workload, String> {
        use Kind::{
            Broadcast, Echo, GCounter, GSet, Kafka, LinKv, ListAppend, PnCounter, RwRegister, UniqueIds,
        };
        let kinds =
            [Echo, UniqueIds, Broadcast, GSet, GCounter, PnCounter, LinKv, Kafka, ListAppend, RwRegister];
        let kind = kinds[one_of("workload", &settings.name, &WORKLOADS)?];
        let consistency = settings.consistency.as_deref().unwrap_or("serializable");
        let place = one_of("consistency", consistency, &Consistency::NAMES)?;
        let topology = one_of("topology", settings.topology.as_deref().unwrap_or("grid"), &TOPOLOGIES)?;
        let is_txn = matches!(kind, ListAppend | RwRegister);
        if settings.consistency.is_some() && !is_txn {
            return Err(format!(
                "the workload '{}' has no 'consistency': only transactions have",
                settings.name
            ));
        }
        if settings.topology.is_some() && kind != Broadcast {
            return Err(format!("the workload '{}' has no 'topology': only broadcast has", settings.name));
        }
        Ok(Workload {
            kind,
            keys: u64::from(settings.keys.unwrap_or(if is_txn { 2 } else { 1 })).max(1),
            consistency: Consistency::named(Consistency::NAMES[place]).unwrap_or(Consistency::Serializable),
            topology,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        WORKLOADS[self.kind as usize]
    }

    /// Its operations, by the types of their requests.
    #[must_use]
    pub fn operations(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Echo => &["echo"],
            Kind::UniqueIds => &["generate"],
            Kind::Broadcast => &["broadcast", "read"],
            Kind::GSet | Kind::GCounter | Kind::PnCounter => &["add", "read"],
            Kind::LinKv => &["read", "write", "cas"],
            Kind::Kafka => &["send", "poll", "commit_offsets", "list_committed_offsets"],
            Kind::ListAppend | Kind::RwRegister => &["txn"],
        }
    }

    /// The operation of a number; `choice` is a uniformly random number.
    #[must_use]
    pub fn operation(&self, id: u64, choice: u64) -> Operation {
        let key = choice / 16 % self.keys;
        let (f, value) = match self.kind {
            Kind::Echo => ("echo", Value::from(format!("please echo {id}"))),
            Kind::UniqueIds => ("generate", Value::Null),
            Kind::Broadcast | Kind::GSet if choice.is_multiple_of(4) => ("read", Value::Null),
            // The first is 0: what counts as nothing in many languages is an element like others.
            Kind::Broadcast => ("broadcast", Value::from(id.saturating_sub(1))),
            Kind::GSet => ("add", Value::from(id.saturating_sub(1))),
            Kind::GCounter | Kind::PnCounter if choice.is_multiple_of(4) => ("read", Value::Null),
            // Powers of two are told apart in any sum.
            Kind::GCounter => ("add", Value::from(1_u64 << (id % 24))),
            Kind::PnCounter => {
                let delta = 1_i64 << (id % 24);
                ("add", Value::from(if choice % 4 == 1 { -delta } else { delta }))
            }
            // Most values are written once, so that a read says which write it saw; what is swapped was written not long ago. Some come again, 0 among
            // them: programs take them for nothing, or for what was there before.
            Kind::LinKv => {
                let few = (choice >> 20).is_multiple_of(4);
                let value = if few { (choice >> 24) % FEW } else { id };
                match choice % 8 {
                    0..=3 => ("read", json!([key, null])),
                    4..=6 => ("write", json!([key, value])),
                    _ => {
                        let recent = id.saturating_sub(1 + choice / 256 % 4);
                        let from =
                            if (choice >> 28).is_multiple_of(4) { (choice >> 32) % FEW } else { recent };
                        ("cas", json!([key, [from, value]]))
                    }
                }
            }
            Kind::Kafka => {
                let key = key.to_string();
                match choice % 16 {
                    0..=6 => ("send", json!([["send", key, id.saturating_sub(1)]])),
                    7..=12 => {
                        let mut offsets = Map::new();
                        for other in 0..self.keys {
                            offsets.insert(other.to_string(), Value::from(0));
                        }
                        ("poll", json!([["poll", offsets]]))
                    }
                    13 => ("poll", json!([["poll", { key: choice / 256 % 4 }]])),
                    // What the client polled last is known when it asks.
                    14 => ("commit_offsets", json!({ key: null })),
                    _ => ("list_committed_offsets", json!([key])),
                }
            }
            Kind::ListAppend | Kind::RwRegister => {
                let write = if self.kind == Kind::ListAppend { "append" } else { "w" };
                let mut rest = choice / 16;
                let ops: Vec<Value> = (0..1 + choice % TXN)
                    .map(|n| {
                        let key = rest / 2 % self.keys;
                        let reads = rest.is_multiple_of(2);
                        rest = rest / 2 / self.keys;
                        if reads { json!(["r", key, null]) } else { json!([write, key, id * TXN + n]) }
                    })
                    .collect();
                ("txn", Value::from(ops))
            }
        };
        Operation { id, f: f.to_owned(), value, to: None }
    }

    /// The operation as the client of a history asks for it: of the keys of a commit that have no offset those that it polled, with the last offsets
    /// that it was told. Nothing where there are none.
    pub(crate) fn resolved(&self, operation: Operation, book: &Book, process: u16) -> Option<Operation> {
        let Some(offsets) = operation.value.as_object().filter(|_| operation.f == "commit_offsets") else {
            return Some(operation);
        };
        let polled =
            |key: &String| book.done(process, "poll").filter_map(|told| last_offset(told, key)).max();
        let told = offsets.iter().filter_map(|(key, offset)| {
            let offset = if offset.is_null() { Value::from(polled(key)?) } else { offset.clone() };
            Some((key.clone(), offset))
        });
        let value: Map<String, Value> = told.collect();
        (!value.is_empty()).then(|| Operation { value: value.into(), ..operation })
    }

    /// The body of a request.
    ///
    /// # Errors
    /// When the workload has no such operation.
    pub fn request(&self, operation: &Operation) -> Result<Value, String> {
        let (id, value) = (operation.id, &operation.value);
        self.body(operation.f.as_str(), value, id).ok_or_else(|| {
            format!("the workload '{}' has no operation '{}' of {value}", self.name(), operation.f)
        })
    }

    fn body(&self, f: &str, value: &Value, id: u64) -> Option<Value> {
        Some(match (self.kind, f) {
            (Kind::Echo, "echo") => json!({ "type": "echo", "msg_id": id, "echo": value }),
            (Kind::UniqueIds, "generate") => json!({ "type": "generate", "msg_id": id }),
            (Kind::Broadcast, "broadcast") => json!({ "type": "broadcast", "msg_id": id, "message": value }),
            (Kind::GSet, "add") => json!({ "type": "add", "msg_id": id, "element": value }),
            (Kind::GCounter | Kind::PnCounter, "add") => {
                json!({ "type": "add", "msg_id": id, "delta": value })
            }
            (Kind::Broadcast | Kind::GSet | Kind::GCounter | Kind::PnCounter, "read") => {
                json!({ "type": "read", "msg_id": id })
            }
            (Kind::LinKv, "read") => json!({ "type": "read", "msg_id": id, "key": pair(value)?.0 }),
            (Kind::LinKv, "write") => {
                let (key, value) = pair(value)?;
                json!({ "type": "write", "msg_id": id, "key": key, "value": value })
            }
            (Kind::LinKv, "cas") => {
                let (key, swap) = pair(value)?;
                let (from, to) = pair(swap)?;
                json!({ "type": "cas", "msg_id": id, "key": key, "from": from, "to": to })
            }
            (Kind::Kafka, "send") => match only(value)? {
                [_, key, message] => json!({ "type": "send", "msg_id": id, "key": key, "msg": message }),
                _ => return None,
            },
            (Kind::Kafka, "poll") => match only(value)? {
                [_, offsets @ Value::Object(_)] => {
                    json!({ "type": "poll", "msg_id": id, "offsets": offsets })
                }
                _ => return None,
            },
            (Kind::Kafka, "commit_offsets") if value.is_object() => {
                json!({ "type": "commit_offsets", "msg_id": id, "offsets": value })
            }
            (Kind::Kafka, "list_committed_offsets") if value.is_array() => {
                json!({ "type": "list_committed_offsets", "msg_id": id, "keys": value })
            }
            (Kind::ListAppend | Kind::RwRegister, "txn") if value.is_array() => {
                json!({ "type": "txn", "msg_id": id, "txn": value })
            }
            _ => return None,
        })
    }

    /// The operation that a request asks for: the way back from [`Workload::request`]. Nothing where it is none of this workload.
    #[must_use]
    pub fn asked(&self, body: &Value) -> Option<Operation> {
        let field = |name: &str| body.get(name).cloned();
        let f = body.get("type")?.as_str().filter(|f| self.operations().contains(f))?;
        let id = body.get("msg_id")?.as_u64()?;
        let value = match (self.kind, f) {
            (Kind::Echo, _) => field("echo")?,
            (Kind::Broadcast, "broadcast") => field("message")?,
            (Kind::GSet, "add") => field("element")?,
            (Kind::GCounter | Kind::PnCounter, "add") => field("delta")?,
            (Kind::LinKv, "read") => json!([field("key")?, null]),
            (Kind::LinKv, "write") => json!([field("key")?, field("value")?]),
            (Kind::LinKv, "cas") => json!([field("key")?, [field("from")?, field("to")?]]),
            (Kind::Kafka, "send") => json!([["send", field("key")?, field("msg")?]]),
            (Kind::Kafka, "poll") => json!([["poll", field("offsets")?]]),
            (Kind::Kafka, "commit_offsets") => field("offsets")?,
            (Kind::Kafka, "list_committed_offsets") => field("keys")?,
            (Kind::ListAppend | Kind::RwRegister, _) => field("txn")?,
            _ => Value::Null,
        };
        let operation = Operation { id, f: f.to_owned(), value, to: None };
        self.request(&operation).is_ok().then_some(operation)
    }

    /// The name of the topology that nodes were told, if it is one of those that there are.
    #[must_use]
    pub(crate) fn topology_of(&self, nodes: &[String], told: &Value) -> Option<&'static str> {
        let sets = |topology: &Value| -> Option<Vec<Vec<String>>> {
            let near = |node: &String| {
                let near = topology.get(node)?.as_array()?;
                let mut near: Vec<String> =
                    near.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
                near.sort_unstable();
                Some(near)
            };
            nodes.iter().map(near).collect()
        };
        let told = sets(told)?;
        (0..TOPOLOGIES.len()).map(|topology| (topology, Workload { topology, ..self.clone() })).find_map(
            |(topology, with)| {
                let body = with.bootstrap(nodes)?;
                (sets(body.get("topology")?)? == told).then_some(TOPOLOGIES[topology])
            },
        )
    }

    /// What is left of an operation without each of its parts, with the part's name.
    #[must_use]
    pub fn smaller(&self, operation: &Operation) -> Vec<(String, Operation)> {
        let parts = match (self.kind, &operation.value) {
            (Kind::ListAppend | Kind::RwRegister, Value::Array(parts)) if parts.len() > 1 => parts,
            _ => return Vec::new(),
        };
        let without = |at: usize| {
            let mut rest = parts.clone();
            rest.remove(at);
            let operation = Operation { value: Value::Array(rest), ..operation.clone() };
            (format!("part {} of operation {}", at + 1, operation.id), operation)
        };
        (0..parts.len()).map(without).collect()
    }

    /// What an answer means.
    ///
    /// # Errors
    /// When the protocol knows no such answer to that operation.
    pub fn outcome(&self, operation: &Operation, body: &Value) -> Result<Outcome, String> {
        let type_ = body.get("type").and_then(Value::as_str).unwrap_or_default();
        if type_ == "error" {
            let code = body.get("code").and_then(Value::as_u64);
            let text = body.get("text").and_then(Value::as_str).unwrap_or_default();
            let told = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
            let told = format!("{told} {text}").trim().to_owned();
            // An empty register is read as an error.
            if let (Kind::LinKv, "read", Some(20)) = (self.kind, operation.f.as_str(), code) {
                let key = pair(&operation.value).map_or(&Value::Null, |(key, _)| key);
                return Ok(Outcome::Done(json!([key, null])));
            }
            return Ok(if code.is_some_and(is_definite) {
                Outcome::Refused(told)
            } else {
                Outcome::Unknown(told)
            });
        }
        let expected = format!("{}_ok", operation.f);
        if type_ != expected {
            return Err(format!("an answer of type '{type_}' to '{}'", operation.f));
        }
        let field = |name: &str| {
            body.get(name).cloned().ok_or_else(|| format!("an answer '{expected}' without '{name}'"))
        };
        Ok(Outcome::Done(match (self.kind, operation.f.as_str()) {
            (Kind::Echo, _) => field("echo")?,
            (Kind::UniqueIds, _) => field("id")?,
            (Kind::Broadcast, "read") => field("messages")?,
            (Kind::GSet | Kind::GCounter | Kind::PnCounter, "read") => field("value")?,
            (Kind::LinKv, "read") => {
                let key = pair(&operation.value).map_or(&Value::Null, |(key, _)| key);
                json!([key, field("value")?])
            }
            (Kind::Kafka, "send") => match only(&operation.value) {
                Some([send, key, message]) => json!([[send, key, [field("offset")?, message]]]),
                _ => Value::Null,
            },
            (Kind::Kafka, "poll") => json!([["poll", field("msgs")?]]),
            (Kind::Kafka, "list_committed_offsets") => field("offsets")?,
            (Kind::ListAppend | Kind::RwRegister, _) => {
                let txn = field("txn")?;
                if !is_completed(&operation.value, &txn) {
                    return Err(format!("a transaction that is answered by another: {txn}"));
                }
                txn
            }
            _ => operation.value.clone(),
        }))
    }

    /// What every node is told before anything else, besides that it begins: type and content of a request.
    #[must_use]
    pub fn bootstrap(&self, nodes: &[String]) -> Option<Value> {
        if self.kind != Kind::Broadcast {
            return None;
        }
        let mut all = Map::new();
        for (at, node) in nodes.iter().enumerate() {
            let near = self.neighbours(at, nodes.len()).into_iter().map(|at| Value::from(nodes[at].as_str()));
            all.insert(node.clone(), near.collect());
        }
        Some(json!({ "type": "topology", "msg_id": 1_000_000, "topology": all }))
    }

    /// The neighbours of a node, in order.
    fn neighbours(&self, at: usize, count: usize) -> Vec<usize> {
        let side = (1..=count).find(|side| side * side >= count).unwrap_or(1);
        let near = |other: usize| match TOPOLOGIES[self.topology] {
            "grid" => {
                let ((x, y), (a, b)) = ((at % side, at / side), (other % side, other / side));
                x.abs_diff(a) + y.abs_diff(b) == 1
            }
            "line" => at.abs_diff(other) == 1,
            "tree4" => at > 0 && (at - 1) / 4 == other || other > 0 && (other - 1) / 4 == at,
            _ => at != other,
        };
        (0..count).filter(|&other| near(other)).collect()
    }

    /// The operation that reads what is there in the end, where the property is about that.
    #[must_use]
    pub fn final_read(&self) -> Option<&'static str> {
        matches!(self.kind, Kind::Broadcast | Kind::GSet | Kind::GCounter | Kind::PnCounter).then_some("read")
    }

    /// How many operations of a history are none of this workload, with what they are.
    ///
    /// # Errors
    /// When all are, or there are none: nothing can then be said of the property.
    pub fn foreign<'h>(&self, history: &'h History) -> Result<(usize, Vec<&'h str>), String> {
        let all = history.operations();
        // Jepsen's clients of Kafka do more: they assign, subscribe, and put several operations in one.
        let own = |f: &str| self.operations().contains(&f) || self.kind == Kind::Kafka && f == "txn";
        let foreign = all.iter().filter(|one| !own(&one.f));
        let mut names: Vec<&str> = foreign.clone().map(|one| one.f.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        if all.is_empty() {
            return Err("the history has no operations".to_owned());
        }
        if count == all.len() {
            let (name, own) = (self.name(), self.operations().join(", "));
            let told = names.join(", ");
            return Err(format!("no operation is of '{name}', which has {own}: 'f' is {told}"));
        }
        Ok((count, names))
    }

    /// What of the property a history breaks.
    #[must_use]
    pub fn check(&self, history: &History) -> Vec<Anomaly> {
        let all = history.operations();
        let one = |broken: Option<String>, name| -> Vec<Anomaly> {
            broken.map(|told| Anomaly { name, told }).into_iter().collect()
        };
        match self.kind {
            Kind::Echo => one(differing_echo(all), "an answer is not its request"),
            Kind::UniqueIds => one(coming_twice(all), "an identifier was given twice"),
            Kind::Broadcast => set(all, "broadcast"),
            Kind::GSet => set(all, "add"),
            Kind::GCounter | Kind::PnCounter => counter(all),
            Kind::LinKv => one(unordered_key(all), "not linearizable"),
            Kind::Kafka => kafka(all),
            Kind::ListAppend => list_append(all, self.consistency),
            Kind::RwRegister => rw_register(all, self.consistency),
        }
    }
}

/// Whether an answer is that transaction, with what was read filled in.
fn is_completed(asked: &Value, answered: &Value) -> bool {
    let (Some(asked), Some(answered)) = (asked.as_array(), answered.as_array()) else { return false };
    let same = |(one, other): (&Value, &Value)| match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => {
            let reads = one.first().and_then(Value::as_str) == Some("r");
            one.len() == other.len()
                && one[..2.min(one.len())] == other[..2.min(other.len())]
                && (reads || one == other)
        }
        _ => false,
    };
    asked.len() == answered.len() && asked.iter().zip(answered).all(same)
}

/// Whether an error says that the operation was not done: the table of Maelstrom's protocol. What it does not know is indefinite.
fn is_definite(code: u64) -> bool {
    matches!(code, 1 | 10 | 11 | 12 | 14 | 20 | 21 | 22 | 30)
}

fn pair(value: &Value) -> Option<(&Value, &Value)> {
    match value.as_array()?.as_slice() {
        [first, second] => Some((first, second)),
        _ => None,
    }
}

/// The words of the only part of a value.
fn only(value: &Value) -> Option<&[Value]> {
    match value.as_array()?.as_slice() {
        [part] => part.as_array().map(Vec::as_slice),
        _ => None,
    }
}

fn differing_echo(all: &[Done]) -> Option<String> {
    let echoed = |one: &Done, value: &Value| {
        // Jepsen keeps the whole answer.
        one.value == *value || value.get("echo") == Some(&one.value)
    };
    let differs = |one: &&Done| matches!(&one.fate, Fate::Done(value) if !echoed(one, value));
    all.iter().find(differs).map(|one| format!("{} was asked for {}", one.told(), one.value))
}

fn coming_twice(all: &[Done]) -> Option<String> {
    let mut seen = FxHashSet::default();
    let again = |one: &&Done| matches!(&one.fate, Fate::Done(value) if !seen.insert(value.to_string()));
    all.iter().find(again).map(Done::told)
}

/// Key by key, since linearizability is local (Herlihy and Wing, TOPLAS 1990).
fn unordered_key(all: &[Done]) -> Option<String> {
    let mut by_key: FxHashMap<String, Vec<Interval>> = FxHashMap::default();
    // A history of one register has values without a key.
    let is_plain = |one: &Done| match one.f.as_str() {
        "write" => pair(&one.value).is_none(),
        "read" => matches!(&one.fate, Fate::Done(value) if pair(value).is_none()),
        _ => false,
    };
    let plain = all.iter().any(is_plain);
    for one in all {
        let keyed = if plain { Some((&Value::Null, &one.value)) } else { pair(&one.value) };
        let Some((key, value)) = keyed else { continue };
        let read = match &one.fate {
            Fate::Done(value) if plain => Some(value),
            Fate::Done(value) => pair(value).map(|(_, value)| value),
            Fate::Refused(_) => continue,
            Fate::Unknown(_) => None,
        };
        let action = match one.f.as_str() {
            "read" => match read {
                Some(value) => Action::Read(value.clone()),
                // Nobody knows what it saw.
                None => continue,
            },
            "write" => Action::Write(value.clone()),
            "cas" => match pair(value) {
                Some((from, to)) => Action::Swap(from.clone(), to.clone()),
                None => continue,
            },
            _ => continue,
        };
        by_key.entry(key.to_string()).or_default().push(Interval { action, begin: one.begin, end: one.end });
    }
    let mut keys: Vec<&String> = by_key.keys().collect();
    keys.sort_unstable();
    let broken = keys.into_iter().find(|key| !is_linearizable(&by_key[*key]))?;
    let on = if plain { String::new() } else { format!(" on key {broken}") };
    Some(format!("no order of the operations{on} agrees with what they saw and with time"))
}
