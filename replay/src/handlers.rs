//! The other side of [`vet`](crate::vet): handlers that run in a process of their own.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::guard;
use crate::model::{Ctx, Effect, ExternalMessage, Model};
use crate::sim::Simulator;
use crate::vet::{Answer, Call, Does, Key, Question, Source, begun, key_of};

/// States and messages that [`Handlers`] keep at most; what they lack they are told again.
const MOST_KEPT: usize = 20_000;
/// Bytes of the states that they keep at most.
const MOST_BYTES: usize = 32 << 20;

/// Makes calls that are asked about, and keeps the states and messages that they led to.
pub struct Handlers<M: Model> {
    sim: Simulator<M>,
    states: FxHashMap<Key, Arc<M::State>>,
    messages: FxHashMap<Key, M::Msg>,
    bytes: usize,
}

impl<M: Model> Handlers<M> {
    /// Of a model that nothing was asked about yet.
    #[must_use]
    pub fn new(sim: Simulator<M>) -> Self {
        Handlers { sim, states: FxHashMap::default(), messages: FxHashMap::default(), bytes: 0 }
    }

    /// Makes the call that is asked about, and before it whatever it needs. It does not return where the call does not.
    pub fn answer(&mut self, question: &Question) -> Answer {
        if self.states.len() + self.messages.len() > MOST_KEPT || self.bytes > MOST_BYTES {
            (self.states, self.messages, self.bytes) = (FxHashMap::default(), FxHashMap::default(), 0);
        }
        let (from, names) = &question.names;
        for (at, name) in names.iter().enumerate() {
            if self.sim.names_mut().id(name).index() != from + at {
                return Answer::Lacks;
            }
        }
        for source in &question.sources {
            match source {
                Source::Call(call) => {
                    // It returned before.
                    self.make(call);
                }
                Source::Outside { type_, payload, fields } => {
                    self.tell(ExternalMessage { type_, payload, fields: fields.as_ref() });
                }
            }
        }
        match self.make(&question.call) {
            true => Answer::Returns,
            false => Answer::Lacks,
        }
    }

    fn tell(&mut self, message: ExternalMessage<'_>) {
        let told = guard::guarded(|| crate::want::told(&mut self.sim, message));
        if let Ok(Ok(msg)) = told {
            self.messages.insert(key_of(&msg), msg);
        }
    }

    /// Whether what the call needs is there.
    fn make(&mut self, call: &Call) -> bool {
        let [state, message] = call.needs();
        let state = match state.map(|key| self.states.get(&key).cloned()) {
            Some(None) => return false,
            Some(known) => known,
            None => None,
        };
        let message = match message.map(|key| self.messages.get(&key).cloned()) {
            Some(None) => return false,
            Some(known) => known,
            None => None,
        };
        let mut effects = Vec::new();
        let mut reason = None;
        let model = self.sim.model().clone();
        let cell = self.sim.cell_of(call.actor);
        let mut ctx = Ctx {
            me: call.actor,
            from: call.from,
            effects: &mut effects,
            names: self.sim.names_mut(),
            crash_reason: &mut reason,
        };
        let done = guard::guarded(|| match &call.does {
            Does::Start { failed, .. } => {
                let mut state = begun(&model, (call.actor, cell), state, *failed);
                model.start(Arc::make_mut(&mut state), &mut ctx);
                Some(state)
            }
            Does::Deliver { .. } => {
                let (mut state, message) = state.zip(message)?;
                model.deliver(Arc::make_mut(&mut state), &message, &mut ctx);
                Some(state)
            }
            Does::Action { name, fields, .. } => {
                let mut state = state.unwrap_or_else(|| Arc::new(model.initial(call.actor)));
                let done = model.runtime().action(Arc::make_mut(&mut state), name, fields.as_ref(), &mut ctx);
                done.ok().map(|()| state)
            }
        });
        // What panics, panics here too, and leads nowhere.
        if let Ok(Some(state)) = done {
            self.bytes = self.bytes.saturating_add(model.bytes(&state));
            self.states.insert(key_of(&*state), state);
            for msg in effects.into_iter().filter_map(Effect::into_message) {
                self.messages.insert(key_of(&msg), msg);
            }
        }
        true
    }
}
