//! Models whose code panics: in a handler a violation like others, elsewhere a finding whose replay says where it diverges.

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::{ActorId, Ctx, Model, Names, Proposal, Simulator, View, Violation, Workload};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};

/// Which of its functions panics once an actor has counted to three.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Panics {
    Handler,
    Invariant,
    Start,
    Workload,
    Nothing,
}

#[derive(Clone)]
struct Hostile(Vec<ActorId>, Panics);

impl Model for Hostile {
    type State = u32;
    type Msg = u32;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> u32 {
        0
    }

    fn start(&self, _: &mut u32, ctx: &mut Ctx<'_, u32>) {
        assert!(self.1 != Panics::Start || ctx.me() != self.0[1], "no start today");
    }

    fn deliver(&self, count: &mut u32, msg: &u32, ctx: &mut Ctx<'_, u32>) {
        *count += 1;
        assert!(self.1 != Panics::Handler || *count < 3, "counted to {count}");
        let at = self.0.iter().position(|&a| a == ctx.me()).unwrap_or(0);
        ctx.send(self.0[(at + 1) % self.0.len()], (msg + 1) % 5);
    }

    fn check(&self, view: &View<'_, u32>, (): &mut (), _: &mut Vec<Violation>) {
        let most = view.actors().filter_map(|a| view.state(a)).max();
        assert!(self.1 != Panics::Invariant || most < Some(&3), "cannot judge");
    }

    fn workload(&self) -> &dyn Workload<u32, u32> {
        self
    }
}

impl Workload<u32, u32> for Hostile {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<u32>> {
        assert!(self.1 != Panics::Workload, "nothing to propose");
        vec![Proposal::new(self.0[0], 0)]
    }
}

fn simulator(size: usize, panics: Panics) -> (Simulator<Hostile>, Scenario) {
    let scenario = Scenario::parse("model = 'hostile'\nnetwork = 'fifo'").unwrap();
    let mut names = Names::default();
    let model = Hostile((0..size).map(|n| names.id(&format!("node-{n}"))).collect(), panics);
    (Simulator::new(model, names, &scenario).unwrap(), scenario)
}

const OPTIONS: FuzzOptions = FuzzOptions { externals: Some(0), ..FuzzOptions::new(1, 3, 200) };
const STRICT: ReplayOptions = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };

#[test]
fn a_handler_that_panics_is_a_violation_that_replays() {
    for (panics, says) in [
        (Panics::Handler, "crash: node-0, counted to 3 ("),
        (Panics::Start, "crash: node-1, no start today ("),
    ] {
        for size in [5, 10, 50] {
            let (mut sim, scenario) = simulator(size, panics);
            let found = fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true).unwrap().unwrap();
            let told = &found.violation[0];
            assert!(told.starts_with(says) && told.contains("hostile.rs:"), "{panics:?}: {told}");
            assert_eq!(found.affected, [told[7..].split(',').next().unwrap()]);
            let (fresh, _) = simulator(size, panics);
            let runs = [0, 1].map(|_| replay(&mut fresh.clone(), &found.schedule, &STRICT).unwrap());
            assert_eq!(runs[0].verdict, Verdict::Violates, "{:?}", runs[0]);
            assert_eq!((&runs[0].violation, &runs[0].digest), (&found.violation, &runs[1].digest));
        }
    }
}

#[test]
fn where_crashes_do_not_count_a_run_ends_there_and_a_schedule_diverges() {
    let (mut sim, scenario) = simulator(5, Panics::Handler);
    let found = fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true).unwrap().unwrap();
    let scenario = Scenario { no_crash: true, ..scenario };
    let mut names = Names::default();
    let model = Hostile((0..5).map(|n| names.id(&format!("node-{n}"))).collect(), Panics::Handler);
    let mut sim = Simulator::new(model, names, &scenario).unwrap();
    let summary = replay(&mut sim.clone(), &found.schedule, &STRICT).unwrap();
    assert_eq!(summary.verdict, Verdict::Diverged);
    let got = summary.first_divergence.unwrap().got;
    assert!(got.starts_with("panic in node-0 at 0: counted to 3"), "{got}");
    assert_eq!(fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true), Ok(None));
}

#[test]
fn an_invariant_that_panics_is_a_finding_and_its_schedule_diverges_there() {
    for (panics, says) in [(Panics::Invariant, "panic in an invariant: cannot judge")] {
        for size in [5, 10, 50] {
            let (mut sim, scenario) = simulator(size, panics);
            let found = fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true).unwrap().unwrap();
            let told = &found.violation[0];
            assert!(told.starts_with(says) && told.contains("hostile.rs:"), "{panics:?}: {told}");
            let (mut fresh, _) = simulator(size, panics);
            let summary = replay(&mut fresh, &found.schedule, &STRICT).unwrap();
            let first = summary.first_divergence.unwrap();
            assert_eq!(summary.verdict, Verdict::Diverged, "{panics:?}");
            assert!(first.got.starts_with(says), "{panics:?}: {}", first.got);
        }
    }
}

#[test]
fn a_workload_that_panics_is_a_finding() {
    let (mut sim, scenario) = simulator(3, Panics::Workload);
    let found = fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true).unwrap().unwrap();
    assert!(found.violation[0].starts_with("panic in the workload: nothing to propose"), "{found:?}");
}

#[test]
fn a_world_that_a_panic_broke_goes_no_further() {
    let (mut sim, _) = simulator(1, Panics::Handler);
    let mut world = sim.empty_world();
    sim.start(&mut world, ActorId(1));
    let msg = sim.intern(0);
    assert!(sim.inject(&mut world, ActorId(1), msg).is_some());
    for n in 1..=3 {
        assert!(world.panic().is_none() && sim.deliverable(&world, 0, NetworkRule::Fifo), "before {n}");
        sim.deliver(&mut world, 0, NetworkRule::Fifo);
    }
    assert_eq!(world.panic().map(|p| p.actor), Some(ActorId(1)));
    let msg = sim.intern(1);
    let _ = sim.inject(&mut world, ActorId(1), msg);
    assert!((0..world.pending().len()).all(|i| !sim.deliverable(&world, i, NetworkRule::Unordered)));
}

#[test]
fn without_a_panic_nothing_is_found() {
    let (mut sim, scenario) = simulator(5, Panics::Nothing);
    assert_eq!(fuzz(&mut sim, &scenario, &OPTIONS, &mut |_| true), Ok(None));
}
