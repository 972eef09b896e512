//! A model tried against the protocol: what is wrong is told in words, before a search trips over it.

use demi_schemas::{ChildModel, Scenario};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{ChildError, Problem, cut};
use crate::pool::{greet, greeting, only};
use crate::values::Canonical;
use crate::wire::{Checked, Hello, ModelKind, Proposed, Reacted, Wish};

/// A random number as good as any: a model must not care which.
const RANDOM: u64 = 1_234_567_890_123;
/// Messages from outside that are asked for.
const CLIENTS: u64 = 8;
/// How often one actor is started at most: a start may fail each time.
const MOST_STARTS: usize = 100;

/// Something that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it must be mended; others are worth knowing.
    pub wrong: bool,
    /// Whether a handler raises: that is a violation, and no breach of the protocol.
    pub raises: bool,
    /// What it is.
    pub what: String,
    /// The request that showed it; empty where none did.
    pub request: String,
}

/// What came of a trial.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The actors that the model names.
    pub actors: Vec<String>,
    /// Types of the messages that were met, in order.
    pub types: Vec<String>,
    /// Questions asked on the first way through the model.
    pub questions: usize,
    /// What was noticed.
    pub findings: Vec<Finding>,
}

impl Trial {
    fn note(&mut self, wrong: bool, what: String, request: &str) {
        // What is told of one request need not be told of the next.
        if !self.findings.iter().any(|known| known.wrong == wrong && known.what == what) {
            self.findings.push(Finding { wrong, raises: false, what, request: cut(request) });
        }
    }

    fn raised(&mut self, what: String, request: &str) {
        self.note(true, what.clone(), request);
        self.findings.iter_mut().filter(|known| known.what == what).for_each(|known| known.raises = true);
    }

    fn failed(&mut self, error: &ChildError) {
        let mut text = error.problem.to_string();
        if !error.stderr.trim().is_empty() {
            text.push_str(&format!("; its standard error ends: {}", error.stderr.trim()));
        }
        self.note(true, text, &error.request);
    }

    /// Whether anything must be mended.
    #[must_use]
    pub fn wrong(&self) -> bool {
        self.findings.iter().any(|finding| finding.wrong)
    }

    /// Whether something is against the protocol.
    #[must_use]
    pub fn breaks_the_protocol(&self) -> bool {
        self.findings.iter().any(|finding| finding.wrong && !finding.raises)
    }
}

/// A message on its way, or a timer that is live.
struct Sent {
    to: String,
    from: Option<String>,
    message: Value,
    /// Of a timer its name and key.
    timer: Option<(String, u64)>,
    repeats: bool,
    survives: bool,
}

impl Sent {
    fn message(to: String, from: Option<String>, message: Value) -> Sent {
        Sent { to, from, message, timer: None, repeats: false, survives: false }
    }

    fn is_timer_of(&self, actor: &str) -> bool {
        self.timer.is_some() && self.to == actor
    }
}

/// Whether an actor takes anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    Failed,
    Stopped,
}

/// One way through the model, on one process.
struct Walk {
    connection: Connection,
    hello: Hello,
    /// What was asked, with the answers.
    asked: Vec<(String, Canonical)>,
    /// By actor, in order: its state, the calls that led there, and what invariants see of it.
    states: Vec<(Value, Vec<Value>, Value)>,
    /// By actor, in order, and how often it was started.
    lives: Vec<Life>,
    started: Vec<usize>,
    pending: Vec<Sent>,
}

/// Tries a model with about so many questions.
///
/// # Errors
/// When the model cannot be reached at all.
pub fn try_model(spec: &ChildModel, scenario: &Scenario, questions: usize) -> Result<Trial, ChildError> {
    let mut trial = Trial::default();
    let greeting = greeting(scenario);
    let mut connection = Connection::open(spec)?;
    let hello = match greet(&mut connection, &greeting) {
        Ok((_, hello)) => hello,
        Err(error) => {
            trial.failed(&error);
            return Ok(trial);
        }
    };
    trial.actors.clone_from(&hello.actors);
    if let Some(name) = hello.unclear_name() {
        trial.note(true, format!("it names the actor '{name}' twice, or not at all"), &greeting);
        return Ok(trial);
    }
    if hello.actors.is_empty() {
        trial.note(true, "it names no actors".to_owned(), &greeting);
        return Ok(trial);
    }
    let (lives, started) = (vec![Life::Stopped; hello.actors.len()], vec![0; hello.actors.len()]);
    let states = vec![(Value::Null, Vec::new(), Value::Null); hello.actors.len()];
    let (asked, pending) = (Vec::new(), Vec::new());
    let mut walk = Walk { connection, hello, asked, states, lives, started, pending };
    let went = walk.go(&mut trial, questions);
    trial.questions = walk.asked.len();
    if let Err(error) = went {
        trial.failed(&error);
        return Ok(trial);
    }
    walk.again(&mut trial);
    let Walk { asked, hello, .. } = walk;
    if spec.socket.is_none() {
        afresh(spec, &greeting, &asked, &mut trial);
    }
    unknown(spec, (&greeting, &hello), &asked, &mut trial);
    Ok(trial)
}

/// The start, as a stateful model is told of it later.
fn began() -> Value {
    json!({"from": null, "message": null, "random": RANDOM})
}

impl Walk {
    fn ask(&mut self, question: &Value) -> Result<Value, ChildError> {
        let text = question.to_string();
        let answer = put(&mut self.connection, &text)?;
        self.asked.push((text, Canonical::of(&answer)));
        Ok(answer)
    }

    fn go(&mut self, trial: &mut Trial, questions: usize) -> Result<(), ChildError> {
        for at in 0..self.hello.actors.len() {
            self.start(trial, at)?;
        }
        self.check(trial, true)?;
        for one in self.hello.bootstrap.clone() {
            let message =
                json!({"type": one.message.type_, "payload": one.message.payload, "data": one.message.data});
            self.pending.extend(one.to.map(|to| Sent::message(to, None, message)));
        }
        for n in 0..if self.hello.clients { CLIENTS } else { 0 } {
            let question = json!({"do": "client", "n": n, "random": RANDOM + n});
            let answer = self.ask(&question)?;
            let told: Proposed = read(answer.clone(), &question)?;
            let message = answer.pointer("/proposal/message").cloned().unwrap_or_default();
            let to = told.proposal.and_then(|proposal| proposal.to);
            self.pending.extend(to.map(|to| Sent::message(to, None, message)));
        }
        // Any order will do; this one is neither the first nor the last in.
        let mut at = 7;
        while self.asked.len() < questions && !self.pending.is_empty() {
            at = (at * 31 + 17) % 1_000_003;
            let sent = self.pending.remove(at % self.pending.len());
            let Some(actor) = self.place(&sent.to).filter(|at| self.lives[*at] == Life::Running) else {
                continue;
            };
            let (to, from, message) = (sent.to.clone(), sent.from.clone(), sent.message.clone());
            if sent.repeats {
                self.pending.push(sent);
            }
            let type_ = message["type"].as_str().unwrap_or_default().to_owned();
            if !trial.types.contains(&type_) {
                trial.types.push(type_);
            }
            let (state, calls, _) = &self.states[actor];
            let call = json!({"from": from, "message": message, "random": RANDOM});
            let mut question = json!({"do": "deliver", "actor": to, "from": from, "message": message, "now": null,
                "random": RANDOM});
            match self.hello.kind {
                ModelKind::Pure => question["state"] = state.clone(),
                ModelKind::Stateful => question["calls"] = Value::Array(calls.clone()),
            }
            let answer = self.ask(&question)?;
            self.take(trial, (&to, from.as_deref(), call), answer, &question)?;
            self.check(trial, false)?;
        }
        if trial.types.is_empty() {
            trial.note(
                false,
                "nothing is ever delivered: no actor sends or sets a timer when it starts, and no message \
                               comes from outside"
                    .to_owned(),
                "",
            );
        }
        Ok(())
    }

    /// Takes in what became of a state.
    fn take(
        &mut self,
        trial: &mut Trial,
        (actor, from, call): (&str, Option<&str>, Value),
        answer: Value,
        question: &Value,
    ) -> Result<(), ChildError> {
        let raw = answer.get("effects").cloned().unwrap_or_default();
        let told: Reacted = read(answer, question)?;
        let at = self.place(actor).unwrap_or(0);
        if let Some(raised) = &told.raised {
            trial.raised(format!("a handler of {actor} raises {}", raised.words()), &question.to_string());
            self.lives[at] = Life::Failed;
            self.pending.retain(|sent| sent.to != actor);
            return Ok(());
        }
        let state = match self.hello.kind {
            ModelKind::Pure => told.state.ok_or("a pure model answers with 'state'"),
            ModelKind::Stateful => told.digest.ok_or("a stateful model answers with 'digest'"),
        };
        let state = state.map_err(|why| form(why.to_owned(), question))?;
        let (old, calls, seen) = &mut self.states[at];
        *seen = told.seen.unwrap_or_else(|| state.clone());
        *old = state;
        calls.push(call);
        let mut starts = Vec::new();
        for (wish, raw) in told.effects.iter().zip(raw.as_array().into_iter().flatten()) {
            let message = |name: &str| raw[name].get("message").cloned().unwrap_or_default();
            match wish {
                Wish::Send(sent) => {
                    let Some(to) = &sent.to else { continue };
                    if !self.hello.actors.contains(to) {
                        let what =
                            format!("{actor} sends to '{to}', which is none of the actors that it names");
                        trial.note(true, what, &question.to_string());
                    }
                    let sender = sent.in_name_of.clone().unwrap_or_else(|| actor.to_owned());
                    let sent = Sent::message(to.clone(), Some(sender), message("send"));
                    let there = self.place(to).is_some_and(|at| self.lives[at] != Life::Stopped);
                    self.pending.extend(there.then_some(sent));
                }
                Wish::Forward(_) => {
                    let sent = raw["forward"].clone();
                    self.pending.push(Sent::message(actor.to_owned(), from.map(str::to_owned), sent));
                }
                Wish::Set(timer) if timer.message.is_none() => {
                    let why = format!("the timer '{}' is set without a message", timer.timer);
                    return Err(form(why, question));
                }
                Wish::Set(set) => {
                    let timer = (set.timer.clone(), set.key);
                    self.cancel(actor, &timer);
                    let (repeats, survives) = (set.repeats, set.survives);
                    let sent = Sent::message(actor.to_owned(), None, message("set"));
                    self.pending.push(Sent { timer: Some(timer), repeats, survives, ..sent });
                }
                Wish::Cancel(timer) => self.cancel(actor, &(timer.timer.clone(), timer.key)),
                Wish::Start(name) => starts.extend(self.place(name)),
                Wish::Stop(name) => {
                    if let Some(at) = self.place(name) {
                        self.lives[at] = Life::Stopped;
                        self.pending.retain(|sent| sent.to != *name);
                    }
                }
                Wish::Fail(_) => {
                    self.pending.retain(|sent| !sent.is_timer_of(actor) || sent.survives);
                    self.lives[at] = Life::Failed;
                    starts.extend(self.hello.restarts.then_some(at));
                }
            }
        }
        // Who is there already goes on as before.
        starts.retain(|at| self.lives[*at] != Life::Running);
        for at in starts {
            self.start(trial, at)?;
        }
        Ok(())
    }

    /// The place of an actor among those that the model names.
    fn place(&self, name: &str) -> Option<usize> {
        self.hello.actors.iter().position(|known| known == name)
    }

    /// Ends a timer, if it is live.
    fn cancel(&mut self, actor: &str, timer: &(String, u64)) {
        self.pending.retain(|sent| !sent.is_timer_of(actor) || sent.timer.as_ref() != Some(timer));
    }

    /// Starts an actor, with its disk where it has failed and has one. One that fails in its start is left alone after some times.
    fn start(&mut self, trial: &mut Trial, at: usize) -> Result<(), ChildError> {
        if self.started[at] == MOST_STARTS {
            return Ok(());
        }
        self.started[at] += 1;
        let actor = self.hello.actors[at].clone();
        let keeps = self.hello.disk && self.lives[at] == Life::Failed && self.hello.kind == ModelKind::Pure;
        let disk = if keeps { self.states[at].0.clone() } else { Value::Null };
        self.lives[at] = Life::Running;
        let question = json!({"do": "start", "actor": actor, "disk": disk, "now": null, "random": RANDOM});
        let answer = self.ask(&question)?;
        if self.hello.kind == ModelKind::Stateful {
            self.states[at].1.clear();
        }
        self.take(trial, (&actor, None, began()), answer, &question)
    }

    fn check(&mut self, trial: &mut Trial, at_start: bool) -> Result<(), ChildError> {
        let names = || self.hello.actors.iter().zip(&self.lives);
        let seen: serde_json::Map<String, Value> = names()
            .zip(&self.states)
            .filter(|((_, life), _)| **life == Life::Running)
            .map(|((name, _), state)| (name.clone(), state.2.clone()))
            .collect();
        let failed: Vec<&String> =
            names().filter(|(_, life)| **life == Life::Failed).map(|(name, _)| name).collect();
        let question = json!({"do": "check", "seen": seen, "failed": failed, "memory": null});
        let answer = self.ask(&question)?;
        let told: Checked = read(answer, &question)?;
        for broken in told.violations {
            if at_start {
                let what =
                    format!("the invariant '{}' is broken as soon as all have started", broken.fingerprint);
                trial.note(false, what, &question.to_string());
            }
            if let Some(other) = broken.affected.iter().find(|name| !self.hello.actors.contains(name)) {
                let what = format!("'{}' affects '{other}', which is none of its actors", broken.fingerprint);
                trial.note(true, what, &question.to_string());
            }
        }
        Ok(())
    }

    /// Asks the same process everything once more.
    fn again(&mut self, trial: &mut Trial) {
        for (question, first) in &self.asked {
            match put(&mut self.connection, question) {
                Ok(answer) if Canonical::of(&answer) == *first => {}
                Ok(answer) => return differs(trial, "asked the same twice", (question, first, &answer)),
                Err(error) => return trial.failed(&error),
            }
        }
    }
}

/// Asks a new process everything, last first.
fn afresh(spec: &ChildModel, greeting: &str, asked: &[(String, Canonical)], trial: &mut Trial) {
    let mut all = || -> Result<(), ChildError> {
        let mut connection = Connection::open(spec)?;
        greet(&mut connection, greeting)?;
        for (question, first) in asked.iter().rev() {
            let answer = put(&mut connection, question)?;
            if Canonical::of(&answer) != *first {
                let how = "asked in another order after a restart (it keeps something between questions, or reads a clock, \
                           random numbers or the order of a set)";
                differs(trial, how, (question, first, &answer));
                return Ok(());
            }
        }
        Ok(())
    };
    if let Err(error) = all() {
        trial.failed(&error);
    }
}

/// Sends a message of a type that no model knows.
fn unknown(
    spec: &ChildModel,
    (greeting, hello): (&str, &Hello),
    asked: &[(String, Canonical)],
    trial: &mut Trial,
) {
    let state = asked.first().and_then(|(_, answer)| serde_json::from_str::<Value>(&answer.text).ok());
    let state = state.map_or(Value::Null, |answer| answer["state"].clone());
    let mut question = json!({"do": "deliver", "actor": hello.actors[0], "from": null, "now": null, "random": RANDOM,
        "message": {"type": "demi-lineage: no such message", "payload": "", "data": null}});
    match hello.kind {
        ModelKind::Pure => question["state"] = state,
        ModelKind::Stateful => question["calls"] = json!([began()]),
    }
    let outcome = Connection::open(spec).and_then(|mut connection| {
        greet(&mut connection, greeting)?;
        put(&mut connection, &question.to_string())
    });
    match outcome {
        Ok(answer) if answer.get("raised").is_none() => {}
        Ok(_) => {
            let what =
                "it raises an error for a message that it does not know; that is a violation where one comes";
            trial.note(false, what.to_owned(), &question.to_string());
        }
        Err(error) if matches!(error.problem, Problem::Said(_)) => {
            let what =
                "it reports an error for a message that it does not know; a schedule with one ends the work"
                    .to_owned();
            trial.note(false, what, &error.request);
        }
        Err(error) => {
            let what = format!("a message that it does not know is too much for it: {}", error.problem);
            trial.note(true, what, &error.request);
        }
    }
}

fn put(connection: &mut Connection, question: &str) -> Result<Value, ChildError> {
    let content = format!("\"requests\":[{question}]");
    let answer = connection.ask(&content)?;
    only(answer, &content)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value, question: &Value) -> Result<T, ChildError> {
    serde_json::from_value(answer.clone())
        .map_err(|e| form(format!("{e} in {}", cut(&answer.to_string())), question))
}

fn form(why: String, question: &Value) -> ChildError {
    ChildError { problem: Problem::Form(why), request: question.to_string(), stderr: String::new() }
}

fn differs(trial: &mut Trial, how: &str, (question, first, then): (&str, &Canonical, &Value)) {
    let what = format!(
        "it is not deterministic: {how}, it answered {} and then {}",
        cut(&first.text),
        cut(&then.to_string())
    );
    trial.note(true, what, question);
}
