//! A network that delivers messages more than once, from random runs to a failing test.

use std::path::Path;
use std::process::Command as Process;

use assert_cmd::Command;
use serde_json::Value;

/// Money is created where a credit comes twice, and never otherwise.
const BANK: &str = r#"
from demi_model import Model, Violation, message, serve


class Bank(Model):
    actors = ["a", "b", "c"]
    once = ONCE

    def start(self, actor, ctx, disk=None):
        return {"in": 0, "out": 0}

    def client(self, n, random):
        return ("a" if random.random() < 0.5 else "c", message("Pay", {"amount": n % 3 + 1}))

    def deliver(self, actor, state, msg, ctx):
        if msg.type == "Pay":
            state["out"] += msg.data["amount"]
            ctx.send("b", message("Credit", {"amount": msg.data["amount"]}))
            ctx.send("b", message("Note"))
        elif msg.type == "Credit":
            state["in"] += msg.data["amount"]
        return state

    def check(self, seen, failed, memory):
        created = sum(s["in"] for s in seen.values()) > sum(s["out"] for s in seen.values())
        return ([Violation("Money", ["b"])] if created and not failed else []), None


if __name__ == "__main__":
    serve(Bank())
"#;

struct Bank {
    folder: tempfile::TempDir,
}

impl Bank {
    /// Nothing where there is no Python.
    fn new() -> Option<Bank> {
        if Process::new("python3").arg("--version").output().is_err() {
            println!("skipped: there is no python3");
            return None;
        }
        Some(Bank { folder: tempfile::tempdir().unwrap() })
    }

    /// Writes the model and its scenario.
    fn scenario(&self, name: &str, network: &str, once: &str) -> String {
        let write = |name: &str, text: &str| std::fs::write(self.folder.path().join(name), text).unwrap();
        write(&format!("{name}.py"), &BANK.replace("ONCE", once));
        let command = format!("model = {{ command = [\"python3\", \"{name}.py\"] }}");
        write(&format!("{name}.toml"), &format!("{command}\n{network}\n[fuzz]\nclient_messages = 6\n"));
        format!("{name}.toml")
    }

    fn demi(&self, arguments: &str) -> (i32, String) {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python");
        let mut command = Command::cargo_bin("demi-lineage").unwrap();
        command.current_dir(&self.folder).env("PYTHONPATH", sdk).args(arguments.split(' '));
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn json(&self, arguments: &str) -> Value {
        let (_, text) = self.demi(&format!("{arguments} --json"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments}: {e}: {text}"))
    }
}

#[test]
fn a_message_that_came_twice_is_replayed_minimized_and_tested() {
    for network in ["fifo", "fifo-loss", "unordered"] {
        let Some(bank) = Bank::new() else { return };
        let scenario = bank.scenario("bank", &format!("network = \"{network}\"\nduplicates = true"), "[]");
        let (code, text) = bank.demi(&format!("fuzz --scenario {scenario} --seed 3 --runs 200 --out found"));
        assert_eq!(code, 0, "{network}: {text}");
        let log = std::fs::read_to_string(bank.folder.path().join("found/logs/b.jsonl")).unwrap();
        let ids: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["msg_id"].clone())
            .filter(|id| !id.is_null())
            .collect();
        assert!(ids.iter().enumerate().any(|(at, id)| ids[..at].contains(id)), "{network}: {log}");

        bank.demi("ingest load --store store --system bank found/logs");
        let built = bank.json("build --store store --system bank --out exec");
        assert!(built["unmatched"]["duplicate"].as_u64().unwrap() >= 1, "{network}: {built}");
        let replayed = bank.json(&format!("replay exec --scenario {scenario}"));
        assert_eq!(
            (&replayed["verdict"], &replayed["divergences"]),
            (&"violates".into(), &0.into()),
            "{network}: {replayed}"
        );
        let (code, text) =
            bank.demi(&format!("minimize exec --scenario {scenario} --out min --budget 3000r"));
        assert_eq!(code, 0, "{network}: {text}");
        let schedule = std::fs::read_to_string(bank.folder.path().join("min/schedule.jsonl")).unwrap();
        let kinds: Vec<String> = schedule
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned())
            .collect();
        let expected = ["start", "start", "deliver", "duplicate", "deliver", "deliver"];
        assert_eq!(kinds, expected, "{network}: {schedule}");
        assert_eq!(bank.demi("verify min").0, 0, "{network}");
        assert_eq!(bank.demi("export min --format pytest --out test_bank.py").0, 0);
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python");
        let mut test = Process::new("python3");
        test.args(["-m", "unittest", "test_bank"]).current_dir(&bank.folder).env("PYTHONPATH", sdk);
        let output = test.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("Money"), "{network}: {told}");
    }
}

#[test]
fn messages_are_repeated_only_where_network_and_model_let_them() {
    let Some(bank) = Bank::new() else { return };
    let repeats = "network = \"fifo\"\nduplicates = true";
    for (name, network, once, code) in [
        ("plain", "network = \"fifo\"", "[]", 1),
        ("connected", repeats, "[\"Credit\"]", 1),
        ("other", repeats, "[\"Note\"]", 0),
    ] {
        let scenario = bank.scenario(name, network, once);
        let (found, text) =
            bank.demi(&format!("fuzz --scenario {scenario} --seed 3 --runs 50 --out {name}-found"));
        assert_eq!(found, code, "{name}: {text}");
        let (explored, text) = bank.demi(&format!(
            "explore --scenario {scenario} --faults 1 --bound 0 --externals 1 --out {name}-explored"
        ));
        assert_eq!(explored, 1 - code, "{name}: {text}");
    }
}
