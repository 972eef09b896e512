//! Tiny systems of a few states, whose executions can all be enumerated.

#![allow(dead_code, reason = "each test uses what it needs")]

pub mod random;

use std::sync::Arc;

use demi_minimize::{Budget, Objective, Options, Phases, StopFlag};
use demi_replay::script::Script;
use demi_replay::{ActorId, Ctx, ExternalMessage, Guidance, Logs, Model, Names, Simulator, View, Violation};
use demi_schemas::event::DEAD_LETTERS;
use demi_schemas::schedule::{Schedule, Step, StepKind};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use serde_json::Value;

/// States of an actor, from 0, the first.
pub const STATES: u8 = 4;
/// Kinds of messages.
pub const KINDS: u8 = 3;
/// How often what a message from outside sets off may be passed on; it bounds every execution.
pub const HOPS: u8 = 2;
pub const TARGET: &str = "Bad";

/// A message or timer: its kind, and how often what it sets off may be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Msg {
    pub kind: u8,
    pub hops: u8,
}

impl Msg {
    pub fn text(self) -> String {
        format!("M{}/{}", self.kind, self.hops)
    }
}

/// What an actor in one state does on one kind.
#[derive(Clone, Debug)]
pub struct Rule {
    pub next: u8,
    /// Receivers and kinds.
    pub sends: Vec<(u16, u8)>,
    /// Set the timer to this kind, or cancel it.
    pub timer: Option<Option<u8>>,
}

/// What all actors do, and which states of the first two together are bad.
#[derive(Clone, Debug)]
pub struct Table {
    pub actors: u16,
    pub rules: Vec<Rule>,
    pub bad: (u8, u8),
    /// Nothing that happens can be seen by an invariant.
    pub blind: bool,
}

impl Table {
    pub fn rule(&self, actor: u16, state: u8, kind: u8) -> &Rule {
        let at = (usize::from(actor - 1) * usize::from(STATES) + usize::from(state)) * usize::from(KINDS);
        &self.rules[at + usize::from(kind)]
    }
}

/// Random tables; `bad` is for the caller to set.
pub fn table() -> impl Strategy<Value = Table> {
    (2..=3u16).prop_flat_map(|actors| {
        let timer = prop_oneof![
            5 => Just(None),
            1 => Just(Some(None)),
            2 => (0..KINDS).prop_map(|kind| Some(Some(kind))),
        ];
        let rule = (0..STATES, prop::collection::vec((1..=actors, 0..KINDS), 0..3), timer)
            .prop_map(|(next, sends, timer)| Rule { next, sends, timer });
        let rules = usize::from(actors) * usize::from(STATES) * usize::from(KINDS);
        prop::collection::vec(rule, rules).prop_map(move |rules| Table {
            actors,
            rules,
            bad: (0, 0),
            blind: false,
        })
    })
}

/// The model of a table.
#[derive(Clone, Debug)]
pub struct Machine {
    table: Arc<Table>,
    ids: Vec<ActorId>,
}

impl Model for Machine {
    type State = u8;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.ids
    }

    fn initial(&self, _: ActorId) -> u8 {
        0
    }

    fn deliver(&self, state: &mut u8, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let rule = self.table.rule(ctx.me().0, *state, msg.kind);
        *state = rule.next;
        let Some(hops) = msg.hops.checked_sub(1) else { return };
        rule.sends.iter().for_each(|&(to, kind)| ctx.send(ActorId(to), Msg { kind, hops }));
        match rule.timer {
            Some(Some(kind)) => ctx.set_timer("timer", Msg { kind, hops }),
            Some(None) => ctx.cancel_timer("timer"),
            None => {}
        }
    }

    fn check(&self, view: &View<'_, u8>, (): &mut (), found: &mut Vec<Violation>) {
        let (one, two) = (self.ids[0], self.ids[1]);
        if let (Some(&a), Some(&b)) = (view.state(one), view.state(two))
            && (a, b) == self.table.bad
        {
            found.push(Violation { fingerprint: TARGET.into(), affected: vec![one, two] });
        }
    }

    fn logs(&self) -> &dyn Logs<u8, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<u8, Msg> {
        self
    }
}

impl Logs<u8, Msg> for Machine {
    fn type_name(&self, msg: &Msg) -> String {
        format!("M{}", msg.kind)
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        msg.text()
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let kind = (0..KINDS).find(|&kind| Msg { kind, hops: HOPS }.text() == message.payload);
        Ok(Msg { kind: kind.ok_or("no such message")?, hops: HOPS })
    }

    fn describe(&self, state: &u8, _: &Names) -> Value {
        (*state).into()
    }
}

impl Guidance<u8, Msg> for Machine {
    fn watch(&self, state: &u8) -> Option<u64> {
        Some(if self.table.blind { 0 } else { u64::from(*state) })
    }
}

pub fn actor_name(actor: u16) -> String {
    format!("actor-{actor}")
}

/// A simulator of a table.
pub fn simulator(table: &Table) -> Simulator<Machine> {
    let mut names = Names::default();
    let ids = (1..=table.actors).map(|n| names.id(&actor_name(n))).collect();
    let scenario = Scenario::parse("model = \"machine\"\nnetwork = \"fifo\"").unwrap();
    Simulator::new(Machine { table: Arc::new(table.clone()), ids }, names, &scenario).unwrap()
}

/// The step that delivers a message (from 0: from outside), or a timer of `to` if there is no sender.
pub fn step(from: Option<u16>, to: u16, msg: Msg) -> Step {
    let kind = if from.is_some() { StepKind::Deliver } else { StepKind::Timer };
    let mut step = Step::new(kind, actor_name(to));
    step.from = from.map(|from| if from == 0 { DEAD_LETTERS.into() } else { actor_name(from) });
    step.type_ = Some(format!("M{}", msg.kind));
    step.payload = Some(msg.text());
    step.external = (from == Some(0)).then_some(true);
    step
}

/// One thread, all phases, a budget of replays.
pub fn options(rule: NetworkRule, objective: Objective, replays: u64) -> Options {
    let (budget, stop) = (Budget::Replays(replays), StopFlag::default());
    Options { rule, budget, jobs: 1, phases: Phases::All, objective, stop }
}

/// The figures that are compared: less is smaller.
pub fn key(schedule: &Schedule, objective: Objective) -> (usize, usize, usize) {
    let (steps, externals, deliveries) = (schedule.steps.len(), schedule.externals(), schedule.deliveries());
    match objective {
        Objective::Steps => (steps, externals, deliveries),
        Objective::Externals => (externals, steps, deliveries),
    }
}

/// Whether the acts, each done exactly or skipped where it cannot be, break the invariant after some delivery.
pub fn breaks<M: Model>(
    sim: &Simulator<M>,
    script: &Script,
    left_out: Option<usize>,
    rule: NetworkRule,
    target: &[String],
) -> bool {
    let mut sim = sim.clone();
    let mut world = sim.empty_world();
    script.acts.iter().enumerate().filter(|(i, _)| Some(*i) != left_out).any(|(_, act)| {
        let done = act.perform(&mut sim, &mut world, &script.actions, rule).is_ok();
        let mut found = Vec::new();
        if done && (act.is_delivery() || act.is_fault()) {
            sim.check(&world, &mut M::History::default(), &mut found);
        }
        found.iter().any(|v| target.contains(&v.fingerprint))
    })
}

/// The step without which a schedule still breaks the invariant, by brute force. What is left is always smaller, for
/// skipping adds nothing.
pub fn superfluous<M: Model>(
    sim: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
    target: &[String],
) -> Option<usize> {
    let mut sim = sim.clone();
    let (script, started) = Script::compile(&mut sim, schedule).unwrap();
    assert_eq!(started, 0, "results name their starts");
    assert!(breaks(&sim, &script, None, rule, target));
    (0..script.acts.len()).find(|&i| breaks(&sim, &script, Some(i), rule, target))
}
