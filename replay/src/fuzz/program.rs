//! What a test driver does in every run: external events, code blocks, and conditions that it waits for.

use demi_schemas::Schedule;
use demi_schemas::scenario::ProgramStep;
use demi_schemas::schedule::{Step, StepKind};
use serde_json::Value;

use super::FuzzError;
use crate::guard;
use crate::model::{Model, Status};
use crate::names::ActorId;
use crate::script::{Act, Script};
use crate::sim::Simulator;
use crate::world::World;

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Due {
    /// When the model's condition holds.
    Condition(String),
    /// When so many messages were delivered.
    Deliveries(u64),
    /// The act of that number.
    Act(u32),
}

/// A program in a simulator's terms.
#[derive(Clone, Debug, Default)]
pub struct Program {
    due: Vec<Due>,
    script: Script,
    /// By act: what logs say of it.
    pub(crate) steps: Vec<Step>,
}

impl Program {
    /// Translates the scenario's program.
    ///
    /// # Errors
    /// When the model does not know something that the program says.
    pub fn new<M: Model>(sim: &mut Simulator<M>, steps: &[ProgramStep]) -> Result<Self, FuzzError> {
        let mut program = Program::default();
        for step in steps {
            program.due.push(match step {
                ProgramStep::Wait(name) => {
                    let world = sim.empty_world();
                    guard::guarded(|| sim.model().workload().condition(name, &sim.view(&world)))
                        .unwrap_or_else(|message| Err(format!("'{name}' panicked: {message}")))
                        .map_err(FuzzError::Program)?;
                    Due::Condition(name.clone())
                }
                ProgramStep::Deliveries(count) => Due::Deliveries(*count),
                act => {
                    program.steps.push(step_of(act));
                    Due::Act(program.steps.len() as u32 - 1)
                }
            });
        }
        let schedule = Schedule::new(program.steps.clone());
        let (script, started) =
            Script::compile(sim, &schedule).map_err(|e| FuzzError::Program(e.to_string()))?;
        program.script = Script { acts: script.acts[started..].to_vec(), ..script };
        Ok(program)
    }

    /// A program without conditions, whose acts happen when somebody chooses them: `acts[i]` is what logs tell as `steps[i]`.
    #[must_use]
    pub fn of_acts(script: Script, steps: Vec<Step>) -> Self {
        Program { due: Vec::new(), script, steps }
    }

    /// The act that is due after so many steps of the program, and how many steps are then done.
    ///
    /// # Errors
    /// When the model does not know a condition.
    pub fn due<M: Model>(
        &self,
        sim: &Simulator<M>,
        world: &World<M>,
        mut done: usize,
    ) -> Result<(usize, Option<u32>), FuzzError> {
        while let Some(due) = self.due.get(done) {
            match due {
                Due::Condition(name) => {
                    if !sim
                        .model()
                        .workload()
                        .condition(name, &sim.view(world))
                        .map_err(FuzzError::Program)?
                    {
                        break;
                    }
                }
                Due::Deliveries(count) if world.deliveries() < *count => break,
                Due::Deliveries(_) => {}
                Due::Act(act) => return Ok((done + 1, Some(*act))),
            }
            done += 1;
        }
        Ok((done, None))
    }

    /// Whether everything is done after so many steps of the program.
    #[must_use]
    pub fn is_over(&self, done: usize) -> bool {
        done >= self.due.len()
    }

    /// Does the act of that number.
    ///
    /// # Errors
    /// Why it could not be done.
    pub fn perform<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        world: &mut World<M>,
        act: u32,
        rule: demi_schemas::NetworkRule,
    ) -> Result<(), String> {
        let Some(act) = self.script.acts.get(act as usize) else { return Ok(()) };
        act.perform(sim, world, &self.script.actions, rule).map_err(|refusal| format!("{refusal:?}"))
    }

    /// The actor that an act happens at, if it happens at one.
    pub(crate) fn actor(&self, act: u32) -> Option<ActorId> {
        self.script.acts.get(act as usize).and_then(Act::actor)
    }

    /// The pending entry that an act makes a second copy of.
    pub(crate) fn repeats<M: Model>(&self, sim: &Simulator<M>, world: &World<M>, act: u32) -> Option<usize> {
        match self.script.acts.get(act as usize)? {
            Act::Duplicate(want) => want.find(sim, world),
            _ => None,
        }
    }

    /// The message that an act puts among the pending ones of a world, and to whom.
    pub(crate) fn message<M: Model>(
        &self,
        world: &World<M>,
        act: u32,
    ) -> Option<(ActorId, crate::sim::MsgId)> {
        match self.script.acts.get(act as usize)? {
            Act::Inject(to, msg) if matches!(world.status(*to), Status::Running | Status::Crashed) => {
                Some((*to, *msg))
            }
            _ => None,
        }
    }
}

fn step_of(step: &ProgramStep) -> Step {
    let fault = |kind, actor: &String| Step { external: Some(true), ..Step::new(kind, actor) };
    match step {
        ProgramStep::Action { name, fields } => Step {
            type_: Some(name.clone()),
            fields: (!fields.is_empty()).then(|| Value::Object(fields.clone())),
            external: Some(true),
            ..Step::new(StepKind::Action, "")
        },
        ProgramStep::Send { to, type_, payload } => Step {
            type_: Some(type_.clone()),
            payload: Some(payload.clone()),
            external: Some(true),
            ..Step::new(StepKind::External, to)
        },
        ProgramStep::Isolate(actor) => fault(StepKind::Isolate, actor),
        ProgramStep::Heal(actor) => fault(StepKind::Heal, actor),
        ProgramStep::Stop(actor) => fault(StepKind::Stop, actor),
        ProgramStep::Crash(actor) => fault(StepKind::Crash, actor),
        ProgramStep::Restart(actor) | ProgramStep::Wait(actor) => fault(StepKind::Restart, actor),
        ProgramStep::Deliveries(_) => Step::new(StepKind::Action, ""),
    }
}
