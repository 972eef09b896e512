//! Kills of nodes that know something only in memory.

use demi_programs::WithPrograms;
use demi_replay::Registry;
use demi_replay::registry::NoModels;

use crate::citizens::python;
use crate::workloads::{NODE, Search, scenario};

/// A register on a majority (H. Attiya, A. Bar-Noy, D. Dolev 1995): linearizable as long as nobody forgets what it promised.
fn majority() -> String {
    let rest = r#"
values, calls = {}, {}
def stored(key, tag, value):
    if tag > values.get(key, ([0, ""], None))[0]:
        values[key] = (tag, value)
def begin(call, kind, body):
    global ids
    ids += 1
    call["answers"], call["phase"] = [], kind
    calls[ids] = call
    for other in others:
        send(other, dict(body, type=kind, key=call["key"], nr=ids))
def handle(message, body, kind):
    key = str(body.get("key"))
    if kind in ("read", "write"):
        begin({"asked": message, "key": key}, "get", {})
    elif kind == "cas":
        reply(message, {"type": "error", "code": 10, "text": "not supported"})
    elif kind == "get":
        tag, value = values.get(key, ([0, ""], None))
        send(message["src"], {"type": "got", "nr": body["nr"], "tag": tag, "value": value})
    elif kind == "put":
        stored(key, body["tag"], body["value"])
        send(message["src"], {"type": "got", "nr": body["nr"], "tag": body["tag"], "value": body["value"]})
    elif kind == "got" and body["nr"] in calls:
        call = calls[body["nr"]]
        call["answers"].append((body["tag"], body["value"]))
        if 2 * len(call["answers"]) < len(others):
            return
        del calls[body["nr"]]
        asked = call["asked"]
        if call["phase"] == "get":
            tag, value = max(call["answers"] + [values.get(call["key"], ([0, ""], None))], key=lambda one: one[0])
            if asked["body"]["type"] == "write":
                tag, value = [tag[0] + 1, node], asked["body"]["value"]
            call["tag"], call["value"] = tag, value
            stored(call["key"], tag, value)
            begin(call, "put", {"tag": tag, "value": value})
        elif asked["body"]["type"] == "write":
            reply(asked, {"type": "write_ok"})
        elif call["value"] is None:
            reply(asked, {"type": "error", "code": 20, "text": "nothing"})
        else:
            reply(asked, {"type": "read_ok", "value": call["value"]})
run(handle)"#;
    format!("{NODE}{rest}")
}

fn broken(more: &str, seed: u64, runs: u64) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &majority(), "lin-kv", "unordered", more);
    let registry = WithPrograms::new(NoModels);
    let found =
        registry.visit(&scenario, Search { scenario: &scenario, seed, runs, deliveries: 120 }).unwrap();
    assert_eq!(registry.fault(), None);
    found
}

/// Kills come after a promise and before the next message, so that few runs are enough; without them the program is right.
#[test]
fn a_majority_that_forgets_is_found() {
    if !python() {
        return;
    }
    let kills = "[fuzz]\nweight_crash = 1.0\nweight_restart = 1.0\n";
    let lost = Some(vec!["lin-kv/not linearizable".to_owned()]);
    let found = (1..=5).filter(|&seed| broken(kills, seed, 60) == lost).count();
    assert!(found >= 4, "{found} of 5");
    assert_eq!(broken("", 1, 20), None);
}
