//! What a process in between costs: one model, a lock service with leases whose storage has no fencing, minimized in this process,
//! through the protocol as a Rust program, and through the protocol in other languages.
//!
//! `cargo run --release -p demi-child --example child_speed -- [SEEDS] [-- COMMAND...]...`: for each seed an execution is recorded at
//! random, and minimized with the same budget of states by all, which then find the same. A command after `--` is another program with the
//! same model, such as `python3 crates/child/examples/lease.py` or `node crates/child/examples/lease.js`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::collections::VecDeque;
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use demi_child::WithChildren;
use demi_minimize::{Budget, Criteria, Objective, Options, Outcome, Phases, StopFlag, minimize_with};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, Registry, Simulator, View, Violation,
    Visitor, Workload,
};
use demi_schemas::{NetworkRule, Scenario, Schedule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const ACTORS: [&str; 4] = ["lock", "storage", "client-1", "client-2"];
/// Configurations that a search may visit.
const STATES: u64 = 20_000_000;
const LOCK: usize = 0;
const STORAGE: usize = 1;

/// Each message carries a token, and some what is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Msg {
    #[serde(rename = "type")]
    type_: String,
    data: (u32, u32),
}

fn msg(type_: &str, token: u32, content: u32) -> Msg {
    Msg { type_: type_.to_owned(), data: (token, content) }
}

/// The states of all roles in one; numbers of actors are places in [`ACTORS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct State {
    token: u32,
    held: bool,
    queue: VecDeque<usize>,
    content: u32,
    highest: u32,
    overtaken: bool,
    waiting: u32,
    busy: bool,
}

/// What a handler does.
enum Act {
    Send(usize, Msg),
    Lease,
    NoLease,
}

/// The handlers, for both ways to run them.
fn deliver(state: &mut State, from: Option<usize>, got: &Msg) -> Vec<Act> {
    let (token, content) = got.data;
    match got.type_.as_str() {
        "Add" => {
            state.waiting += 1;
            if state.busy { Vec::new() } else { acquire(state) }
        }
        "Acquire" => {
            state.queue.extend(from);
            if state.held { Vec::new() } else { grant(state) }
        }
        "Release" if state.held && token == state.token => grant(state),
        "Expire" => grant(state),
        "Granted" => vec![Act::Send(STORAGE, msg("Read", token, 0))],
        "Read" => {
            state.highest = state.highest.max(token);
            from.map(|from| Act::Send(from, msg("Content", token, state.content))).into_iter().collect()
        }
        "Content" => vec![Act::Send(STORAGE, msg("Write", token, content + 1))],
        "Write" => {
            state.overtaken |= token < state.highest;
            (state.highest, state.content) = (state.highest.max(token), content);
            from.map(|from| Act::Send(from, msg("Written", token, 0))).into_iter().collect()
        }
        "Written" => {
            let mut acts = vec![Act::Send(LOCK, msg("Release", token, 0))];
            acts.extend(acquire(state));
            acts
        }
        _ => Vec::new(),
    }
}

fn grant(state: &mut State) -> Vec<Act> {
    state.held = false;
    let mut acts = vec![Act::NoLease];
    if let Some(to) = state.queue.pop_front() {
        (state.held, state.token) = (true, state.token + 1);
        acts.extend([Act::Send(to, msg("Granted", state.token, 0)), Act::Lease]);
    }
    acts
}

fn acquire(state: &mut State) -> Vec<Act> {
    state.busy = state.waiting > 0;
    state.waiting -= u32::from(state.busy);
    if state.busy { vec![Act::Send(LOCK, msg("Acquire", 0, 0))] } else { Vec::new() }
}

fn add(choice: u64) -> (usize, Msg) {
    (2 + (choice % 2) as usize, msg("Add", 0, 0))
}

/// The model in this process.
#[derive(Clone)]
struct Lease(Vec<ActorId>);

impl Model for Lease {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn deliver(&self, state: &mut State, got: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let from = self.0.iter().position(|actor| *actor == ctx.sender());
        for act in deliver(state, from, got) {
            match act {
                Act::Send(to, msg) => ctx.send(self.0[to], msg),
                Act::Lease => ctx.set_timer("lease", msg("Expire", 0, 0)),
                Act::NoLease => ctx.cancel_timer("lease"),
            }
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if view.state(self.0[STORAGE]).is_some_and(|state| state.overtaken) {
            found.push(Violation { fingerprint: "LateWrite".into(), affected: vec![self.0[STORAGE]] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Lease {
    fn type_name(&self, msg: &Msg) -> String {
        msg.type_.clone()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        payload(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        Ok(msg(message.type_, 0, 0))
    }
}

impl Workload<State, Msg> for Lease {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let (to, msg) = add(choice);
        Some(Proposal::new(self.0[to], msg))
    }
}

fn payload(msg: &Msg) -> String {
    format!("{}({},{})", msg.type_, msg.data.0, msg.data.1)
}

fn written(msg: &Msg) -> Value {
    json!({"type": msg.type_, "payload": payload(msg), "data": msg.data})
}

/// A question of the protocol, as far as this model is asked.
fn answer(question: &Value) -> Result<Value, Box<dyn Error>> {
    let number = |name: &Value| ACTORS.iter().position(|actor| name.as_str() == Some(actor));
    Ok(match question["do"].as_str() {
        Some("start") => json!({"state": State::default(), "seen": false}),
        Some("deliver") => {
            let mut state = State::deserialize(&question["state"])?;
            let got = Msg::deserialize(&question["message"])?;
            let acts = deliver(&mut state, number(&question["from"]), &got);
            let effects = acts.iter().map(|act| match act {
                Act::Send(to, msg) => json!({"send": {"to": ACTORS[*to], "message": written(msg)}}),
                Act::Lease => json!({"set": {"timer": "lease", "message": written(&msg("Expire", 0, 0))}}),
                Act::NoLease => json!({"cancel": {"timer": "lease"}}),
            });
            json!({"effects": effects.collect::<Vec<_>>(), "seen": state.overtaken, "state": state})
        }
        Some("check") => match question["seen"]["storage"].as_bool() {
            Some(true) => json!({"violations": [{"fingerprint": "LateWrite", "affected": ["storage"]}]}),
            _ => json!({"violations": []}),
        },
        Some("external") => json!({"message": written(&msg(question["type"].as_str().unwrap_or(""), 0, 0))}),
        _ => json!({}),
    })
}

/// The model as a program of its own.
fn serve() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let mut reply = json!({"id": request["id"]});
        match request["requests"].as_array() {
            None => {
                reply["hello"] =
                    json!({"protocol": "demi-model/1", "kind": "pure", "actors": ACTORS, "external": true});
            }
            Some(all) => reply["answers"] = all.iter().map(answer).collect::<Result<Vec<_>, _>>()?.into(),
        }
        writeln!(out, "{reply}")?;
        out.flush()?;
    }
    Ok(())
}

struct Minimize<'a>(&'a Schedule);

impl Visitor for Minimize<'_> {
    type Output = Result<Outcome, Box<dyn Error>>;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let options = Options {
            rule: NetworkRule::Fifo,
            budget: Budget::States(STATES),
            jobs: 2,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        Ok(minimize_with(&sim, self.0, None, &options, &Criteria::default(), &|_| {})?)
    }
}

fn tell(name: &str, seed: u64, outcome: &Outcome, begun: Instant, requests: u64) {
    let seconds = begun.elapsed().as_secs_f64();
    let steps = outcome.schedule.to_text().lines().count() - 1;
    println!("| {name} | {seed} | {steps} | {seconds:.2} | {requests} |");
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--serve") {
        return serve();
    }
    let mut parts = args.split(|arg| arg == "--");
    let seeds = parts.next().and_then(|own| own.first()).map_or(Ok(3), |seeds| seeds.parse())?;
    let own = std::env::current_exe()?.display().to_string();
    let mut commands = vec![("Rust through the protocol".to_owned(), vec![own, "--serve".to_owned()])];
    commands.extend(parts.filter(|part| !part.is_empty()).map(|part| (part.join(" "), part.to_vec())));
    println!("| model | seed | result | seconds | requests |\n| --- | --- | --- | --- | --- |");
    for seed in 1..=seeds {
        let text = "model = 'lease'\nnetwork = 'fifo'\n[fuzz]\nclient_messages = 150\ntimer_putback = 0.9";
        let scenario = Scenario::parse(text)?;
        let mut names = Names::default();
        let model = Lease(ACTORS.iter().map(|name| names.id(name)).collect());
        let mut sim = Simulator::new(model, names, &scenario)?;
        let options = FuzzOptions { at_least: 400, ..FuzzOptions::new(seed, 2_000, 2_000) };
        let found = fuzz(&mut sim, &scenario, &options, &mut |_| true)?.ok_or("no violation")?.schedule;
        let begun = Instant::now();
        tell("Rust, in this process", seed, &Minimize(&found).visit(sim)?, begun, 0);
        for (name, command) in &commands {
            let text = format!("model = {{ command = {} }}\nnetwork = 'fifo'", json!(command));
            let models = WithChildren::new(NoModels);
            let begun = Instant::now();
            let outcome = models.visit(&Scenario::parse(&text)?, Minimize(&found))??;
            if let Some(fault) = models.fault() {
                return Err(fault.into());
            }
            tell(name, seed, &outcome, begun, models.requests());
        }
    }
    Ok(())
}
