//! The JSON Schemas of the protocol say what is really written.

use std::path::Path;
use std::process::Command;

use demi_child::lines::{Line, Request};
use demi_child::tried::try_model;
use demi_schemas::{ChildModel, Scenario};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;

/// `UPDATE_SCHEMAS=1 cargo test -p demi-child` writes the files anew.
#[test]
fn committed_schemas_agree_with_the_types() {
    check::<Request>("model-request.schema.json");
    check::<Line>("model-answer.schema.json");
}

fn check<T: JsonSchema>(file: &str) {
    let text = format!("{}\n", serde_json::to_string_pretty(&schema_for!(T)).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/json").join(file);
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, text, "{file} is stale: run UPDATE_SCHEMAS=1 cargo test -p demi-child");
}

/// A stateful model: each question tells all that the actor took.
const STATEFUL: &str = r#"
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    out = {"id": r["id"]}
    if "hello" in r:
        out["hello"] = {"protocol": "demi-model/1", "kind": "stateful", "actors": ["a"], "clients": True}
    else:
        out["answers"] = []
        for q in r["requests"]:
            calls = q.get("calls", [])
            if q["do"] == "deliver":
                assert calls[0]["message"] is None, calls
            if q["do"] == "check":
                out["answers"].append({"violations": [], "memory": 1})
            elif q["do"] == "client":
                out["answers"].append({"proposal": {"to": "a", "message": {"type": "Hit"}}})
            else:
                out["answers"].append({"digest": len(calls), "effects": []})
    print(json.dumps(out), flush=True)
"#;

#[test]
fn what_is_written_is_what_the_schemas_say() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/examples/lock.py");
    let stateful = folder.path().join("stateful.py");
    std::fs::write(&stateful, STATEFUL).unwrap();
    for model in [lock, stateful] {
        let at = |name: &str| folder.path().join(name).display().to_string();
        let (asked, answered) = (at("asked"), at("answered"));
        let line = format!("tee -a '{asked}' | python3 '{}' | tee -a '{answered}'", model.display());
        let child =
            ChildModel { command: ["sh", "-c", &line].map(Into::into).to_vec(), ..ChildModel::default() };
        let scenario = Scenario::parse(
            "model = 'm'\nnetwork = 'fifo'\nmembers = 3\nswitches = { a = true }\nsettings = { b = [1] }",
        );
        let trial = try_model(&child, &scenario.unwrap(), 100).unwrap();
        assert!(trial.questions > 10, "{:?}", trial.findings);
        assert!(read::<Request>(&asked) > 10);
        assert!(read::<Line>(&answered) > 10);
        std::fs::remove_file(asked).unwrap();
        std::fs::remove_file(answered).unwrap();
    }
}

/// How many lines of a file are what they should be: all of them.
fn read<T: DeserializeOwned>(path: &str) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    for line in text.lines() {
        let _: T = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
    text.lines().count()
}
