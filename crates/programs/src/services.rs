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
            // What is decided is decided, also before the replica tells the node.
            self.answers.insert((node.to_owned(), id), answer.to_string());
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use std::collections::BTreeSet;

    use super::*;

    /// What a node asks, one after the other.
    #[derive(Clone, Copy, Debug)]
    enum Op {
        Write(&'static str, u64),
        Read(&'static str),
        Swap(&'static str, u64, u64),
    }
    use Op::{Read, Swap, Write};

    impl Op {
        fn body(self, id: u64) -> Value {
            match self {
                Write(key, value) => json!({ "type": "write", "msg_id": id, "key": key, "value": value }),
                Read(key) => json!({ "type": "read", "msg_id": id, "key": key }),
                Swap(key, from, to) => {
                    json!({ "type": "cas", "msg_id": id, "key": key, "from": from, "to": to })
                }
            }
        }
    }

    /// An update that the master took and no replica has seen is not taken again.
    #[test]
    fn what_is_decided_is_known_before_a_replica_tells_it() {
        let (mut master, follower) = (Service::new(Part::Master), Service::new(Part::Follower(0)));
        master.request("n0", &Write("x", 10).body(1));
        master.request("n0", &Swap("x", 10, 74).body(4));
        for parts in [[&follower, &master], [&master, &follower]] {
            let merged = Service::merged(parts.into_iter()).unwrap();
            let answer =
                |id| merged.answer("n0", id).map(|text| serde_json::from_str::<Value>(text).unwrap());
            assert_eq!(answer(4).unwrap()["type"], "cas_ok");
            assert_eq!(answer(5), None);
            let Some(Sent::Answer { body, .. }) = merged.clone().request("n1", &Read("x").body(1)).pop()
            else {
                panic!("no answer")
            };
            assert_eq!(body["value"], 74);
        }
    }

    /// What an answer says, in a word.
    fn told(body: &Value) -> String {
        match body["type"].as_str().unwrap() {
            "read_ok" => body["value"].to_string(),
            "error" => format!("error {}", body["code"]),
            _ => "ok".to_owned(),
        }
    }

    /// What each node was told.
    type Told = Vec<Vec<String>>;

    /// Every outcome of executing the operations one at a time, in the order of each node: what sequential consistency allows.
    fn one_at_a_time(nodes: &[&[Op]]) -> BTreeSet<Told> {
        fn go(nodes: &[&[Op]], values: &BTreeMap<&str, u64>, told: &Told, all: &mut BTreeSet<Told>) {
            let mut done = true;
            for (node, ops) in nodes.iter().enumerate() {
                let Some(op) = ops.get(told[node].len()) else { continue };
                done = false;
                let (mut values, mut told) = (values.clone(), told.clone());
                told[node].push(match *op {
                    Write(key, value) => {
                        values.insert(key, value);
                        "ok".to_owned()
                    }
                    Read(key) => values.get(key).map_or("error 20".to_owned(), u64::to_string),
                    Swap(key, from, to) => match values.get(key) {
                        None => "error 20".to_owned(),
                        Some(value) if *value != from => "error 22".to_owned(),
                        Some(_) => {
                            values.insert(key, to);
                            "ok".to_owned()
                        }
                    },
                });
                go(nodes, &values, &told, all);
            }
            if done {
                all.insert(told.clone());
            }
        }
        let mut all = BTreeSet::new();
        go(nodes, &BTreeMap::new(), &vec![Vec::new(); nodes.len()], &mut all);
        all
    }

    /// A service and its nodes, with what is on its way.
    #[derive(Clone, Debug)]
    struct World {
        parts: Vec<Service>,
        /// To which part, from which node if from one, and what.
        to_parts: Vec<(usize, Option<usize>, String)>,
        to_nodes: Vec<(usize, String)>,
        told: Told,
        waits: Vec<bool>,
    }

    impl World {
        fn new(seq: bool, nodes: usize) -> World {
            let parts = match seq {
                true => [Part::Master].into_iter().chain((0..nodes).map(Part::Follower)).collect(),
                false => vec![Part::LinKv],
            };
            World {
                parts: parts.into_iter().map(Service::new).collect(),
                to_parts: Vec::new(),
                to_nodes: Vec::new(),
                told: vec![Vec::new(); nodes],
                waits: vec![false; nodes],
            }
        }

        /// Everything that may happen next.
        fn next(&self, nodes: &[&[Op]]) -> Vec<World> {
            let mut all = Vec::new();
            for (node, ops) in nodes.iter().enumerate() {
                if let (Some(op), false) = (ops.get(self.told[node].len()), self.waits[node]) {
                    let mut world = self.clone();
                    let part = match (op, self.parts.len()) {
                        (Read(_), 2..) => node + 1,
                        _ => 0,
                    };
                    let id = self.told[node].len() as u64;
                    world.to_parts.push((part, Some(node), op.body(id).to_string()));
                    world.waits[node] = true;
                    all.push(world);
                }
            }
            for at in 0..self.to_parts.len() {
                let mut world = self.clone();
                let (part, node, body) = world.to_parts.remove(at);
                let body: Value = serde_json::from_str(&body).unwrap();
                let sent = match node {
                    Some(node) => world.parts[part].request(&format!("n{}", node + 1), &body),
                    None => world.parts[part].told(&body, &format!("n{part}")),
                };
                for one in sent {
                    match one {
                        Sent::Answer { to, body } => {
                            world.to_nodes.push((to[1..].parse::<usize>().unwrap() - 1, body.to_string()));
                        }
                        Sent::Others(body) => {
                            world
                                .to_parts
                                .extend((1..world.parts.len()).map(|p| (p, None, body.to_string())));
                        }
                    }
                }
                world.to_parts.sort();
                all.push(world);
            }
            for at in 0..self.to_nodes.len() {
                let mut world = self.clone();
                let (node, body) = world.to_nodes.remove(at);
                world.told[node].push(told(&serde_json::from_str(&body).unwrap()));
                world.waits[node] = false;
                all.push(world);
            }
            all
        }
    }

    /// Every outcome of the service, whatever the order of messages is.
    fn outcomes(begin: World, nodes: &[&[Op]]) -> BTreeSet<Told> {
        let (mut all, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![begin]);
        while let Some(world) = open.pop() {
            if !seen.insert(format!("{world:?}")) {
                continue;
            }
            if world.told.iter().zip(nodes).all(|(told, ops)| told.len() == ops.len()) {
                all.insert(world.told.clone());
            }
            open.extend(world.next(nodes));
        }
        all
    }

    #[test]
    fn outcomes_of_litmus_tests_are_those_that_the_services_allow() {
        let tests: [&[&[Op]]; 20] = [
            &[&[Write("x", 1), Read("y")], &[Write("y", 1), Read("x")]],
            &[&[Write("x", 1), Write("y", 1)], &[Read("y"), Read("x")]],
            &[&[Write("x", 1)], &[Read("x"), Read("x")]],
            &[&[Write("x", 1)], &[Write("x", 2)], &[Read("x"), Read("x")]],
            &[&[Write("x", 1), Read("x")], &[Write("x", 2), Read("x")]],
            &[&[Read("x"), Write("y", 1)], &[Read("y"), Write("x", 1)]],
            &[&[Write("x", 1), Write("x", 2)], &[Read("x"), Read("x")]],
            &[&[Write("x", 1)], &[Read("x"), Write("y", 1)], &[Read("y"), Read("x")]],
            &[&[Write("x", 1), Write("y", 2)], &[Write("y", 1), Read("x")]],
            &[&[Write("x", 1), Write("y", 2)], &[Write("y", 1), Write("x", 2)]],
            &[&[Write("x", 1), Swap("x", 1, 2)], &[Swap("x", 1, 3)]],
            &[&[Swap("x", 1, 2)], &[Write("x", 1)]],
            &[&[Write("x", 1), Swap("x", 1, 2)], &[Read("x"), Read("x")]],
            &[&[Write("x", 1), Swap("x", 2, 3)], &[Write("x", 2)]],
            &[&[Swap("x", 1, 2), Read("x")], &[Write("x", 1), Read("x")]],
            &[&[Write("x", 1), Read("x"), Read("y")], &[Write("y", 1), Read("y"), Read("x")]],
            &[&[Read("x"), Read("y")], &[Write("y", 1), Write("x", 1)]],
            &[&[Write("x", 1)], &[Write("y", 1)], &[Read("x"), Read("y")]],
            &[&[Read("x")], &[Read("x")], &[Write("x", 1)]],
            &[&[Write("x", 1), Write("x", 2), Read("x")], &[Swap("x", 1, 3)]],
        ];
        for nodes in tests {
            let allowed = one_at_a_time(nodes);
            for seq in [false, true] {
                assert_eq!(outcomes(World::new(seq, nodes.len()), nodes), allowed, "{seq} {nodes:?}");
            }
        }
    }

    /// After a write was answered everybody reads it from `lin-kv`, and from `seq-kv` only who wrote.
    #[test]
    fn only_one_of_them_is_up_to_date() {
        let nodes: [&[Op]; 2] = [&[Write("x", 1), Read("x")], &[Read("x")]];
        for seq in [false, true] {
            // Whatever happens until the first node knows that it wrote; only then the other one asks.
            let (mut open, mut read) = (vec![World::new(seq, 2)], BTreeSet::new());
            while let Some(world) = open.pop() {
                match world.told[0].is_empty() {
                    true => open.extend(world.next(&nodes).into_iter().filter(|next| !next.waits[1])),
                    false => read.extend(outcomes(world, &nodes)),
                }
            }
            let own: BTreeSet<&str> = read.iter().map(|told| told[0][1].as_str()).collect();
            let other: BTreeSet<&str> = read.iter().map(|told| told[1][0].as_str()).collect();
            assert_eq!(own, ["1"].into(), "{seq}");
            let allowed: BTreeSet<&str> = if seq { ["1", "error 20"].into() } else { ["1"].into() };
            assert_eq!(other, allowed, "{seq}");
        }
    }

    /// Replicas of `lww-kv` answer what they know, and agree on the last write once they have told each other, in whatever order.
    #[test]
    fn replicas_answer_what_they_know_and_come_to_agree() {
        let read = |part: &mut Service| match part.request("n1", &Read("x").body(9)).pop() {
            Some(Sent::Answer { body, .. }) => told(&body),
            _ => String::new(),
        };
        for order in 0..6_usize {
            let mut parts: Vec<Service> = (0..3).map(|n| Service::new(Part::Replica(n))).collect();
            parts[0].request("n1", &Write("x", 1).body(1));
            assert_eq!(
                [0, 1].map(|n| read(&mut parts[n])),
                ["1", "error 20"],
                "what is not known is not there"
            );
            parts[1].request("n2", &Write("x", 2).body(1));
            let pairs = [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)];
            for step in 0..2 * pairs.len() {
                let (from, to) = pairs[(step * 5 + order) % pairs.len()];
                let gossip = parts[from].gossip();
                assert!(parts[to].told(&gossip, "").is_empty());
            }
            // Both were the first of their replica: the higher replica is later.
            assert_eq!([0, 1, 2].map(|n| read(&mut parts[n])), ["2", "2", "2"], "{order}");
            parts[0].request("n1", &Write("x", 3).body(2));
            let gossip = parts[0].gossip();
            parts[2].told(&gossip, "");
            assert_eq!(read(&mut parts[2]), "3", "who knows of a write writes later");
        }
    }
}
