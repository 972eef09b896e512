//! The beginning of all executions, and what happens without a choice.

use demi_replay::follow::follow;
use demi_replay::fuzz::{self, Choice, FuzzError, Program};
use demi_replay::guard::guarded;
use demi_replay::script::{Act, Script};
use demi_replay::{Model, Simulator, World};
use demi_schemas::{Scenario, Schedule};

use super::possible::{Event, recorded_step};
use super::{Frame, Point, RecheckError, broken};
use crate::cost::Cost;

/// The scenario's beginning.
pub(super) fn of<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    cost: Cost,
    clients: u32,
    seed: u64,
) -> Result<(Frame, Point<M>), RecheckError> {
    let settings = fuzz::settings(scenario)?;
    let frame = Frame {
        rule: scenario.network,
        repeats: scenario.duplicates,
        cost,
        wait_for: settings.wait_for,
        program: Program::new(sim, &settings.program)?,
        clients: (0..u64::from(clients)).map(|n| fuzz::client_number(seed, n)).collect(),
        log: Vec::new(),
    };
    let mut world = sim.empty_world();
    if !sim.model().runtime().starts_by_itself() {
        for actor in sim.model().actors().to_vec() {
            sim.start(&mut world, actor);
        }
    }
    fuzz::apply(sim, &mut world, &frame.program, Choice::Bootstrap, frame.rule);
    let mut first = Point { world, done: 0, sent: 0, at: 0, open: false, last: None };
    frame.drive(sim, &mut first)?;
    Ok((frame, first))
}

/// A recorded execution after so many deliveries.
pub(super) fn around<M: Model>(
    sim: &mut Simulator<M>,
    scenario: &Scenario,
    cost: Cost,
    recorded: &Schedule,
    deliveries: u64,
) -> Result<(Frame, Point<M>), RecheckError> {
    let rule = scenario.network;
    let (script, started) = Script::compile(sim, recorded)?;
    let log = match follow(sim, recorded, &script, rule) {
        Some(followed) => followed.acts.iter().map(|(step, act)| (*step as u32, *act)).collect(),
        None => (0..).zip(script.acts[started..].iter().copied()).collect(),
    };
    let mut acts = script.acts[started..].to_vec();
    for act in &mut acts {
        // A message from outside is put among what is pending, and taken after that.
        if let Act::Deliver(want) = *act
            && let Some(msg) = want.external
        {
            *act = Act::Inject(want.to, msg);
        }
    }
    let starts: Vec<Act> = script.acts[..started].to_vec();
    let program = Program::of_acts(Script { acts, actions: script.actions }, recorded.steps.clone());
    let (repeats, clients) = (scenario.duplicates, Vec::new());
    let frame = Frame { rule, repeats, cost, wait_for: None, program, clients, log };
    let mut world = sim.empty_world();
    for actor in starts.iter().filter_map(Act::actor) {
        sim.start(&mut world, actor);
    }
    let mut point = Point { world, done: 0, sent: 0, at: 0, open: true, last: None };
    while point.world.deliveries() < deliveries {
        let event =
            recorded_step(sim, &frame, &point).ok_or(RecheckError::Diverged(point.world.deliveries() + 1))?;
        point = frame.make(sim, &point, &event);
    }
    // The search counts who took something last from the beginning on.
    point.last = None;
    Ok((frame, point))
}

impl Frame {
    /// The point after an event, and what it violates.
    pub(super) fn after<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        point: &Point<M>,
        event: &Event,
    ) -> Result<(Point<M>, Option<Vec<String>>), RecheckError> {
        let mut after = self.make(sim, point, event);
        let mut violation = broken(sim, &after.world);
        if violation.is_none() && self.drive(sim, &mut after)? {
            violation = broken(sim, &after.world);
        }
        Ok((after, violation))
    }

    fn make<M: Model>(&self, sim: &mut Simulator<M>, point: &Point<M>, event: &Event) -> Point<M> {
        let mut after = point.clone();
        for choice in &event.choices {
            match choice {
                Choice::Client(..) => after.sent += 1,
                Choice::Deliver(index) => {
                    after.last = after.world.pending().get(*index as usize).map(|p| p.to)
                }
                _ => {}
            }
            fuzz::apply(sim, &mut after.world, &self.program, *choice, self.rule);
        }
        after.at = event.at;
        after
    }

    /// Does what the test driver has to do by now; says whether it did something.
    fn drive<M: Model>(&self, sim: &mut Simulator<M>, point: &mut Point<M>) -> Result<bool, RecheckError> {
        let mut did = false;
        loop {
            let (done, act) = self.program.due(sim, &point.world, point.done)?;
            let Some(act) = act else { break };
            point.done = done;
            did = true;
            fuzz::apply(sim, &mut point.world, &self.program, Choice::Program(act), self.rule);
        }
        if !point.open {
            point.open = match &self.wait_for {
                Some(name) => holds(sim, &point.world, name)?,
                None => true,
            };
        }
        Ok(did)
    }
}

/// Whether a condition of the model holds.
fn holds<M: Model>(sim: &Simulator<M>, world: &World<M>, name: &str) -> Result<bool, RecheckError> {
    let asked = guarded(|| sim.model().workload().condition(name, &sim.view(world)));
    let answer = asked.unwrap_or_else(|message| Err(format!("'{name}' panicked: {message}")));
    Ok(answer.map_err(FuzzError::Condition)?)
}
