//! A program follows the log of a run outside this scheduler: every message is delivered where the log says so, and what nodes write is compared with what
//! they wrote then. What comes of it is a schedule like any other.
//!
//! A log does not tell when a node acted by itself. Where it has a line that the node has not written, the node's clock goes on until it does. Where
//! that does not lead to the line, the clock may have gone on before: then what the node read last is delivered at the time at which the log has it,
//! counted from the last line that the node wrote by itself, or after what the node wrote next.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use demi_replay::{ActorId, Did, Model, MsgId, Names, PendingKind, Simulator, World};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::{ModelRef, NetworkRule, ProgramNodes, Scenario, Schedule, Step, StepKind};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::checkers::canonical;
use crate::lines::Lines;
use crate::logged::{self, LogError, Seen, Way};
use crate::model::{Judged, Msg, ProgramModel, State};
use crate::nodes::Nodes;
use crate::registry::{launches, model, workload};
use crate::services::SERVICES;
use crate::workloads::Workload;

/// How often a clock goes on until a line is written.
const TICKS: usize = 64;
/// How many of the last lines that a node read are tried at another time.
const BACK: usize = 16;
/// Lines of a log in which something is looked for that was written early.
const AHEAD: usize = 200;
/// Deliveries to a service until it answers.
const SERVED: usize = 10_000;
/// Characters of a line that are shown.
const SHOWN: usize = 2_000;

/// What came of following a log.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The scenario, with the names and the topology that the log has.
    pub scenario: Scenario,
    /// The messages of the log.
    pub messages: usize,
    /// How many of them were followed: all, unless the program went another way.
    pub followed: usize,
    /// What was followed, as a schedule.
    pub schedule: Schedule,
    /// What the execution breaks.
    pub violation: Vec<String>,
    /// Where the program first did something else.
    pub parting: Option<Parting>,
}

/// The first place at which a program does something else than the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parting {
    /// File and line of the log.
    pub place: String,
    /// The line of the log.
    pub logged: String,
    /// What the program wrote, if it wrote something.
    pub wrote: Option<String>,
    /// What differs, in words.
    pub told: String,
}

/// A log cannot be followed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FollowError {
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The scenario cannot be run, or does not fit the log.
    #[error("{0}")]
    Scenario(String),
}

/// Follows a log with the program of a scenario.
///
/// # Errors
/// When the log has no messages, or the scenario runs no program that can be run.
pub fn follow_log(scenario: &Scenario, log: &Path) -> Result<Followed, FollowError> {
    let lines = Lines::new(scenario.lines.as_ref()).map_err(FollowError::Scenario)?;
    let seen = logged::read(log, &lines)?;
    let (scenario, workload) = fitted(scenario, &seen).map_err(FollowError::Scenario)?;
    let spec = scenario.model.child().filter(|spec| spec.nodes.is_some());
    let spec = spec.ok_or_else(|| {
        FollowError::Scenario("the scenario's model is no program that runs as it is".into())
    })?;
    let mut names = Names::default();
    let launched = launches(spec, &scenario).map_err(FollowError::Scenario)?;
    let count = launched.len();
    let nodes = Arc::new(Nodes::new(launched));
    let model = model(spec, &scenario, &nodes, &mut names).map_err(FollowError::Scenario)?;
    let mut sim =
        Simulator::new(model, names, &scenario).map_err(|error| FollowError::Scenario(error.to_string()))?;
    let world = sim.empty_world();
    let mut follower = Follower {
        rule: scenario.network,
        workload,
        count,
        known: Known {
            world,
            steps: 0,
            written: vec![VecDeque::new(); count],
            begun: vec![false; count],
            ahead: vec![None; count],
        },
        steps: Vec::new(),
        asked: FxHashMap::default(),
        answers: Answers::of(&seen, &sim, count),
        shown: FxHashSet::default(),
        own: vec![false; count],
        early: FxHashMap::default(),
        marks: vec![VecDeque::new(); count],
        sim,
    };
    for one in seen.iter().filter(|one| one.way == Way::Wrote) {
        if let Some(node) = follower.node(&one.message.src) {
            follower.own[node] = true;
        }
    }
    let (parting, followed) = follower.all(&seen);
    if let Some(fault) = nodes.fault() {
        return Err(FollowError::Scenario(fault.to_string()));
    }
    let mut found = Vec::new();
    follower.sim.check(&follower.known.world, &mut Judged::default(), &mut found);
    let mut violation: Vec<String> = found.iter().map(|one| one.fingerprint.clone()).collect();
    violation.sort_unstable();
    violation.dedup();
    follower.steps.truncate(follower.known.steps);
    let mut schedule = Schedule::new(follower.steps);
    schedule.header.network = Some(scenario.network);
    schedule.header.violation.clone_from(&violation);
    let affected =
        found.iter().flat_map(|one| &one.affected).map(|&actor| follower.sim.names().get(actor).to_owned());
    schedule.header.affected = affected.collect();
    schedule.header.affected.sort_unstable();
    schedule.header.affected.dedup();
    Ok(Followed { messages: seen.len(), followed, schedule, violation, parting, scenario })
}

/// The scenario with the nodes, clients and topology of a log.
fn fitted(scenario: &Scenario, seen: &[Seen]) -> Result<(Scenario, Workload), String> {
    let mut scenario = scenario.clone();
    let workload = workload(&scenario)?;
    let mut nodes: Vec<String> = Vec::new();
    let listed =
        seen.iter().filter(|one| one.begins).find_map(|one| one.message.body.get("node_ids")?.as_array());
    match listed {
        Some(listed) => nodes.extend(listed.iter().filter_map(|name| name.as_str().map(str::to_owned))),
        None => {
            let is_service = |name: &str| SERVICES.contains(&name);
            let asked = |one: &&Seen| one.begins || workload.asked(&one.message.body).is_some();
            let clients: FxHashSet<&str> = seen
                .iter()
                .filter(|one| !one.begins && asked(one))
                .map(|one| one.message.src.as_str())
                .collect();
            let all = seen.iter().map(|one| one.message.dest.as_str());
            let all = all.filter(|name| !name.is_empty() && !is_service(name) && !clients.contains(name));
            let distinct: FxHashSet<&str> = all.collect();
            nodes.extend(distinct.into_iter().map(str::to_owned));
            nodes.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        }
    }
    let ModelRef::Child(spec) = &mut scenario.model else {
        return Err("the scenario's model is no program that runs as it is".into());
    };
    let own = spec.nodes.as_ref().map(ProgramNodes::names).unwrap_or_default();
    if nodes.is_empty() {
        nodes.clone_from(&own);
    } else if own != nodes && spec.nodes.is_some() {
        spec.nodes = Some(ProgramNodes::Named(nodes.clone()));
    }
    let mut clients: Vec<String> = Vec::new();
    for one in seen.iter().filter(|one| !one.begins && workload.asked(&one.message.body).is_some()) {
        let name = &one.message.src;
        if !name.is_empty() && !nodes.contains(name) && !clients.contains(name) {
            clients.push(name.clone());
        }
    }
    let topology = seen.iter().find_map(|one| one.message.body.get("topology"));
    if let Some(settings) = &mut scenario.workload {
        let count = settings.processes.map_or(nodes.len(), |count| count as usize);
        let own: Vec<String> = settings
            .clients
            .clone()
            .unwrap_or_else(|| (1..=count).map(|client| format!("c{client}")).collect());
        if clients.iter().any(|name| !own.contains(name)) {
            settings.processes = None;
            settings.clients = Some(clients);
        }
        if let Some(told) = topology.filter(|_| workload.name() == "broadcast") {
            let name = workload.topology_of(&nodes, told);
            let name = name
                .ok_or("the log's topology is none that a scenario can name: grid, line, tree4 or total")?;
            settings.topology = Some(name.to_owned());
        }
    }
    let workload = self::workload(&scenario)?;
    Ok((scenario, workload))
}

/// Whether a log tells when answers reach clients, or at least when they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Read,
    Wrote,
    Silent,
}

impl Answers {
    fn of(seen: &[Seen], sim: &Simulator<ProgramModel>, count: usize) -> Answers {
        let actors = sim.model().actors();
        let is_client = |name: &str| {
            sim.names()
                .find(name)
                .and_then(|actor| actors.iter().position(|known| *known == actor))
                .is_some_and(|place| {
                    place >= count && !SERVICES.iter().any(|service| name.starts_with(service))
                })
        };
        let to_clients = || seen.iter().filter(|one| is_client(&one.message.dest));
        if to_clients().any(|one| one.way != Way::Wrote) {
            Answers::Read
        } else if to_clients().next().is_some() {
            Answers::Wrote
        } else {
            Answers::Silent
        }
    }
}

/// A line that a node wrote, and that the log has not shown yet.
#[derive(Clone, Debug)]
struct Written {
    from: ActorId,
    to: ActorId,
    key: String,
    msg: MsgId,
    /// The place of the line that the log shows though it was written later.
    passed: Option<usize>,
}

/// What is known at a place of the log.
#[derive(Clone)]
struct Known {
    world: World<ProgramModel>,
    /// How many steps led here.
    steps: usize,
    /// By node.
    written: Vec<VecDeque<Written>>,
    /// By node: whether it has begun, and what its clock is ahead of the log's time.
    begun: Vec<bool>,
    ahead: Vec<Option<i128>>,
}

struct Follower {
    sim: Simulator<ProgramModel>,
    rule: NetworkRule,
    workload: Workload,
    count: usize,
    known: Known,
    /// What led to what is known, and maybe more that did not.
    steps: Vec<Step>,
    /// Requests, with the place of the log that made them: what comes again is passed on.
    asked: FxHashMap<(String, u64), usize>,
    answers: Answers,
    /// What the log has shown to be written.
    shown: FxHashSet<(ActorId, ActorId, String)>,
    /// By node: whether the log has what it writes.
    own: Vec<bool>,
    /// By place of the log, how what a node reads there is delivered where its clock went on before.
    early: FxHashMap<usize, Early>,
    /// By node: what was known before it read its last lines.
    marks: Vec<VecDeque<(usize, Known)>>,
}

/// What a node's clock does before the node reads a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Early {
    /// It goes on to the time of the log, and the node writes nothing.
    ToItsTime,
    /// It goes on until the node writes what the log has after that line.
    UntilItWrites,
}

/// What a name in a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Node(usize),
    Client,
    Service,
}

/// Why a line cannot be followed: whose doing it is, and what differs.
struct Lost {
    node: Option<usize>,
    told: String,
}

impl Follower {
    fn node(&self, name: &str) -> Option<usize> {
        let actor = self.sim.names().find(name)?;
        self.sim.model().actors()[..self.count].iter().position(|known| *known == actor)
    }

    fn who(&self, name: &str) -> Option<(Who, ActorId)> {
        let actor = self.sim.names().find(name)?;
        let place = self.sim.model().actors().iter().position(|known| *known == actor)?;
        let who = match place {
            place if place < self.count => Who::Node(place),
            _ if SERVICES.contains(&name) => Who::Service,
            _ => Who::Client,
        };
        Some((who, actor))
    }

    fn key(&self, body: &Value) -> String {
        let type_ = body.get("type").and_then(Value::as_str).unwrap_or("message");
        self.sim.masked(type_, &canonical(body)).into_owned()
    }

    fn text(&self, msg: MsgId) -> &str {
        self.sim.text(self.sim.info(msg).payload)
    }

    fn key_of(&self, msg: MsgId) -> String {
        self.key(&serde_json::from_str(self.text(msg)).unwrap_or_default())
    }

    /// Follows all lines, with where the program parted and how many lines were followed.
    fn all(&mut self, seen: &[Seen]) -> (Option<Parting>, usize) {
        let mut at = 0;
        let mut furthest: Option<(usize, Parting, Known)> = None;
        while let Some(one) = seen.get(at) {
            let lost = match self.line(seen, at) {
                Ok(()) => {
                    at += 1;
                    continue;
                }
                Err(lost) => lost,
            };
            if furthest.as_ref().is_none_or(|(place, ..)| *place < at) {
                furthest = Some((at, self.parting(one, &lost), self.known.clone()));
            }
            // What the node read before may have come at another time of its clock.
            let mark = lost.node.and_then(|node| {
                let marks = &self.marks[node];
                let next = |place: &usize| match self.early.get(place) {
                    None if seen[*place].time.is_some() => Some(Early::ToItsTime),
                    None | Some(Early::ToItsTime) => Some(Early::UntilItWrites),
                    Some(Early::UntilItWrites) => None,
                };
                let untried = marks.iter().rev().find_map(|mark| Some((mark, next(&mark.0)?)));
                untried.map(|((place, known), early)| (*place, known.clone(), early))
            });
            let Some((place, known, early)) = mark else { break };
            self.early.insert(place, early);
            self.known = known;
            self.marks.iter_mut().for_each(|marks| marks.retain(|(other, _)| *other < place));
            at = place;
        }
        if at == seen.len() {
            let extra = self.extra(seen);
            return (extra, at);
        }
        match furthest {
            Some((place, parting, known)) => {
                self.known = known;
                (Some(parting), place)
            }
            None => (None, at),
        }
    }

    /// A line that a node wrote and that the log, which has later ones of it, has not.
    fn extra(&self, seen: &[Seen]) -> Option<Parting> {
        let lines = self
            .known
            .written
            .iter()
            .zip(&self.own)
            .filter(|(_, own)| **own)
            .flat_map(|(written, _)| written);
        let first = lines.filter_map(|line| Some((line.passed?, line))).min_by_key(|(place, _)| *place)?;
        let (place, line) = first;
        let node = self.sim.names().get(line.from).to_owned();
        Some(Parting {
            place: format!("{}:{}", seen[place].place.0, seen[place].place.1),
            logged: shown(&seen[place].text),
            wrote: Some(self.told(line)),
            told: format!("{node} wrote a line before this one that the log does not have"),
        })
    }

    fn told(&self, line: &Written) -> String {
        let name = |actor| self.sim.names().get(actor);
        shown(&format!("{} -> {}: {}", name(line.from), name(line.to), self.text(line.msg)))
    }

    fn parting(&self, one: &Seen, lost: &Lost) -> Parting {
        // What it wrote to the same receiver, if it did.
        let to = self.who(&one.message.dest).map(|(_, to)| to);
        let lines = lost.node.and_then(|node| self.known.written.get(node));
        let line = lines.and_then(|lines| lines.iter().find(|line| Some(line.to) == to).or(lines.front()));
        Parting {
            place: format!("{}:{}", one.place.0, one.place.1),
            logged: shown(&one.text),
            wrote: line.map(|line| self.told(line)),
            told: lost.told.clone(),
        }
    }

    fn line(&mut self, seen: &[Seen], at: usize) -> Result<(), Lost> {
        let one = &seen[at];
        let message = &one.message;
        if one.begins {
            if one.way != Way::Wrote
                && let Some(node) = self.node(&message.dest)
            {
                self.begins(node);
                self.known.ahead[node] = one.time.map(|time| self.clock(node) - time);
            }
            return Ok(());
        }
        let type_ = message.body.get("type").and_then(Value::as_str).unwrap_or_default();
        let starts = self.workload.name() == "broadcast" && ["topology", "topology_ok"].contains(&type_);
        if type_ == "init_ok" || starts {
            return Ok(());
        }
        let (Some((src, from)), Some((dest, to))) = (self.who(&message.src), self.who(&message.dest)) else {
            // Somebody who is no part of the system.
            return Ok(());
        };
        let key = self.key(&message.body);
        if one.way != Way::Read {
            match src {
                Who::Client => self.asks((at, one), from, &key)?,
                Who::Node(node) => self.writes(node, (from, to, &key), at, one.time)?,
                Who::Service => {}
            }
            if dest == Who::Client && self.answers == Answers::Wrote {
                self.deliver_to(from, to, &key);
            }
        }
        if one.way == Way::Wrote {
            return Ok(());
        }
        if let Who::Node(node) = dest {
            let marks = &mut self.marks[node];
            if marks.back().is_none_or(|(place, _)| *place < at) {
                marks.push_back((at, self.known.clone()));
                if marks.len() > BACK {
                    marks.pop_front();
                }
            }
        }
        if src == Who::Client && one.way == Way::Read {
            self.asks((at, one), from, &key)?;
        }
        if self.pending(from, to, &key).is_none() {
            match src {
                Who::Node(node) => self.writes(node, (from, to, &key), at, one.time)?,
                Who::Client => {
                    // Somebody passes on what a client asked.
                    let passes =
                        (0..self.count).any(|node| self.writes(node, (from, to, &key), at, one.time).is_ok());
                    if !passes {
                        return Err(Lost {
                            node: None,
                            told: format!("nobody passes this on in the name of {}", message.src),
                        });
                    }
                }
                Who::Service => self.serve(&message.src, (from, to, &key))?,
            }
        }
        if let Who::Node(node) = dest {
            match self.early.get(&at) {
                Some(Early::ToItsTime) => self.pass_to(node, one.time),
                Some(Early::UntilItWrites) => self.write_first(node, &seen[at..]),
                None => {}
            }
        }
        let index = self.pending(from, to, &key).ok_or_else(|| Lost {
            node: self.node(&message.src),
            told: format!("{} did not write this", message.src),
        })?;
        if !self.sim.takes(&self.known.world, &self.known.world.pending()[index]) {
            return match dest {
                Who::Client => Ok(()),
                _ => Err(Lost { node: None, told: format!("{} does not run", message.dest) }),
            };
        }
        if !self.sim.deliverable(&self.known.world, index, self.rule) {
            let told = format!(
                "the scenario's network is {}, and this overtakes what was sent before it",
                self.rule
            );
            return Err(Lost { node: None, told });
        }
        self.deliver(index);
        if let Who::Node(node) = dest
            && self.known.ahead[node].is_none()
        {
            self.known.ahead[node] = one.time.map(|time| self.clock(node) - time);
        }
        match self.known.world.panic().filter(|panic| self.sim.crashed(panic).is_none()) {
            Some(panic) => Err(Lost { node: self.node(&message.dest), told: panic.message.clone() }),
            None => Ok(()),
        }
    }

    /// A node begins; once more, where it was killed.
    fn begins(&mut self, node: usize) {
        if !std::mem::replace(&mut self.known.begun[node], true) {
            return;
        }
        let actor = self.sim.model().actors()[node];
        let name = self.sim.names().get(actor).to_owned();
        for kind in [StepKind::Crash, StepKind::Restart] {
            self.push(Step { external: Some(true), ..Step::new(kind, name.as_str()) });
        }
        self.sim.crash(&mut self.known.world, actor);
        self.sim.restart(&mut self.known.world, actor);
        self.note(Some(node));
    }

    /// A client asks for something, unless it has asked for that before.
    fn asks(&mut self, (at, one): (usize, &Seen), client: ActorId, key: &str) -> Result<(), Lost> {
        let message = &one.message;
        let id = message.body.get("msg_id").and_then(Value::as_u64).unwrap_or_default();
        let request = (message.src.clone(), id);
        if self.asked.get(&request).is_some_and(|first| *first < at) {
            // A node passes it on: that it wrote this is seen when it is read.
            return Ok(());
        }
        let Some(mut operation) = self.workload.asked(&message.body) else {
            let told = format!("the workload '{}' knows no such request", self.workload.name());
            return Err(Lost { node: None, told });
        };
        self.asked.insert(request, at);
        operation.to = Some(message.dest.clone());
        let waits = match self.sim.view(&self.known.world).state(client) {
            Some(State::Clients(book)) => {
                let place = self.sim.model().actors().iter().position(|known| *known == client);
                let process = place.and_then(|place| u16::try_from(place - self.count).ok());
                process.is_some_and(|process| book.open(process).is_some())
            }
            _ => false,
        };
        if waits {
            self.outside(client, Msg::GiveUp);
        }
        self.outside(client, Msg::Invoke(operation.to_value().to_string().into()));
        let (_, to) = self.who(&message.dest).unwrap_or((Who::Client, client));
        if self.pending(client, to, key).is_none() {
            let told = "the request has fields that the workload does not know".to_owned();
            return Err(Lost { node: None, told });
        }
        Ok(())
    }

    /// A message from outside is delivered.
    fn outside(&mut self, to: ActorId, msg: Msg) {
        let msg = self.sim.intern_outside(msg, None);
        if let Some(index) = self.sim.inject(&mut self.known.world, to, msg) {
            let step = self.step(StepKind::External, index);
            self.push(step);
            self.deliver(index);
        }
    }

    /// Lets a node's clock go on until it has written a line.
    fn writes(
        &mut self,
        node: usize,
        (from, to, key): (ActorId, ActorId, &str),
        at: usize,
        time: Option<i128>,
    ) -> Result<(), Lost> {
        if self.has_written(node, (from, to, key), at) {
            return Ok(());
        }
        let before = self.known.clone();
        for _ in 0..TICKS {
            let actor = self.sim.model().actors()[node];
            let timer = self
                .known
                .world
                .pending()
                .iter()
                .position(|entry| entry.to == actor && entry.kind.is_timer());
            match timer.filter(|_| self.known.world.panic().is_none()) {
                Some(timer) => self.deliver(timer),
                None => break,
            }
            if self.has_written(node, (from, to, key), at) {
                self.known.ahead[node] = time.map(|time| self.clock(node) - time);
                return Ok(());
            }
        }
        // What it wrote meanwhile tells more than that it has not written anything.
        let wrote = std::mem::replace(&mut self.known, before).written;
        let name = self.sim.names().get(self.sim.model().actors()[node]);
        let told = match self.shown.contains(&(from, to, key.to_owned())) {
            true => format!(
                "{name} has written this once, and the network of the scenario lost it when what was written later came first: a network that delivers in any \
                 order is network = \"unordered\""
            ),
            false => format!("{name} does not write this, however far its clock goes on"),
        };
        if let Some(own) = self.known.written.get_mut(node)
            && own.is_empty()
        {
            own.extend(wrote[node].iter().take(1).cloned());
        }
        Err(Lost { node: Some(node), told })
    }

    /// Whether a node has written a line; it is then shown.
    fn has_written(&mut self, node: usize, (from, to, key): (ActorId, ActorId, &str), at: usize) -> bool {
        let written = &mut self.known.written[node];
        let is_it = |line: &Written| line.from == from && line.to == to && line.key == key;
        let Some(place) = written.iter().position(is_it) else { return false };
        written.iter_mut().take(place).for_each(|line| line.passed = line.passed.or(Some(at)));
        written.remove(place);
        self.shown.insert((from, to, key.to_owned()));
        true
    }

    /// Lets a node's clock go on to the time at which the log has something, unless it writes something by that.
    fn pass_to(&mut self, node: usize, time: Option<i128>) {
        let (Some(time), Some(ahead)) = (time, self.known.ahead[node]) else { return };
        let Ok(goal) = u64::try_from(time + ahead) else { return };
        if i128::from(goal) <= self.clock(node) {
            return;
        }
        let before = self.known.clone();
        self.outside(self.sim.model().actors()[node], Msg::Until(goal));
        if self.known.written[node].len() != before.written[node].len() || self.known.world.panic().is_some()
        {
            self.known = before;
        }
    }

    /// Lets a node's clock go on until it writes, if what it writes stands in what comes of the log.
    fn write_first(&mut self, node: usize, coming: &[Seen]) {
        let actor = self.sim.model().actors()[node];
        let timer =
            self.known.world.pending().iter().position(|entry| entry.to == actor && entry.kind.is_timer());
        let Some(timer) = timer else { return };
        let before = self.known.clone();
        self.deliver(timer);
        let new = self.known.written[node].iter().skip(before.written[node].len());
        let stands = |line: &Written| {
            let (from, to) = (self.sim.names().get(line.from), self.sim.names().get(line.to));
            coming.iter().take(AHEAD).any(|one| {
                one.message.src == from && one.message.dest == to && self.key(&one.message.body) == line.key
            })
        };
        let all = new.clone().all(stands) && new.clone().next().is_some();
        if !all || self.known.world.panic().is_some() {
            self.known = before;
        }
    }

    /// What a node's clock shows.
    fn clock(&self, node: usize) -> i128 {
        let actor = self.sim.model().actors()[node];
        match self.sim.view(&self.known.world).state(actor) {
            Some(State::Node(local) | State::Doomed(local, _)) => i128::from(local.answer().clock),
            _ => 0,
        }
    }

    /// Has a service answer.
    fn serve(&mut self, name: &str, (from, to, key): (ActorId, ActorId, &str)) -> Result<(), Lost> {
        let is_part =
            |own: &str| own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        for _ in 0..SERVED {
            if self.pending(from, to, key).is_some() {
                return Ok(());
            }
            let names = self.sim.names();
            let next = self
                .known
                .world
                .pending()
                .iter()
                .position(|entry| !entry.kind.is_timer() && is_part(names.get(entry.to)));
            match next {
                Some(next) => self.deliver(next),
                None => break,
            }
        }
        Err(Lost {
            node: None,
            told: format!("{name} answers otherwise: what a service may answer is not one alone"),
        })
    }

    /// The oldest message of that content that is pending.
    fn pending(&self, from: ActorId, to: ActorId, key: &str) -> Option<usize> {
        let all = self.known.world.pending();
        all.iter().position(|entry| {
            entry.from == from
                && (entry.to == to || self.is_part(entry.to, to))
                && entry.kind == PendingKind::Message
                && self.key_of(entry.msg) == key
        })
    }

    /// Whether an actor is a part of a service.
    fn is_part(&self, part: ActorId, service: ActorId) -> bool {
        let names = self.sim.names();
        names.get(part).strip_prefix(names.get(service)).is_some_and(|rest| rest.starts_with('/'))
    }

    fn push(&mut self, step: Step) {
        self.steps.truncate(self.known.steps);
        self.steps.push(step);
        self.known.steps += 1;
    }

    fn deliver_to(&mut self, from: ActorId, to: ActorId, key: &str) {
        if let Some(index) = self.pending(from, to, key)
            && self.sim.takes(&self.known.world, &self.known.world.pending()[index])
        {
            self.deliver(index);
        }
    }

    fn step(&self, kind: StepKind, index: usize) -> Step {
        let entry = self.known.world.pending()[index];
        let info = self.sim.info(entry.msg);
        let name = |actor| self.sim.names().get(actor).to_owned();
        let external = entry.kind == PendingKind::External;
        let from = if external { DEAD_LETTERS.to_owned() } else { name(entry.from) };
        Step {
            from: Some(from),
            type_: Some(self.sim.text(info.type_).to_owned()),
            payload: Some(self.sim.text(info.payload).to_owned()),
            external: Some(external),
            ..Step::new(kind, name(entry.to))
        }
    }

    fn deliver(&mut self, index: usize) {
        let entry = self.known.world.pending()[index];
        let kind = if entry.kind.is_timer() { StepKind::Timer } else { StepKind::Deliver };
        let step = self.step(kind, index);
        self.push(step);
        self.sim.deliver(&mut self.known.world, index, self.rule);
        let node = self.sim.model().actors()[..self.count].iter().position(|known| *known == entry.to);
        self.note(node);
        if self.answers == Answers::Silent {
            let clients = self.sim.model().actors()[self.count..].to_vec();
            let answer = |entry: &demi_replay::Pending| {
                entry.kind == PendingKind::Message
                    && clients.contains(&entry.to)
                    && matches!(self.who(self.sim.names().get(entry.to)), Some((Who::Client, _)))
            };
            if let Some(index) = self.known.world.pending().iter().position(answer)
                && self.sim.takes(&self.known.world, &self.known.world.pending()[index])
            {
                self.deliver(index);
            }
        }
    }

    /// Notes what a node wrote in the last step.
    fn note(&mut self, node: Option<usize>) {
        let Some(node) = node else { return };
        let sent = |did: &Did| match did {
            Did::Sent(entry) => Some(*entry),
            _ => None,
        };
        let sent: Vec<_> = self.sim.did().iter().filter_map(sent).collect();
        for entry in sent {
            let key = self.key_of(entry.msg);
            self.known.written[node].push_back(Written {
                from: entry.from,
                to: entry.to,
                key,
                msg: entry.msg,
                passed: None,
            });
        }
    }
}

/// A line for people.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
