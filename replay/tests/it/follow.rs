//! What an order that the model follows must agree with: logs whose contents differ in what masks hide, and models that
//! send more than their logs.

use demi_replay::model::{Ctx, ExternalMessage, Logs, Model, Runtime, View, Violation};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Names, Simulator};
use demi_schemas::schedule::Sent;
use demi_schemas::summary::ReplaySummary;
use demi_schemas::{NetworkRule, Scenario, Schedule, Step, StepKind, Via, scenario::Mask};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    /// Opens the gate that all actors share.
    Open,
    /// Makes its receiver complain to the clerk while the gate is shut.
    Pass,
    /// Makes its receiver send a receipt and a thread of it a tick; with `extra` a note that no log has, too.
    Ask,
    Complaint,
    Receipt,
    Note,
    Tick,
}

const NAMES: [(Msg, &str, &str); 7] = [
    (Msg::Open, "Open", "Open"),
    (Msg::Pass, "Pass", "Pass"),
    (Msg::Ask, "Ask", "Ask"),
    (Msg::Complaint, "Complaint", "Complaint"),
    (Msg::Receipt, "Receipt", "Receipt(Object@0)"),
    (Msg::Note, "Note", "Note"),
    (Msg::Tick, "Tick", "Tick"),
];

#[derive(Clone)]
struct Gate {
    actors: [ActorId; 4],
    extra: bool,
}

impl Model for Gate {
    type State = bool;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }
    fn initial(&self, _: ActorId) -> bool {
        false
    }
    fn start(&self, _: &mut bool, _: &mut Ctx<'_, Msg>) {}
    fn deliver(&self, open: &mut bool, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, clerk) = (ctx.me(), self.actors[3]);
        match msg {
            Msg::Open => *open = true,
            Msg::Pass if !*open => ctx.send(clerk, Msg::Complaint),
            Msg::Ask => {
                ctx.send(clerk, Msg::Receipt);
                if self.extra {
                    ctx.send(clerk, Msg::Note);
                }
                ctx.send_as(me, me, clerk, Msg::Tick, Via::Thread);
            }
            _ => {}
        }
    }
    fn check(&self, _: &View<'_, bool>, (): &mut (), _: &mut Vec<Violation>) {}
    fn logs(&self) -> &dyn Logs<bool, Msg> {
        self
    }
    fn runtime(&self) -> &dyn Runtime<bool, Msg> {
        self
    }
}

impl Runtime<bool, Msg> for Gate {
    fn starts_by_itself(&self) -> bool {
        true
    }
    fn cell(&self, _: ActorId) -> ActorId {
        demi_replay::OUTSIDE
    }
}

impl Logs<bool, Msg> for Gate {
    fn type_name(&self, msg: &Msg) -> String {
        NAMES.iter().find(|(m, _, _)| m == msg).unwrap().1.to_owned()
    }
    fn payload(&self, msg: &Msg, _: &Names) -> String {
        NAMES.iter().find(|(m, _, _)| m == msg).unwrap().2.to_owned()
    }
    fn masks(&self) -> Vec<Mask> {
        let (pattern, replace) = ("@[0-9a-f]+".to_owned(), "@".to_owned());
        vec![Mask { type_: Some("Receipt".to_owned()), pattern, replace }]
    }
    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let known = NAMES.iter().find(|(_, name, _)| *name == message.type_);
        known.map(|(msg, _, _)| msg.clone()).ok_or_else(|| message.type_.to_owned())
    }
    fn describe(&self, open: &bool, _: &Names) -> Value {
        Value::from(*open)
    }
}

fn sent(type_: &str, payload: &str, id: u64, via: Option<Via>) -> Sent {
    let (from, to, type_) = (Some("asker".to_owned()), "clerk".to_owned(), Some(type_.to_owned()));
    Sent { from, to, type_, msg_id: Some(id.to_string()), payload: payload.to_owned(), via, timer: None }
}

fn step(kind: StepKind, to: &str, type_: &str, id: u64) -> Step {
    let mut step = Step::new(kind, to);
    (step.type_, step.payload) = (Some(type_.to_owned()), Some(type_.to_owned()));
    (step.msg_id, step.external) = (Some(id.to_string()), Some(true));
    step
}

/// Nobody complained: the gate was opened first, which no log tells. The guest's log comes first.
fn logs() -> Schedule {
    let messages = [("guest", "Pass", 1), ("porter", "Open", 2), ("asker", "Ask", 3)];
    let external = |(to, type_, id)| step(StepKind::External, to, type_, id);
    let deliver = |(to, type_, id)| step(StepKind::Deliver, to, type_, id);
    let mut steps: Vec<Step> = messages.into_iter().map(external).collect();
    steps.extend(messages.into_iter().map(deliver));
    steps.last_mut().unwrap().sends.push(sent("Receipt", "Receipt(Object@7f3a)", 4, None));
    let mut tick = step(StepKind::Send, "clerk", "Tick", 5);
    (tick.from, tick.external, tick.via) = (Some("asker".to_owned()), None, Some(Via::Thread));
    steps.push(tick);
    let mut schedule = Schedule::new(steps);
    schedule.header.conformance = true;
    schedule
}

fn replayed(extra: bool) -> ReplaySummary {
    let scenario = Scenario::parse("model = \"gate\"\nnetwork = \"fifo\"").unwrap();
    let mut names = Names::default();
    let actors = ["guest", "porter", "asker", "clerk"].map(|name| names.id(name));
    let mut sim = Simulator::new(Gate { actors, extra }, names, &scenario).unwrap();
    let options = ReplayOptions { rule: NetworkRule::Fifo, strict: false, interval: 1 };
    replay(&mut sim, &logs(), &options).unwrap()
}

/// A log's receipt names an object, which is another one in every run.
#[test]
fn sends_are_compared_under_the_masks() {
    let summary = replayed(false);
    assert_eq!((summary.divergences, summary.unrecorded_sends), (0, 0), "{:?}", summary.first_divergence);
}

/// No order does without the note. One does without the complaint, and it is taken.
#[test]
fn of_orders_the_one_with_fewer_unrecorded_sends_is_taken() {
    let summary = replayed(true);
    assert_eq!((summary.divergences, summary.unrecorded_sends), (0, 1), "{:?}", summary.first_divergence);
}
