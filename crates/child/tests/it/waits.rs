//! A child may say who waits for whom.

use std::process::Command;

use demi_child::WithChildren;
use demi_replay::Registry;
use demi_replay::registry::NoModels;
use demi_schemas::Scenario;

use crate::Search;

/// Two actors ask each other. Who has asked answers nobody before it has its own answer.
const ASKING: &str = r#"
import json, sys
def answer(q):
    if q["do"] == "check":
        return {"violations": []}
    if q["do"] == "start":
        return {"state": 0, "effects": [{"set": {"timer": "ask", "message": {"type": "Ask"}}}]}
    other = "b" if q["actor"] == "a" else "a"
    what, waits = q["message"]["type"], q["state"]
    send = lambda type: [{"send": {"to": other, "message": {"type": type}}}]
    if what == "Ask":
        return {"state": 1, "waits_for": [other], "effects": send("Request")}
    if what == "Request" and not waits:
        return {"state": 0, "effects": send("Reply")}
    return {"state": 0} if what == "Reply" else {"state": 1, "waits_for": [other]}
for line in sys.stdin:
    r = json.loads(line)
    if "hello" in r:
        out = {"id": r["id"], "hello": {"protocol": "demi-model/1", "actors": ["a", "b"]}}
    else:
        out = {"id": r["id"], "answers": [answer(q) for q in r["requests"]]}
    print(json.dumps(out), flush=True)
"#;

#[test]
fn children_that_wait_for_each_other_are_deadlocked() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    for counts in [true, false] {
        let command = serde_json::Value::from(ASKING);
        let text = format!(
            "model = {{ command = ['python3', '-c', {command}] }}\nnetwork = 'fifo'\ndeadlock = {counts}"
        );
        let scenario = Scenario::parse(&text).unwrap();
        let models = WithChildren::new(NoModels);
        let found = models.visit(&scenario, Search(&scenario)).unwrap();
        assert_eq!(models.fault(), None);
        let violation = found.map(|schedule| schedule.header.violation);
        assert_eq!(violation, counts.then(|| vec!["Deadlock:a:b".to_owned()]));
    }
}
