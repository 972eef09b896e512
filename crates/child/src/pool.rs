//! Several children side by side. Which of them answers makes no difference.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use demi_schemas::{ChildModel, Scenario};
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::{ChildError, Problem, cut};
use crate::values::Canonical;
use crate::wire::{Hello, VERSION};

/// The first questions are asked twice, and then each of so many: a child must not answer in two ways.
const ASKED_TWICE: u64 = 32;

/// What a handler in a child came to.
pub(crate) enum Handled {
    /// The child's answer.
    Answered(Value),
    /// Its process ended, as these words say.
    Died(String),
}

/// The children of one model. The first problem is final: nothing is asked after it.
pub struct Pool {
    spec: ChildModel,
    greeting: String,
    slots: Vec<Mutex<Option<Connection>>>,
    hello: OnceLock<Canonical>,
    requests: AtomicU64,
    /// Whether two answers to one question are no fault.
    tolerates: Arc<AtomicBool>,
    /// How many questions got two answers, and how many were asked twice.
    strays: (AtomicU64, AtomicU64),
    fault: OnceLock<ChildError>,
}

impl Pool {
    /// A pool for the scenario's model, and what the first child says of itself.
    ///
    /// # Errors
    /// When it cannot be started or does not speak the protocol.
    pub fn open(
        spec: &ChildModel,
        scenario: &Scenario,
        tolerates: Arc<AtomicBool>,
    ) -> Result<(Pool, Hello), ChildError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let children = spec.children.map_or(cores, |n| n as usize).clamp(1, 256);
        let pool = Pool {
            spec: spec.clone(),
            greeting: greeting(scenario),
            slots: (0..children).map(|_| Mutex::new(None)).collect(),
            hello: OnceLock::new(),
            requests: AtomicU64::new(0),
            tolerates,
            strays: (AtomicU64::new(0), AtomicU64::new(0)),
            fault: OnceLock::new(),
        };
        let (first, hello) = pool.greet()?;
        if let Some(slot) = pool.slots.first() {
            *locked(slot) = Some(first);
        }
        Ok((pool, hello))
    }

    /// How many requests were sent to children, greetings included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How many questions got two answers, and how many were asked twice.
    pub fn strays(&self) -> (u64, u64) {
        (self.strays.0.load(Ordering::Relaxed), self.strays.1.load(Ordering::Relaxed))
    }

    /// The problem that ended the work, if there was one.
    pub fn fault(&self) -> Option<&ChildError> {
        self.fault.get()
    }

    /// Notes a problem; the first one counts.
    pub(crate) fn fail(&self, error: ChildError) {
        let _ = self.fault.set(error);
    }

    /// The answer to one question; `None` once there was a problem.
    pub(crate) fn ask(&self, question: &str) -> Option<Value> {
        if self.fault.get().is_some() {
            return None;
        }
        let content = format!("\"requests\":[{question}]");
        self.answer(&content).map_err(|error| self.fail(error)).ok()
    }

    /// What a handler came to; `None` once there was a problem. A process that ends while a handler runs is no problem if another one
    /// ends in the same way: then that is what the handler does.
    pub(crate) fn handle(&self, question: &str) -> Option<Handled> {
        if self.fault.get().is_some() {
            return None;
        }
        let content = format!("\"requests\":[{question}]");
        let error = match self.answer(&content) {
            Ok(answer) => return Some(Handled::Answered(answer)),
            Err(error) => error,
        };
        if let Problem::Ended(how) = &error.problem {
            match self.put(&content, 0) {
                Err(ChildError { problem: Problem::Ended(again), .. }) if again == *how => {
                    return Some(Handled::Died(format!("the model's process ended{how}")));
                }
                _ => {}
            }
        }
        self.fail(error);
        None
    }

    fn answer(&self, content: &str) -> Result<Value, ChildError> {
        let answer = self.put(content, 0);
        let before = self.requests.load(Ordering::Relaxed);
        answer.and_then(|(answer, slot)| {
            if before > ASKED_TWICE && !before.is_multiple_of(ASKED_TWICE) {
                return Ok(answer);
            }
            // Another child if there is one: what one remembers, the other does not know.
            let (again, slot) = self.put(content, slot + 1)?;
            self.strays.1.fetch_add(1, Ordering::Relaxed);
            if Canonical::of(&again) == Canonical::of(&answer) {
                return Ok(answer);
            }
            if self.tolerates.load(Ordering::Relaxed) {
                self.strays.0.fetch_add(1, Ordering::Relaxed);
                let (third, _) = self.put(content, slot + 1)?;
                let twice = Canonical::of(&third) == Canonical::of(&again);
                return Ok(if twice { again } else { answer });
            }
            let problem = Problem::Differs(cut(&answer.to_string()), cut(&again.to_string()));
            Err(ChildError { problem, request: content.to_owned(), stderr: String::new() })
        })
    }

    /// Asks a child that is free, looking from slot `from` on.
    fn put(&self, content: &str, from: usize) -> Result<(Value, usize), ChildError> {
        let (mut slot, at) = self.free(from);
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.greet()?.0,
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = connection.ask(content)?;
        let one = only(answer, content)?;
        *slot = Some(connection);
        Ok((one, at))
    }

    fn free(&self, from: usize) -> (MutexGuard<'_, Option<Connection>>, usize) {
        let many = self.slots.len();
        for at in (0..many).map(|i| (from + i) % many) {
            if let Ok(slot) = self.slots[at].try_lock() {
                return (slot, at);
            }
        }
        (locked(&self.slots[from % many]), from % many)
    }

    fn greet(&self) -> Result<(Connection, Hello), ChildError> {
        let mut connection = Connection::open(&self.spec)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (own, hello) = greet(&mut connection, &self.greeting)?;
        let first = self.hello.get_or_init(|| own.clone());
        if *first != own {
            let problem = Problem::Differs(cut(&first.text), cut(&own.text));
            return Err(ChildError { problem, request: self.greeting.clone(), stderr: String::new() });
        }
        Ok((connection, hello))
    }
}

/// The first request to a child, without its number.
pub(crate) fn greeting(scenario: &Scenario) -> String {
    let told = json!({
        "members": scenario.members,
        "invariants": scenario.invariants,
        "switches": scenario.switches,
        "settings": scenario.settings,
        "payload": scenario.payload,
    });
    format!("\"hello\":{{\"protocol\":\"{VERSION}\",\"scenario\":{told}}}")
}

/// Greets a child: what it says of itself, as it says it and as it is meant.
pub(crate) fn greet(connection: &mut Connection, greeting: &str) -> Result<(Canonical, Hello), ChildError> {
    let failed = |problem| ChildError { problem, request: greeting.to_owned(), stderr: String::new() };
    let answer = connection.ask(greeting)?;
    let Some(said) = answer.get("hello") else {
        return Err(failed(Problem::Form(format!("no 'hello' in {}", cut(&answer.to_string())))));
    };
    let version = said.get("protocol").and_then(Value::as_str).unwrap_or_default();
    if version != VERSION {
        return Err(failed(Problem::Version(version.to_owned())));
    }
    let hello: Hello =
        serde_json::from_value(said.clone()).map_err(|e| failed(Problem::Form(format!("hello: {e}"))))?;
    Ok((Canonical::of(said), hello))
}

/// The one answer of a batch of one.
pub(crate) fn only(mut answer: Value, content: &str) -> Result<Value, ChildError> {
    let one = match answer.get_mut("answers").map(Value::take) {
        Some(Value::Array(mut answers)) if answers.len() == 1 => answers.pop(),
        _ => None,
    };
    one.ok_or_else(|| {
        let problem = Problem::Form(format!(
            "'answers' must be a list with one answer for each request, got {}",
            cut(&answer.to_string())
        ));
        ChildError { problem, request: content.to_owned(), stderr: String::new() }
    })
}

/// A slot that a thread died with is empty.
fn locked<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
