//! `model check` on a good model, and on models that are wrong each in one way.

use std::process::{Command, Output};

const GOOD: &str = r#"
import json, random, sys, time
count = 0
def answer(q):
    global count
    count += 1
    if q["do"] == "start":
        return {"state": 0, "effects": [{"set": {"timer": "tick", "message": {"type": "Tick"}}}]}
    if q["do"] == "deliver":
        if q["message"]["type"] == "Tick":
            other = "b" if q["actor"] == "a" else "a"
            return {"state": q["state"] + 1, "effects": [{"send": {"to": other, "message": {"type": "Hit"}}},
                {"set": {"timer": "tick", "message": {"type": "Tick"}}}]}
        DELIVER
        return {"state": q["state"] + 1}
    return {"violations": []}
for line in sys.stdin:
    r = json.loads(line)
    if "hello" in r:
        out = {"id": r["id"], "hello": {"protocol": "PROTOCOL", "actors": ["a", "b"]}}
    else:
        out = {"id": r["id"], "answers": [answer(q) for q in r["requests"]]}
    print(json.dumps(out), flush=True)
"#;

fn check(deliver: &str, protocol: &str, more: &[&str]) -> Output {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let program = folder.join("examples").join(format!("hostile{}", std::env::consts::EXE_SUFFIX));
    let model = GOOD.replace("DELIVER", deliver).replace("PROTOCOL", protocol);
    Command::new(program)
        .args(["model", "check", "--questions", "60"])
        .args(more)
        .args(["--", "python3", "-c", &model])
        .output()
        .unwrap()
}

#[test]
fn a_good_model_keeps_to_the_protocol() {
    if !crate::python() {
        return;
    }
    let output = check("pass", "demi-model/1", &[]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(0) && told.contains("keeps to the protocol"), "{told}");
    assert!(told.contains("2 actors: a, b") && told.contains("Tick, Hit"), "{told}");
    let json = check("pass", "demi-model/1", &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["ok"], &json["findings"]), (&true.into(), &serde_json::json!([])));
}

#[test]
fn what_is_wrong_is_told_in_words() {
    if !crate::python() {
        return;
    }
    for (deliver, word) in [
        ("return {'state': random.random()}", "asked the same twice"),
        ("return {'state': count}", "asked the same twice"),
        ("return {'effects': []}", "a pure model answers with 'state'"),
        ("return {'state': 1, 'effects': [{'fly': 'away'}]}", "fly"),
        ("return {'state': 1, 'colour': 'red'}", "colour"),
        ("sys.exit(3)", "ended before it answered"),
        ("print('hello')", "no JSON"),
        ("if 'no such' in q['message']['type']: sys.exit(3)", "a message that it does not know is too much"),
    ] {
        let output = check(deliver, "demi-model/1", &[]);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && told.contains(word), "{deliver}: {told}");
        assert!(told.contains("request: "), "{told}");
    }
    let output = check("pass", "demi-model/9", &[]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && told.contains("demi-model/9"), "{told}");
}

#[test]
fn what_a_process_keeps_to_itself_is_found_by_another_order() {
    if !crate::python() {
        return;
    }
    // The same question gets the same answer as long as the process lives, but it depends on what was asked before.
    let deliver = "key = json.dumps([q['actor'], q['state'], q['from']]); seen = globals().setdefault('seen', {}); \
                   return {'state': seen.setdefault(key, len(seen))}";
    let output = check(deliver, "demi-model/1", &[]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(1) && told.contains("in another order after a restart"), "{told}");
}

#[test]
fn who_sends_to_nobody_is_told_before_a_run_ends_with_it() {
    if !crate::python() {
        return;
    }
    let deliver = "return {'state': 1, 'effects': [{'send': {'to': 'nobody', 'message': {'type': 'Hit'}}}]}";
    let output = check(deliver, "demi-model/1", &[]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code() == Some(1) && told.contains("wrong: ") && told.contains("'nobody'"),
        "{told}"
    );
}
