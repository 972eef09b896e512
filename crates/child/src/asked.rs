//! What children were asked, and what they answered: every question once.

use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock};

use demi_replay::model::MOST_TIMER_NAMES;
use demi_replay::{ActorId, Names, OUTSIDE, Timer, Violation, weight};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ChildError, Problem};
use crate::pool::{Handled, Pool};
use crate::state::{Call, Known, Msg, State};
use crate::values::{Canonical, mixed, quoted};
use crate::wire::{Addressed, Checked, Hello, Made, Message, ModelKind, Proposed, Reacted, TimerName, Wish};

/// Random numbers have so many bits: what every language holds exactly.
const RANDOM_BITS: u32 = 53;

/// What a handler did.
pub(crate) struct Reaction {
    /// What it raised; then there is nothing else.
    pub(crate) raised: Option<String>,
    pub(crate) next: State,
    pub(crate) acts: Vec<Act>,
}

/// Something that it asked for, with actors as numbers.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send { from: Option<ActorId>, to: ActorId, msg: Msg },
    Forward(Msg),
    Set(Timer, Msg),
    Cancel(Timer),
    Start(ActorId),
    Stop(ActorId),
    Fail(String),
}

/// What invariants said, and what they remember.
pub(crate) struct Said {
    pub(crate) violations: Vec<Violation>,
    pub(crate) memory: Canonical,
}

/// The part of the memory for what could be made again that answers may take.
const PART: usize = 4;

/// Answers by question. What was not asked for longest is forgotten where they take too much memory: it can be asked again.
struct Table<T>(RwLock<Answers<T>>);

struct Answers<T> {
    /// What was asked for since the others were set aside.
    new: FxHashMap<u128, Arc<T>>,
    /// Bytes of these.
    bytes: usize,
    old: FxHashMap<u128, Arc<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(RwLock::new(Answers { new: FxHashMap::default(), bytes: 0, old: FxHashMap::default() }))
    }
}

impl<T: Sized> Table<T> {
    /// A known answer.
    fn get(&self, key: u128, bytes: impl FnOnce(&T) -> usize) -> Option<Arc<T>> {
        let answers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers.new.get(&key) {
            return Some(Arc::clone(known));
        }
        let known = Arc::clone(answers.old.get(&key)?);
        drop(answers);
        let size = bytes(&known);
        Some(self.put(key, known, size))
    }

    /// Takes in an answer, unless there is one meanwhile; gives what is known now.
    fn put(&self, key: u128, answer: Arc<T>, bytes: usize) -> Arc<T> {
        let mut answers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers.new.get(&key) {
            return Arc::clone(known);
        }
        if answers.bytes.saturating_add(bytes) > weight::room() / PART / 2 {
            answers.old = std::mem::take(&mut answers.new);
            answers.bytes = 0;
        }
        answers.bytes += bytes;
        answers.new.insert(key, Arc::clone(&answer));
        answer
    }
}

/// What an answer takes besides its texts.
const ANSWER: usize = 256;

impl Reaction {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        let messages = self.acts.iter().map(|act| match act {
            Act::Send { msg, .. } | Act::Forward(msg) | Act::Set(_, msg) => msg.bytes(),
            Act::Cancel(_) | Act::Start(_) | Act::Stop(_) | Act::Fail(_) => 0,
        });
        ANSWER + self.next.bytes() + messages.sum::<usize>()
    }
}

impl Said {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        ANSWER + self.memory.text.len()
    }
}

/// The children of a model and everything that they said. All simulators of one model share it.
pub struct Asked {
    pub(crate) pool: Pool,
    pub(crate) hello: Hello,
    pub(crate) actors: Vec<ActorId>,
    reactions: Table<Reaction>,
    checks: Table<Said>,
}

impl Asked {
    pub(crate) fn new(pool: Pool, hello: Hello, names: &mut Names) -> Asked {
        let actors = hello.actors.iter().map(|name| names.id(name)).collect();
        Asked { pool, hello, actors, reactions: Table::default(), checks: Table::default() }
    }

    /// How many requests were sent to children.
    pub fn requests(&self) -> u64 {
        self.pool.requests()
    }

    /// How many questions got two answers, and how many were asked twice.
    pub fn strays(&self) -> (u64, u64) {
        self.pool.strays()
    }

    /// The problem that ended the work, if there was one.
    pub fn fault(&self) -> Option<&ChildError> {
        self.pool.fault()
    }

    /// What an actor does when it starts.
    pub(crate) fn started(&self, actor: ActorId, disk: Option<&Known>) -> Option<Arc<Reaction>> {
        let key = mixed(&[0, actor.0.into(), disk.map_or(0, |disk| disk.state.hash), disk.is_some().into()]);
        let call = || format!("{{\"from\":null,\"message\":null,\"random\":{}}}", random(key));
        self.reaction(key, (None, &call), || {
            let disk = disk.map_or("null", |disk| &disk.state.text);
            format!(
                "{{\"do\":\"start\",\"actor\":{},\"disk\":{disk},\"now\":null,\"random\":{}}}",
                self.name(actor),
                random(key)
            )
        })
    }

    /// What an actor does with a message.
    pub(crate) fn delivered(
        &self,
        actor: ActorId,
        state: &Known,
        from: ActorId,
        msg: &Msg,
    ) -> Option<Arc<Reaction>> {
        // Nobody sends a timer.
        let from = if msg.0.timer.is_some() { OUTSIDE } else { from };
        let who = 1 + (u128::from(actor.0) << 16) + (u128::from(from.0) << 32);
        let key = mixed(&[1, who, state.state.hash, msg.0.text.hash]);
        let from = if from == OUTSIDE { "null".to_owned() } else { self.name(from) };
        let call =
            || format!("{{\"from\":{from},\"message\":{},\"random\":{}}}", msg.0.text.text, random(key));
        self.reaction(key, (state.calls.as_ref(), &call), || {
            let before = match self.hello.kind {
                ModelKind::Pure => format!("\"state\":{}", state.state.text),
                ModelKind::Stateful => format!("\"calls\":{}", Call::list(state.calls.as_ref())),
            };
            format!(
                "{{\"do\":\"deliver\",\"actor\":{},{before},\"from\":{from},\"message\":{},\"now\":null,\"random\":{}}}",
                self.name(actor),
                msg.0.text.text,
                random(key)
            )
        })
    }

    fn reaction(
        &self,
        key: u128,
        (before, call): (Option<&Arc<Call>>, &dyn Fn() -> String),
        question: impl FnOnce() -> String,
    ) -> Option<Arc<Reaction>> {
        let read = |answer: Reacted| {
            if let Some(raised) = answer.raised {
                let (raised, next, acts) = (Some(raised.words()), State::Lost, Vec::new());
                return Ok(Reaction { raised, next, acts });
            }
            let told = match self.hello.kind {
                ModelKind::Pure => answer.state.ok_or("a pure model answers with 'state'")?,
                ModelKind::Stateful => answer.digest.ok_or("a stateful model answers with 'digest'")?,
            };
            let state = Canonical::of(&told);
            let seen = answer.seen.as_ref().map_or_else(|| state.clone(), Canonical::of);
            let told = self.hello.kind == ModelKind::Stateful;
            let calls = told.then(|| Arc::new(Call { text: call(), before: before.cloned() }));
            let waits = answer.waits_for.iter().map(|name| self.find(name)).collect::<Result<_, _>>()?;
            let acts = answer.effects.into_iter().map(|wish| self.act(wish)).collect::<Result<_, _>>()?;
            Ok(Reaction {
                raised: None,
                next: State::At(Arc::new(Known { state, seen, waits, calls })),
                acts,
            })
        };
        if let Some(known) = self.reactions.get(key, Reaction::bytes) {
            return Some(known);
        }
        let question = question();
        let reaction = match self.pool.handle(&question)? {
            Handled::Answered(answer) => self.read(answer, &question, read)?,
            Handled::Died(how) => Reaction { raised: Some(how), next: State::Lost, acts: Vec::new() },
        };
        let size = reaction.bytes();
        Some(self.reactions.put(key, Arc::new(reaction), size))
    }

    /// What invariants say of a configuration: what they see of each actor that answers, and who has failed.
    pub(crate) fn checked(
        &self,
        seen: &[(ActorId, &Known)],
        failed: &[ActorId],
        memory: Option<&Canonical>,
    ) -> Option<Arc<Said>> {
        let mut parts = vec![2, memory.map_or(0, |memory| memory.hash), seen.len() as u128];
        for (actor, known) in seen {
            parts.extend([actor.0.into(), known.seen.hash]);
        }
        parts.extend(failed.iter().map(|actor| u128::from(actor.0)));
        let question = || {
            let seen: Vec<String> = seen
                .iter()
                .map(|(actor, known)| format!("{}:{}", self.name(*actor), known.seen.text))
                .collect();
            let failed: Vec<String> = failed.iter().map(|&actor| self.name(actor)).collect();
            format!(
                "{{\"do\":\"check\",\"seen\":{{{}}},\"failed\":[{}],\"memory\":{}}}",
                seen.join(","),
                failed.join(","),
                memory.map_or("null", |memory| &memory.text)
            )
        };
        let read = |answer: Checked| {
            let violations = answer.violations.into_iter().map(|broken| {
                let affected =
                    broken.affected.iter().map(|name| self.find(name)).collect::<Result<_, _>>()?;
                Ok(Violation { fingerprint: broken.fingerprint, affected })
            });
            let violations = violations.collect::<Result<_, String>>()?;
            Ok(Said { violations, memory: Canonical::of(&answer.memory) })
        };
        self.remembered(&self.checks, mixed(&parts), question, read, Said::bytes)
    }

    /// The `n`-th random message from outside.
    pub(crate) fn client(&self, n: u64, choice: u64) -> Option<(ActorId, Msg)> {
        let choice = choice >> (u64::BITS - RANDOM_BITS);
        let question = format!("{{\"do\":\"client\",\"n\":{n},\"random\":{choice}}}");
        self.understood(&question, |answer: Proposed| {
            answer.proposal.map(|proposal| self.proposal(proposal)).transpose()
        })?
    }

    /// The message that a log tells of.
    ///
    /// # Errors
    /// When the child says that there is none, or fails.
    pub(crate) fn external(&self, type_: &str, payload: &str, fields: &Value) -> Result<Msg, String> {
        let question = format!(
            "{{\"do\":\"external\",\"type\":{},\"payload\":{},\"fields\":{fields}}}",
            quoted(type_),
            quoted(payload)
        );
        let made = self.understood(&question, |answer: Made| {
            Ok(answer.message.map(Msg::from).ok_or_else(|| {
                answer.unknown.unwrap_or_else(|| format!("the model does not know the message '{payload}'"))
            }))
        });
        made.unwrap_or_else(|| Err("the model's process failed".to_owned()))
    }

    pub(crate) fn proposal(&self, proposal: Addressed) -> Result<(ActorId, Msg), String> {
        let to = proposal.to.ok_or("a message from outside needs a receiver")?;
        Ok((self.find(&to)?, proposal.message.into()))
    }

    /// An answer from a table; asks where it is not there yet.
    fn remembered<A: DeserializeOwned, T>(
        &self,
        table: &Table<T>,
        key: u128,
        question: impl FnOnce() -> String,
        read: impl FnOnce(A) -> Result<T, String>,
        bytes: impl Fn(&T) -> usize,
    ) -> Option<Arc<T>> {
        if let Some(known) = table.get(key, &bytes) {
            return Some(known);
        }
        let value = self.understood(&question(), read)?;
        let size = bytes(&value);
        Some(table.put(key, Arc::new(value), size))
    }

    fn understood<A: DeserializeOwned, T>(
        &self,
        question: &str,
        read: impl FnOnce(A) -> Result<T, String>,
    ) -> Option<T> {
        let answer = self.pool.ask(question)?;
        self.read(answer, question, read)
    }

    fn read<A: DeserializeOwned, T>(
        &self,
        answer: Value,
        question: &str,
        read: impl FnOnce(A) -> Result<T, String>,
    ) -> Option<T> {
        let value = serde_json::from_value(answer).map_err(|e| e.to_string()).and_then(read);
        value
            .map_err(|why| {
                let problem = Problem::Form(why);
                self.pool.fail(ChildError { problem, request: question.to_owned(), stderr: String::new() });
            })
            .ok()
    }

    fn act(&self, wish: Wish) -> Result<Act, String> {
        Ok(match wish {
            Wish::Send(Addressed { to, message, in_name_of }) => Act::Send {
                from: in_name_of.map(|name| self.find(&name)).transpose()?,
                to: to.map_or(Ok(OUTSIDE), |name| self.find(&name))?,
                msg: message.into(),
            },
            Wish::Forward(message) => Act::Forward(message.into()),
            Wish::Set(mut name) => {
                let message = name.message.take().ok_or("a timer that is set needs a 'message'")?;
                let timer = timer(&name)?;
                Act::Set(timer, Msg::carried(message, timer.name()))
            }
            Wish::Cancel(name) => Act::Cancel(timer(&name)?),
            Wish::Start(name) => Act::Start(self.find(&name)?),
            Wish::Stop(name) => Act::Stop(self.find(&name)?),
            Wish::Fail(why) => Act::Fail(why),
        })
    }

    /// The message of a log that the child is not asked about.
    pub(crate) fn plain(type_: &str, payload: &str, fields: Option<&Value>) -> Msg {
        let data = fields.cloned().unwrap_or(Value::Null);
        Message { type_: type_.to_owned(), payload: Some(payload.to_owned()), data }.into()
    }

    fn find(&self, name: &str) -> Result<ActorId, String> {
        let at = self.hello.actors.iter().position(|known| known == name);
        at.and_then(|at| self.actors.get(at).copied())
            .ok_or_else(|| format!("'{name}' is none of the actors that its hello names"))
    }

    fn name(&self, actor: ActorId) -> String {
        let at = self.actors.iter().position(|&known| known == actor);
        at.and_then(|at| self.hello.actors.get(at)).map_or_else(|| "null".to_owned(), |name| quoted(name))
    }
}

/// A random number for a question: the same for the same question, so that the answer can be remembered.
fn random(key: u128) -> u64 {
    (key as u64) >> (u64::BITS - RANDOM_BITS)
}

fn timer(name: &TimerName) -> Result<Timer, String> {
    let timer = Timer::called(&name.timer).ok_or_else(|| {
        format!("more than {MOST_TIMER_NAMES} names of timers: use the key of a timer to tell them apart")
    })?;
    let timer = timer.keyed(name.key);
    let timer = if name.repeats { timer.repeating() } else { timer };
    Ok(if name.survives { timer.surviving() } else { timer })
}

/// A number of 64 bits for content.
pub(crate) fn short(content: &Canonical) -> u64 {
    rustc_hash::FxBuildHasher.hash_one(content.hash)
}
