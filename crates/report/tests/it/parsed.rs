//! Small readers of what is exported, each after the rules of the format alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::systems::Relation;

/// An edge between logs: the names of both ends, why, and whether it is certain.
pub type Told = (String, String, String, bool);

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The relation of edges between names.
pub fn relation(names: &[String], edges: impl IntoIterator<Item = (String, String)>) -> Relation {
    let place: BTreeMap<&String, usize> = names.iter().zip(0..).collect();
    let edges: Vec<(usize, usize)> = edges.into_iter().map(|(a, b)| (place[&a], place[&b])).collect();
    Relation::closed(names.to_vec(), &edges)
}

/// JSON: events in order, and edges.
pub struct Json {
    pub names: Vec<String>,
    pub edges: Vec<Told>,
}

pub fn json(export: &str) -> Json {
    let json: Value = serde_json::from_str(export).unwrap();
    let list = |name: &str| json[name].as_array().unwrap().clone();
    let names = list("events").iter().map(|e| text(&e["id"])).collect();
    let edge =
        |e: &Value| (text(&e["from"]), text(&e["to"]), text(&e["reason"]), e["certain"].as_bool().unwrap());
    Json { names, edges: list("edges").iter().map(edge).collect() }
}

impl Json {
    pub fn relation(&self, only_certain: bool) -> Relation {
        let wanted = self.edges.iter().filter(|e| e.3 || !only_certain);
        relation(&self.names, wanted.map(|(a, b, ..)| (a.clone(), b.clone())))
    }
}

/// ShiViz: its events have no names, but come in the order given. An event knows what its clock counts.
pub fn shiviz(log: &str, names: &[String]) -> Relation {
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[..2], [r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})", ""]);
    let events: Vec<(&str, BTreeMap<String, u64>)> = lines[2..]
        .chunks(2)
        .map(|event| event[1].split_once(' ').unwrap())
        .map(|(host, clock)| (host, serde_json::from_str(clock).unwrap()))
        .collect();
    assert_eq!(events.len(), names.len());
    let past = events.iter().enumerate().map(|(b, (_, clock))| {
        let known = events
            .iter()
            .enumerate()
            .filter(|(a, (host, own))| *a != b && clock.get(*host) >= Some(&own[*host]));
        known.fold(0, |past, (a, _)| past | 1 << a)
    });
    Relation { names: names.to_vec(), past: past.collect() }
}

/// What stands between two texts.
fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(before)?;
    Some(rest.split_once(after)?.0)
}

/// Graphviz: nodes with the name first in the tooltip, and edges.
pub fn dot(graph: &str) -> Relation {
    let (mut names, mut nodes, mut edges) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in graph.lines().map(str::trim) {
        if let Some((from, rest)) = line.split_once(" -> ") {
            edges.push((from.to_owned(), rest.split(' ').next().unwrap().to_owned()));
        } else if let Some((node, rest)) = line.split_once(" [label=") {
            let tip = between(rest, "tooltip=\"", "\"").unwrap();
            let name = tip.split("\\n").next().unwrap().to_owned();
            nodes.insert(node.to_owned(), name.clone());
            names.push(name);
        }
    }
    relation(&names, edges.into_iter().map(|(a, b)| (nodes[&a].clone(), nodes[&b].clone())))
}

/// GraphML: nodes, and edges with their reasons.
pub fn graphml(graph: &str) -> Json {
    let (mut names, mut nodes, mut edges) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in graph.lines() {
        if let Some(node) = between(line, "<node id=\"", "\"") {
            let name = between(line, "<data key=\"event\">", "</data>").unwrap().to_owned();
            nodes.insert(node.to_owned(), name.clone());
            names.push(name);
        } else if let (Some(from), Some(to)) =
            (between(line, "source=\"", "\""), between(line, "target=\"", "\""))
        {
            let data = |key: &str| between(line, &format!("<data key=\"{key}\">"), "</data>").unwrap();
            let certain = data("certain").parse().unwrap();
            edges.push((nodes[from].clone(), nodes[to].clone(), data("reason").to_owned(), certain));
        }
    }
    Json { names, edges }
}

/// Perfetto: slices of one thread follow each other, except on a thread that says otherwise; a flow joins two slices.
pub fn perfetto(trace: &str) -> Relation {
    let json: Value = serde_json::from_str(trace).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &'static str| events.iter().filter(move |e| e["ph"] == phase);
    let thread = |e: &Value| (e["pid"].as_u64().unwrap(), e["tid"].as_u64().unwrap());
    let loose: BTreeSet<(u64, u64)> =
        of("M").filter(|e| e["args"]["name"] == "events in no order").map(thread).collect();
    let mut slices: Vec<(u64, &Value)> = of("X").map(|e| (e["ts"].as_u64().unwrap(), e)).collect();
    slices.sort_by_key(|slice| slice.0);
    let names: Vec<String> = slices.iter().map(|(_, e)| text(&e["args"]["event"])).collect();
    let mut edges = Vec::new();
    let mut last: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for ((_, slice), name) in slices.iter().zip(&names).filter(|((_, e), _)| !loose.contains(&thread(e))) {
        edges.extend(last.insert(thread(slice), name.clone()).map(|before| (before, name.clone())));
    }
    let slice_of = |end: &Value| {
        let at = end["ts"].as_u64().unwrap();
        let around = |(ts, e): &(u64, &Value)| {
            thread(e) == thread(end) && *ts <= at && at <= ts + e["dur"].as_u64().unwrap()
        };
        names[slices.iter().position(around).unwrap()].clone()
    };
    let ends: BTreeMap<u64, &Value> = of("f").map(|e| (e["id"].as_u64().unwrap(), e)).collect();
    assert_eq!(of("f").count(), ends.len(), "a flow has one end");
    assert_eq!(of("s").count(), ends.len(), "a flow has one beginning");
    edges.extend(of("s").map(|e| (slice_of(e), slice_of(ends[&e["id"].as_u64().unwrap()]))));
    relation(&names, edges)
}

/// Mermaid: lines of one participant follow each other, except where its name says otherwise. A line has the number of its event, and
/// an arrow that of its beginning, or both where it is both.
pub fn mermaid(diagram: &str, names: &BTreeMap<u32, String>) -> Relation {
    let mut loose = BTreeSet::new();
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    let (mut drawn, mut edges) = (Vec::new(), Vec::new());
    for line in diagram.lines().skip(1).map(str::trim) {
        if let Some(participant) = line.strip_prefix("participant ") {
            let (id, name) = participant.split_once(" as ").unwrap();
            if name.ends_with(" (in no order)") {
                loose.insert(id.to_owned());
            }
            continue;
        }
        let (head, rest) = line.split_once(": ").unwrap();
        let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("{line}"));
        let (from, rest) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((from, rest)) => (Some(number(from)), rest),
            None => (None, rest),
        };
        let numbers = rest.split_once(". ").unwrap().0;
        let mut own = |participant: &str, event: u32| {
            drawn.push(event);
            if !loose.contains(participant) {
                edges.extend(last.insert(participant.to_owned(), event).map(|before| (before, event)));
            }
        };
        if let Some(over) = head.strip_prefix("Note over ") {
            own(over, number(numbers));
        } else if head.contains("-->>") {
            edges.push((from.unwrap(), number(numbers)));
        } else if let Some((sender, receiver)) = head.split_once("->>") {
            let (sent, event) = match numbers.split_once('-') {
                Some((sent, event)) => {
                    own(sender, number(sent));
                    (number(sent), number(event))
                }
                None => (from.unwrap(), number(numbers)),
            };
            own(receiver, event);
            edges.push((sent, event));
        } else {
            own(head.split_once("-x").unwrap().0, number(numbers));
        }
    }
    drawn.sort_unstable();
    assert!(drawn.iter().eq(names.keys()), "each event has one line: {drawn:?}");
    let edges = edges.into_iter().map(|(a, b)| (names[&a].clone(), names[&b].clone()));
    relation(&names.values().cloned().collect::<Vec<_>>(), edges)
}

/// What a page's data, or a server's answer, tells of events.
pub struct Columns {
    pub names: Vec<String>,
    pub actor: Vec<usize>,
    /// By event: its place in the log of its actor; -1 for none.
    pub place: Vec<i64>,
    pub edges: Vec<Told>,
}

/// The data of a page.
pub fn page(html: &str) -> Value {
    let data = between(html, "id=\"data\">", "</script>").unwrap();
    let mut json = String::new();
    flate2::read::GzDecoder::new(STANDARD.decode(data).unwrap().as_slice())
        .read_to_string(&mut json)
        .unwrap();
    serde_json::from_str(&json).unwrap()
}

impl Columns {
    /// Reads columns; `page` has the names of actors and the words of codes.
    pub fn new(page: &Value, columns: &Value) -> Columns {
        let numbers =
            |of: &Value| -> Vec<i64> { of.as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect() };
        let actors: Vec<String> = page["traces"][0]["actors"].as_array().unwrap().iter().map(text).collect();
        let actor: Vec<usize> = numbers(&columns["actor"]).iter().map(|&a| a as usize).collect();
        let incarnation = numbers(&columns["incarnation"]);
        // Numbers that JavaScript would round are texts.
        let seq: Vec<String> = columns["seq"].as_array().unwrap().iter().map(text).collect();
        let names: Vec<String> = (0..actor.len())
            .map(|i| match incarnation[i] {
                0 => format!("{}/{}", actors[actor[i]], seq[i]),
                n => format!("{}/{n}/{}", actors[actor[i]], seq[i]),
            })
            .collect();
        let of = &columns["edges"];
        let ends = [numbers(&of["cause"]), numbers(&of["effect"])];
        let (joint, certain) = (numbers(&of["joint"]), numbers(&of["certain"]));
        let edges = (0..joint.len()).map(|k| {
            let [cause, effect] = [0, 1].map(|end: usize| names[ends[end][k] as usize].clone());
            (cause, effect, text(&page["joints"][joint[k] as usize]), certain[k] == 1)
        });
        Columns { edges: edges.collect(), place: numbers(&columns["place"]), actor, names }
    }

    pub fn relation(&self, only_certain: bool) -> Relation {
        let mut chains: BTreeMap<(usize, i64), &String> = BTreeMap::new();
        for (i, name) in self.names.iter().enumerate().filter(|(i, _)| self.place[*i] >= 0) {
            assert!(chains.insert((self.actor[i], self.place[i]), name).is_none(), "two events in one place");
        }
        let places: Vec<_> = chains.into_iter().collect();
        let follows = places.windows(2).filter(|w| w[0].0.0 == w[1].0.0);
        let logs: Vec<(String, String)> = follows.map(|w| (w[0].1.clone(), w[1].1.clone())).collect();
        let edges = self.edges.iter().filter(|e| e.3 || !only_certain);
        relation(&self.names, logs.into_iter().chain(edges.map(|(a, b, ..)| (a.clone(), b.clone()))))
    }

    /// The events of an answer about causes: a prefix or suffix of each log, and stretches of those without a place.
    pub fn reached(&self, answer: &Value, forward: bool) -> BTreeSet<String> {
        let bounds: Vec<i64> =
            answer["bounds"].as_array().unwrap().iter().map(|b| b.as_i64().unwrap()).collect();
        let stretches = answer["loose"].as_array().unwrap();
        let in_stretch = |i: usize| {
            let i = i as u64;
            stretches.iter().any(|s| s[0].as_u64() <= Some(i) && Some(i) <= s[1].as_u64())
        };
        let inside = |i: usize| match self.place[i] {
            -1 => in_stretch(i),
            place => (place >= bounds[self.actor[i]]) == forward,
        };
        (0..self.names.len()).filter(|&i| inside(i)).map(|i| self.names[i].clone()).collect()
    }
}
