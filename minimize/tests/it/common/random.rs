//! Random executions of tiny systems, with faults if there are to be any.

use demi_minimize::Meter;
use demi_minimize::oracle::engine::Engine;
use demi_minimize::{Budget, Objective, Problem, StopFlag};
use demi_replay::script::{Act, Script, Want};
use demi_replay::{ActorId, PendingKind, World};
use demi_schemas::NetworkRule;
use demi_schemas::schedule::{Schedule, Step, StepKind};

use super::{HOPS, Machine, Msg, TARGET, Table, actor_name, simulator, step};

pub const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];
pub const FAULTS: [StepKind; 5] =
    [StepKind::Crash, StepKind::Restart, StepKind::Isolate, StepKind::Heal, StepKind::Stop];

/// A budget that does not end.
pub fn meter() -> Meter {
    Meter::new(Budget::Seconds(1e6), StopFlag::default())
}

/// An engine for a schedule.
pub fn engine(table: &Table, schedule: &Schedule, rule: NetworkRule) -> (Engine<Machine>, Script) {
    let mut sim = simulator(table);
    let (script, _) = Script::compile(&mut sim, schedule).unwrap();
    let problem = Problem::plain(sim, script.clone(), rule, vec![TARGET.into()], Objective::Steps);
    let engine = Engine::new(&problem, Budget::Seconds(1e6));
    (engine, script)
}

/// What may happen: starts, messages from outside, faults.
pub fn events(table: &Table, outside: &[(u16, u8)], faults: &[(u16, usize)]) -> Schedule {
    let actor = |n: u16| 1 + n % table.actors;
    let mut steps: Vec<Step> =
        (1..=table.actors).map(|n| Step::new(StepKind::Start, actor_name(n))).collect();
    steps.extend(outside.iter().map(|&(n, kind)| step(Some(0), actor(n), Msg { kind, hops: HOPS })));
    steps.extend(faults.iter().map(|&(n, kind)| Step::new(FAULTS[kind], actor_name(actor(n)))));
    Schedule::new(steps)
}

/// A random execution in which all the events may happen, and the pair of states of the first two actors that comes last
/// of all for the first time.
pub fn execution(
    table: &mut Table,
    events: &Schedule,
    choices: &[usize],
    rule: NetworkRule,
) -> Option<Schedule> {
    repeating(table, events, choices, rule, 0)
}

/// The same on a network that repeats so many messages.
pub fn repeating(
    table: &mut Table,
    events: &Schedule,
    choices: &[usize],
    rule: NetworkRule,
    mut repeats: usize,
) -> Option<Schedule> {
    let (mut engine, script) = engine(table, events, rule);
    let mut world = engine.sim.empty_world();
    let (mut acts, mut left): (Vec<Act>, Vec<Act>) =
        script.acts.iter().partition(|act| matches!(act, Act::Start(_)));
    acts.iter().for_each(|act| assert!(engine.follow(&mut world, act)));
    let pair = |engine: &Engine<Machine>, world: &World<Machine>| {
        let view = engine.sim.view(world);
        Some((*view.state(ActorId(1))?, *view.state(ActorId(2))?))
    };
    let mut seen = vec![(0, 0)];
    let mut cut = 0;
    for choice in choices {
        let message = world.pending().iter().find(|p| p.kind == PendingKind::Message).copied();
        if let Some(entry) = message.filter(|_| repeats > 0 && choice % 3 == 0) {
            let act = Act::Duplicate(Want::of(&engine.sim, &world, &entry));
            assert!(engine.follow(&mut world, &act));
            acts.push(act);
            repeats -= 1;
            continue;
        }
        let ready: Vec<usize> =
            (0..world.pending().len()).filter(|&index| engine.sim.deliverable(&world, index, rule)).collect();
        let choice = choice % (ready.len() + left.len()).max(1);
        if let Some(&index) = ready.get(choice) {
            let entry = world.pending()[index];
            acts.push(Act::Deliver(Want::of(&engine.sim, &world, &entry)));
            engine.sim.deliver(&mut world, index, rule);
        } else if choice - ready.len() < left.len() {
            let act = left.remove(choice - ready.len());
            if !engine.follow(&mut world, &act) {
                continue;
            }
            acts.push(act);
        }
        // A fault may be what leads there: a restart begins with the first state.
        if let Some(pair) = pair(&engine, &world)
            && !seen.contains(&pair)
        {
            seen.push(pair);
            (table.bad, cut) = (pair, acts.len());
        }
    }
    (cut > 0).then(|| engine.to_schedule(&acts[..cut]))
}
