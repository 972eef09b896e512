//! The layers of the model.

use demi_replay::{ActorId, Ctx, Duplicates, Logs, Model, Names, OUTSIDE, Runtime, View, Violation};
use demi_schemas::event::TimerInfo;
use serde_json::{Value, json};
use stateright::Expectation;
use stateright::actor::{Id, Network};

use crate::content::{Content, ContentOf};
use crate::state::State;
use crate::system::System;
use crate::{History, Part};

impl<A, C, H> Model for System<A, C, H>
where
    A: Part,
    C: Send + Sync + 'static,
    H: History,
{
    type State = State<A, H>;
    type Msg = ContentOf<A>;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State<A, H> {
        let mut state = State { system: self.first.clone(), started: 0, inside: true };
        state.inside = (self.system.within_boundary)(&self.system.cfg, &state.system);
        state
    }

    fn start(&self, state: &mut State<A, H>, ctx: &mut Ctx<'_, ContentOf<A>>) {
        let Some(me) = self.id(ctx.me()) else { return };
        if me.0 >= state.started {
            self.start_first(state, me, ctx);
        } else {
            self.start_again(state, me, ctx);
        }
    }

    fn deliver(&self, state: &mut State<A, H>, content: &ContentOf<A>, ctx: &mut Ctx<'_, ContentOf<A>>) {
        let Some(me) = self.id(ctx.me()) else { return };
        match content {
            Content::Message { from, msg } => self.deliver_message(state, (*from, msg), me, ctx),
            Content::Timer(timer) => self.deliver_timer(state, timer, me, ctx),
            Content::Choice { key, value } => self.deliver_choice(state, (key, value), me, ctx),
        }
    }

    fn check(&self, view: &View<'_, State<A, H>>, (): &mut (), found: &mut Vec<Violation>) {
        let running: Vec<ActorId> =
            self.actors.iter().copied().filter(|&a| view.state(a).is_some()).collect();
        let Some(state) = running.first().and_then(|&actor| view.state(actor)) else { return };
        if !state.inside || state.started < self.actors.len() {
            return;
        }
        let crashed: Vec<usize> =
            (0..self.actors.len()).filter(|&index| view.crashed(self.actors[index])).collect();
        let failed = (!crashed.is_empty()).then(|| state.failed(&crashed));
        let system = failed.as_ref().unwrap_or(&state.system);
        for property in self.asked.iter().map(|&at| &self.system.properties[at]) {
            let bad = property.expectation == Expectation::Sometimes;
            if (property.condition)(&self.system, system) == bad {
                found.push(Violation { fingerprint: property.name.into(), affected: running.clone() });
            }
        }
    }

    fn logs(&self) -> &dyn Logs<State<A, H>, ContentOf<A>> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State<A, H>, ContentOf<A>> {
        self
    }
}

impl<A, C, H> Runtime<State<A, H>, ContentOf<A>> for System<A, C, H>
where
    A: Part,
    C: Send + Sync + 'static,
    H: History,
{
    fn cell(&self, _: ActorId) -> ActorId {
        OUTSIDE
    }

    fn accepts(&self, state: &State<A, H>, actor: ActorId, from: ActorId, content: &ContentOf<A>) -> bool {
        // What no actor sent stands in no channel here; in an ordered network of Stateright it does.
        let in_turn = || match (content, &state.system.network) {
            (Content::Message { from: src, msg }, Network::Ordered(flows)) if from == OUTSIDE => {
                let dst = self.id(actor).map(|(me, _)| Id::from(me));
                let flow = dst.and_then(|dst| flows.get(&(*src, dst)));
                flow.is_some_and(|flow| flow.front() == Some(msg) || self.loses && flow.contains(msg))
            }
            _ => true,
        };
        state.inside && in_turn()
    }

    fn starts_by_itself(&self) -> bool {
        true
    }

    fn duplicates(&self, _: &ContentOf<A>) -> Duplicates {
        Duplicates::Never
    }
}

impl<A, C, H> Logs<State<A, H>, ContentOf<A>> for System<A, C, H>
where
    A: Part,
    C: Send + Sync + 'static,
    H: History,
{
    fn type_name(&self, content: &ContentOf<A>) -> String {
        content.type_name()
    }

    fn payload(&self, content: &ContentOf<A>, _: &Names) -> String {
        content.text()
    }

    fn hidden(&self, content: &ContentOf<A>) -> Option<String> {
        match content {
            Content::Message { from, .. } if usize::from(*from) >= self.actors.len() => {
                Some(format!("{from:?}"))
            }
            _ => None,
        }
    }

    fn timer_info(&self, content: &ContentOf<A>) -> TimerInfo {
        TimerInfo { name: content.timer().map(str::to_owned), ..TimerInfo::default() }
    }

    fn describe(&self, state: &State<A, H>, names: &Names) -> Value {
        let states = self.actors.iter().zip(&state.system.actor_states);
        let states = states.map(|(&actor, state)| (names.get(actor).to_owned(), json!(format!("{state:?}"))));
        json!({
            "actors": Value::Object(states.collect()),
            "history": format!("{:?}", state.system.history),
        })
    }
}
