//! Every exit status that `docs/exit-status.md` promises, command by command.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use crate::support::kill::daemon::Daemon;

struct Desk {
    folder: tempfile::TempDir,
    /// Commands with the statuses that were seen of them.
    seen: BTreeSet<(String, i32)>,
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let scenario = |bug: bool| {
            format!(
                "model = \"two-phase\"\nnetwork = \"fifo\"\n[switches]\ncommit_on_timeout = {bug}\n[fuzz]\nclient_messages = 6\n"
            )
        };
        fs::write(folder.path().join("bug.toml"), scenario(true)).unwrap();
        fs::write(folder.path().join("mended.toml"), scenario(false)).unwrap();
        Desk { folder, seen: BTreeSet::new() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command, whose name is the `words` first words of the line, and compares its status.
    fn ends(&mut self, status: i32, words: usize, line: &str) {
        self.ends_with(
            status,
            &line.split(' ').take(words).collect::<Vec<_>>().join(" "),
            &line.split(' ').collect::<Vec<_>>(),
        );
    }

    fn ends_with(&mut self, status: i32, command: &str, arguments: &[&str]) {
        let mut program = Command::cargo_bin("demi-lineage").unwrap();
        program
            .current_dir(&self.folder)
            .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python"));
        let output = program.arg("-q").args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
        self.seen.insert((command.to_owned(), status));
    }
}

/// The commands and the statuses besides 2 that the page promises.
fn promised() -> BTreeSet<(String, i32)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/exit-status.md");
    let page = fs::read_to_string(page).unwrap();
    let mut all = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').skip(1).map(str::trim).collect();
        let command = cells[0].trim_matches('`');
        for (cell, status) in cells[1..].iter().zip([0, 1, 3, 4]) {
            if !cell.is_empty() {
                all.insert((command.to_owned(), status));
            }
        }
    }
    all
}

const DICE: &str = "
import os
from demi_model import Model, Violation, message, serve


class Dice(Model):
    actors = [\"a\"]
    bootstrap = [(\"a\", message(\"Roll\"))]

    def start(self, actor, ctx, disk=None):
        return {\"rolled\": 0}

    def deliver(self, actor, state, msg, ctx):
        return {\"rolled\": int.from_bytes(os.urandom(6), \"big\")}

    def check(self, seen, failed, memory):
        return ([Violation(\"Rolled\", [\"a\"])] if any(s[\"rolled\"] for s in seen.values()) else []), None


if __name__ == \"__main__\":
    serve(Dice())
";

/// A step of which takes longer than a second.
const SLOW: &str = "
import time
from demi_model import Model, Violation, message, serve


class Slow(Model):
    actors = [\"a\"]
    bootstrap = [(\"a\", message(\"Roll\"))]

    def start(self, actor, ctx, disk=None):
        return {\"rolled\": 0}

    def deliver(self, actor, state, msg, ctx):
        time.sleep(2)
        return {\"rolled\": 1}

    def check(self, seen, failed, memory):
        return ([Violation(\"Rolled\", [\"a\"])] if any(s[\"rolled\"] for s in seen.values()) else []), None


if __name__ == \"__main__\":
    serve(Slow())
";

/// A bug on a model that has it, on one that has not, and on one that cannot be read.
fn incidents(desk: &mut Desk) {
    desk.ends(0, 2, "incident list --store bugs");
    desk.ends(
        0,
        2,
        "incident open --execution exec --system s --scenario bug.toml --budget 2000r --store bugs",
    );
    desk.ends(0, 2, "incident work --once --store bugs");
    desk.ends(1, 2, "incident list --store bugs");
    desk.ends(1, 2, "incident replay --all --store bugs --scenario bug.toml");
    desk.ends(0, 2, "incident replay --all --store bugs --scenario mended.toml");
    let bug = fs::read_to_string(desk.at("bug.toml")).unwrap();
    fs::write(desk.at("unreadable.toml"), format!("nonsense = 1\n{bug}")).unwrap();
    desk.ends(4, 2, "incident replay --all --store bugs --scenario unreadable.toml");
    desk.ends(0, 2, "incident verify --store bugs");
    let data = fs::read_dir(desk.at("bugs/incidents/data")).unwrap().next().unwrap().unwrap().path();
    let pages = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path().join("page.html"));
    fs::write(pages.into_iter().find(|page| page.is_file()).unwrap(), "other").unwrap();
    desk.ends(1, 2, "incident verify --store bugs");
}

#[test]
fn every_status_that_is_promised_is_given() {
    let mut desk = Desk::new();
    desk.ends(0, 1, "fuzz --scenario bug.toml --seed 1 --state --out found");
    desk.ends(1, 1, "fuzz --scenario mended.toml --seed 1 --runs 5 --out none");
    desk.ends(0, 2, "ingest load --store store --system s found/logs");
    fs::write(desk.at("foreign.jsonl"), "neither\nnor\n").unwrap();
    desk.ends(1, 2, "ingest load --store other --system s foreign.jsonl");
    desk.ends(1, 2, "ingest parse --mapping native foreign.jsonl");
    desk.ends(0, 2, "ingest parse --mapping native found/logs/coordinator.jsonl");
    desk.ends(0, 1, "build --store store --system s --out exec");

    desk.ends(0, 1, "replay exec --scenario bug.toml");
    let schedule = fs::read_to_string(desk.at("found/schedule.jsonl")).unwrap();
    let short: Vec<&str> = schedule.lines().take(4).collect();
    fs::write(desk.at("short.jsonl"), short.join("\n")).unwrap();
    desk.ends(1, 1, "replay short.jsonl --scenario bug.toml");
    desk.ends(3, 1, "replay exec --scenario mended.toml");

    for (name, status) in [("fine", 0), ("broken", 1)] {
        let answer = if status == 0 { "x" } else { "y" };
        let line = |kind: &str, value: &str| {
            format!("{{\"process\":0,\"type\":{kind:?},\"f\":\"echo\",\"value\":{value:?}}}\n")
        };
        fs::write(desk.at(name), line("invoke", "x") + &line("ok", answer)).unwrap();
        desk.ends(status, 1, &format!("check-history {name} --workload echo"));
    }

    desk.ends(0, 1, "minimize exec --scenario bug.toml --budget 2000r --out min");
    desk.ends(0, 1, "verify min");
    // The check of what is proven takes some hundred configurations.
    desk.ends(4, 1, "verify min --budget 10states");
    let certificate = fs::read_to_string(desk.at("min/certificate.json")).unwrap();
    for (name, from, to) in [("false", "\"violates\": false", "\"violates\": true")] {
        fs::create_dir(desk.at(name)).unwrap();
        for file in fs::read_dir(desk.at("min")).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), desk.at(name).join(file.file_name())).unwrap();
        }
        fs::write(desk.at(name).join("certificate.json"), certificate.replacen(from, to, 1)).unwrap();
    }
    desk.ends(1, 1, "verify false");

    desk.ends(0, 1, "explore --scenario mended.toml --bound 0 --out e0");
    desk.ends(1, 1, "explore --scenario bug.toml --bound 1 --out e1");
    desk.ends(4, 1, "explore --scenario mended.toml --bound 3 --budget 5states --out e4");
    desk.ends(4, 1, "verify e0 --budget 1states");

    desk.ends_with(0, "query check", &["query", "exec", "check", "count(*) > 0"]);
    desk.ends_with(1, "query check", &["query", "exec", "check", "count(*) > 99"]);
    desk.ends_with(0, "query find", &["query", "exec", "find", ".", "--regex", "--limit", "1"]);
    desk.ends_with(1, "query find", &["query", "exec", "find", "nothing says this"]);

    desk.ends(0, 1, "fuzz --scenario bug.toml --seed 2 --state --out more");
    desk.ends(0, 1, "infer found more --anyway --min-bits 0 --out kept.toml");
    desk.ends(0, 1, "check found --invariants kept.toml");
    let wrong = "schema = \"demi-invariants/1\"\n[[invariant]]\nid = \"wrong\"\nholds = \"open > 99\"\n\
                 class = \"coordinator\"\nstatus = \"inferred\"\nbits = 50.0\nepisodes = 50\nexecutions = 2\n";
    fs::write(desk.at("wrong.toml"), wrong).unwrap();
    desk.ends(1, 1, "check found --invariants wrong.toml");
    desk.ends(1, 1, "infer found more --anyway --min-bits 0 --against wrong.toml");

    incidents(&mut desk);
    spooled(&mut desk);
    of_threads(&mut desk);
    if in_python(&mut desk) {
        let missing: Vec<_> = promised().difference(&desk.seen).cloned().collect();
        assert_eq!(missing, [], "the page promises what was not seen");
    }
}

/// Tests of threads, as they left their summaries.
fn of_threads(desk: &mut Desk) {
    use crate::threads::{SCHEDULE, SUMMARY, without_findings};
    fs::create_dir(desk.at("tested")).unwrap();
    let summary = desk.at("tested/bank.summary.json");
    fs::write(&summary, SUMMARY).unwrap();
    fs::write(desk.at("tested/bank.jsonl"), SCHEDULE).unwrap();
    desk.ends(1, 2, "threads show tested");
    desk.ends(0, 2, "threads verify tested");
    fs::write(&summary, SUMMARY.replace("1,002 executions", "1,003 executions")).unwrap();
    desk.ends(1, 2, "threads verify tested");
    for (status, text) in without_findings() {
        fs::write(&summary, text).unwrap();
        desk.ends(status, 2, "threads show tested");
    }
}

/// A daemon that has nothing left, and one whose store is gone while its spool is damaged.
fn spooled(desk: &mut Desk) {
    let d = desk.folder.path().display().to_string();
    let config = format!(
        "[store]\ndir = \"{d}/kept\"\nseal_millis = 50\n[spool]\ndir = \"{d}/spool\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [sources.logs]\ntype = \"files\"\nsystem = \"s\"\npaths = [\"{d}/found/logs/*\"]\npoll_millis = 20\nscan_millis = 50\n"
    );
    let mut daemon = Daemon::with_config(desk.folder.path(), &config);
    daemon.start();
    daemon.wait_for(30);
    daemon.stop();
    desk.ends(0, 2, "ingest verify --store kept --spool spool");
    // Another store, and a spool of which a part can be read no more.
    fs::rename(desk.at("kept"), desk.at("lost")).unwrap();
    desk.ends(0, 2, "ingest load --store kept --system t found/logs");
    let files = fs::read_dir(desk.at("spool")).unwrap().map(|file| file.unwrap().path());
    let largest = files.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    bytes[300] ^= 1;
    fs::write(&largest, bytes).unwrap();
    desk.ends(1, 2, "ingest verify --store kept --spool spool");
}

/// What needs a model of one's own; says whether there is a Python for it.
fn in_python(desk: &mut Desk) -> bool {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return false;
    }
    fs::write(desk.at("dice.py"), DICE).unwrap();
    let scenario = "model = { command = [\"python3\", \"dice.py\"] }\nnetwork = \"fifo\"\n";
    fs::write(desk.at("dice.toml"), scenario).unwrap();
    let steps = "{\"kind\":\"start\",\"to\":\"a\"}\n{\"kind\":\"deliver\",\"to\":\"a\",\"type\":\"Roll\",\"payload\":\"Roll\",\"external\":true}\n";
    fs::write(desk.at("dice.jsonl"), steps).unwrap();
    desk.ends(3, 1, "minimize dice.jsonl --scenario dice.toml --budget 50r --out dice");
    fs::write(desk.at("slow.py"), SLOW).unwrap();
    fs::write(desk.at("slow.toml"), scenario.replace("dice", "slow")).unwrap();
    desk.ends(4, 1, "minimize dice.jsonl --scenario slow.toml --budget 100ms --out slow");
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk/python/examples/lock.py");
    desk.ends_with(0, "model check", &["model", "check", "--", "python3", &lock.display().to_string()]);
    desk.ends(1, 2, "model check -- true");
    programs(desk);
    true
}

/// A program as it is, the log of one of its runs, and one that does something else.
fn programs(desk: &mut Desk) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/programs");
    let read = |name: &str| fs::read_to_string(examples.join(name)).unwrap();
    let (program, scenario) = (read("register.py"), read("register.toml"));
    fs::write(desk.at("log.jsonl"), read("register-log.jsonl")).unwrap();
    let forgets = program.replacen("\"type\": \"replicate\"", "\"type\": \"told\"", 1);
    for (name, program) in [("register", program.as_str()), ("changed", &forgets), ("ended", "")] {
        fs::write(desk.at(&format!("{name}.py")), program).unwrap();
        let scenario = scenario.replace("examples/programs/register.py", &format!("{name}.py"));
        fs::write(desk.at(&format!("{name}.toml")), scenario).unwrap();
    }
    // A program that tells the number of its folder answers something else in every process.
    let differs = "import json, os, sys\nfor line in sys.stdin:\n    m = json.loads(line)\n    r = dict(m['body'], in_reply_to=m['body']['msg_id'], \
                   folder=os.stat('.').st_ino)\n    r['type'] += '_ok'\n    print(json.dumps({'src': m['dest'], 'dest': m['src'], 'body': r}), flush=True)\n";
    fs::write(desk.at("differs.py"), differs).unwrap();
    let of = "network = \"unordered\"\n[model]\ncommand = [\"python3\", \"differs.py\"]\nnodes = 2\n[workload]\nname = \"echo\"\n";
    fs::write(desk.at("differs.toml"), of).unwrap();
    desk.ends(3, 1, "fuzz --scenario differs.toml --seed 1 --runs 100 --deliveries 40 --out differs");
    desk.ends(3, 1, "explore --scenario differs.toml --bound 0 --out e3");
    desk.ends(0, 2, "program check --scenario register.toml --requests 5");
    desk.ends(1, 2, "program check --scenario ended.toml --requests 5");
    desk.ends(0, 2, "program follow log.jsonl --scenario register.toml --out followed");
    desk.ends(3, 2, "program follow log.jsonl --scenario changed.toml --out unlike");
}
