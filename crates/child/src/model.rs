//! The model that the simulator runs: what children answered.

use std::sync::Arc;

use demi_replay::guard;
use demi_replay::{
    ActorId, Ctx, Duplicates, ExternalMessage, Guidance, Logs, Model, Names, Proposal, Runtime, View,
    Violation, Workload,
};
use demi_schemas::event::{TimerInfo, Via};
use demi_schemas::scenario::Mask;
use serde_json::Value;

use crate::asked::{Act, Asked, Reaction, short};
use crate::state::{Msg, State};
use crate::values::Canonical;
use crate::wire::ModelKind;

/// A model in a process of its own. Cloning it is cheap.
#[derive(Clone)]
pub struct Child {
    asked: Arc<Asked>,
}

/// What invariants remember.
#[derive(Clone, Debug, Default)]
pub enum Memory {
    /// Nothing yet.
    #[default]
    Fresh,
    /// What they said at the last check.
    At(Arc<str>, u128),
    /// The child failed.
    Lost,
}

impl Child {
    pub(crate) fn new(asked: Arc<Asked>) -> Child {
        Child { asked }
    }

    fn react(&self, state: &mut State, reaction: Option<Arc<Reaction>>, ctx: &mut Ctx<'_, Msg>) {
        let Some(reaction) = reaction else {
            *state = State::Lost;
            return;
        };
        if let Some(raised) = &reaction.raised {
            guard::raise(raised.clone());
        }
        *state = reaction.next.clone();
        for act in &reaction.acts {
            match act.clone() {
                Act::Send { from: None, to, msg } => ctx.send(to, msg),
                Act::Send { from: Some(from), to, msg } => ctx.send_as(from, from, to, msg, Via::Forward),
                Act::Forward(msg) => ctx.forward(msg),
                Act::Set(timer, msg) => ctx.set_timer(timer, msg),
                Act::Cancel(timer) => ctx.cancel_timer(timer),
                Act::Start(actor) => ctx.start_actor(actor),
                Act::Stop(actor) => ctx.stop_actor(actor),
                Act::Fail(why) => ctx.crash(why),
            }
        }
    }
}

impl Model for Child {
    type State = State;
    type Msg = Msg;
    type History = Memory;

    fn actors(&self) -> &[ActorId] {
        &self.asked.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State::New(None)
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        let reaction = match state {
            State::New(disk) => self.asked.started(ctx.me(), disk.as_deref()),
            State::At(_) | State::Lost => None,
        };
        self.react(state, reaction, ctx);
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let reaction = match state {
            State::At(known) => self.asked.delivered(ctx.me(), known, ctx.sender(), msg),
            State::New(_) | State::Lost => None,
        };
        self.react(state, reaction, ctx);
    }

    fn bytes(&self, state: &State) -> usize {
        state.bytes()
    }

    fn check(&self, view: &View<'_, State>, history: &mut Memory, found: &mut Vec<Violation>) {
        let (mut seen, mut failed) = (Vec::new(), Vec::new());
        for &actor in &self.asked.actors {
            match view.state(actor) {
                Some(State::At(known)) => seen.push((actor, &**known)),
                Some(State::New(_) | State::Lost) => {
                    *history = Memory::Lost;
                    return;
                }
                None if view.crashed(actor) => failed.push(actor),
                None => {}
            }
        }
        let memory = match history {
            Memory::Fresh => None,
            Memory::At(text, hash) => Some(Canonical { text: Arc::clone(text), hash: *hash }),
            Memory::Lost => return,
        };
        let Some(said) = self.asked.checked(&seen, &failed, memory.as_ref()) else {
            *history = Memory::Lost;
            return;
        };
        *history = Memory::At(Arc::clone(&said.memory.text), said.memory.hash);
        found.extend(said.violations.iter().cloned());
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<State, Msg> {
        self
    }
}

impl Logs<State, Msg> for Child {
    fn type_name(&self, msg: &Msg) -> String {
        msg.0.type_.clone()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        msg.0.payload.clone()
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        if self.asked.hello.external {
            let fields = message.fields.unwrap_or(&Value::Null);
            return self.asked.external(message.type_, message.payload, fields);
        }
        Ok(Asked::plain(message.type_, message.payload, message.fields))
    }

    fn masks(&self) -> Vec<Mask> {
        self.asked.hello.masks.clone()
    }

    fn timer_info(&self, msg: &Msg) -> TimerInfo {
        TimerInfo { name: msg.0.timer.map(str::to_owned), ..TimerInfo::default() }
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        match state {
            State::At(known) if self.asked.hello.kind == ModelKind::Stateful => {
                serde_json::from_str(&known.seen.text).unwrap_or_default()
            }
            State::At(known) => serde_json::from_str(&known.state.text).unwrap_or_default(),
            State::New(_) => Value::from("it is about to start"),
            State::Lost => Value::from("not known: the model's process failed"),
        }
    }
}

impl Runtime<State, Msg> for Child {
    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        match failed {
            State::At(known) if self.asked.hello.disk && self.asked.hello.kind == ModelKind::Pure => {
                Some(State::New(Some(Arc::clone(known))))
            }
            _ => None,
        }
    }

    fn waits_for(&self, state: &State, _: ActorId) -> Vec<ActorId> {
        match state {
            State::At(known) => known.waits.clone(),
            State::New(_) | State::Lost => Vec::new(),
        }
    }

    fn restarts_by_itself(&self) -> bool {
        self.asked.hello.restarts
    }

    fn duplicates(&self, msg: &Msg) -> Duplicates {
        match self.asked.hello.once.contains(&msg.0.type_) {
            true => Duplicates::Never,
            false => Duplicates::Any,
        }
    }
}

impl Workload<State, Msg> for Child {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        // They were looked through when the child said hello.
        let known = self.asked.hello.bootstrap.iter().filter_map(|one| self.asked.proposal(one.clone()).ok());
        known.map(proposed).collect()
    }

    fn client_message(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        if !self.asked.hello.clients {
            return None;
        }
        self.asked.client(n, choice).map(proposed)
    }
}

fn proposed((to, msg): (ActorId, Msg)) -> Proposal<Msg> {
    let fields = msg.0.data.clone();
    Proposal { to, msg, fields }
}

impl Guidance<State, Msg> for Child {
    fn watch(&self, state: &State) -> Option<u64> {
        match state {
            State::At(known) => Some(short(&known.seen)),
            State::New(_) | State::Lost => None,
        }
    }
}
