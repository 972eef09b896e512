//! Where an exploration begins, and what the environment may do in it.

use demi_replay::follow::follow;
use demi_replay::fuzz::{self, Choice, FuzzError, Program};
use demi_replay::script::{Act, Script, ScriptError};
use demi_replay::{Model, Simulator, View, guard};
use demi_schemas::scenario::FuzzSettings;
use demi_schemas::{NetworkRule, Scenario, Schedule};

use crate::log::Log;
use crate::moment::Moment;

/// Why a scenario cannot be explored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SceneError {
    /// Its settings make no sense to the model.
    #[error(transparent)]
    Settings(#[from] FuzzError),
    /// A recorded execution makes no sense to the model.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The model cannot follow a recorded execution to where the exploration is to begin.
    #[error("step {0} of the recorded execution is not possible: replay it first to see why")]
    Diverged(usize),
    /// Something panics before there is anything to choose.
    #[error("{0}")]
    Panic(String),
    /// What an earlier exploration left is not of this model and scenario.
    #[error("what the exploration left does not fit the model: {0}")]
    Unfinished(String),
}

impl From<demi_space::Unfit> for SceneError {
    fn from(unfit: demi_space::Unfit) -> Self {
        SceneError::Unfinished(unfit.0)
    }
}

/// A beginning: all actors started, the model's first messages from outside pending.
#[derive(Debug)]
pub struct Scene {
    /// The network rule.
    pub rule: NetworkRule,
    /// Whether the network may repeat messages.
    pub repeats: bool,
    /// What the test driver does in every run, without a choice.
    pub program: Program,
    /// What leads to the beginning.
    pub before: Vec<Choice>,
    /// Messages from outside that come one after the other: the random numbers that they are made with.
    pub clients: Vec<u64>,
    /// What was recorded, whose order is the default one; empty without a recording.
    pub log: Log,
    settings: FuzzSettings,
}

impl Scene {
    /// The beginning of a scenario, with so many messages from outside, or as many as the scenario says. `seed` decides what they are.
    ///
    /// # Errors
    /// When the scenario's settings make no sense to the model, or the model panics.
    pub fn of<M: Model>(
        sim: &mut Simulator<M>,
        scenario: &Scenario,
        clients: Option<u32>,
        seed: u64,
    ) -> Result<(Scene, Moment<M>), SceneError> {
        let settings = fuzz::settings(scenario)?;
        let program = Program::new(sim, &settings.program)?;
        let count = u64::from(clients.unwrap_or(settings.client_messages()));
        let mut before = Vec::new();
        if !sim.model().runtime().starts_by_itself() {
            before.extend(sim.model().actors().iter().map(|&actor| Choice::Start(actor)));
        }
        before.push(Choice::Bootstrap);
        let clients = (0..count).map(|n| fuzz::client_number(seed, n)).collect();
        let log = Log::default();
        let (rule, repeats) = (scenario.network, scenario.duplicates);
        let mut scene = Scene { rule, repeats, program, before, clients, log, settings };
        let mut world = sim.empty_world();
        let mut begun = 0;
        while begun < scene.before.len() && world.panic().is_none() {
            fuzz::apply(sim, &mut world, &scene.program, scene.before[begun], scene.rule);
            begun += 1;
        }
        if let Some(panic) = world.panic() {
            if sim.crashed(panic).is_none() {
                return Err(SceneError::Panic(sim.explain(panic)));
            }
            // A handler that fails at the start is what is found, and nothing comes after it.
            scene.before.truncate(begun);
            return Ok((scene, Moment::first(world)));
        }
        let mut first = Moment::first(world);
        // What the test driver does at once leads to the beginning too.
        let mut driven = Vec::new();
        scene.settle(sim, &mut first, &mut driven)?;
        scene.before.extend(driven);
        Ok((scene, first))
    }

    /// A configuration of a recorded execution: that after so many of its deliveries. From there on the recorded order is the default one.
    ///
    /// # Errors
    /// When the model cannot follow the execution so far.
    pub fn around<M: Model>(
        sim: &mut Simulator<M>,
        scenario: &Scenario,
        recorded: &Schedule,
        deliveries: u64,
    ) -> Result<(Scene, Moment<M>), SceneError> {
        let (script, started) = Script::compile(sim, recorded)?;
        let rule = scenario.network;
        let acts: Vec<(usize, Act)> = match follow(sim, recorded, &script, rule) {
            Some(followed) => followed.acts,
            None => script.acts[started..].iter().copied().enumerate().collect(),
        };
        // What comes from outside is sent first and then taken, so that a log can tell both.
        let sends = |act: &Act| match act {
            Act::Deliver(want) => want.external.map_or(*act, |msg| Act::Inject(want.to, msg)),
            _ => *act,
        };
        let does = Script { acts: script.acts[started..].iter().map(sends).collect(), ..script.clone() };
        let program = Program::of_acts(does, recorded.steps.clone());
        let before = script.acts[..started].iter().filter_map(Act::actor).map(Choice::Start).collect();
        let settings = FuzzSettings::default();
        let (clients, log) = (Vec::new(), Log::new(acts));
        let repeats = scenario.duplicates;
        let mut scene = Scene { rule, repeats, program, before, clients, log, settings };
        let mut world = sim.empty_world();
        for choice in scene.before.clone() {
            fuzz::apply(sim, &mut world, &scene.program, choice, rule);
        }
        let mut moment = Moment::first(world);
        moment.open = true;
        while moment.world.deliveries() < deliveries && scene.next_recorded(sim, &mut moment)? {}
        Ok((scene, moment))
    }

    /// After how many deliveries of a recorded execution the model first breaks an invariant; all of them, where it breaks none.
    ///
    /// # Errors
    /// When the model cannot follow the execution so far.
    pub fn violation_of<M: Model>(
        sim: &mut Simulator<M>,
        scenario: &Scenario,
        recorded: &Schedule,
    ) -> Result<u64, SceneError> {
        let (mut scene, mut moment) = Scene::around(sim, scenario, recorded, 0)?;
        let mut found = Vec::new();
        while scene.next_recorded(sim, &mut moment)? {
            sim.check(&moment.world, &mut M::History::default(), &mut found);
            if !found.is_empty() {
                break;
            }
        }
        Ok(moment.world.deliveries())
    }

    /// Takes the next recorded step to what leads to the beginning; says whether there was one.
    fn next_recorded<M: Model>(
        &mut self,
        sim: &mut Simulator<M>,
        moment: &mut Moment<M>,
    ) -> Result<bool, SceneError> {
        let driver = (&self.program, self.rule);
        let Some(next) = self.log.next(sim, &moment.world, moment.at, driver) else { return Ok(false) };
        if let Some(step) = self.log.passed_over(moment.at, next.at) {
            return Err(SceneError::Diverged(step + 1));
        }
        moment.at = next.at + 1;
        for choice in next.choices() {
            fuzz::apply(sim, &mut moment.world, &self.program, choice, self.rule);
            self.before.push(choice);
        }
        match moment.world.panic() {
            Some(panic) => Err(SceneError::Panic(sim.explain(panic))),
            None => Ok(true),
        }
    }

    /// Does what the test driver's program has due, and notes whether messages from outside may come by now.
    ///
    /// # Errors
    /// When the model does not know a condition.
    pub(crate) fn settle<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        moment: &mut Moment<M>,
        choices: &mut Vec<Choice>,
    ) -> Result<(), FuzzError> {
        while let (done, Some(act)) = self.program.due(sim, &moment.world, moment.done)? {
            moment.done = done;
            let choice = Choice::Program(act);
            fuzz::apply(sim, &mut moment.world, &self.program, choice, self.rule);
            choices.push(choice);
        }
        if !moment.open {
            moment.open = match self.waits_for() {
                Some(name) => Scene::condition(sim, name, &sim.view(&moment.world))?,
                None => true,
            };
        }
        Ok(())
    }

    /// The condition after which messages from outside may come, if there is one.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        self.settings.wait_for.as_deref()
    }

    /// Whether a condition of the model holds.
    pub(crate) fn condition<M: Model>(
        sim: &Simulator<M>,
        name: &str,
        view: &View<'_, M::State>,
    ) -> Result<bool, FuzzError> {
        guard::guarded(|| sim.model().workload().condition(name, view))
            .unwrap_or_else(|message| Err(format!("'{name}' panicked: {message}")))
            .map_err(FuzzError::Condition)
    }
}
