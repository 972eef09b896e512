//! Public logs of other systems, through the binary: loaded with the mapping of their format, built, and compared with what is
//! known of their order. Where the logs are not at hand the tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

mod ask;
mod order;
mod states;
mod truth;

use ask::{answers, ask};
use order::Order;
use truth::{Truth, event};

/// The mapping of each set.
const MAPPINGS: [(&str, &str); 24] = [
    ("csight-abp", "examples/mappings/csight-abp.toml"),
    ("dinv-sum", "examples/mappings/dinv.toml"),
    ("elle-histories", "elle"),
    ("govector-blueprint", "govector"),
    ("loghub-text", "loghub"),
    ("otlp-json", "otlp"),
    ("shiviz-broadcast", "shiviz"),
    ("shiviz-chord", "shiviz"),
    ("shiviz-facebook-synth", "shiviz"),
    ("shiviz-random-ten", "shiviz"),
    ("shiviz-rpc-graph", "shiviz"),
    ("shiviz-simpledb", "shiviz"),
    ("synoptic-2pc", "examples/mappings/src-dst.toml"),
    ("synoptic-paxos", "examples/mappings/paxos.toml"),
    ("synoptic-peterson", "examples/mappings/peterson.toml"),
    ("synoptic-slaml11", "examples/mappings/synoptic.toml"),
    ("synoptic-tickets-stenning", "examples/mappings/synoptic-hosts.toml"),
    ("tla-ccf-raft", "examples/mappings/ccf-raft.toml"),
    ("tla-etcd-raft", "examples/mappings/etcd-raft.toml"),
    ("tla-raft-simulator", "examples/mappings/raft-simulator.toml"),
    ("tla-two-phase", "examples/mappings/tla-two-phase.toml"),
    ("tracechecker-traces", "tracing"),
    ("tsviz-wiredtiger", "shiviz"),
    ("zipkin-json", "zipkin"),
];

/// Lines of a file that are no event, and why that is right: Akka's note of an undelivered message has no clock.
const NO_EVENTS: [(&str, u64); 1] = [("reliable-broadcast.log", 1)];

fn demi(args: &[&str]) -> Output {
    Command::cargo_bin("demi-lineage").unwrap().arg("-q").args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = demi(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {stderr}"))
}

fn mapping(truth: &Truth) -> &'static str {
    let file = truth.file.file_name().unwrap().to_string_lossy();
    match file.as_ref() {
        f if f.ends_with("_shiviz.txt") => "shiviz",
        _ => MAPPINGS.iter().find(|(set, _)| *set == truth.set).unwrap().1,
    }
}

/// Loads the file of a truth; the summary of its execution.
fn load(truth: &Truth, store: &Path) -> Value {
    let file = truth.file.display().to_string();
    let system = format!("{}:{}", truth.set, truth.file.file_name().unwrap().to_string_lossy());
    let store = store.display().to_string();
    let args = [
        "ingest",
        "load",
        "--store",
        &store,
        "--system",
        &system,
        "--mapping",
        mapping(truth),
        "--json",
        &file,
    ];
    let summary = json(&args);
    let name = truth.file.file_name().unwrap().to_string_lossy().into_owned();
    let no_events = NO_EVENTS.iter().find(|(f, _)| *f == name).map_or(0, |(_, n)| *n);
    let quarantined =
        summary["quarantined"].as_u64().unwrap() + summary["already_quarantined"].as_u64().unwrap();
    assert_eq!(quarantined, no_events, "{name}: {summary}");
    assert_eq!(summary["conflicts"], 0, "{name}");
    match (&truth.execution, summary["executions"].as_array()) {
        (Some(label), Some(executions)) => {
            let found = executions.iter().find(|e| e["execution"] == label.as_str());
            found.unwrap_or_else(|| panic!("{name}: no execution {label}")).clone()
        }
        _ => summary,
    }
}

fn counts(value: &Value) -> BTreeMap<String, u64> {
    value.as_object().unwrap().iter().map(|(h, n)| (h.clone(), n.as_u64().unwrap())).collect()
}

#[test]
fn every_log_loads_with_its_events() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for truth in truth::all(&folder) {
        let summary = load(&truth, &dir.path().join("store"));
        let loaded = summary["added"].as_u64().unwrap() + summary["duplicates"].as_u64().unwrap();
        assert_eq!(loaded, truth.events(), "{}", truth.name());
        let services = ["services", "service/instance"].iter().find_map(|k| truth.value[*k].as_object());
        let services = services.map(|s| counts(&Value::from(s.clone())));
        if let Some(hosts) = truth.hosts().or(services) {
            let found: BTreeMap<String, u64> = summary["actors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|a| (a["actor"].as_str().unwrap().to_owned(), a["events"].as_u64().unwrap()))
                .collect();
            assert_eq!(found, hosts, "{}", truth.name());
        }
        files += 1;
    }
    println!("{files} executions loaded");
    assert!(files > 60);
}

#[test]
fn every_order_is_the_true_one() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut checked = 0;
    for truth in truth::all(&folder) {
        let Some(ordered) = truth.ordered() else { continue };
        let summary = load(&truth, &store);
        let system = summary["system"].as_str().unwrap();
        let exec = dir.path().join("exec");
        let (store, out) = (store.display().to_string(), exec.display().to_string());
        let built = json(&[
            "build",
            "--store",
            &store,
            "--system",
            system,
            "--violation",
            "none",
            "--copy",
            "--out",
            &out,
            "--json",
        ]);
        compare(&truth, &Order::read(&exec), ordered, &built, &out, dir.path());
        ask(&truth, &out, dir.path());
        checked += 1;
    }
    println!("{checked} orders compared");
    assert!(checked > 50);
}

fn compare(truth: &Truth, order: &Order, ordered: u64, built: &Value, exec: &str, dir: &Path) {
    let name = truth.name();
    assert_eq!(order.clocks.len() as u64, truth.events(), "{name}");
    assert_eq!(order.ordered(), ordered, "{name}: pairs in order; {built}");
    let covering = order.covering();
    let wanted = truth.value["cross_host_covering_edges_count"].as_u64().unwrap();
    assert_eq!(covering.len() as u64, wanted, "{name}: covering edges");
    for edge in truth.value["cross_host_covering_edges"].as_array().into_iter().flatten() {
        let (a, b) = (event(edge[0].as_str().unwrap()), event(edge[1].as_str().unwrap()));
        assert!(covering.contains(&(order.find(&a), order.find(&b))), "{name}: {edge}");
    }
    for sample in truth.value["samples"].as_array().into_iter().flatten() {
        let [a, b] = ["a", "b"].map(|k| order.find(&event(sample[k].as_str().unwrap())));
        let found = match (order.before(a, b), order.before(b, a)) {
            (true, false) => "before",
            (false, true) => "after",
            _ => "concurrent",
        };
        assert_eq!(sample["rel"], found, "{name}: {sample}");
        for (e, key) in [(a, "a_line"), (b, "b_line")] {
            let line = sample[key].as_i64();
            assert_eq!(order.line[e], line, "{name}: {sample}");
        }
    }
    for past in truth.value["causal_pasts"].as_array().into_iter().flatten() {
        let e = order.find(&event(past["event"].as_str().unwrap()));
        let frontier = order.cut(&counts(&past["frontier"]));
        assert_eq!(order.clocks[e], frontier, "{name}: {past}");
        let size: u32 = frontier.iter().sum();
        assert_eq!(past["past_size_without_itself"], u64::from(size) - 1, "{name}: {past}");
    }
    for cut in truth.value["cuts"].as_array().into_iter().flatten() {
        let found = order.consistent(&order.cut(&counts(&cut["cut"])));
        assert_eq!(cut["consistent"], found, "{name}: {cut}");
    }
    let Some(cuts) = truth.value["consistent_cuts_total"].as_u64().filter(|n| *n < 25_000) else { return };
    let edges = match truth.value["ground_state_messages"].as_str() {
        Some("covering edges") => covering,
        _ => order.edges.clone(),
    };
    let (found, ground) = order.lattice(&edges, 30_000);
    assert_eq!(found.len() as u64, cuts, "{name}: consistent cuts");
    let Some(wanted) = truth.value["ground_states_total"].as_u64() else { return };
    assert_eq!(ground as u64, wanted, "{name}: ground states");
    if found.len() > 1000 {
        return;
    }
    let cut = |cut: &Vec<u32>| {
        let counts: BTreeMap<&String, &u32> = order.hosts.keys().zip(cut).collect();
        serde_json::to_string(&counts).unwrap()
    };
    let questions: Vec<String> = found.iter().map(cut).collect();
    let told = answers(exec, "cut", "--cuts", &questions, dir);
    assert!(told.iter().all(|a| a["consistent"] == true), "{name}");
    let told = told.iter().filter(|a| a["ground_state"] == true).count();
    assert_eq!(told as u64, wanted, "{name}: ground states by query");
}

/// What is said of the stamps of a system: its summary's check, and what `--check-stamps` warns of.
fn checked(system: &str, store: &Path, dir: &Path) -> (Value, Vec<String>) {
    let out = dir.join("exec").display().to_string();
    let store = store.display().to_string();
    let told = Command::cargo_bin("demi-lineage")
        .unwrap()
        .args(["build", "--store", &store, "--system", system, "--violation", "none", "--check-stamps"])
        .args(["--out", &out, "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{system}: {said}");
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap();
    let about = ["no constant difference", "run backwards"];
    let warned = said.lines().filter(|line| about.iter().any(|what| line.contains(what))).map(str::to_owned);
    (summary["stamps"].clone(), warned.collect())
}

/// Sets whose events have stamps that can be read and compared, and how many certain edges run against them. A server of `skew.json` starts
/// before its client, and a host of the Facebook logs hears of a post twelve seconds before it was written.
const STAMPED: [(&str, u64); 11] = [
    ("jaeger-otlp-multi.json", 0),
    ("reliable-broadcast.log", 0),
    ("simple-reliable-broadcast.log", 0),
    ("facebook.log", 1),
    ("check_quorum.ndjson", 0),
    ("election.ndjson", 0),
    ("etcd-raft-2024-07.ndjson", 0),
    ("tsviz_fslock_24t_4sp.log", 0),
    ("messaging2.json", 0),
    ("skew.json", 2),
    ("yelp.json", 0),
];

/// Nobody knows of a clock that was set in these logs, so no warning may stand.
#[test]
fn no_stamp_is_called_wrong_in_logs_that_are_right() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (mut seen, mut systems) = (std::collections::BTreeSet::new(), 0);
    for truth in truth::all(&folder) {
        let name = truth.file.file_name().unwrap().to_string_lossy().into_owned();
        if !seen.insert(truth.file.clone()) {
            continue;
        }
        let store = dir.path().join("store");
        let summary = load(&truth, &store);
        assert!(summary["backwards"].as_array().is_none_or(Vec::is_empty), "{name}: {summary}");
        let all: Vec<String> = match &truth.execution {
            None => vec![summary["system"].as_str().unwrap().to_owned()],
            // Of many executions of one program the first few are like the others.
            Some(_) => {
                let like = |t: &&Truth| t.file == truth.file;
                let others = truth::all(&folder);
                others
                    .iter()
                    .filter(like)
                    .take(3)
                    .map(|t| load(t, &store)["system"].as_str().unwrap().to_owned())
                    .collect()
            }
        };
        for system in all {
            let (check, warned) = checked(&system, &store, dir.path());
            assert_eq!(warned, [""; 0], "{name}");
            if let Some((_, against)) = STAMPED.iter().find(|(file, _)| *file == name) {
                assert!(check["stamped"].as_u64() > Some(0), "{name}: {check}");
                assert_eq!(check["edges"]["against"].as_u64(), Some(*against), "{name}: {check}");
            }
            systems += 1;
        }
    }
    let demi = folder.join("../demi");
    for recording in std::fs::read_dir(demi).unwrap().map(|entry| entry.unwrap().path()) {
        let store = dir.path().join("recordings");
        let system = recording.file_name().unwrap().to_string_lossy().into_owned();
        let (logs, place) = (recording.join("logs").display().to_string(), store.display().to_string());
        let summary = json(&["ingest", "load", "--store", &place, "--system", &system, "--json", &logs]);
        assert!(summary["backwards"].as_array().is_none_or(Vec::is_empty), "{system}: {summary}");
        assert_eq!(checked(&system, &store, dir.path()).1, [""; 0], "{system}");
        systems += 1;
    }
    println!("{systems} systems");
    assert!(systems > 50);
}

/// Builds the order of a system that was loaded, and gives the folder of the execution.
fn order_alone(summary: &Value, store: &Path, dir: &Path) -> std::path::PathBuf {
    let out = dir.join("exec");
    let system = summary["system"].as_str().unwrap();
    let (store, folder) = (store.display().to_string(), out.display().to_string());
    json(&[
        "build",
        "--store",
        &store,
        "--system",
        system,
        "--violation",
        "none",
        "--copy",
        "--out",
        &folder,
        "--json",
    ]);
    out
}

#[test]
fn states_are_those_that_were_logged() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut checked = 0;
    for truth in truth::all(&folder).into_iter().filter(|t| t.value["state"].is_object()) {
        let summary = load(&truth, &store);
        let out = order_alone(&summary, &store, dir.path());
        let states = states::of(&Order::read(&out));
        let wanted = &truth.value["state"];
        if let Some(points) = wanted["variables_per_point"].as_object() {
            states::check_dumps(&truth, &states, points);
        }
        let leaders = |role: &str, leader: &str, term: &str| -> Value {
            let mut by_term: BTreeMap<String, std::collections::BTreeSet<String>> = BTreeMap::new();
            for (event, state) in states.iter().filter(|(_, s)| s[role] == leader) {
                let host = event.rsplit_once('#').unwrap().0.to_owned();
                by_term.entry(state[term].to_string()).or_default().insert(host);
            }
            serde_json::to_value(by_term).unwrap()
        };
        if wanted["leaders_by_term"].is_object() {
            assert_eq!(wanted["leaders_by_term"], leaders("role", "StateLeader", "term"), "{}", truth.name());
        }
        if wanted["leaders_by_view"].is_object() {
            let found = leaders("leadership_state", "Leader", "current_view");
            // The older schema has no role among the variables.
            let older = states.iter().all(|(_, s)| s["leadership_state"].is_null());
            assert!(older || wanted["leaders_by_view"] == found, "{}: {found}", truth.name());
        }
        checked += 1;
    }
    assert!(checked >= 6, "{checked}");
}

#[test]
fn completed_operations_are_in_real_time_order() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let key = "real_time_ordered_pairs_of_completed_operations";
    for truth in truth::all(&folder).into_iter().filter(|t| t.value[key].is_u64()) {
        let summary = load(&truth, &store);
        let out = order_alone(&summary, &store, dir.path());
        let order = Order::read(&out);
        let mut operations = Vec::new();
        for events in order.hosts.values() {
            let pairs = events.windows(2);
            let completes = |w: &&[usize]| {
                order.kind[w[0]] == "invoke" && matches!(order.kind[w[1]].as_str(), "ok" | "fail")
            };
            operations.extend(pairs.filter(completes).map(|w| (w[0], w[1])));
        }
        assert_eq!(truth.value["completed_operations"], operations.len(), "{}", truth.name());
        let before = |a: &(usize, usize), b: &(usize, usize)| order.before(a.1, b.0);
        let pairs = operations.iter().flat_map(|a| operations.iter().map(move |b| (a, b)));
        let ordered = pairs.filter(|(a, b)| before(a, b)).count();
        assert_eq!(truth.value[key], ordered, "{}", truth.name());
    }
}

#[test]
fn text_columns_are_those_of_the_published_table() {
    let Some(folder) = truth::folder() else {
        println!("skipped: no logs of other systems (set DEMI_CORPUS)");
        return;
    };
    for truth in truth::all(&folder).into_iter().filter(|t| t.set == "loghub-text") {
        let file = truth.file.display().to_string();
        let output = demi(&["ingest", "parse", &file, "--mapping", "loghub", "--json"]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let mut rows = csv::Reader::from_path(format!("{file}_structured.csv")).unwrap();
        let columns = rows.headers().unwrap().clone();
        let mut compared = 0;
        for (line, row) in text.lines().zip(rows.records()) {
            let (line, row): (Value, _) = (serde_json::from_str(line).unwrap(), row.unwrap());
            let fields = line["events"][0]["fields"].as_object().unwrap();
            for (name, value) in columns.iter().zip(&row) {
                if let Some(found) = fields.get(name) {
                    assert_eq!(found, value.trim(), "{name} of {line}");
                    compared += 1;
                }
            }
        }
        let columns = truth.value["columns"].as_array().unwrap().len() as u64;
        assert_eq!(compared, truth.events() * columns, "{file}");
    }
}
