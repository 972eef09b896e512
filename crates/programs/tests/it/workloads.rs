//! Programs that keep to their workload and programs that do not, run by random schedules.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use demi_programs::WithPrograms;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::Scenario;

use crate::citizens::python;

/// The part of a node that all have.
pub(crate) const NODE: &str = r#"
import json, sys, select, time
node, others, ids = None, [], 1000
def send(dest, body):
    print(json.dumps({"src": node, "dest": dest, "body": body}), flush=True)
def reply(message, body):
    send(message["src"], dict(body, in_reply_to=message["body"]["msg_id"]))
def ask(dest, body):
    global ids
    ids += 1
    send(dest, dict(body, msg_id=ids))
    return ids
def run(handle, every=None, tick=None):
    global node, others
    last = time.monotonic()
    while True:
        wait = None if every is None else max(0.0, last + every - time.monotonic())
        if not select.select([sys.stdin], [], [], wait)[0]:
            last = time.monotonic()
            tick()
            continue
        line = sys.stdin.readline()
        if not line:
            return
        message = json.loads(line)
        body = message["body"]
        if body["type"] == "init":
            node = body["node_id"]
            others = [name for name in body["node_ids"] if name != node]
            reply(message, {"type": "init_ok"})
        elif body["type"] == "topology":
            reply(message, {"type": "topology_ok"})
        else:
            handle(message, body, body["type"])
"#;

/// A set that is told to others: `retries` makes it tell them everything again and again.
pub(crate) fn broadcast(retries: bool) -> String {
    let rest = r#"
seen = set()
def handle(message, body, kind):
    if kind == "broadcast":
        seen.add(body["message"])
        for other in others:
            send(other, {"type": "tell", "messages": [body["message"]]})
        reply(message, {"type": "broadcast_ok"})
    elif kind == "tell":
        seen.update(body["messages"])
    elif kind == "read":
        reply(message, {"type": "read_ok", "messages": sorted(seen)})
def tick():
    for other in others:
        send(other, {"type": "tell", "messages": sorted(seen)})
"#;
    let run = if retries { "run(handle, 0.5, tick)" } else { "run(handle)" };
    format!("{NODE}{rest}{run}")
}

/// A set that each node tells the next one alone, until that has heard it: nothing is written where there is nothing to tell.
fn relay() -> String {
    let rest = r#"
seen, heard = set(), set()
def handle(message, body, kind):
    if kind == "broadcast":
        seen.add(body["message"])
        reply(message, {"type": "broadcast_ok"})
    elif kind == "tell":
        seen.update(body["messages"])
        send(message["src"], {"type": "heard", "messages": body["messages"]})
    elif kind == "heard":
        heard.update(body["messages"])
    elif kind == "read":
        reply(message, {"type": "read_ok", "messages": sorted(seen)})
def tick():
    names = sorted(others + [node])
    if seen - heard:
        send(names[(names.index(node) + 1) % len(names)], {"type": "tell", "messages": sorted(seen - heard)})
run(handle, 0.1, tick)
"#;
    format!("{NODE}{rest}")
}

/// A log for each key, kept by the node that leads it. It takes Maelstrom's requests at their word: keys are numbers, and what is committed was
/// polled. Times tell records apart.
fn log_of_keys() -> String {
    let rest = r#"
logs, told, waiting, stamps = {}, {}, {}, set()
def leader(key):
    names = sorted(others + [node])
    return names[int(key) % len(names)]
def answer(body, kind):
    if kind == "send":
        log = logs.setdefault(body["key"], [])
        stamp = time.time_ns()
        assert stamp not in stamps
        stamps.add(stamp)
        log.append(body["msg"])
        return {"type": "send_ok", "offset": len(log) - 1}
    if kind == "poll":
        rest = {key: [[n, value] for n, value in enumerate(logs.get(key, []))][offset:] for key, offset in body["offsets"].items()}
        return {"type": "poll_ok", "msgs": rest}
def handle(message, body, kind):
    if kind == "pass":
        send(message["src"], {"type": "passed", "of": body["msg_id"], "answer": answer(body["request"], body["request"]["type"])})
    elif kind == "passed":
        first, rest = waiting.pop(body["of"])
        reply(first, body["answer"])
    elif kind == "send":
        if leader(body["key"]) == node:
            reply(message, answer(body, kind))
        else:
            waiting[ask(leader(body["key"]), {"type": "pass", "request": body})] = (message, None)
    elif kind == "poll":
        mine = {key: offset for key, offset in body["offsets"].items() if leader(key) == node}
        reply(message, answer({"offsets": mine}, kind))
        for key, pairs in answer({"offsets": mine}, kind)["msgs"].items():
            told[key] = max([told.get(key, -1)] + [n for n, _ in pairs])
    elif kind == "commit_offsets":
        for key, offset in body["offsets"].items():
            assert leader(key) != node or offset <= told[key]
        reply(message, {"type": "commit_offsets_ok"})
    elif kind == "list_committed_offsets":
        reply(message, {"type": "list_committed_offsets_ok", "offsets": {}})
run(handle)
"#;
    format!("{NODE}{rest}")
}

/// A counter on `seq-kv`: it adds by reading and swapping, and one that is `careless` writes instead.
fn counter(careless: bool) -> String {
    let update = if careless {
        r#"ask("seq-kv", {"type": "write", "key": "sum", "value": sum + waiting["delta"]})"#
    } else {
        r#"ask("seq-kv", {"type": "cas", "key": "sum", "from": sum, "to": sum + waiting["delta"], "create_if_not_exists": True})"#
    };
    format!(
        r#"{NODE}
calls = {{}}
def handle(message, body, kind):
    if kind in ("add", "read"):
        # What is written makes what is read new.
        if kind == "read":
            calls[ask("seq-kv", {{"type": "write", "key": "touched by " + node, "value": ids}})] = (message, kind, "touch")
        else:
            calls[ask("seq-kv", {{"type": "read", "key": "sum"}})] = (message, kind, "look")
        return
    (asked, what, step) = calls.pop(body["in_reply_to"])
    if step == "touch":
        calls[ask("seq-kv", {{"type": "read", "key": "sum"}})] = (asked, what, "look")
    elif step == "look":
        sum = body.get("value", 0)
        if what == "read":
            reply(asked, {{"type": "read_ok", "value": sum}})
        else:
            waiting = asked["body"]
            calls[{update}] = (asked, what, "swap")
    elif kind == "error":
        calls[ask("seq-kv", {{"type": "read", "key": "sum"}})] = (asked, what, "look")
    else:
        reply(asked, {{"type": "add_ok"}})
run(handle)"#
    )
}

/// A register of one node in a file, or in memory.
fn register(durable: bool) -> String {
    let (load, save) = if durable {
        (
            "values = json.load(open('values')) if os.path.exists('values') else {}",
            "json.dump(values, open('new', 'w')); os.rename('new', 'values')",
        )
    } else {
        ("values = {}", "pass")
    };
    format!(
        r#"{NODE}
import os
{load}
def handle(message, body, kind):
    key = str(body["key"])
    if kind == "write":
        values[key] = body["value"]
        {save}
        reply(message, {{"type": "write_ok"}})
    elif kind == "read" and key in values:
        reply(message, {{"type": "read_ok", "value": values[key]}})
    elif kind == "cas" and key in values and values[key] == body["from"]:
        values[key] = body["to"]
        {save}
        reply(message, {{"type": "cas_ok"}})
    else:
        reply(message, {{"type": "error", "code": 22 if key in values else 20, "text": ""}})
run(handle)"#
    )
}

/// Lists in transactions, on one node; `hasty` answers one transaction in the middle of another.
fn lists(hasty: bool) -> String {
    let rest = r#"
lists = {}
held = []
def handle(message, body, kind):
    snapshot = {key: list(value) for key, value in (held[0] if held else lists).items()}
    done = []
    for f, key, value in body["txn"]:
        if f == "append":
            lists.setdefault(key, []).append(value)
            snapshot.setdefault(key, []).append(value)
        done.append([f, key, list(snapshot.get(key, [])) if f == "r" else value])
    if HASTY and not held:
        held.append({key: list(value) for key, value in snapshot.items()})
    reply(message, {"type": "txn_ok", "txn": done})
run(handle)"#;
    format!("{NODE}{}", rest.replace("HASTY", if hasty { "True" } else { "False" }))
}

/// Random runs of one seed.
pub(crate) struct Search<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    pub(crate) runs: u64,
    pub(crate) deliveries: u64,
}

impl Visitor for Search<'_> {
    type Output = Option<Vec<String>>;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        let options = FuzzOptions::new(self.seed, self.runs, self.deliveries);
        fuzz(&mut simulator, self.scenario, &options, &mut |_| true).unwrap().map(|found| found.violation)
    }
}

/// The scenario of a program with three nodes, and what is added to it.
pub(crate) fn scenario(folder: &Path, program: &str, workload: &str, network: &str, more: &str) -> Scenario {
    let file = folder.join("node.py");
    std::fs::write(&file, program).unwrap();
    let file = file.display().to_string();
    let text = format!(
        "network = {network:?}\n[model]\ncommand = [\"python3\", {file:?}]\nnodes = 3\n[workload]\nname = {workload:?}\n{more}"
    );
    Scenario::parse(&text).unwrap()
}

/// What random runs of a program break.
fn found(
    program: &str,
    workload: &str,
    network: &str,
    more: &str,
    (runs, deliveries): (u64, u64),
) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), program, workload, network, more);
    let registry = WithPrograms::new(NoModels);
    let found = registry.visit(&scenario, Search { scenario: &scenario, seed: 1, runs, deliveries }).unwrap();
    assert_eq!(registry.fault(), None);
    found
}

#[test]
fn a_set_that_is_told_once_loses_what_the_network_loses() {
    if !python() {
        return;
    }
    let lost = Some(vec!["broadcast/an element is lost".to_owned()]);
    assert_eq!(found(&broadcast(false), "broadcast", "fifo-loss", "", (40, 40)), lost);
    assert_eq!(found(&broadcast(true), "broadcast", "fifo-loss", "settle_seconds = 2", (4, 40)), None);
    assert_eq!(found(&broadcast(false), "broadcast", "unordered", "", (4, 40)), None, "late is not lost");
}

#[test]
fn who_does_not_wait_for_the_end_is_told_nothing_of_it() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &broadcast(false), "broadcast", "fifo-loss", "");
    let search = || Search { scenario: &scenario, seed: 1, runs: 40, deliveries: 40 };
    let registry = WithPrograms::new(NoModels);
    registry.stop_with(&Arc::new(AtomicBool::new(true)));
    assert_eq!(registry.visit(&scenario, search()).unwrap(), None);
    let done = registry.programs().unwrap();
    assert!(0 < done.answered && done.answered <= done.operations, "{done:?}");
    assert!(WithPrograms::new(NoModels).visit(&scenario, search()).unwrap().is_some(), "the end tells");
}

#[test]
fn who_is_told_last_tells_on_in_the_end() {
    if !python() {
        return;
    }
    assert_eq!(found(&relay(), "broadcast", "unordered", "", (6, 40)), None);
    assert_eq!(found(&relay(), "broadcast", "fifo-loss", "", (6, 40)), None);
    let hasty = relay().replace("seen - heard", "seen").replace("run(handle, 0.1, tick)", "run(handle)");
    let lost = Some(vec!["broadcast/an element is lost".to_owned()]);
    assert_eq!(found(&hasty, "broadcast", "unordered", "", (6, 40)), lost, "nobody is told");
}

#[test]
fn a_log_is_asked_as_maelstrom_asks() {
    if !python() {
        return;
    }
    assert_eq!(found(&log_of_keys(), "kafka", "fifo", "keys = 3", (10, 80)), None);
}

#[test]
fn counters_on_a_service_are_exact_only_if_they_swap() {
    if !python() {
        return;
    }
    let wrong = Some(vec!["g-counter/a sum of nothing that was added".to_owned()]);
    assert_eq!(found(&counter(true), "g-counter", "unordered", "", (40, 200)), wrong);
    assert_eq!(found(&counter(false), "g-counter", "unordered", "", (4, 200)), None);
    // Short runs end while updates are on their way.
    assert_eq!(found(&counter(false), "g-counter", "unordered", "", (60, 60)), None);
}

#[test]
fn what_a_node_wrote_is_there_after_it_was_killed() {
    if !python() {
        return;
    }
    let faults = "processes = 1\n[fuzz]\nweight_crash = 1.0\nweight_restart = 3.0\n";
    let gone = Some(vec!["lin-kv/not linearizable".to_owned()]);
    assert_eq!(found(&register(false), "lin-kv", "fifo", faults, (40, 40)), gone);
    assert_eq!(found(&register(true), "lin-kv", "fifo", faults, (10, 40)), None);
    let wiped = format!("{faults}[process]\ndisk = \"none\"\n");
    assert_eq!(found(&register(true), "lin-kv", "fifo", &wiped, (40, 40)), gone);
}

#[test]
fn transactions_are_serializable_or_not() {
    if !python() {
        return;
    }
    let one = "processes = 1\n";
    assert_eq!(found(&lists(false), "txn-list-append", "fifo", one, (5, 60)), None);
    let broken = found(&lists(true), "txn-list-append", "fifo", one, (20, 60)).unwrap();
    assert!(broken.iter().all(|name| name.starts_with("txn-list-append/")), "{broken:?}");
}
