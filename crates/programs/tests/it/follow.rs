//! Runs outside the scheduler, whose logs programs follow inside it. A router of the test's own passes lines on between processes as the system runs
//! them, with delays, and writes what passes in each form that logs have.

use std::collections::BinaryHeap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use demi_programs::{Followed, WithPrograms, follow_log};
use demi_replay::registry::NoModels;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::summary::Verdict;
use demi_schemas::{Scenario, Schedule};
use serde_json::{Value, json};

use crate::citizens::python;
use crate::workloads::{NODE, broadcast};

/// A line that passed the router: whether it was written to it, by whom or to whom, and when.
#[derive(Clone, Debug)]
struct Passed {
    wrote: bool,
    who: String,
    line: String,
    time: u128,
}

/// Processes of a program, and a network between them.
struct Router {
    names: Vec<String>,
    children: Vec<(Child, ChildStdin)>,
    lines: Receiver<(usize, String)>,
    began: Instant,
    log: Vec<Passed>,
    /// Lines that are on their way: when they come (negative, so that the first is the greatest), which came first, to whom, and the line.
    way: BinaryHeap<(i128, i64, String, String)>,
    sent: i64,
}

impl Drop for Router {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Router {
    fn start(command: &[String], names: &[&str], folder: &Path) -> Router {
        let (sender, lines) = channel();
        let mut children = Vec::new();
        for node in 0..names.len() {
            let mut child = Command::new(&command[0])
                .args(&command[1..])
                .current_dir(folder)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send((node, line)).is_err() {
                        return;
                    }
                }
            });
            children.push((child, stdin));
        }
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Router {
            names,
            children,
            lines,
            began: Instant::now(),
            log: Vec::new(),
            way: BinaryHeap::new(),
            sent: 0,
        }
    }

    fn time(&self) -> u128 {
        self.began.elapsed().as_nanos()
    }

    fn note(&mut self, wrote: bool, who: &str, line: &str) {
        let time = self.time();
        self.log.push(Passed { wrote, who: who.to_owned(), line: line.to_owned(), time });
    }

    /// Takes a line on its way.
    fn send(&mut self, src: &str, line: &str, delay: Duration) {
        self.note(true, src, line);
        let dest = serde_json::from_str::<Value>(line).unwrap()["dest"].as_str().unwrap().to_owned();
        self.sent += 1;
        let due = self.time() + delay.as_nanos();
        self.way.push((-(due as i128), -self.sent, dest, line.to_owned()));
    }

    /// Passes on what is due, and gives what reaches clients, until there is such a line or nothing more for a while.
    fn pass(&mut self, delay: Duration, until: Instant) -> Option<(String, Value)> {
        loop {
            while self.way.peek().is_some_and(|(due, ..)| -due <= self.time() as i128) {
                let (_, _, dest, line) = self.way.pop().unwrap();
                self.note(false, &dest, &line);
                match self.names.iter().position(|name| *name == dest) {
                    Some(node) => {
                        let _ = writeln!(self.children[node].1, "{line}");
                        let _ = self.children[node].1.flush();
                        // One line at a time, as long as the machine is not too slow.
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    None => return Some((dest, serde_json::from_str(&line).unwrap())),
                }
            }
            if Instant::now() > until {
                return None;
            }
            match self.lines.recv_timeout(Duration::from_millis(1)) {
                Ok((node, line)) => {
                    let name = self.names[node].clone();
                    let to: Value = serde_json::from_str(&line).unwrap();
                    let between = self.names.iter().any(|name| to["dest"] == **name);
                    self.send(&name, &line, if between { delay } else { Duration::ZERO });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Begins all nodes, as Maelstrom does.
    fn begin(&mut self, more: Option<&Value>) {
        let names = self.names.clone();
        for (client, name) in names.iter().enumerate() {
            let body = json!({ "type": "init", "msg_id": 1, "node_id": name, "node_ids": names });
            let line =
                json!({ "id": 0, "src": format!("c{client}"), "dest": name, "body": body }).to_string();
            self.send(&format!("c{client}"), &line, Duration::ZERO);
            if let Some(body) = more {
                let line = json!({ "src": format!("c{client}"), "dest": name, "body": body }).to_string();
                self.send(&format!("c{client}"), &line, Duration::ZERO);
            }
        }
        let mut left = names.len() * (1 + usize::from(more.is_some()));
        while left > 0 {
            self.pass(Duration::ZERO, Instant::now() + Duration::from_secs(20)).expect("a node begins");
            left -= 1;
        }
    }
}

/// A run: clients ask one after the other, each its own node, until so many got what they wanted.
fn run(
    (command, names, folder): (&[String], &[&str], &Path),
    more: Option<&Value>,
    (delay, asked, wanted): (Duration, usize, usize),
    request: &dyn Fn(u64) -> Value,
) -> Vec<Passed> {
    let mut router = Router::start(command, names, folder);
    router.begin(more);
    let (mut done, mut n) = (0, 0_u64);
    let end = Instant::now() + Duration::from_secs(40);
    while (done < wanted || n < asked as u64) && Instant::now() < end {
        let client = names.len() + (n as usize % names.len());
        let mut body = request(n);
        n += 1;
        body["msg_id"] = json!(n);
        let name = format!("c{client}");
        let line = json!({ "src": name, "dest": names[client - names.len()], "body": body }).to_string();
        router.send(&name, &line, Duration::ZERO);
        let until = Instant::now() + Duration::from_millis(if done == 0 { 400 } else { 2_000 });
        // Who gets no answer asks no more: the next client has another name.
        while let Some((dest, answer)) = router.pass(delay, until) {
            if dest == name && answer["body"]["in_reply_to"] == json!(n) {
                done += usize::from(answer["body"]["type"] != "error" || answer["body"]["code"] == json!(20));
                break;
            }
        }
    }
    // What is on its way comes.
    router.pass(delay, Instant::now() + 2 * delay + Duration::from_millis(300));
    assert!(done >= wanted, "{done} of {wanted} answers");
    std::mem::take(&mut router.log)
}

/// Envelopes around each message, as JSON.
fn as_json(log: &[Passed]) -> String {
    let line = |one: &Passed| {
        let message: Value = serde_json::from_str(&one.line).unwrap();
        let way = if one.wrote { "send" } else { "recv" };
        json!({ "event": way, "time": one.time as u64, "node": one.who, "message": message }).to_string()
            + "\n"
    };
    log.iter().map(line).collect()
}

fn edn(value: &Value, keys: bool) -> String {
    match value {
        Value::Null => "nil".into(),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(|one| edn(one, false)).collect::<Vec<_>>().join(" "))
        }
        Value::Object(all) => {
            let key = |name: &str| if keys { format!(":{name}") } else { format!("{name:?}") };
            let inner = |name: &str| keys && name == "body";
            let fields = all.iter().map(|(name, value)| format!("{} {}", key(name), edn(value, inner(name))));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// As Maelstrom's jepsen.log has it with `--log-net-send` and `--log-net-recv`, among other lines.
fn as_jepsen(log: &[Passed]) -> String {
    let mut text =
        "2026-03-01 10:00:00,000{GMT}\tINFO\t[jepsen test runner] jepsen.core: Test version 1 {:a 1}\n"
            .to_owned();
    for one in log {
        let message: Value = serde_json::from_str(&one.line).unwrap();
        let (seconds, millis) = (one.time / 1_000_000_000, one.time / 1_000_000 % 1_000);
        let way = if one.wrote { ":send" } else { ":recv" };
        text.push_str(&format!(
            "2026-03-01 10:{:02}:{:02},{millis:03}{{GMT}}\tINFO\t[{} stdin] maelstrom.net: {way} #maelstrom.net.message.Message{}\n",
            seconds / 60,
            seconds % 60,
            one.who,
            edn(&message, true)
        ));
    }
    text
}

struct Strict<'a>(&'a Schedule, &'a Scenario);

impl Visitor for Strict<'_> {
    type Output = Verdict;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Verdict {
        let options = ReplayOptions { rule: self.1.network, strict: true, interval: 1 };
        replay(&mut simulator, self.0, &options).unwrap().verdict
    }
}

/// What a schedule comes to in fresh processes, when each of its steps has to be followed.
fn strictly(followed: &Followed) -> Verdict {
    let registry = WithPrograms::new(NoModels);
    let verdict = registry.visit(&followed.scenario, Strict(&followed.schedule, &followed.scenario)).unwrap();
    assert_eq!(registry.fault(), None);
    verdict
}

fn scenario(command: &[String], workload: &str) -> Scenario {
    Scenario::parse(&format!(
        "network = \"unordered\"\n[model]\ncommand = {command:?}\nnodes = 3\n[workload]\nname = {workload:?}\n"
    ))
    .unwrap()
}

fn whole(followed: &Followed) {
    assert_eq!(followed.parting, None, "{} of {}", followed.followed, followed.messages);
    assert_eq!(followed.followed, followed.messages);
}

/// A register that answers before others know: the read of an old value, in each form of the log.
#[test]
fn a_log_in_any_form_is_followed_to_its_violation() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/programs/register.py");
    let command = vec!["python3".to_owned(), program.display().to_string()];
    let request = |n: u64| match n % 3 {
        1 => json!({ "type": "write", "key": 0, "value": n }),
        _ => json!({ "type": "read", "key": 0 }),
    };
    let names = ["n0", "n1", "n2"];
    let log = run((&command, &names, folder.path()), None, (Duration::from_millis(60), 9, 9), &request);
    let scenario = scenario(&command, "lin-kv");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("run.jsonl"), as_json(&log)).unwrap();
    std::fs::create_dir(path("latest")).unwrap();
    std::fs::write(path("latest/jepsen.log"), as_jepsen(&log)).unwrap();
    std::fs::create_dir_all(path("nodes/node-logs")).unwrap();
    for name in names {
        // A node's own log says neither when nor which way.
        let own: String =
            log.iter().filter(|one| one.who == name).map(|one| format!("DEBUG {}\n", one.line)).collect();
        std::fs::write(path("nodes/node-logs").join(format!("{name}.log")), own).unwrap();
    }
    for name in ["run.jsonl", "latest", "nodes"] {
        let followed = follow_log(&scenario, &path(name)).unwrap();
        whole(&followed);
        // Logs of nodes alone tell no order between what clients of two nodes did.
        if name != "nodes" {
            assert_eq!(followed.violation, ["lin-kv/not linearizable"], "{name}");
            assert_eq!(strictly(&followed), Verdict::Violates, "{name}");
        }
        assert_eq!(follow_log(&scenario, &path(name)).unwrap().schedule, followed.schedule, "{name}");
    }
    // A log of a program that answers otherwise.
    let text = as_json(&log);
    let answer = "\"type\":\"write_ok\"";
    let at = text.find(answer).expect("a write");
    std::fs::write(path("run.jsonl"), text.replacen(answer, "\"type\":\"write_no\"", 1)).unwrap();
    let parting = follow_log(&scenario, &path("run.jsonl")).unwrap().parting.unwrap();
    assert!(parting.place.ends_with(&format!("run.jsonl:{}", text[..at].lines().count())), "{parting:?}");
    assert!(parting.logged.contains("write_no") && parting.wrote.unwrap().contains("write_ok"));
}

/// Nodes that act by themselves: the log has no word of their clocks.
#[test]
fn clocks_go_on_as_the_log_needs() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("told.py");
    std::fs::write(&file, broadcast(true)).unwrap();
    let command = vec!["python3".to_owned(), file.display().to_string()];
    let names = ["n1", "n2", "n3"];
    let topology = json!({ "type": "topology", "msg_id": 2, "topology": { "n1": ["n2"], "n2": ["n1", "n3"], "n3": ["n2"] } });
    let request = |n: u64| match n % 2 {
        0 => json!({ "type": "broadcast", "message": n }),
        _ => json!({ "type": "read" }),
    };
    let log = run(
        (&command, &names, folder.path()),
        Some(&topology),
        (Duration::from_millis(150), 24, 24),
        &request,
    );
    let path = folder.path().join("run.jsonl");
    std::fs::write(&path, as_json(&log)).unwrap();
    let followed = follow_log(&scenario(&command, "broadcast"), &path).unwrap();
    whole(&followed);
    assert_eq!(followed.violation, Vec::<String>::new());
    assert_eq!(strictly(&followed), Verdict::DoesNotViolate);
    assert_eq!(followed.scenario.workload.unwrap().topology.as_deref(), Some("line"));
}

/// Maelstrom's own programs, where a folder with them is named.
#[test]
fn programs_of_maelstrom_follow_their_own_runs() {
    let corpus = std::env::var_os("DEMI_LONG").and_then(|_| std::env::var_os("DEMI_CORPUS"));
    let Some(corpus) = corpus.filter(|_| python()) else {
        println!(
            "skipped: DEMI_LONG and DEMI_CORPUS ask for Maelstrom's programs, with a folder that has maelstrom/demo"
        );
        return;
    };
    let demo = Path::new(&corpus).join("maelstrom/demo");
    let names = ["n0", "n1", "n2"];
    let all: [(&str, &str, &str); 4] = [
        ("python3", "python/raft.py", "lin-kv"),
        ("python3", "python/echo.py", "echo"),
        ("node", "js/crdt_gset.js", "g-set"),
        ("python3", "python/broadcast.py", "broadcast"),
    ];
    for (with, program, workload) in all {
        let command = vec![with.to_owned(), demo.join(program).display().to_string()];
        if demi_programs::resolve(&command).is_err() {
            println!("skipped: no {with}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let request = |n: u64| match (workload, n % 3) {
            ("echo", _) => json!({ "type": "echo", "echo": format!("please echo {n}") }),
            ("g-set", 0) | ("broadcast", 1) => json!({ "type": "read" }),
            ("g-set", _) => json!({ "type": "add", "element": n }),
            ("broadcast", _) => json!({ "type": "broadcast", "message": n }),
            (_, 1) => json!({ "type": "read", "key": 0 }),
            (_, 2) if n > 20 => json!({ "type": "cas", "key": 0, "from": n - 2, "to": n }),
            _ => json!({ "type": "write", "key": 0, "value": n }),
        };
        let near = json!({ "type": "topology", "msg_id": 2, "topology": { "n0": ["n1"], "n1": ["n0", "n2"], "n2": ["n1"] } });
        let more = (workload == "broadcast").then_some(&near);
        let log = run((&command, &names, folder.path()), more, (Duration::from_millis(20), 40, 12), &request);
        let path = folder.path().join("jepsen.log");
        std::fs::write(&path, as_jepsen(&log)).unwrap();
        let followed = follow_log(&scenario(&command, workload), &path).unwrap();
        println!(
            "{program}: {} of {} messages, {} steps, {:?}, {:?}",
            followed.followed,
            followed.messages,
            followed.schedule.steps.len(),
            followed.violation,
            followed.parting
        );
        whole(&followed);
        assert_eq!(followed.violation, Vec::<String>::new(), "{program}");
        assert_eq!(strictly(&followed), Verdict::DoesNotViolate, "{program}");
    }
}

/// A node that was killed and began again has two beginnings in its log.
#[test]
fn a_second_beginning_is_a_restart() {
    if !python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.py");
    let rest = "count = 0\ndef handle(message, body, kind):\n    global count\n    count += 1\n    reply(message, {\"type\": \"echo_ok\", \"echo\": body[\"echo\"], \"n\": count})\nrun(handle)";
    std::fs::write(&file, format!("{NODE}{rest}")).unwrap();
    let command = vec!["python3".to_owned(), file.display().to_string()];
    let init = "recv {\"src\":\"c0\",\"dest\":\"n1\",\"body\":{\"type\":\"init\",\"msg_id\":1,\"node_id\":\"n1\",\"node_ids\":[\"n1\"]}}\n";
    let echo = |id: u64, n: u64| {
        format!(
            "recv {{\"src\":\"c7\",\"dest\":\"n1\",\"body\":{{\"type\":\"echo\",\"msg_id\":{id},\"echo\":\"x\"}}}}\n\
             send {{\"src\":\"n1\",\"dest\":\"c7\",\"body\":{{\"type\":\"echo_ok\",\"echo\":\"x\",\"n\":{n},\"in_reply_to\":{id}}}}}\n"
        )
    };
    let path = folder.path().join("n1.log");
    std::fs::write(&path, format!("{init}{}{}{init}{}", echo(1, 1), echo(2, 2), echo(3, 1))).unwrap();
    let followed = follow_log(&scenario(&command, "echo"), &path).unwrap();
    whole(&followed);
    let text = followed.schedule.to_text();
    assert!(text.contains("\"kind\":\"crash\"") && text.contains("\"kind\":\"restart\""), "{text}");
    assert_eq!(strictly(&followed), Verdict::DoesNotViolate);
}
