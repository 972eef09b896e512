//! A program as a model: nodes whose states are local histories, and clients whose state is the history of their operations.

use std::sync::Arc;

use demi_replay::{
    ActorId, Ctx, Duplicates, ExternalMessage, Logs, Model, Names, Proposal, Runtime, Timer, View, Violation,
    guard,
};
use demi_schemas::event::{TimerInfo, Via};
use demi_schemas::scenario::Mask;
use serde_json::{Value, json};

use crate::book::{Book, Operation};
use crate::nodes::{Input, Local, Nodes};
use crate::workloads::Workload;

/// The timer that lets the clock of a node go on.
const CLOCK: Timer = Timer::named("clock").repeating();
/// Who begins each node.
const INIT: &str = "c0";

/// The state of an actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A node that is about to start.
    New,
    /// A node, by what it has read.
    Node(Arc<Local>),
    /// All clients.
    Clients(Arc<Book>),
    /// Nobody knows, because the program cannot be run. Nothing that is in such a state breaks a property.
    Lost,
}

/// What is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A message, as its sender wrote its body.
    Body(Arc<str>),
    /// A client is told to begin an operation, as [`Operation::to_value`] writes it.
    Invoke(Arc<str>),
    /// The clock of a node goes on.
    Clock,
}

/// What was found of one history.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    digest: Option<u128>,
    violations: Vec<Violation>,
}

/// Everything that does not change.
pub(crate) struct Shared {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) workload: Workload,
    /// Actors: the nodes first, then the clients.
    pub(crate) actors: Vec<ActorId>,
    pub(crate) names: Vec<String>,
    pub(crate) count: usize,
}

/// What a node sends.
struct Addressed {
    /// In whose name, if not in its own.
    from: Option<ActorId>,
    to: ActorId,
    body: Arc<str>,
}

/// A program as a model. Cloning it is cheap.
#[derive(Clone)]
pub struct ProgramModel {
    shared: Arc<Shared>,
}

impl ProgramModel {
    pub(crate) fn new(shared: Shared) -> ProgramModel {
        ProgramModel { shared: Arc::new(shared) }
    }

    fn place(&self, actor: ActorId) -> Option<usize> {
        self.shared.actors.iter().position(|&known| known == actor)
    }

    fn node(&self, actor: ActorId) -> Option<usize> {
        self.place(actor).filter(|&place| place < self.shared.count)
    }

    /// The number of a client.
    fn process(&self, actor: ActorId) -> Option<u16> {
        let place = self.place(actor)?.checked_sub(self.shared.count)?;
        u16::try_from(place).ok()
    }

    fn find(&self, name: &str) -> Option<ActorId> {
        let place = self.shared.names.iter().position(|known| known == name)?;
        self.shared.actors.get(place).copied()
    }

    fn name(&self, actor: ActorId) -> &str {
        self.place(actor).map_or("", |place| &self.shared.names[place])
    }

    /// A node takes an input, and what it wrote is sent.
    fn step(&self, state: &mut State, before: Option<Arc<Local>>, input: Input, ctx: &mut Ctx<'_, Msg>) {
        let Some(node) = self.node(ctx.me()) else { return };
        let Some(local) = self.shared.nodes.step(node, before.as_ref(), input) else {
            *state = State::Lost;
            return;
        };
        let waited = before.as_ref().is_some_and(|before| before.answer().wakes);
        let answer = local.answer();
        for line in &answer.lines {
            match self.addressed(ctx.me(), line) {
                Ok(Some(Addressed { from: None, to, body })) => ctx.send(to, Msg::Body(body)),
                Ok(Some(Addressed { from: Some(from), to, body })) => {
                    let me = ctx.me();
                    ctx.send_as(from, me, to, Msg::Body(body), Via::Forward);
                }
                // The answer to the first message of all.
                Ok(None) => {}
                Err(what) => guard::raise(what),
            }
        }
        match (waited, answer.wakes) {
            (false, true) => ctx.set_timer(CLOCK, Msg::Clock),
            (true, false) => ctx.cancel_timer(CLOCK),
            _ => {}
        }
        if let Some(how) = &answer.ended {
            guard::raise(format!("the program ended: {how}"));
        }
        *state = State::Node(local);
    }

    /// Where a line of a node goes, and what stands in it.
    fn addressed(&self, me: ActorId, line: &str) -> Result<Option<Addressed>, String> {
        let wrong = |what: &str| format!("the program writes {what}: {line}");
        let message: Value = serde_json::from_str(line).map_err(|_| wrong("a line that is no JSON"))?;
        let (Some(to), Some(body)) = (message.get("dest").and_then(Value::as_str), message.get("body"))
        else {
            return Err(wrong("a message without 'dest' and 'body'"));
        };
        // A node may pass on what another asked, under its name.
        let from = match message.get("src").and_then(Value::as_str) {
            Some(src) if src != self.name(me) => {
                Some(self.find(src).ok_or_else(|| wrong("a message in the name of nobody who is there"))?)
            }
            _ => None,
        };
        if to == INIT {
            return Ok(None);
        }
        let to = self.find(to).ok_or_else(|| wrong("to somebody who is not there"))?;
        Ok(Some(Addressed { from, to, body: body.to_string().into() }))
    }

    /// A client begins an operation.
    fn invoke(&self, book: &Book, process: u16, text: &str, ctx: &mut Ctx<'_, Msg>) -> Option<Book> {
        let operation = serde_json::from_str(text).ok().as_ref().and_then(Operation::from_value)?;
        let body = self.shared.workload.request(&operation).ok()?;
        let mut book = book.clone();
        book.invoke(process, operation);
        // Each client talks to one node.
        let to = self.shared.actors[usize::from(process) % self.shared.count];
        ctx.send(to, Msg::Body(body.to_string().into()));
        Some(book)
    }

    /// A client gets an answer.
    fn answered(&self, book: &Book, process: u16, body: &str) -> Option<Book> {
        let body: Value = serde_json::from_str(body).ok()?;
        let open = book.open(process)?;
        // An answer to what it does not wait for any more says nothing new.
        if body.get("in_reply_to").and_then(Value::as_u64) != Some(open.id) {
            return None;
        }
        let outcome = self.shared.workload.outcome(open, &body);
        let mut book = book.clone();
        match outcome {
            Ok(outcome) => book.end(process, outcome),
            Err(what) => book.breaks(what),
        }
        Some(book)
    }
}

impl Model for ProgramModel {
    type State = State;
    type Msg = Msg;
    type History = Judged;

    fn actors(&self) -> &[ActorId] {
        &self.shared.actors
    }

    fn initial(&self, actor: ActorId) -> State {
        match self.node(actor) {
            Some(_) => State::New,
            None => State::Clients(Arc::default()),
        }
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if *state != State::New {
            return;
        }
        let (me, nodes) = (self.name(ctx.me()).to_owned(), &self.shared.names[..self.shared.count]);
        let body = json!({ "type": "init", "msg_id": 0, "node_id": me, "node_ids": nodes });
        let line = json!({ "id": 0, "src": INIT, "dest": me, "body": body });
        self.step(state, None, Input::Line(line.to_string().into()), ctx);
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match (&*state, msg) {
            (State::Node(local), Msg::Clock) => {
                let local = Arc::clone(local);
                self.step(state, Some(local), Input::Clock, ctx);
            }
            (State::Node(local), Msg::Body(body)) => {
                let local = Arc::clone(local);
                let (src, dest) = (self.name(ctx.sender()), self.name(ctx.me()));
                let line = format!(
                    "{{\"id\":{},\"src\":\"{src}\",\"dest\":\"{dest}\",\"body\":{body}}}",
                    local.depth()
                );
                self.step(state, Some(local), Input::Line(line.into()), ctx);
            }
            (State::Clients(book), Msg::Invoke(text)) => {
                let book = Arc::clone(book);
                let next = self.process(ctx.me()).and_then(|process| self.invoke(&book, process, text, ctx));
                *state = State::Clients(next.map_or(book, Arc::new));
            }
            (State::Clients(book), Msg::Body(body)) => {
                let next = self.process(ctx.me()).and_then(|process| self.answered(book, process, body));
                if let Some(next) = next {
                    *state = State::Clients(Arc::new(next));
                }
            }
            _ => {}
        }
    }

    fn check(&self, view: &View<'_, State>, history: &mut Judged, found: &mut Vec<Violation>) {
        if self.shared.nodes.fault().is_some() {
            return;
        }
        let clients = &self.shared.actors[self.shared.count..];
        let state = clients.iter().find_map(|&client| view.state(client));
        let Some(State::Clients(book)) = state else { return };
        if history.digest != Some(book.digest()) {
            history.digest = Some(book.digest());
            let broken = self.shared.workload.check(book).into_iter();
            history.violations =
                broken.map(|fingerprint| Violation { fingerprint, affected: clients.to_vec() }).collect();
        }
        found.extend(history.violations.iter().cloned());
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn demi_replay::Workload<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for ProgramModel {
    fn type_name(&self, msg: &Msg) -> String {
        let named = |text: &str, field: &str| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            value.get(field).and_then(Value::as_str).unwrap_or("message").to_owned()
        };
        match msg {
            Msg::Clock => "clock".to_owned(),
            Msg::Body(body) => named(body, "type"),
            Msg::Invoke(text) => named(text, "f"),
        }
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        match msg {
            Msg::Clock => "clock".to_owned(),
            Msg::Body(text) | Msg::Invoke(text) => text.to_string(),
        }
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let value: Value =
            serde_json::from_str(message.payload).map_err(|error| format!("no operation: {error}"))?;
        let operation = Operation::from_value(&value).ok_or("an operation has 'f', 'id' and 'value'")?;
        self.shared.workload.request(&operation)?;
        Ok(Msg::Invoke(operation.to_value().to_string().into()))
    }

    /// Numbers of messages between nodes change when a step before them is left out.
    fn masks(&self) -> Vec<Mask> {
        let pattern = r#""(msg_id|in_reply_to)":\d+"#.to_owned();
        vec![Mask { type_: None, pattern, replace: r#""$1":_"#.to_owned() }]
    }

    fn timer_info(&self, _: &Msg) -> TimerInfo {
        TimerInfo::default()
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        match state {
            State::New => Value::from("it is about to start"),
            State::Node(local) => {
                json!({ "inputs": local.depth(), "clock_seconds": local.answer().clock as f64 / 1e9, "wrote": local.answer().lines })
            }
            State::Clients(book) => json!({ "history": book.to_lines() }),
            State::Lost => Value::from("not known: the program cannot be run"),
        }
    }
}

impl Runtime<State, Msg> for ProgramModel {
    fn cell(&self, actor: ActorId) -> ActorId {
        match self.process(actor) {
            Some(_) => self.shared.actors[self.shared.count],
            None => actor,
        }
    }

    fn accepts(&self, state: &State, actor: ActorId, _: ActorId, msg: &Msg) -> bool {
        match (state, msg) {
            // A process does one thing at a time.
            (State::Clients(book), Msg::Invoke(_)) => {
                self.process(actor).is_some_and(|process| book.open(process).is_none())
            }
            _ => true,
        }
    }

    fn starts_by_itself(&self) -> bool {
        true
    }

    fn duplicates(&self, msg: &Msg) -> Duplicates {
        match msg {
            Msg::Body(_) => Duplicates::Any,
            Msg::Invoke(_) | Msg::Clock => Duplicates::Never,
        }
    }
}

impl demi_replay::Workload<State, Msg> for ProgramModel {
    fn client_message(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let clients = &self.shared.actors[self.shared.count..];
        let to = clients[(n % clients.len() as u64) as usize];
        // Numbers of requests begin at 1: that of the first message of all is 0.
        let operation = self.shared.workload.operation(n + 1, choice);
        Some(Proposal::new(to, Msg::Invoke(operation.to_value().to_string().into())))
    }
}
