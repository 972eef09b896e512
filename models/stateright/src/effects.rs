//! What actors do when they start, and with what is delivered to them.
//!
//! Stateright's own transition function makes the new state of the system, so that histories, timers and the network
//! that properties look at are what its checker would have. What the handler asked for becomes pending besides.

use std::borrow::Cow;
use std::sync::Arc;

use demi_replay::{Ctx, OUTSIDE};
use demi_schemas::event::Via;
use stateright::Model as _;
use stateright::actor::{ActorModelAction, Command, Envelope, Id, Network, Out, RandomChoices};

use crate::content::{Content, ContentOf};
use crate::state::State;
use crate::system::System;
use crate::{History, Part};

impl<A, C, H> System<A, C, H>
where
    A: Part,
    C: Send + Sync + 'static,
    H: History,
{
    /// What an actor does when it starts, in a state that has the system's first start behind it already.
    pub(crate) fn start_first(
        &self,
        state: &mut State<A, H>,
        (me, actor): (usize, &A),
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        if state.started == 0 {
            self.send_first(ctx);
        }
        state.started = me + 1;
        let mut out = Out::new();
        let _ = actor.on_start(Id::from(me), &None, &mut out);
        self.ask(me, out, &self.system.init_network, &RandomChoices::default(), ctx);
    }

    /// What is on the network when the system starts.
    fn send_first(&self, ctx: &mut Ctx<'_, ContentOf<A>>) {
        let network = &self.system.init_network;
        // An ordered network is read by hand: Stateright's own iterator over it gives the first message for ever.
        let envelopes: Vec<Envelope<&A::Msg>> = if let Network::Ordered(flows) = network {
            let flows = flows.iter();
            flows
                .flat_map(|(&(src, dst), flow)| flow.iter().map(move |msg| Envelope { src, dst, msg }))
                .collect()
        } else {
            let mut envelopes: Vec<_> = network.iter_all().collect();
            envelopes.sort();
            envelopes
        };
        for Envelope { src, dst, msg } in envelopes {
            let Some(&to) = self.actors.get(usize::from(dst)) else { continue };
            let content = Content::Message { from: src, msg: msg.clone() };
            match self.actors.get(usize::from(src)) {
                Some(&from) => ctx.send_as(from, from, to, content, Via::Thread),
                None => ctx.send_as(OUTSIDE, OUTSIDE, to, content, Via::Scheduler),
            }
        }
    }

    /// What an actor does when it starts after a failure.
    pub(crate) fn start_again(
        &self,
        state: &mut State<A, H>,
        (me, actor): (usize, &A),
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        let failed = state.failed(&[me]);
        let mut out = Out::new();
        let _ = actor.on_start(Id::from(me), &failed.actor_storages[me], &mut out);
        self.ask(me, out, &failed.network, &failed.random_choices[me], ctx);
        if let Some(next) = self.system.next_state(&failed, ActorModelAction::Recover(Id::from(me))) {
            self.set(state, next);
        }
    }

    /// What a handler asked for becomes pending. `network` and `choices` are what was there before.
    fn ask(
        &self,
        me: usize,
        commands: Out<A>,
        network: &Network<A::Msg>,
        choices: &RandomChoices<A::Random>,
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        let from = Id::from(me);
        let mut choices = choices.clone();
        let mut sent = Vec::new();
        for command in commands {
            match command {
                Command::Send(to, msg) => {
                    let Some(&receiver) = self.actors.get(usize::from(to)) else { continue };
                    if let Network::UnorderedDuplicating(pending, _) = network {
                        // Such a network is a set: what is in it already is not sent again.
                        let envelope = Envelope { src: from, dst: to, msg: msg.clone() };
                        if pending.contains(&envelope) || sent.contains(&envelope) {
                            continue;
                        }
                        sent.push(envelope);
                    }
                    ctx.send(receiver, Content::Message { from, msg });
                }
                Command::SetTimer(timer, _) => arm::<A>(Content::Timer(timer), ctx),
                Command::CancelTimer(timer) => disarm::<A>(&Content::Timer(timer), ctx),
                Command::ChooseRandom(key, values) => {
                    withdraw::<A>(&choices, &key, ctx);
                    for value in values.iter().cloned() {
                        arm::<A>(Content::Choice { key: key.clone(), value }, ctx);
                    }
                    choices.insert(key, values);
                }
                // Stateright's own step keeps it.
                Command::Save(_) => {}
            }
        }
    }

    pub(crate) fn deliver_message(
        &self,
        state: &mut State<A, H>,
        (from, msg): (Id, &A::Msg),
        (me, actor): (usize, &A),
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        let mut before = Arc::clone(&state.system);
        while let Some(lost) = overtaken(&before.network, from, Id::from(me), msg) {
            match self.system.next_state(&before, ActorModelAction::Drop(lost)) {
                Some(without) => before = Arc::new(without),
                None => break,
            }
        }
        if matches!(before.network, Network::UnorderedDuplicating(..)) {
            ctx.forward(Content::Message { from, msg: msg.clone() });
        }
        let mut out = Out::new();
        let mut now = Cow::Borrowed(&*before.actor_states[me]);
        actor.on_msg(Id::from(me), &mut now, from, msg.clone(), &mut out);
        self.ask(me, out, &before.network, &before.random_choices[me], ctx);
        let action = ActorModelAction::Deliver { src: from, dst: Id::from(me), msg: msg.clone() };
        if let Some(next) = self.system.next_state(&before, action) {
            self.set(state, next);
        }
    }

    pub(crate) fn deliver_timer(
        &self,
        state: &mut State<A, H>,
        timer: &A::Timer,
        (me, actor): (usize, &A),
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        let before = &*state.system;
        let mut out = Out::new();
        let mut now = Cow::Borrowed(&*before.actor_states[me]);
        actor.on_timeout(Id::from(me), &mut now, timer, &mut out);
        self.ask(me, out, &before.network, &before.random_choices[me], ctx);
        let action = ActorModelAction::Timeout(Id::from(me), timer.clone());
        if let Some(next) = self.system.next_state(before, action) {
            self.set(state, next);
        }
    }

    pub(crate) fn deliver_choice(
        &self,
        state: &mut State<A, H>,
        (key, value): (&String, &A::Random),
        (me, actor): (usize, &A),
        ctx: &mut Ctx<'_, ContentOf<A>>,
    ) {
        let before = &*state.system;
        let mut choices = before.random_choices[me].clone();
        withdraw::<A>(&choices, key, ctx);
        choices.remove(key);
        let mut out = Out::new();
        let mut now = Cow::Borrowed(&*before.actor_states[me]);
        actor.on_random(Id::from(me), &mut now, value, &mut out);
        self.ask(me, out, &before.network, &choices, ctx);
        let action =
            ActorModelAction::SelectRandom { actor: Id::from(me), key: key.clone(), random: value.clone() };
        if let Some(next) = self.system.next_state(before, action) {
            self.set(state, next);
        }
    }
}

/// A message of an ordered network that is lost when a later one of its flow is delivered.
pub(crate) fn overtaken<Msg: Clone + Eq + std::hash::Hash>(
    network: &Network<Msg>,
    src: Id,
    dst: Id,
    msg: &Msg,
) -> Option<Envelope<Msg>> {
    let Network::Ordered(flows) = network else { return None };
    let flow = flows.get(&(src, dst)).filter(|flow| flow.contains(msg))?;
    let head = flow.front().filter(|head| *head != msg)?;
    Some(Envelope { src, dst, msg: head.clone() })
}

/// Ends what stands for the values of a choice.
fn withdraw<A: Part>(choices: &RandomChoices<A::Random>, key: &String, ctx: &mut Ctx<'_, ContentOf<A>>) {
    for value in choices.map.get(key).into_iter().flatten() {
        disarm::<A>(&Content::Choice { key: key.clone(), value: value.clone() }, ctx);
    }
}

fn arm<A: Part>(content: ContentOf<A>, ctx: &mut Ctx<'_, ContentOf<A>>) {
    if let Some(name) = content.timer() {
        ctx.set_timer(name, content);
    }
}

fn disarm<A: Part>(content: &ContentOf<A>, ctx: &mut Ctx<'_, ContentOf<A>>) {
    if let Some(name) = content.timer() {
        ctx.cancel_timer(name);
    }
}
