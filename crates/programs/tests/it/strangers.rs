//! Programs as somebody else writes them: threads, tasks, timers of every kind, entropy, a script in front. Each answers equal inputs equally in fresh
//! processes, whatever else the machine does.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use demi_programs::{Launch, Process, Workload, launches, resolve, try_program};
use demi_schemas::Scenario;
use serde_json::{Value, json};

/// A folder with the programs, those in C and Rust compiled.
pub(crate) fn built(folder: &Path) -> Vec<(&'static str, &'static str, Vec<String>)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let all: [(&str, &str, &[&str]); 19] = [
        ("worker_threads.py", "lin-kv", &["python3"]),
        ("tasks.py", "broadcast", &["python3"]),
        ("merges.py", "g-set", &["python3"]),
        ("entropy.py", "unique-ids", &["python3"]),
        ("start.sh", "lin-kv", &["sh"]),
        ("alarm.c", "unique-ids", &["cc", "-O2", "-o"]),
        ("descriptors.c", "g-set", &["cc", "-O2", "-o"]),
        ("lingers.c", "echo", &["cc", "-O2", "-pthread", "-o"]),
        ("thread_ends.c", "echo", &["cc", "-O2", "-pthread", "-o"]),
        ("alarm.c static", "unique-ids", &["cc", "-O2", "-static", "-o"]),
        ("descriptors.c static", "g-set", &["cc", "-O2", "-static", "-o"]),
        ("lingers.c static", "echo", &["cc", "-O2", "-static", "-pthread", "-o"]),
        ("thread_ends.c static-pie", "echo", &["cc", "-O2", "-static-pie", "-pthread", "-o"]),
        ("thread_ends.c musl", "echo", &["musl-gcc", "-O2", "-pthread", "-o"]),
        ("lingers.c musl static", "echo", &["musl-gcc", "-O2", "-static", "-pthread", "-o"]),
        ("gossip.go", "broadcast", &["go", "build", "-o"]),
        ("gossip.go linked.go", "broadcast", &["go", "build", "-o"]),
        ("log.js", "kafka", &["node"]),
        ("sleepers.rb", "g-set", &["ruby"]),
    ];
    let rust: [(&str, &str, &[&str]); 2] = [
        ("channels.rs", "broadcast", &["rustc", "--edition", "2021", "-o"]),
        (
            "channels.rs static",
            "broadcast",
            &["rustc", "--edition", "2021", "-C", "target-feature=+crt-static", "-o"],
        ),
    ];
    let mut found = Vec::new();
    for (name, workload, with) in all.into_iter().chain(rust) {
        let files: Vec<String> = name
            .split(' ')
            .filter(|word| word.contains('.'))
            .map(|word| programs.join(word).display().to_string())
            .collect();
        let file = files[0].clone();
        if with.last() == Some(&"-o") {
            let program = folder.join(name.replace(['.', ' '], "-")).display().to_string();
            let made = Command::new(with[0]).args(&with[1..]).arg(&program).args(&files).output();
            match made {
                Ok(made) if made.status.success() => found.push((name, workload, vec![program])),
                // Not every system has the libraries for that.
                Ok(_) if with.iter().any(|word| word.contains("static")) => {
                    println!("skipped: {name} cannot be linked so here");
                }
                Ok(made) => panic!("{name}: {}", String::from_utf8_lossy(&made.stderr)),
                Err(_) => println!("skipped: no {} for {name}", with[0]),
            }
        } else if resolve(&[with[0].to_owned()]).is_err() {
            println!("skipped: no {} for {name}", with[0]);
        } else {
            found.push((name, workload, vec![with[0].to_owned(), file]));
        }
    }
    found
}

/// Programs of Maelstrom, as they are, where a folder with them is named.
pub(crate) fn of_maelstrom() -> Vec<(&'static str, &'static str, Vec<String>)> {
    let demos = [
        ("python/echo.py", "echo"),
        ("python/broadcast.py", "broadcast"),
        ("python/raft.py", "lin-kv"),
        ("ruby/echo.rb", "echo"),
        ("ruby/broadcast.rb", "broadcast"),
        ("ruby/g_set.rb", "g-set"),
        ("ruby/pn_counter.rb", "pn-counter"),
        ("ruby/raft.rb", "lin-kv"),
        ("js/echo.js", "echo"),
        ("js/gossip.js", "broadcast"),
        ("js/crdt_gset.js", "g-set"),
        ("js/crdt_pn_counter.js", "pn-counter"),
    ];
    let corpus = std::env::var_os("DEMI_LONG").and_then(|_| std::env::var_os("DEMI_CORPUS"));
    let Some(corpus) = corpus else {
        println!(
            "skipped: DEMI_LONG and DEMI_CORPUS ask for Maelstrom's programs, with a folder that has maelstrom/demo"
        );
        return Vec::new();
    };
    let folder = Path::new(&corpus).join("maelstrom/demo");
    let with = |name: &str| match name.split('/').next() {
        Some("python") => "python3",
        Some("ruby") => "ruby",
        _ => "node",
    };
    let is_there = |name: &str| folder.join(name).is_file() && resolve(&[with(name).to_owned()]).is_ok();
    let command = |name: &str| vec![with(name).to_owned(), folder.join(name).display().to_string()];
    demos
        .into_iter()
        .filter(|(name, _)| is_there(name))
        .map(|(name, workload)| (name, workload, command(name)))
        .collect()
}

pub(crate) fn scenario(workload: &str, command: &[String]) -> Scenario {
    let text = format!(
        "network = \"unordered\"\n[model]\ncommand = {command:?}\nnodes = 3\n[workload]\nname = {workload:?}\nprocesses = 3\n"
    );
    Scenario::parse(&text).unwrap()
}

/// The first lines of a node that is alone, and requests of clients.
pub(crate) fn requests(workload: &Workload, count: u64) -> Vec<String> {
    let line =
        |src: &str, body: &Value| json!({ "id": 0, "src": src, "dest": "n1", "body": body }).to_string();
    let names = ["n1".to_owned()];
    let init = json!({ "type": "init", "msg_id": 0, "node_id": "n1", "node_ids": names });
    let mut all = vec![line("c0", &init)];
    all.extend(workload.bootstrap(&names).map(|body| line("c0", &body)));
    let mut dice = Dice(7);
    all.extend((1..=count).map(|id| {
        let operation = workload.operation(id, dice.roll(1 << 30) as u64);
        line("c1", &workload.request(&operation).unwrap())
    }));
    all
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }
}

/// Everything that three fresh processes write in a random schedule of so many steps, with their clocks.
fn transcript(all: &[(String, Launch)], workload: &Workload, seed: u64, steps: usize) -> String {
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let mut nodes: Vec<Process> =
        all.iter().map(|(_, launch)| Process::start(&Arc::new(launch.clone())).unwrap()).collect();
    let mut dice = Dice(seed);
    let mut text = String::new();
    let mut waiting: Vec<(usize, String)> = Vec::new();
    let line = |src: &str, dest: &str, body: &Value| {
        json!({ "id": 0, "src": src, "dest": dest, "body": body }).to_string()
    };
    let mut first = Vec::new();
    for (node, name) in names.iter().enumerate() {
        first.push((
            node,
            line("c0", name, &json!({ "type": "init", "msg_id": 0, "node_id": name, "node_ids": names })),
        ));
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        first.extend(workload.bootstrap(&owned).map(|body| (node, line("c0", name, &body))));
    }
    let mut first = first.into_iter();
    let mut wakes = vec![false; nodes.len()];
    for step in 0..steps {
        let (node, sent) = match first.next() {
            Some((node, sent)) => (node, Some(sent)),
            None => match dice.roll(10) {
                0..5 if !waiting.is_empty() => {
                    let at = dice.roll(waiting.len());
                    let (node, sent) = waiting.remove(at);
                    (node, Some(sent))
                }
                5..8 => {
                    let node = dice.roll(nodes.len());
                    let operation = workload.operation(step as u64, dice.roll(1 << 30) as u64);
                    (node, Some(line("c1", names[node], &workload.request(&operation).unwrap())))
                }
                _ => (dice.roll(nodes.len()), None),
            },
        };
        let answer = match &sent {
            Some(sent) => nodes[node].deliver(sent).unwrap(),
            None if wakes[node] => nodes[node].pass_time().unwrap(),
            None => continue,
        };
        wakes[node] = answer.wakes;
        for out in &answer.lines {
            let value: Value = serde_json::from_str(out).unwrap();
            if let Some(to) = names.iter().position(|name| value["dest"] == *name) {
                waiting.push((to, out.to_string()));
            }
        }
        text.push_str(&format!("{step} {node} {sent:?} {answer:?}\n"));
        assert_eq!(answer.ended, None, "{text}");
    }
    text
}

#[test]
fn every_kind_of_program_can_be_scheduled() {
    let folder = tempfile::tempdir().unwrap();
    for (name, workload, command) in built(folder.path()) {
        let scenario = scenario(workload, &command);
        let trial = try_program(scenario.model.child().unwrap(), &scenario, 5).unwrap();
        assert_eq!(trial.wrong, Vec::<String>::new(), "{name}");
        // The log's other nodes ask the first, which is not there.
        assert!(trial.answered.0 >= 5, "{name}: {:?}", trial.answered);
    }
}

/// Fresh processes each time, and beside them as many that compute as there are processors, and more.
#[test]
fn random_schedules_come_to_the_same_in_fresh_processes() {
    let folder = tempfile::tempdir().unwrap();
    let cases: u64 = std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let only = std::env::var("DEMI_ONLY").unwrap_or_default();
    let programs = built(folder.path()).into_iter().chain(of_maelstrom());
    for (name, workload, command) in programs.filter(|(name, ..)| name.contains(&only)) {
        let scenario = scenario(workload, &command);
        let all = launches(scenario.model.child().unwrap(), &scenario).unwrap();
        let workload = Workload::new(scenario.workload.as_ref().unwrap()).unwrap();
        for seed in 0..cases {
            let idle = transcript(&all, &workload, seed, 100);
            stop.store(false, std::sync::atomic::Ordering::Relaxed);
            let busy = std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                            std::hint::spin_loop();
                        }
                    });
                }
                let busy = transcript(&all, &workload, seed, 100);
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                busy
            });
            assert!(idle == busy, "{name}, seed {seed}: {}", first_difference(&idle, &busy));
        }
        println!("{name}: {cases} schedules of 100 steps, twice, without a difference");
    }
}

fn first_difference(one: &str, other: &str) -> String {
    let pair = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    format!("{pair:?}")
}

/// An answer that does not say to what it is one is told to nobody: that is a finding, and not an operation that waits for ever.
#[test]
fn an_answer_to_nothing_is_a_finding() {
    if !crate::citizens::python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("forgets.py");
    let text = "import json, sys\nnode = None\nfor line in sys.stdin:\n    m = json.loads(line)\n    b = m['body']\n    r = {'type': b['type'] + '_ok'}\n    \
                if b['type'] == 'init':\n        node = b['node_id']\n        r['in_reply_to'] = b['msg_id']\n    else:\n        r['echo'] = b['echo']\n    \
                print(json.dumps({'src': node, 'dest': m['src'], 'body': r}), flush=True)\n";
    std::fs::write(&file, text).unwrap();
    let scenario = scenario("echo", &["python3".to_owned(), file.display().to_string()]);
    let search = crate::workloads::Search { scenario: &scenario, seed: 1, runs: 1, deliveries: 20 };
    let found = demi_replay::Registry::visit(
        &demi_programs::WithPrograms::new(demi_replay::registry::NoModels),
        &scenario,
        search,
    );
    let found = found.unwrap().unwrap();
    assert!(found[0].starts_with("echo/protocol: an answer without 'in_reply_to'"), "{found:?}");
    let trial = try_program(scenario.model.child().unwrap(), &scenario, 5).unwrap();
    assert_eq!(trial.answered, (0, 15));
    assert!(trial.wrong.iter().any(|wrong| wrong.contains("in_reply_to")), "{:?}", trial.wrong);
    // Nor does one to a request that nobody made, whatever is written there.
    for (id, told) in
        [("b['msg_id'] + 1000", "1001"), ("str(b['msg_id'])", "\"1\""), ("b['msg_id'] + 0.5", "1.5")]
    {
        std::fs::write(&file, text.replace("r['echo'] =", &format!("r['in_reply_to'] = {id}; r['echo'] =")))
            .unwrap();
        let search = crate::workloads::Search { scenario: &scenario, seed: 1, runs: 1, deliveries: 20 };
        let registry = demi_programs::WithPrograms::new(demi_replay::registry::NoModels);
        let found = demi_replay::Registry::visit(&registry, &scenario, search).unwrap().unwrap();
        assert!(
            found[0].starts_with("echo/protocol: an answer to a request that its client never made"),
            "{found:?}"
        );
        let trial = try_program(scenario.model.child().unwrap(), &scenario, 5).unwrap();
        assert_eq!(trial.answered, (0, 15), "{id}");
        let said = format!("answers a request that nobody made, {told}: ");
        assert!(trial.wrong.iter().any(|wrong| wrong.contains(&said)), "{:?}", trial.wrong);
    }
    // Nor does one in another's name, or to nobody.
    for (was, is, told) in [
        ("'src': node", "'src': 'x9'", "in the name of nobody"),
        ("'dest': m['src']", "'dest': 'x9'", "to somebody who is not there"),
    ] {
        std::fs::write(&file, text.replace(was, is)).unwrap();
        let trial = try_program(scenario.model.child().unwrap(), &scenario, 5).unwrap();
        assert!(trial.wrong.iter().any(|wrong| wrong.contains(told)), "{:?}", trial.wrong);
    }
    std::fs::write(&file, text.replace("r['in_reply_to'] = b['msg_id']", "continue")).unwrap();
    let trial = try_program(scenario.model.child().unwrap(), &scenario, 5).unwrap();
    assert!(trial.wrong.iter().any(|wrong| wrong.contains("does not answer 'init'")), "{:?}", trial.wrong);
}
