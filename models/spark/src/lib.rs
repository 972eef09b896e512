//! The standalone master and the scheduler of an early Spark, with three bugs as switches.
//!
//! With every switch off the program is repaired. The system starts by itself: the driver program's main thread
//! creates it in phases. Threads outside actors run to their end inside the step that starts them, and share the
//! state that all actors work on.

mod actors;
mod cache;
pub mod config;
mod driver;
mod master;
mod message;
mod offers;
mod recovery;
mod registration;
mod start_up;
mod state;
mod step;
mod task_set;
mod worker;

use demi_schemas::scenario::{Mask, Scenario, ScenarioError};
use serde_json::{Value, json};

use self::actors::Actors;
use self::config::Config;
use self::message::Msg;
use self::state::{StartUp, System};
use self::step::Step;
use demi_replay::model::{Ctx, ExternalMessage, Guidance, Logs, Model, Runtime, View, Violation, Workload};
use demi_replay::names::{ActorId, Names, OUTSIDE};

/// The model.
#[derive(Clone, Debug)]
pub struct Spark {
    config: Config,
    actors: Actors,
    first: [ActorId; 1],
}

impl Spark {
    /// The model as a scenario wants it.
    ///
    /// # Errors
    /// When the scenario uses a name or value that the model does not know.
    pub fn new(scenario: &Scenario, names: &mut Names) -> Result<Spark, ScenarioError> {
        let config = Config::parse(scenario)?;
        let actors = Actors::new(names);
        Ok(Spark { config, first: [actors.blocks], actors })
    }

    fn step<'a, 'c>(&'a self, s: &'a mut System, ctx: &'a mut Ctx<'c, Msg>) -> Step<'a, 'c> {
        Step { config: &self.config, actors: &self.actors, s, ctx }
    }
}

impl Model for Spark {
    type State = System;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.first
    }

    fn initial(&self, _: ActorId) -> System {
        System::default()
    }

    fn start(&self, state: &mut System, ctx: &mut Ctx<'_, Msg>) {
        let (me, a) = (ctx.me(), &self.actors);
        let mut step = self.step(state, ctx);
        match a.number(me) {
            Some((true, worker)) => {
                step.s.worker(worker);
                step.begin_registration(Some(worker));
            }
            Some((false, executor)) => step.executor_created(executor),
            None if me == a.blocks => step.begin(),
            None if me == a.master => {
                let later = step.s.start_up != StartUp::Master;
                step.master_created(later);
            }
            None if me == a.agent => step.thread_send(a.agent, a.master, Msg::ElectedLeader),
            None if me == a.scheduler => step.again(&Msg::ReviveOffers),
            None if me == a.client => step.begin_registration(None),
            None => {}
        }
    }

    fn deliver(&self, state: &mut System, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, a) = (ctx.me(), &self.actors);
        let mut step = self.step(state, ctx);
        match a.number(me) {
            Some((true, worker)) => step.worker(worker, msg),
            Some((false, executor)) => step.executor(executor, msg),
            None if me == a.master => step.master(msg),
            None if me == a.scheduler => step.scheduler(msg),
            None if me == a.jobs => step.jobs(msg),
            None if me == a.client => step.client(msg),
            None if me == a.blocks => step.blocks(msg),
            None if me == a.asking => step.located(msg),
            None if me == a.supervisor => step.answered(StartUp::Jobs),
            None if me == a.retries => step.retry(msg),
            None => {}
        }
    }

    fn check(&self, view: &View<'_, System>, (): &mut (), found: &mut Vec<Violation>) {
        let Some(state) = view.state(self.actors.blocks) else { return };
        let inversion = state.driver.inversion.map(|stage| format!("LocalityInversion:{stage}.0"));
        let recovery = state.recovery_failure.then(|| "CrashUponRecovery".to_owned());
        let duplicate = state.duplicate_file.then(|| "DuplicateFileCrash".to_owned());
        let broken = [inversion, recovery, duplicate].into_iter().zip(self.config.invariants);
        let actors = [self.actors.scheduler, self.actors.master, self.actors.master];
        found.extend(broken.zip(actors).filter_map(|((fingerprint, checked), actor)| {
            Some(Violation { fingerprint: fingerprint.filter(|_| checked)?, affected: vec![actor] })
        }));
    }

    fn logs(&self) -> &dyn Logs<System, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<System, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<System, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<System, Msg> {
        self
    }
}

impl Logs<System, Msg> for Spark {
    fn type_name(&self, msg: &Msg) -> String {
        msg.type_name().to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        msg.payload(self.config.lookup)
    }

    fn hidden(&self, msg: &Msg) -> Option<String> {
        msg.hidden()
    }

    fn masks(&self) -> Vec<Mask> {
        vec![Mask {
            type_: Some("GetLocationsMultipleBlockIds".to_owned()),
            pattern: r"BlockId;@[0-9a-f]+".to_owned(),
            replace: "BlockId;@".to_owned(),
        }]
    }

    fn sends_itself(&self, message: ExternalMessage<'_>) -> bool {
        message.type_ != "RequestSubmitDriver"
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        match message.type_ {
            "RequestSubmitDriver" => Ok(Msg::RequestSubmitDriver),
            other => Err(format!("'{other}' is not sent from outside; RequestSubmitDriver is")),
        }
    }

    fn describe(&self, state: &System, _: &Names) -> Value {
        json!({
            "start_up": format!("{:?}", state.start_up),
            "master": format!("{:?}", state.master),
            "client": format!("{:?}", state.client),
            "workers": format!("{:?}", state.workers),
            "driver": format!("{:?}", state.driver),
        })
    }
}

impl Runtime<System, Msg> for Spark {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn cell(&self, _: ActorId) -> ActorId {
        OUTSIDE
    }

    fn accepts(&self, state: &System, actor: ActorId, _: ActorId, _: &Msg) -> bool {
        actor != self.actors.jobs || state.driver.question.is_none()
    }

    fn action(
        &self,
        state: &mut System,
        name: &str,
        fields: Option<&Value>,
        ctx: &mut Ctx<'_, Msg>,
    ) -> Result<(), String> {
        self.step(state, ctx).action(name, fields)
    }

    fn creates(&self, name: &str, fields: Option<&Value>) -> Option<ActorId> {
        match name {
            "create_worker" => start_up::worker_of(fields).map(|number| self.actors.worker(number)),
            "create_master" => Some(self.actors.master),
            _ => None,
        }
    }

    fn starting_up(&self, state: &System) -> bool {
        state.start_up != StartUp::Done
    }
}

impl Workload<System, Msg> for Spark {
    fn condition(&self, name: &str, view: &View<'_, System>) -> Result<bool, String> {
        let state = view.state(self.actors.blocks);
        let holds = |f: fn(&System) -> bool| Ok(state.is_some_and(f));
        match name {
            "started" => holds(|s| s.start_up == StartUp::Done),
            "driver-submitted" => holds(|s| s.driver_submitted),
            _ => Err(format!("'{name}' is no condition of this model: expected started or driver-submitted")),
        }
    }
}

impl Guidance<System, Msg> for Spark {
    /// The number of a job, or of a stage. Stages are numbered in the order in which jobs arrive, which is mostly that of
    /// their numbers.
    fn clock(&self, msg: &Msg) -> Option<i64> {
        match msg {
            Msg::JobSubmitted(job, ..) => Some(i64::from(*job)),
            Msg::BeginEvent(stage, _) | Msg::CompletionEvent(stage, _) => Some(i64::from(*stage)),
            _ => None,
        }
    }

    fn watch(&self, state: &System) -> Option<u64> {
        let inversion = state.driver.inversion.map_or(0, |stage| u64::from(stage) + 1);
        Some(inversion << 2 | u64::from(state.recovery_failure) << 1 | u64::from(state.duplicate_file))
    }
}
