//! A program as a model: nodes whose states are local histories, and clients whose state is the history of their operations.

use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::model::Smaller;
use demi_replay::{
    ActorId, Ctx, Duplicates, ExternalMessage, Guidance, Logs, Model, Names, Proposal, Runtime, Timer, View,
    Violation, bill, guard,
};
use demi_schemas::event::{TimerInfo, Via};
use demi_schemas::scenario::Mask;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::book::{Book, Operation, Outcome};
use crate::history::History;
use crate::lines::{INIT, Lines, Message};
use crate::nodes::{Input, Local, Nodes, Root};
use crate::services::{Part, REPLICAS, SERVICES, Sent, Service};
use crate::settle::{Settled, settle};
use crate::workloads::Workload;

/// The timer that lets the clock of a node go on.
const CLOCK: Timer = Timer::named("clock").repeating();
/// Steps that take about as long as the start of a process.
const START: u64 = 50;
/// What is there in the end is looked at where nobody waits for an answer, or each time that so many operations were done.
const OFTEN: usize = 4;
/// What a client does that waits no longer, and of how many client messages one is that, where answers may never come.
const GIVE_UP: &str = "give_up";
const GIVES_UP: u64 = 8;
/// Of how many operations one is asked for again where the last was refused.
const STAYS: u64 = 4;
/// Of how many client messages one is that a node is killed within a step, where nodes are killed.
const DOOMS: u64 = 12;

/// The state of an actor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A node that is about to start.
    New,
    /// A node that was killed, and begins anew with what it left.
    Killed(Arc<Root>),
    /// A node, by what it has read.
    Node(Arc<Local>),
    /// A node that will be killed within its next step, once it has written so often.
    Doomed(Arc<Local>, u8),
    /// All clients.
    Clients(Arc<Book>),
    /// A part of a service.
    Service(Served),
    /// Nobody knows, because the program cannot be run. Nothing that is in such a state breaks a property.
    Lost,
}

/// The state of a part of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Served(Arc<Service>);

/// What is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A message, as its sender wrote its body.
    Body(Arc<str>),
    /// A client is told to begin an operation, as [`Operation::to_value`] writes it.
    Invoke(Arc<str>),
    /// The clock of a node goes on.
    Clock,
    /// The clock of a node goes on to a time, in nanoseconds since its start.
    Until(u64),
    /// A client waits no longer: nobody knows what became of its operation.
    GiveUp,
    /// A node is killed within its next step, once it has written so often to its output or its files.
    Doom(u8),
    /// A part of a service tells another what it has: that of this number.
    Gossip(usize),
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
    /// Actors: the nodes first, then the clients, then the parts of services.
    pub(crate) actors: Vec<ActorId>,
    pub(crate) names: Vec<String>,
    pub(crate) count: usize,
    pub(crate) clients: usize,
    pub(crate) parts: Vec<Part>,
    pub(crate) lines: Lines,
    /// Whether the network loses messages: what did not come never comes.
    pub(crate) loses: bool,
    /// Nanoseconds that clocks go on before what is there in the end is read.
    pub(crate) settle: u64,
    /// Whether a node that is killed keeps its files.
    pub(crate) keeps: bool,
    /// Whether clients may wait for what never comes, so that they give up.
    pub(crate) gives_up: bool,
    /// Whether nodes are killed within steps too.
    pub(crate) dooms: bool,
    /// What was read in the end of a configuration, by its digest.
    pub(crate) settled: Mutex<FxHashMap<u128, Settled>>,
}

/// What a node reads in the end.
pub(crate) struct FinalRead {
    /// Who reads, counted after the clients.
    pub(crate) process: i64,
    /// Place of the node.
    pub(crate) node: usize,
    /// The operation.
    pub(crate) f: &'static str,
    pub(crate) value: Value,
}

impl Shared {
    /// What a node takes when it is sent a message.
    pub(crate) fn input(&self, src: &str, to: usize, depth: u32, body: &str) -> Input {
        let clients = &self.names[self.count..self.count + self.clients];
        let asks = src == INIT || clients.iter().any(|client| client == src);
        self.lines
            .write((src, asks), &self.names[to], depth, body)
            .map_or(Input::Begin, |line| Input::Line(line.into()))
    }

    /// The parts of services, with their names.
    pub(crate) fn parts_of(services: &[&str], nodes: &[String]) -> Vec<(String, Part)> {
        let mut all = Vec::new();
        for service in services {
            match *service {
                "lin-kv" => all.push((service.to_string(), Part::LinKv)),
                "lin-tso" => all.push((service.to_string(), Part::LinTso)),
                "seq-kv" => {
                    all.push((service.to_string(), Part::Master));
                    all.extend(
                        nodes
                            .iter()
                            .zip(0..)
                            .map(|(name, at)| (format!("{service}/{name}"), Part::Follower(at))),
                    );
                }
                "lww-kv" => all.extend((0..REPLICAS).map(|replica| {
                    let name =
                        if replica == 0 { service.to_string() } else { format!("{service}/{}", replica + 1) };
                    (name, Part::Replica(replica))
                })),
                _ => {}
            }
        }
        all
    }
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
        u16::try_from(place).ok().filter(|&client| usize::from(client) < self.shared.clients)
    }

    /// The part of a service that an actor is.
    fn part(&self, actor: ActorId) -> Option<Part> {
        let place = self.place(actor)?.checked_sub(self.shared.count + self.shared.clients)?;
        self.shared.parts.get(place).copied()
    }

    /// The actor that is a part of a service.
    fn actor_of(&self, part: Part) -> Option<ActorId> {
        let place = self.shared.parts.iter().position(|known| *known == part)?;
        self.shared.actors.get(self.shared.count + self.shared.clients + place).copied()
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
        let root = match state {
            State::Killed(root) => Arc::clone(root),
            _ => Arc::new(Root::first(node)),
        };
        let nodes = &self.shared.nodes;
        let (mut made, mut killed) = (None, false);
        if let State::Doomed(_, writes) = state {
            let cut = nodes.step(node, before.as_ref(), Input::Cut(Box::new(input.clone()), *writes));
            cut.iter().for_each(|cut| bill::tell(cut.digest(), START));
            // Where it writes less often than that, nothing kills it.
            killed = cut.as_ref().is_some_and(|cut| cut.answer().is_killed());
            made = cut.filter(|_| killed);
        }
        made = made.or_else(|| match &before {
            Some(_) => nodes.step(node, before.as_ref(), input),
            None => nodes.step_of(&root, None, input),
        });
        let Some(local) = made else {
            *state = State::Lost;
            return;
        };
        bill::tell(local.digest(), 1);
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
        if killed {
            *state = State::Node(local);
            ctx.crash("killed within a step");
            return;
        }
        match (waited, answer.wakes) {
            (false, true) => ctx.set_timer(CLOCK, Msg::Clock),
            (true, false) => ctx.cancel_timer(CLOCK),
            _ => {}
        }
        let ended = answer.ended.clone();
        // What it wrote to standard error in this step is shown too.
        *state = State::Node(local);
        if let Some(how) = ended {
            guard::raise(format!("the program ended: {how}"));
        }
    }

    /// Where a line of a node goes, and what stands in it.
    fn addressed(&self, me: ActorId, line: &str) -> Result<Option<Addressed>, String> {
        let wrong = |what: &str| format!("the program writes {what}: {line}");
        let Message { src, dest: to, body } = self.shared.lines.read(line).map_err(wrong)?;
        // A node may pass on what another asked, under its name.
        let from = match src.as_str() {
            "" => None,
            src if src == self.name(me) => None,
            src => Some(self.find(src).ok_or_else(|| wrong("a message in the name of nobody who is there"))?),
        };
        let to = to.as_str();
        if to == INIT && self.find(to).is_none() {
            return Ok(None);
        }
        let to = self.find(to).ok_or_else(|| match SERVICES.contains(&to) {
            true => wrong(&format!(
                "to the service '{to}', which the scenario's [workload] does not name under 'services'"
            )),
            false => wrong("to somebody who is not there"),
        })?;
        let to = self.routed(me, to, &body);
        Ok(Some(Addressed { from, to, body: body.to_string().into() }))
    }

    /// Which part of a service takes a request.
    fn routed(&self, me: ActorId, to: ActorId, body: &Value) -> ActorId {
        let node = self.place(me).unwrap_or_default();
        let part = match self.part(to) {
            Some(Part::Master) if body.get("type").and_then(Value::as_str) == Some("read") => {
                Part::Follower(node)
            }
            Some(Part::Replica(_)) => {
                let id = body.get("msg_id").and_then(Value::as_u64).unwrap_or_default();
                Part::Replica((node + (id % REPLICAS as u64) as usize) % REPLICAS)
            }
            _ => return to,
        };
        self.actor_of(part).unwrap_or(to)
    }

    /// A part of a service takes a message.
    fn serve(&self, service: &Arc<Service>, body: &str, ctx: &mut Ctx<'_, Msg>) -> Arc<Service> {
        let mut next = Service::clone(service);
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let own = match service.part() {
            Part::Follower(node) => self.shared.names.get(node).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let was_empty = service.is_empty();
        let sent = match self.part(ctx.sender()) {
            Some(_) => next.told(&body, &own),
            None => next.request(self.name(ctx.sender()), &body),
        };
        // Its other parts speak in the name of the first.
        let first = match service.part() {
            Part::Follower(_) => Part::Master,
            Part::Replica(_) => Part::Replica(0),
            part => part,
        };
        let me = ctx.me();
        let first = self.actor_of(first).unwrap_or(me);
        for one in sent {
            match one {
                Sent::Answer { to, body } => {
                    if let Some(to) = self.find(&to) {
                        let body = Msg::Body(body.to_string().into());
                        if first == me {
                            ctx.send(to, body)
                        } else {
                            ctx.send_as(first, me, to, body, Via::Forward)
                        }
                    }
                }
                Sent::Others(body) => {
                    let text: Arc<str> = body.to_string().into();
                    for node in 0..self.shared.count {
                        if let Some(to) = self.actor_of(Part::Follower(node)) {
                            ctx.send(to, Msg::Body(Arc::clone(&text)));
                        }
                    }
                }
            }
        }
        if let Part::Replica(own) = service.part()
            && was_empty
            && !next.is_empty()
        {
            for other in (0..REPLICAS).filter(|other| *other != own) {
                ctx.set_timer(Timer::named("gossip").keyed(other as u64).repeating(), Msg::Gossip(other));
            }
        }
        Arc::new(next)
    }

    /// What every node reads in the end, if that is looked at.
    pub(crate) fn final_reads(&self, book: &Book, view: &View<'_, State>) -> Vec<FinalRead> {
        let Some(f) = self.shared.workload.final_read().filter(|f| book.is_quiet(f, OFTEN)) else {
            return Vec::new();
        };
        let read = self.in_the_end(view).unwrap_or_default();
        let process = |node: usize| (self.shared.clients + node) as i64;
        let one = |(node, value)| FinalRead { process: process(node), node, f, value };
        read.into_iter().enumerate().map(one).collect()
    }

    /// What the property says of a history, with what is there in the end if that is looked at.
    fn judged(&self, book: &Book, view: &View<'_, State>) -> Vec<String> {
        let workload = &self.shared.workload;
        if let Some(broken) = book.broken() {
            return vec![format!("{}/protocol: {broken}", workload.name())];
        }
        let mut history = History::of(book);
        for read in self.final_reads(book, view) {
            history.push_final(read.process, read.f, Value::Null, read.value);
        }
        let mut broken: Vec<String> = workload
            .check(&history)
            .into_iter()
            .map(|anomaly| format!("{}/{}", workload.name(), anomaly.name))
            .collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// What nodes read after everything has come to rest; nothing where one of them is down.
    fn in_the_end(&self, view: &View<'_, State>) -> Option<Vec<Value>> {
        let (nodes, rest) = self.shared.actors.split_at(self.shared.count);
        let locals: Option<Vec<Arc<Local>>> = nodes
            .iter()
            .map(|&node| match view.state(node) {
                Some(State::Node(local) | State::Doomed(local, _)) => Some(Arc::clone(local)),
                _ => None,
            })
            .collect();
        let locals = locals?;
        let services: Vec<&Service> = rest
            .iter()
            .filter_map(|&actor| match view.state(actor) {
                Some(State::Service(Served(service))) => Some(&**service),
                _ => None,
            })
            .collect();
        let mut key: Vec<u8> = locals.iter().flat_map(|local| local.digest().to_le_bytes()).collect();
        services.iter().for_each(|service| key.extend_from_slice(format!("{service:?}").as_bytes()));
        let key = xxh3_128(&key);
        let known = self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let settled = known.unwrap_or_else(|| {
            let settled = settle(&self.shared, &locals, &services);
            if self.shared.nodes.is_stopped() {
                // It says nothing of the program.
                return settled;
            }
            let mut all = self.shared.settled.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(key).or_insert(settled).clone()
        });
        bill::tell(key, settled.steps);
        settled.read
    }

    /// A client begins an operation.
    fn invoke(&self, book: &Book, process: u16, text: &str, ctx: &mut Ctx<'_, Msg>) -> Option<Book> {
        let operation = serde_json::from_str(text).ok().as_ref().and_then(Operation::from_value)?;
        let operation = self.shared.workload.resolved(operation, book, process)?;
        let body = self.shared.workload.request(&operation).ok()?;
        let mut book = book.clone();
        // Each client talks to one node, unless the operation says to which.
        let named = operation.to.as_deref().and_then(|name| self.find(name)).and_then(|to| self.node(to));
        book.invoke(process, operation);
        self.shared.nodes.count_operation();
        let to = self.shared.actors[named.unwrap_or(usize::from(process) % self.shared.count)];
        ctx.send(to, Msg::Body(body.to_string().into()));
        Some(book)
    }

    /// A client gets an answer.
    fn answered(&self, book: &Book, process: u16, body: &str) -> Option<Book> {
        let body: Value = serde_json::from_str(body).ok()?;
        let open = book.open(process)?;
        let body = self.shared.lines.answer(&open.f, body);
        if body.get("in_reply_to").is_none_or(Value::is_null) {
            // It cannot be told to what it is an answer, so that every client would wait on.
            let mut book = book.clone();
            book.breaks(format!("an answer without 'in_reply_to': {body}"));
            return Some(book);
        }
        let replies = body.get("in_reply_to").and_then(Value::as_u64);
        if replies != Some(open.id) {
            // An answer to what it does not wait for any more says nothing new. Others would be waited for in vain.
            if replies.is_some_and(|id| book.has_asked(process, id)) {
                return None;
            }
            let mut book = book.clone();
            book.breaks(format!("an answer to a request that its client never made: {body}"));
            return Some(book);
        }
        self.shared.nodes.count_answer();
        let outcome = self.shared.workload.outcome(open, &body);
        if matches!(outcome, Ok(Outcome::Refused(_))) {
            self.shared.nodes.count_refusal();
        }
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
        match (self.node(actor), self.part(actor)) {
            (Some(_), _) => State::New,
            (None, Some(part)) => State::Service(Served(Arc::new(Service::new(part)))),
            (None, None) => State::Clients(Arc::default()),
        }
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if !matches!(state, State::New | State::Killed(_)) {
            return;
        }
        let (me, nodes) = (self.name(ctx.me()).to_owned(), &self.shared.names[..self.shared.count]);
        let body = json!({ "type": "init", "msg_id": 0, "node_id": me, "node_ids": nodes });
        let place = self.place(ctx.me()).unwrap_or_default();
        let input = |depth: u32, body: &Value| self.shared.input(INIT, place, depth, &body.to_string());
        self.step(state, None, input(0, &body), ctx);
        if let (Some(body), State::Node(local)) = (self.shared.workload.bootstrap(nodes), &*state) {
            let local = Arc::clone(local);
            self.step(state, Some(local), input(1, &body), ctx);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match (&*state, msg) {
            (State::Node(local), Msg::Doom(writes)) => *state = State::Doomed(Arc::clone(local), *writes),
            (State::Node(local) | State::Doomed(local, _), Msg::Clock) => {
                let local = Arc::clone(local);
                self.step(state, Some(local), Input::Clock, ctx);
            }
            (State::Node(local) | State::Doomed(local, _), Msg::Until(time)) => {
                let local = Arc::clone(local);
                self.step(state, Some(local), Input::Until(*time), ctx);
            }
            (State::Node(local) | State::Doomed(local, _), Msg::Body(body)) => {
                let local = Arc::clone(local);
                let place = self.place(ctx.me()).unwrap_or_default();
                let input = self.shared.input(self.name(ctx.sender()), place, local.depth(), body);
                self.step(state, Some(local), input, ctx);
            }
            (State::Service(Served(service)), Msg::Body(body)) => {
                let next = self.serve(service, body, ctx);
                *state = State::Service(Served(next));
            }
            (State::Service(Served(service)), Msg::Gossip(other)) => {
                if let Some(to) = self.actor_of(Part::Replica(*other)) {
                    ctx.send(to, Msg::Body(service.gossip().to_string().into()));
                }
            }
            (State::Clients(book), Msg::Invoke(text)) => {
                let book = Arc::clone(book);
                let next = self.process(ctx.me()).and_then(|process| self.invoke(&book, process, text, ctx));
                *state = State::Clients(next.map_or(book, Arc::new));
            }
            (State::Clients(book), Msg::GiveUp) => {
                let mut next = Book::clone(book);
                if let Some(process) = self.process(ctx.me()).filter(|&process| next.open(process).is_some())
                {
                    next.end(process, Outcome::Unknown("the client gave up".into()));
                    *state = State::Clients(Arc::new(next));
                }
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
        let clients = &self.shared.actors[self.shared.count..self.shared.count + self.shared.clients];
        let state = clients.iter().find_map(|&client| view.state(client));
        let Some(State::Clients(book)) = state else { return };
        if history.digest != Some(book.digest()) {
            history.digest = Some(book.digest());
            let broken = self.judged(book, view).into_iter();
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

    fn guidance(&self) -> &dyn Guidance<State, Msg> {
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
            Msg::Until(_) => "clock_to".to_owned(),
            Msg::GiveUp => GIVE_UP.to_owned(),
            Msg::Doom(_) => "kill".to_owned(),
            Msg::Gossip(_) => "gossip".to_owned(),
            Msg::Body(body) => named(body, "type"),
            Msg::Invoke(text) => named(text, "f"),
        }
    }

    /// Answers come in place of each other: an error, or what was asked for.
    fn role(&self, _: &str, payload: &str) -> Option<String> {
        let body: Value = serde_json::from_str(payload).ok()?;
        body.get("in_reply_to").map(|_| "answer".to_owned())
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        match msg {
            Msg::Clock => "clock".to_owned(),
            Msg::Until(time) => json!({ "clock": time }).to_string(),
            Msg::GiveUp => json!({ "f": GIVE_UP }).to_string(),
            Msg::Doom(writes) => json!({ "kill_after_writes": writes }).to_string(),
            Msg::Gossip(other) => format!("gossip {}", other + 1),
            Msg::Body(text) | Msg::Invoke(text) => text.to_string(),
        }
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let value: Value =
            serde_json::from_str(message.payload).map_err(|error| format!("no operation: {error}"))?;
        if let Some(time) = value.get("clock").and_then(Value::as_u64) {
            return Ok(Msg::Until(time));
        }
        if let Some(writes) = value.get("kill_after_writes").and_then(Value::as_u64) {
            let writes = u8::try_from(writes).ok().filter(|writes| *writes > 0);
            return writes.map(Msg::Doom).ok_or_else(|| "'kill_after_writes' is from 1 to 255".to_owned());
        }
        if value.get("f").and_then(Value::as_str) == Some(GIVE_UP) {
            return Ok(Msg::GiveUp);
        }
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
            State::Killed(root) => {
                json!({ "killed": root.incarnation, "files": root.disk.0.keys().collect::<Vec<_>>() })
            }
            State::Service(Served(service)) => service.describe(),
            State::Node(local) | State::Doomed(local, _) => {
                let answer = local.answer();
                let mut told = json!({ "inputs": local.depth(), "clock_seconds": answer.clock as f64 / 1e9, "wrote": answer.lines });
                // What it says to people is what people look for first.
                if !answer.stderr.trim().is_empty() {
                    told["standard_error"] = Value::from(answer.stderr.trim_end());
                }
                told
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
            (State::Clients(book), Msg::GiveUp) => {
                self.process(actor).is_some_and(|process| book.open(process).is_some())
            }
            _ => true,
        }
    }

    fn starts_by_itself(&self) -> bool {
        true
    }

    fn is_billed(&self) -> bool {
        true
    }

    fn clock(&self, state: &State) -> Option<u64> {
        match state {
            State::Node(local) | State::Doomed(local, _) => Some(local.answer().clock),
            _ => None,
        }
    }

    fn fails(&self, actor: ActorId) -> bool {
        self.node(actor).is_some()
    }

    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        match failed {
            State::Node(local) | State::Doomed(local, _) => {
                let root = self.shared.nodes.killed(local, self.shared.keeps);
                Some(root.map_or(State::Lost, |root| {
                    bill::tell(root.digest(), START);
                    State::Killed(Arc::new(root))
                }))
            }
            State::Lost => Some(State::Lost),
            _ => None,
        }
    }

    /// Clients and services are no programs under test: what they say and what they are told comes once.
    fn duplicates_between(&self, from: ActorId, to: ActorId, msg: &Msg) -> Duplicates {
        match (self.node(from), self.node(to)) {
            (Some(_), Some(_)) => self.duplicates(msg),
            _ => Duplicates::Never,
        }
    }

    fn duplicates(&self, msg: &Msg) -> Duplicates {
        match msg {
            Msg::Body(_) => Duplicates::Any,
            Msg::Invoke(_) | Msg::Clock | Msg::Until(_) | Msg::GiveUp | Msg::Doom(_) | Msg::Gossip(_) => {
                Duplicates::Never
            }
        }
    }
}

impl demi_replay::Workload<State, Msg> for ProgramModel {
    fn client_message(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let clients = &self.shared.actors[self.shared.count..self.shared.count + self.shared.clients];
        let to = clients[(n % clients.len() as u64) as usize];
        if self.shared.dooms && (choice >> 40).is_multiple_of(DOOMS) {
            let node = self.shared.actors[((choice >> 44) % self.shared.count as u64) as usize];
            // The first writes of a step say most.
            return Some(Proposal::new(node, Msg::Doom(1 + (choice >> 52).trailing_zeros().min(7) as u8)));
        }
        // Which bits say so has nothing to do with the operation's.
        if self.shared.gives_up && (choice >> 48).is_multiple_of(GIVES_UP) {
            return Some(Proposal::new(to, Msg::GiveUp));
        }
        // Numbers of requests begin at 1: that of the first message of all is 0.
        let operation = self.shared.workload.operation(n + 1, choice);
        Some(Proposal::new(to, Msg::Invoke(operation.to_value().to_string().into())))
    }

    /// A client whose node refuses most often lets another ask, whose node may be the leader.
    fn client_message_now(
        &self,
        n: u64,
        choice: u64,
        names: &Names,
        view: &View<'_, State>,
    ) -> Option<Proposal<Msg>> {
        let mut proposal = self.client_message(n, choice, names)?;
        let clients = &self.shared.actors[self.shared.count..self.shared.count + self.shared.clients];
        let process = |actor: ActorId| self.process(actor);
        if let (Msg::Invoke(_), Some(State::Clients(book))) = (&proposal.msg, view.state(clients[0]))
            && process(proposal.to).is_some_and(|process| book.is_refused(process))
            && !(choice >> 36).is_multiple_of(STAYS)
        {
            let others: Vec<ActorId> = clients
                .iter()
                .copied()
                .filter(|&client| {
                    process(client)
                        .is_some_and(|process| book.open(process).is_none() && !book.is_refused(process))
                })
                .collect();
            if !others.is_empty() {
                proposal.to = others[((choice >> 38) % others.len() as u64) as usize];
            }
        }
        Some(proposal)
    }

    fn paced(&self) -> bool {
        true
    }
}

impl Guidance<State, Msg> for ProgramModel {
    fn smaller(&self, msg: &Msg, _: &Names) -> Vec<Smaller<Msg>> {
        let Msg::Invoke(text) = msg else { return Vec::new() };
        let Some(operation) = serde_json::from_str(text).ok().as_ref().and_then(Operation::from_value) else {
            return Vec::new();
        };
        let parts = self.shared.workload.smaller(&operation).into_iter();
        parts
            .map(|(without, operation)| Smaller {
                without,
                msg: Msg::Invoke(operation.to_value().to_string().into()),
                fields: Value::Null,
            })
            .collect()
    }
}
