//! Failures, new lives, partitions and ends: what becomes of what is pending and of what is sent afterwards.

use std::collections::BTreeMap;

use demi_replay::{ActorId, Model, Names, Simulator, Status, World};
use demi_schemas::{NetworkRule, Scenario};
use demi_two_phase::{Msg, TwoPhase};
use proptest::prelude::*;

const RULE: NetworkRule = NetworkRule::Fifo;
/// The coordinator and two participants.
const ACTORS: u16 = 3;

/// What is done to an actor, or what is made to happen.
#[derive(Clone, Copy, Debug)]
enum Op {
    Start(u16),
    Crash(u16),
    Restart(u16),
    Isolate(u16),
    Heal(u16),
    Stop(u16),
    /// A client's message, delivered at once if the coordinator takes it.
    Begin(u64),
    Deliver(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let actor = || 1..=ACTORS;
    prop_oneof![
        3 => actor().prop_map(Op::Start),
        1 => actor().prop_map(Op::Crash),
        1 => actor().prop_map(Op::Restart),
        1 => actor().prop_map(Op::Isolate),
        1 => actor().prop_map(Op::Heal),
        1 => actor().prop_map(Op::Stop),
        4 => (0..9u64).prop_map(Op::Begin),
        8 => any::<usize>().prop_map(Op::Deliver),
    ]
}

/// The reference: a status for each actor, from its own table of what leads where.
fn next(status: Status, op: Op) -> Status {
    match (op, status) {
        (Op::Start(_), Status::Isolated) => Status::Isolated,
        (Op::Start(_), _) | (Op::Restart(_), _) => Status::Running,
        (Op::Crash(_), Status::Running | Status::Isolated) => Status::Crashed,
        (Op::Isolate(_), Status::Running) => Status::Isolated,
        (Op::Heal(_), Status::Isolated) => Status::Running,
        (Op::Stop(_), _) => Status::Stopped,
        (_, same) => same,
    }
}

fn simulator() -> Simulator<TwoPhase> {
    let scenario = Scenario::parse("model = \"two-phase\"\nmembers = 2\nnetwork = \"fifo\"").unwrap();
    let mut names = Names::default();
    let model = TwoPhase::new(&scenario, &mut names).unwrap();
    assert_eq!(model.actors(), [ActorId(1), ActorId(2), ActorId(3)]);
    Simulator::new(model, names, &scenario).unwrap()
}

/// Everything pending, as text: receivers and payloads, messages and timers apart.
fn pending(sim: &Simulator<TwoPhase>, world: &World<TwoPhase>, to: u16, timers: bool) -> Vec<String> {
    let here = world.pending().iter().filter(|p| p.to.0 == to && p.kind.is_timer() == timers);
    here.map(|p| sim.text(sim.info(p.msg).payload).to_owned()).collect()
}

fn apply(sim: &mut Simulator<TwoPhase>, world: &mut World<TwoPhase>, op: Op) {
    match op {
        Op::Start(a) => sim.start(world, ActorId(a)),
        Op::Crash(a) => sim.crash(world, ActorId(a)),
        Op::Restart(a) => sim.restart(world, ActorId(a)),
        Op::Isolate(a) => sim.isolate(world, ActorId(a)),
        Op::Heal(a) => sim.heal(world, ActorId(a)),
        Op::Stop(a) => sim.stop(world, ActorId(a)),
        Op::Begin(tx) => {
            let msg = sim.intern(Msg::Begin(tx, None));
            let at = sim.inject(world, ActorId(1), msg);
            let reached = matches!(world.status(ActorId(1)), Status::Running | Status::Crashed);
            assert_eq!(at.is_some(), reached, "who is not there, cut off or gone is reached by nobody");
            if let Some(at) = at.filter(|&at| sim.deliverable(world, at, RULE)) {
                sim.deliver(world, at, RULE);
            }
        }
        Op::Deliver(choice) => {
            let may: Vec<usize> =
                (0..world.pending().len()).filter(|&i| sim.deliverable(world, i, RULE)).collect();
            if !may.is_empty() {
                sim.deliver(world, may[choice % may.len()], RULE);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lives_follow_their_table(ops in prop::collection::vec(op(), 1..60)) {
        let mut sim = simulator();
        let mut world = sim.empty_world();
        let mut statuses: BTreeMap<u16, Status> = (1..=ACTORS).map(|a| (a, Status::Absent)).collect();
        for op in ops {
            let before = world.clone();
            apply(&mut sim, &mut world, op);
            let hit = match op {
                Op::Start(a) | Op::Crash(a) | Op::Restart(a) | Op::Isolate(a) | Op::Heal(a) | Op::Stop(a) => Some(a),
                Op::Begin(_) | Op::Deliver(_) => None,
            };
            if let Some(status) = hit.and_then(|a| statuses.get_mut(&a)) {
                *status = next(*status, op);
            }
            for (&actor, &status) in &statuses {
                prop_assert_eq!(world.status(ActorId(actor)), status, "{} after {:?}", actor, op);
                for (index, entry) in world.pending().iter().enumerate() {
                    let takes = matches!(statuses[&entry.to.0], Status::Running | Status::Isolated);
                    prop_assert_eq!(sim.takes(&world, entry), takes);
                    prop_assert!(takes || !sim.deliverable(&world, index, RULE));
                }
                if matches!(status, Status::Absent | Status::Stopped) {
                    prop_assert!(world.pending().iter().all(|p| p.to.0 != actor), "nothing waits for who is gone");
                }
                let (old, new) = (pending(&sim, &before, actor, false), pending(&sim, &world, actor, false));
                if status == Status::Isolated {
                    prop_assert!(new.len() <= old.len(), "nothing new reaches who is cut off");
                }
                if matches!(op, Op::Deliver(_)) && sent_by_cut_off(&sim, &before, &world) {
                    prop_assert!(new.len() <= old.len(), "nor does what it sends reach anybody");
                }
                if hit == Some(actor) && !matches!(op, Op::Stop(_)) {
                    prop_assert_eq!(new, old, "the inbox is kept");
                }
                let forgets = matches!(op, Op::Crash(_) | Op::Restart(_) | Op::Stop(_)) && hit == Some(actor);
                let runs = op_did_something(op, before.status(ActorId(actor)));
                prop_assert!(!(forgets && runs) || pending(&sim, &world, actor, true).is_empty());
                if matches!(op, Op::Restart(_)) && hit == Some(actor) {
                    let blank = sim.model().initial(ActorId(actor));
                    prop_assert_eq!(sim.view(&world).state(ActorId(actor)), Some(&blank));
                }
            }
        }
    }
}

/// Whether the delivery that made one world of the other was to an actor that is cut off.
fn sent_by_cut_off(sim: &Simulator<TwoPhase>, before: &World<TwoPhase>, after: &World<TwoPhase>) -> bool {
    let delivered = after.deliveries() > before.deliveries();
    let count = |world, a| pending(sim, world, a, false).len() + pending(sim, world, a, true).len();
    delivered
        && (1..=ACTORS)
            .any(|a| before.status(ActorId(a)) == Status::Isolated && count(after, a) < count(before, a))
}

/// Crashing what does not run does nothing.
fn op_did_something(op: Op, before: Status) -> bool {
    !matches!(op, Op::Crash(_)) || matches!(before, Status::Running | Status::Isolated)
}
