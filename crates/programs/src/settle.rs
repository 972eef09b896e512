//! What is there in the end: the network delivers everything, clocks go on, and every node is read.
//!
//! It is a fixed continuation of a configuration, and no part of any schedule. Everything in it is one of the executions that a schedule could go on with, so
//! what is wrong in the end is wrong.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use crate::book::Operation;
use crate::checkers::canonical;
use crate::lines::{INIT, Message};
use crate::model::Shared;
use crate::nodes::{Input, Local};
use crate::services::{SERVICES, Sent, Service};

/// Into how many parts the time is cut in which nodes may run ahead of each other: what one sends reaches the others that much late at most.
const PARTS: u64 = 20;
/// Steps of nodes at most.
const STEPS: usize = 50_000;
/// Numbers of requests that nobody else uses.
const FIRST: u64 = 2_000_000;

/// A configuration that goes on by itself.
struct Settling<'a> {
    shared: &'a Shared,
    locals: Vec<Arc<Local>>,
    /// Where each clock stood.
    began: Vec<u64>,
    /// Sender, receiver and content.
    queue: VecDeque<(String, usize, String)>,
    /// By name.
    services: FxHashMap<&'static str, Service>,
    /// By node, the request that is asked and its answer.
    asked: Vec<Option<(u64, Option<Value>)>>,
    steps: usize,
}

/// What came of it.
#[derive(Clone)]
pub(crate) struct Settled {
    /// What nodes read in the end, node by node; nothing where they do not come to rest.
    pub(crate) read: Option<Vec<Value>>,
    /// How many steps of nodes it took.
    pub(crate) steps: u64,
}

/// What nodes read in the end.
pub(crate) fn settle(shared: &Shared, locals: &[Arc<Local>], services: &[&Service]) -> Settled {
    let mut settling = Settling {
        shared,
        locals: locals.to_vec(),
        began: locals.iter().map(|local| local.answer().clock).collect(),
        queue: VecDeque::new(),
        services: FxHashMap::default(),
        asked: vec![None; locals.len()],
        steps: 0,
    };
    for name in SERVICES {
        let parts = services.iter().copied().filter(|service| service.part().service() == name);
        if let Some(merged) = Service::merged(parts) {
            settling.services.insert(name, merged);
        }
    }
    settling.find_pending();
    let read = settling.at_rest();
    Settled { read, steps: settling.steps as u64 }
}

/// A value that does not depend on the order of its elements.
fn unordered(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => {
            let mut all: Vec<String> = all.iter().map(canonical).collect();
            all.sort_unstable();
            all
        }
        one => vec![canonical(one)],
    }
}

impl Settling<'_> {
    /// What every node reads once it reads the same after twice the time.
    fn at_rest(&mut self) -> Option<Vec<Value>> {
        let goal = self.shared.settle;
        self.pass(goal)?;
        let first = self.read(FIRST)?;
        self.pass(goal.saturating_mul(2))?;
        let second = self.read(FIRST + 1)?;
        let same = first.iter().zip(&second).all(|(one, other)| unordered(one) == unordered(other));
        same.then_some(second)
    }

    fn parts(&self, line: &str) -> Option<(String, String, Value)> {
        let Message { src, dest, body } = self.shared.lines.read(line).ok()?;
        Some((src, dest, body))
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.shared.names[..self.shared.count].iter().position(|known| known == name)
    }

    /// What was sent and never came: it comes now, in the order of its senders, unless the network loses messages.
    fn find_pending(&mut self) {
        let mut taken: FxHashMap<(String, usize, String), usize> = FxHashMap::default();
        let mut answered: FxHashSet<(usize, String, u64)> = FxHashSet::default();
        for (node, local) in self.locals.iter().enumerate() {
            for one in local.whole() {
                let Some(line) = one.input().line() else { continue };
                let Some((src, _, body)) = self.parts(line) else { continue };
                if let Some(id) = body.get("in_reply_to").and_then(Value::as_u64) {
                    answered.insert((node, src.clone(), id));
                }
                *taken.entry((src, node, body.to_string())).or_default() += 1;
            }
        }
        let mut requests = Vec::new();
        for (node, local) in self.locals.clone().iter().enumerate() {
            let name = self.shared.names[node].clone();
            for line in local.whole().iter().flat_map(|one| &one.answer().lines) {
                let Some((src, dest, body)) = self.parts(line) else { continue };
                let src = if src.is_empty() { name.clone() } else { src };
                if let Some(to) = self.place(&dest) {
                    let text = body.to_string();
                    match taken.get_mut(&(src.clone(), to, text.clone())) {
                        Some(count) if *count > 0 => *count -= 1,
                        _ if self.shared.loses => {}
                        _ => self.queue.push_back((src, to, text)),
                    }
                } else if let Some(id) = body.get("msg_id").and_then(Value::as_u64)
                    && self.services.contains_key(dest.as_str())
                    && !answered.contains(&(node, dest.clone(), id))
                {
                    requests.push((node, dest, id, body));
                }
            }
        }
        for (node, dest, id, body) in requests {
            let known = self
                .services
                .get(dest.as_str())
                .and_then(|service| service.answer(&self.shared.names[node], id));
            match known.map(str::to_owned) {
                Some(answer) => self.queue.push_back((dest, node, answer)),
                None => self.serve(node, &dest, &body),
            }
        }
    }

    /// A service takes a request.
    fn serve(&mut self, node: usize, service: &str, body: &Value) {
        let name = self.shared.names[node].clone();
        let sent =
            self.services.get_mut(service).map(|service| service.request(&name, body)).unwrap_or_default();
        for one in sent {
            if let Sent::Answer { body, .. } = one {
                self.queue.push_back((service.to_owned(), node, body.to_string()));
            }
        }
    }

    fn step(&mut self, node: usize, input: Input) -> Option<()> {
        self.steps += 1;
        let local = self.shared.nodes.step(node, Some(&self.locals[node]), input)?;
        if local.answer().ended.is_some() || self.steps > STEPS || self.shared.nodes.is_stopped() {
            return None;
        }
        let name = self.shared.names[node].clone();
        for line in &local.answer().lines {
            let (src, dest, body) = self.parts(line)?;
            if let Some(to) = self.place(&dest) {
                let src = if src.is_empty() { name.clone() } else { src };
                self.queue.push_back((src, to, body.to_string()));
            } else if dest == INIT {
                let body =
                    self.shared.lines.answer(self.shared.workload.final_read().unwrap_or_default(), body);
                let id = body.get("in_reply_to").and_then(Value::as_u64);
                if let Some((asked, answer)) = &mut self.asked[node]
                    && id == Some(*asked)
                {
                    *answer = Some(body);
                }
            } else {
                self.serve(node, &dest, &body);
            }
        }
        self.locals[node] = local;
        Some(())
    }

    fn deliver(&mut self) -> Option<()> {
        while let Some((src, to, body)) = self.queue.pop_front() {
            let input = self.shared.input(&src, to, self.locals[to].depth(), &body);
            self.step(to, input)?;
        }
        Some(())
    }

    /// How far the clock of a node has gone on.
    fn passed(&self, node: usize) -> u64 {
        self.locals[node].answer().clock.saturating_sub(self.began[node])
    }

    /// Delivers everything, and lets every clock go on that far, a part at a time: that which is furthest behind first.
    fn pass(&mut self, goal: u64) -> Option<()> {
        let part = (self.shared.settle / PARTS).max(1);
        loop {
            self.deliver()?;
            let waking = (0..self.locals.len()).filter(|&node| self.locals[node].answer().wakes);
            match waking.map(|node| (self.passed(node), node)).min() {
                Some((passed, node)) if passed < goal => {
                    let end = passed.saturating_add(part).min(goal);
                    self.step(node, Input::Until(self.began[node].saturating_add(end)))?;
                }
                _ => return Some(()),
            }
        }
    }

    /// What every node reads.
    fn read(&mut self, id: u64) -> Option<Vec<Value>> {
        let f = self.shared.workload.final_read()?;
        let operation = Operation { id, f: f.to_owned(), value: Value::Null, to: None };
        let body = self.shared.workload.request(&operation).ok()?.to_string();
        for node in 0..self.locals.len() {
            self.asked[node] = Some((id, None));
            let input = self.shared.input(INIT, node, self.locals[node].depth(), &body);
            self.step(node, input)?;
        }
        // It may have to ask others first, and to wait.
        let furthest = (0..self.locals.len()).map(|node| self.passed(node)).max().unwrap_or_default();
        for part in 1..=PARTS {
            self.deliver()?;
            if self.asked.iter().all(|asked| !matches!(asked, Some((_, None)))) {
                break;
            }
            self.pass(furthest.saturating_add(self.shared.settle / PARTS * part))?;
        }
        let answers = std::mem::replace(&mut self.asked, vec![None; self.locals.len()]);
        answers
            .into_iter()
            .map(|asked| {
                let body = asked?.1?;
                match self.shared.workload.outcome(&operation, &body) {
                    Ok(crate::book::Outcome::Done(value)) => Some(value),
                    _ => None,
                }
            })
            .collect()
    }
}
