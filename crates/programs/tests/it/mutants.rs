//! Faults seeded into Maelstrom's own programs, and the programs as they are: long, so only where it is asked for.
//!
//! `DEMI_LONG=1 DEMI_CORPUS=FOLDER cargo test -p demi-programs --test it -- mutants --nocapture` prints a line for each. `DEMI_ONLY` picks some by name,
//! `DEMI_SECONDS` says how long each is looked for, and `DEMI_SEED` by which random numbers.

use std::path::Path;
use std::time::{Duration, Instant};

use demi_minimize::{Budget, Objective, Options, Outcome, Phases, StopFlag, minimize};
use demi_programs::WithPrograms;
use demi_replay::fuzz::{Found, FuzzOptions, Made, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::Scenario;

/// Program, workload with its settings, network, and what is replaced by what.
type Mutant = (&'static str, &'static str, &'static str, &'static str, &'static str);

const LIN: &str = "name = \"lin-kv\"";
const LISTS: &str = "name = \"txn-list-append\"\nconsistency = \"strict-serializable\"";
const BROADCAST: &str = "name = \"broadcast\"";

const MUTANTS: [Mutant; 20] = [
    ("python/raft.py", LIN, "unordered", "elif self.voted_for is not None:", "elif False:"),
    (
        "python/raft.py",
        LIN,
        "unordered",
        "n = median(self.match_index().values())",
        "n = max(self.match_index().values())",
    ),
    (
        "python/raft.py",
        LIN,
        "unordered",
        "elif body['last_log_term'] < self.log.last()['term']:",
        "elif False:",
    ),
    ("python/raft.py", LIN, "unordered", "math.floor((n / 2.0) + 1)", "math.floor(n / 2.0)"),
    ("python/raft.py", LIN, "unordered", "self.state[k] != op['from']", "False"),
    ("ruby/raft.rb", LIN, "unordered", "elsif @voted_for\n", "elsif false\n"),
    ("ruby/raft.rb", LIN, "unordered", "xs.sort[xs.size - majority(xs.size)]", "xs.max"),
    ("python/broadcast.py", BROADCAST, "unordered", "sent.update(to_send)", "sent.update(messages)"),
    (
        "python/broadcast.py",
        BROADCAST,
        "unordered",
        "await add_messages(set(msgs))",
        "await add_messages(set(msgs[:1]))",
    ),
    (
        "js/crdt_gset.js",
        "name = \"g-set\"",
        "unordered",
        "crdt = merge(crdt, deserialize(req.body.value));",
        "crdt = deserialize(req.body.value);",
    ),
    (
        "ruby/g_set.rb",
        "name = \"g-set\"",
        "unordered",
        "@set |= msg[:body][:value]",
        "@set = Set.new(msg[:body][:value])",
    ),
    (
        "js/crdt_pn_counter.js",
        "name = \"pn-counter\"",
        "unordered",
        "Math.max(this.counts[node], other.counts[node])",
        "this.counts[node] + other.counts[node]",
    ),
    ("ruby/pn_counter.rb", "name = \"pn-counter\"", "unordered", "[v1, v2].max", "v2"),
    ("js/gossip.js", BROADCAST, "fifo-loss", "node.retryRPC(peer, {", "node.send(peer, {"),
    ("js/gossip.js", BROADCAST, "unordered", "if (peer !== req.src) {", "if (peer > req.src) {"),
    (
        "js/multi_key_txn.js",
        LISTS,
        "unordered",
        "type:                 'cas',",
        "type: 'write', value: serializeMap(root2),",
    ),
    (
        "js/multi_key_txn.js",
        LISTS,
        "unordered",
        "// if (writeSet(txn).size === 0) {\n  //   return txn2;\n  // }",
        "if (writeSet(txn).size === 0) { return txn2; }",
    ),
    (
        "ruby/datomic_list_append.rb",
        LISTS,
        "unordered",
        "{type: \"cas\", key: ROOT, from: p1, to: p2}",
        "{type: \"write\", key: ROOT, value: p2}",
    ),
    (
        "ruby/lin_kv_proxy.rb",
        LIN,
        "unordered",
        "@node.rpc! \"lin-kv\", proxy_body do |res|",
        "@node.rpc! \"seq-kv\", proxy_body do |res|",
    ),
    (
        "ruby/lin_kv_proxy.rb",
        LIN,
        "unordered",
        "@node.on \"read\" do |msg|\n      proxy! msg",
        "@node.on \"read\" do |msg|\n      @read ||= {}\n      @node.rpc! \"lin-kv\", {type: \"read\", key: msg[:body][:key]} do |res|\n        @read[msg[:body][:key]] ||= res[:body]\n        @node.reply! msg, @read[msg[:body][:key]].reject { |k, _| k == :msg_id }\n      end",
    ),
];

/// Programs that end by themselves without any change: `raft.rb` asks for the entry before the first, and has no other answer than an exception.
const DIES: [&str; 1] = ["ruby/raft.rb"];

/// Runs until one violates, or the time is up.
pub(crate) struct Search<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    pub(crate) time: Duration,
}

impl Visitor for Search<'_> {
    type Output = (Option<Found>, u64);

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        let began = Instant::now();
        let mut executed = 0;
        let mut progress = |made: Made| {
            executed = made.executed;
            began.elapsed() < self.time
        };
        let options = FuzzOptions::new(self.seed, 1_000_000, 120);
        let found = fuzz(&mut simulator, self.scenario, &options, &mut progress).unwrap();
        (found, executed)
    }
}

/// A violating run at its shortest.
pub(crate) struct Shortest<'a>(pub(crate) &'a Scenario, pub(crate) &'a Found, pub(crate) Duration);

impl Visitor for Shortest<'_> {
    type Output = Outcome;

    fn visit<M: Model>(self, simulator: Simulator<M>) -> Self::Output {
        let (rule, objective, budget) =
            (self.0.network, Objective::Steps, Budget::Seconds(self.2.as_secs_f64()));
        let options =
            Options { rule, budget, jobs: 2, phases: Phases::All, objective, stop: StopFlag::default() };
        minimize(&simulator, &self.1.schedule, None, &options, &|_| {}).unwrap()
    }
}

/// A setting of the environment.
pub(crate) fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A folder with the programs, and which of them is changed how.
fn scenario(corpus: &Path, folder: &Path, mutant: Mutant, change: bool) -> Option<Scenario> {
    let (program, workload, network, from, to) = mutant;
    let (language, file) = program.split_once('/').unwrap();
    let with = match language {
        "python" => "python3",
        "ruby" => "ruby",
        _ => "node",
    };
    if demi_programs::resolve(&[with.to_owned()]).is_err() {
        println!("skipped: no {with} for {program}");
        return None;
    }
    for entry in
        std::fs::read_dir(corpus.join(language)).unwrap().flatten().filter(|entry| entry.path().is_file())
    {
        std::fs::write(folder.join(entry.file_name()), std::fs::read(entry.path()).unwrap()).unwrap();
    }
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    if change {
        assert!(text.contains(from), "{program} has no {from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    }
    let services = if from.contains("lin-kv") || to.contains("seq-kv") {
        "services = [\"lin-kv\", \"seq-kv\"]\n"
    } else {
        ""
    };
    // As it is, it ends sooner than anything else shows.
    let no_crash = change && DIES.contains(&program);
    let text = format!(
        "no_crash = {no_crash}\nnetwork = {network:?}\n[model]\ncommand = [{with:?}, {:?}]\nnodes = 3\n[workload]\n{workload}\nprocesses = 3\n{services}",
        path.display().to_string()
    );
    Some(Scenario::parse(&text).unwrap())
}

fn corpus() -> Option<std::path::PathBuf> {
    let corpus = std::env::var_os("DEMI_LONG").and_then(|_| std::env::var_os("DEMI_CORPUS"));
    if corpus.is_none() {
        println!(
            "skipped: DEMI_LONG and DEMI_CORPUS ask for Maelstrom's programs, with a folder that has maelstrom/demo"
        );
    }
    corpus.map(|corpus| Path::new(&corpus).join("maelstrom/demo"))
}

#[test]
fn seeded_faults_are_found() {
    let Some(corpus) = corpus() else { return };
    let only = std::env::var("DEMI_ONLY").unwrap_or_default();
    let (mut tried, mut found) = (0, 0);
    for mutant in MUTANTS.into_iter().filter(|mutant| mutant.0.contains(&only) || mutant.4.contains(&only)) {
        let folder = tempfile::tempdir().unwrap();
        let Some(scenario) = scenario(&corpus, folder.path(), mutant, true) else { continue };
        tried += 1;
        let registry = WithPrograms::new(NoModels);
        let began = Instant::now();
        let time = Duration::from_secs(number("DEMI_SECONDS", 120));
        let search = Search { scenario: &scenario, seed: number("DEMI_SEED", 1), time };
        let (one, executed) = registry.visit(&scenario, search).unwrap();
        let name = format!("{} with {}", mutant.0, mutant.4.lines().next().unwrap_or_default());
        let took = began.elapsed().as_secs_f64();
        match (&one, registry.fault()) {
            (_, Some(fault)) => println!("{name}: {fault}"),
            (None, None) => {
                println!("{name}: not in {executed} deliveries, {took:.1} s, {:?}", registry.programs())
            }
            (Some(one), None) => {
                found += 1;
                let time = Duration::from_secs(number("DEMI_MINIMIZE", 20));
                let shortest = registry.visit(&scenario, Shortest(&scenario, one, time)).unwrap();
                let (steps, minimal) = (shortest.schedule.steps.len(), shortest.summary.one_minimal);
                println!(
                    "{name}: {:?} after {took:.1} s and {executed} deliveries; {} steps to {steps}{}; {:?}",
                    one.violation,
                    one.schedule.steps.len(),
                    if minimal { ", 1-minimal" } else { "" },
                    registry.programs()
                );
            }
        }
    }
    println!("{found} of {tried} found");
    assert!(found * 10 >= tried * 9, "{found} of {tried}");
}

/// Programs without a fault: what is found in them is true, and shown.
#[test]
fn programs_as_they_are_stay_quiet() {
    let Some(corpus) = corpus() else { return };
    let only = std::env::var("DEMI_ONLY").unwrap_or_default();
    let mut known = Vec::new();
    for mutant in MUTANTS.into_iter().filter(|mutant| mutant.0.contains(&only)) {
        if known.contains(&mutant.0) {
            continue;
        }
        known.push(mutant.0);
        let folder = tempfile::tempdir().unwrap();
        let Some(scenario) = scenario(&corpus, folder.path(), mutant, false) else { continue };
        let registry = WithPrograms::new(NoModels);
        let began = Instant::now();
        let time = Duration::from_secs(number("DEMI_SECONDS", 120));
        let search = Search { scenario: &scenario, seed: number("DEMI_SEED", 1), time };
        let (one, executed) = registry.visit(&scenario, search).unwrap();
        println!(
            "{}: {:?} in {executed} deliveries, {:.1} s, {:?}, {:?}",
            mutant.0,
            one.map(|one| one.violation),
            began.elapsed().as_secs_f64(),
            registry.fault(),
            registry.programs()
        );
    }
}
