//! Handlers that run in another process first: one that ends its process, by an overflow of the stack, an abort, or memory without end, is a
//! finding there, and not the end of this program.
//!
//! A state of a model in Rust can be written down by nobody. So another process is told how a state came about: by the calls of handlers that
//! led to it, and by those that sent the messages which they took. It makes the same calls and has the same states. States and messages are
//! known on both sides by what their hash reads and `Debug` prints. [`Vet`] asks, [`Handlers`](crate::handlers::Handlers) answer; whoever starts processes brings an [`Elsewhere`].

use std::fmt::{Debug, Write as _};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use crate::model::{Effect, Model};
use crate::names::{ActorId, Names};

/// What a state or a message is known by: a number for what it is.
pub type Key = u128;

/// A call of a model's code.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The actor.
    pub(crate) actor: ActorId,
    /// The sender of what is delivered.
    pub(crate) from: ActorId,
    pub(crate) does: Does,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Does {
    /// It starts. Its cell may have had a state, in which it may have failed.
    Start { last: Option<Key>, failed: bool },
    /// It takes a message or a timer.
    Deliver { state: Key, msg: Key },
    /// Code outside the actors runs.
    Action { state: Option<Key>, name: String, fields: Option<Value> },
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A call made it.
    Call(Call),
    /// It is a message from outside, as a schedule tells it.
    Outside {
        /// Type tag.
        type_: String,
        /// Full content.
        payload: String,
        /// Structured content.
        fields: Option<Value>,
    },
}

/// Whether a call returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Names of actors from this number on.
    pub(crate) names: (usize, Vec<String>),
    /// Where states and messages come from, in the order in which they can be made.
    pub(crate) sources: Vec<Source>,
    pub(crate) call: Call,
}

/// What is said of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It returns, or panics as it does anywhere.
    Returns,
    /// A state or message that it needs is not there.
    Lacks,
}

/// Where handlers run first.
pub trait Elsewhere: Send + Sync {
    /// A new process with nothing in it but the model.
    ///
    /// # Errors
    /// Why there is none.
    fn open(&self) -> Result<Box<dyn Link>, String>;
}

/// The way to one process.
pub trait Link: Send {
    /// Asks it.
    ///
    /// # Errors
    /// How it ended.
    fn ask(&mut self, question: &Question) -> Result<Answer, String>;
}

/// Of all that `Debug` prints besides what the hash reads: of two states that count as equal one may have other names for things, which its
/// messages bear.
pub(crate) fn key_of(value: &(impl Hash + Debug)) -> Key {
    let mut key = Printed(Xxh3::new());
    value.hash(&mut key.0);
    // Into a hash it cannot fail; where the value itself does, what it printed counts.
    let _ = write!(key, "{value:?}");
    key.0.digest128()
}

/// A hash of what is printed.
struct Printed(Xxh3);

impl std::fmt::Write for Printed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

fn hex(key: Key) -> Value {
    Value::from(format!("{key:x}"))
}

fn unhex(value: &Value) -> Option<Key> {
    Key::from_str_radix(value.as_str()?, 16).ok()
}

impl Call {
    fn key(&self) -> Key {
        let (actor, from) = (self.actor, self.from);
        match &self.does {
            Does::Start { last, failed } => key_of(&(actor, from, 0, last, failed)),
            Does::Deliver { state, msg } => key_of(&(actor, from, 1, state, msg)),
            Does::Action { state, name, fields } => {
                key_of(&(actor, from, 2, state, name, fields.as_ref().map(Value::to_string)))
            }
        }
    }

    /// The state and the message that it needs.
    pub(crate) fn needs(&self) -> [Option<Key>; 2] {
        match self.does {
            Does::Start { last, .. } => [last, None],
            Does::Deliver { state, msg } => [Some(state), Some(msg)],
            Does::Action { state, .. } => [state, None],
        }
    }

    fn value(&self) -> Value {
        let does = match &self.does {
            Does::Start { last, failed } => json!({"start": last.map(hex), "failed": failed}),
            Does::Deliver { state, msg } => json!({"state": hex(*state), "message": hex(*msg)}),
            Does::Action { state, name, fields } => {
                json!({"action": name, "fields": fields, "on": state.map(hex)})
            }
        };
        json!([self.actor.0, self.from.0, does])
    }

    fn read(value: &Value) -> Option<Call> {
        let actor = |at: usize| Some(ActorId(value.get(at)?.as_u64()?.try_into().ok()?));
        let does = value.get(2)?;
        let maybe = |key: &str| match does.get(key)? {
            Value::Null => Some(None),
            key => unhex(key).map(Some),
        };
        let does = match does.get("action") {
            Some(name) => Does::Action {
                state: maybe("on")?,
                name: name.as_str()?.to_owned(),
                fields: does.get("fields").filter(|fields| !fields.is_null()).cloned(),
            },
            None if does.get("message").is_some() => {
                Does::Deliver { state: unhex(&does["state"])?, msg: unhex(&does["message"])? }
            }
            None => Does::Start { last: maybe("start")?, failed: does.get("failed")?.as_bool()? },
        };
        Some(Call { actor: actor(0)?, from: actor(1)?, does })
    }
}

impl Question {
    /// As a line of text, without its end.
    #[must_use]
    pub fn text(&self) -> String {
        let source = |source: &Source| match source {
            Source::Call(call) => call.value(),
            Source::Outside { type_, payload, fields } => {
                json!({"type": type_, "payload": payload, "fields": fields})
            }
        };
        let sources: Vec<Value> = self.sources.iter().map(source).collect();
        json!({"names": self.names, "sources": sources, "call": self.call.value()}).to_string()
    }

    /// Reads such a line; nothing where it is none.
    #[must_use]
    pub fn read(text: &str) -> Option<Question> {
        let value: Value = serde_json::from_str(text).ok()?;
        let source = |value: &Value| match value.is_array() {
            true => Call::read(value).map(Source::Call),
            false => Some(Source::Outside {
                type_: value["type"].as_str()?.to_owned(),
                payload: value["payload"].as_str()?.to_owned(),
                fields: value.get("fields").filter(|fields| !fields.is_null()).cloned(),
            }),
        };
        let names = value["names"][1].as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
        Some(Question {
            names: (usize::try_from(value["names"][0].as_u64()?).ok()?, names.collect::<Option<_>>()?),
            sources: value["sources"].as_array()?.iter().map(source).collect::<Option<_>>()?,
            call: Call::read(&value["call"])?,
        })
    }
}

/// What all simulators of one model know of calls.
#[derive(Default)]
struct Tables {
    /// The calls that made something new.
    calls: Vec<Call>,
    /// By state: the first call that led to it.
    states: FxHashMap<Key, u32>,
    /// By message: the first call that sent it, or how a schedule tells it.
    messages: FxHashMap<Key, Result<u32, Box<Source>>>,
    /// Calls that return.
    returned: FxHashSet<Key>,
    /// Calls that end their process, and how.
    ended: FxHashMap<Key, String>,
    /// Calls that were not asked about, because nobody knows where their states come from.
    unknown: u64,
    /// Why nothing can be asked any more.
    fault: Option<String>,
}

impl Tables {
    /// What has to be made before the call can be made: each after what it needs. Nothing where that is not known.
    fn recipe(&self, call: &Call) -> Option<Vec<Source>> {
        let mut made: FxHashSet<u32> = FxHashSet::default();
        let mut told: FxHashSet<Key> = FxHashSet::default();
        let mut sources = Vec::new();
        // Calls, and whether what they need was looked at.
        let mut open: Vec<(Option<u32>, bool)> = vec![(None, false)];
        while let Some((number, looked)) = open.pop() {
            if number.is_some_and(|number| made.contains(&number)) {
                continue;
            }
            let this = match number {
                Some(number) => self.calls.get(number as usize)?,
                None => call,
            };
            if looked {
                if let Some(number) = number {
                    made.insert(number);
                    sources.push(Source::Call(this.clone()));
                }
                continue;
            }
            open.push((number, true));
            let [state, message] = this.needs();
            if let Some(state) = state {
                open.push((Some(*self.states.get(&state)?), false));
            }
            match message.map(|message| (message, self.messages.get(&message))) {
                None => {}
                Some((_, Some(Ok(sent)))) => open.push((Some(*sent), false)),
                Some((message, Some(Err(outside)))) if told.insert(message) => {
                    sources.push((**outside).clone());
                }
                Some((_, Some(Err(_)))) => {}
                Some((_, None)) => return None,
            }
        }
        Some(sources)
    }
}

/// Asks elsewhere before a handler runs here. Clones share what they know; each has a process of its own.
pub(crate) struct Vet {
    elsewhere: Arc<dyn Elsewhere>,
    tables: Arc<Mutex<Tables>>,
    link: Mutex<Option<Box<dyn Link>>>,
    /// How many names the process knows.
    named: usize,
}

impl Clone for Vet {
    fn clone(&self) -> Self {
        let (elsewhere, tables) = (Arc::clone(&self.elsewhere), Arc::clone(&self.tables));
        Vet { elsewhere, tables, link: Mutex::new(None), named: 0 }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder leaves it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vet {
    pub(crate) fn new(elsewhere: Arc<dyn Elsewhere>) -> Vet {
        Vet { elsewhere, tables: Arc::default(), link: Mutex::new(None), named: 0 }
    }

    /// A start, on what its cell had.
    pub(crate) fn start<S: Hash + Debug>(actor: ActorId, last: Option<&S>, failed: bool) -> Call {
        Call {
            actor,
            from: crate::names::OUTSIDE,
            does: Does::Start { last: last.map(|state| key_of(state)), failed },
        }
    }

    /// A delivery.
    pub(crate) fn deliver<S, Msg>((actor, from): (ActorId, ActorId), state: &S, msg: &Msg) -> Call
    where
        S: Hash + Debug,
        Msg: Hash + Debug,
    {
        Call { actor, from, does: Does::Deliver { state: key_of(state), msg: key_of(msg) } }
    }

    /// An action.
    pub(crate) fn action<S: Hash + Debug>(state: Option<&S>, name: &str, fields: Option<&Value>) -> Call {
        let does = Does::Action {
            state: state.map(|state| key_of(state)),
            name: name.to_owned(),
            fields: fields.cloned(),
        };
        Call { actor: crate::names::OUTSIDE, from: crate::names::OUTSIDE, does }
    }

    /// Takes note of a message from outside, as a schedule tells it.
    pub(crate) fn outside(
        &mut self,
        msg: &(impl Hash + Debug),
        type_: &str,
        payload: &str,
        fields: Option<&Value>,
    ) {
        let source = || Source::Outside {
            type_: type_.to_owned(),
            payload: payload.to_owned(),
            fields: fields.cloned(),
        };
        lock(&self.tables).messages.entry(key_of(msg)).or_insert_with(|| Err(Box::new(source())));
    }

    /// Whether a call may be made here.
    ///
    /// # Errors
    /// How it ends its process.
    pub(crate) fn ask(&mut self, call: &Call, names: &Names) -> Result<(), String> {
        let key = call.key();
        {
            let tables = lock(&self.tables);
            if tables.returned.contains(&key) {
                return Ok(());
            }
            if let Some(how) = tables.ended.get(&key).or(tables.fault.as_ref()) {
                return Err(how.clone());
            }
        }
        let mut how = None;
        // What ended it may have been something else, such as the memory that its states took: it is tried once more in a new one.
        for _ in 0..2 {
            match self.try_once(call, names) {
                Ok(Answer::Returns) => {
                    lock(&self.tables).returned.insert(key);
                    return Ok(());
                }
                Ok(Answer::Lacks) => {
                    lock(&self.tables).unknown += 1;
                    return Ok(());
                }
                Err(Failure::Ended(text)) => how = Some(text),
                Err(Failure::NoProcess(why)) => {
                    lock(&self.tables).fault = Some(why.clone());
                    return Err(why);
                }
            }
        }
        let how = how.unwrap_or_default();
        lock(&self.tables).ended.insert(key, how.clone());
        Err(how)
    }

    fn try_once(&mut self, call: &Call, names: &Names) -> Result<Answer, Failure> {
        let mut slot = lock(&self.link);
        let link = match &mut *slot {
            Some(link) => link,
            empty => {
                self.named = 0;
                empty.insert(self.elsewhere.open().map_err(Failure::NoProcess)?)
            }
        };
        let from = self.named.min(names.len());
        let fresh = (from..names.len()).filter_map(|i| u16::try_from(i).ok());
        let fresh = fresh.map(|i| names.get(ActorId(i)).to_owned()).collect();
        let mut question = Question { names: (from, fresh), sources: Vec::new(), call: call.clone() };
        let mut answer = link.ask(&question);
        self.named = names.len();
        if answer == Ok(Answer::Lacks)
            && let Some(sources) = lock(&self.tables).recipe(call)
        {
            question = Question { names: (names.len(), Vec::new()), sources, ..question };
            answer = link.ask(&question);
        }
        if answer.is_err() {
            *slot = None;
        }
        answer.map_err(Failure::Ended)
    }

    /// Takes note of what a call led to.
    pub(crate) fn made<S, Msg>(&mut self, call: Call, state: &S, effects: &[Effect<Msg>])
    where
        S: Hash + Debug,
        Msg: Hash + Debug,
    {
        let mut tables = lock(&self.tables);
        let number = tables.calls.len() as u32;
        let mut is_new = false;
        tables.states.entry(key_of(state)).or_insert_with(|| {
            is_new = true;
            number
        });
        for msg in effects.iter().filter_map(Effect::message) {
            tables.messages.entry(key_of(msg)).or_insert_with(|| {
                is_new = true;
                Ok(number)
            });
        }
        if is_new {
            tables.calls.push(call);
        }
    }

    /// What the clones of this know together.
    pub(crate) fn told(&self) -> Told {
        Told(Arc::clone(&self.tables))
    }
}

enum Failure {
    /// It ended the process.
    Ended(String),
    /// There is no process.
    NoProcess(String),
}

/// How it went with calls that were asked about.
#[derive(Clone)]
pub struct Told(Arc<Mutex<Tables>>);

impl Told {
    /// Why nothing can be asked any more, if that is so.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        lock(&self.0).fault.clone()
    }

    /// How many calls ran without having been asked about.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        lock(&self.0).unknown
    }
}

/// The state in which an actor starts, in a cell that may have had one.
pub(crate) fn begun<M: Model>(
    model: &M,
    (actor, cell): (ActorId, ActorId),
    last: Option<Arc<M::State>>,
    failed: bool,
) -> Arc<M::State> {
    match last {
        Some(shared) if cell != actor => shared,
        Some(last) if failed => {
            let recovered = model.runtime().recovered(actor, &last);
            Arc::new(recovered.unwrap_or_else(|| model.initial(actor)))
        }
        _ => Arc::new(model.initial(actor)),
    }
}
