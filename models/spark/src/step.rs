//! One step of the program: what handlers have at hand.

use demi_schemas::event::Via;

use super::actors::Actors;
use super::config::Config;
use super::message::Msg;
use super::state::System;
use demi_replay::model::Ctx;
use demi_replay::names::ActorId;

/// One step: the rules, the state, and what may be done.
pub struct Step<'a, 'c> {
    pub config: &'a Config,
    pub actors: &'a Actors,
    pub s: &'a mut System,
    pub ctx: &'a mut Ctx<'c, Msg>,
}

impl Step<'_, '_> {
    /// Sends in the name of an actor, from a thread that runs beside it.
    pub fn thread_send(&mut self, from: ActorId, to: ActorId, msg: Msg) {
        self.ctx.send_as(from, from, to, msg, Via::Thread);
    }

    /// Puts a message among the pending ones that nobody sends and nothing orders.
    pub fn schedule(&mut self, to: ActorId, msg: Msg) {
        self.ctx.send_unordered(to, msg, Via::Scheduler);
    }

    /// The repeating timer or the retry block that was just delivered becomes pending again.
    pub fn again(&mut self, msg: &Msg) {
        let me = self.ctx.me();
        self.schedule(me, msg.clone());
    }
}
