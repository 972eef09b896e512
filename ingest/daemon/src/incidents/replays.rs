//! Known bugs that are replayed because a request asks for it, on a model that the configuration names. What a request says is a name and numbers: no
//! program and no file comes from it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use axum::http::StatusCode;
use chrono::{SecondsFormat, Utc};
use demi_incidents::event::Event;
use demi_incidents::models::ModelConfig;
use demi_incidents::replays::{self, On, ReplayedView};
use demi_incidents::{Anywhere, Journal, Place, hex_of, work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::Shared;
use crate::shutdown::Shutdown;

/// How many runs are remembered.
const KEPT: usize = 16;

/// Which bugs are to be replayed on which model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplaysBody {
    /// A model of the configuration, by its name.
    model: String,
    /// The bugs, as `B-17`; all that have schedules where nothing is said.
    bugs: Option<Vec<String>>,
}

/// A replay of known bugs, as far as it came.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct ReplaysAnswer {
    pub(super) id: String,
    pub(super) model: String,
    /// A digest of the scenario, by which the bugs keep their verdicts.
    pub(super) digest: String,
    /// Who asked for it.
    pub(super) by: String,
    pub(super) began: String,
    /// When it ended; nothing while it goes on.
    pub(super) ended: Option<String>,
    /// What came of each bug so far.
    pub(super) bugs: Vec<ReplayedView>,
    /// Bugs without a schedule of this model.
    pub(super) without: Vec<String>,
    /// Bugs that are not looked at yet.
    pub(super) left: Vec<String>,
    /// Why it ended early.
    pub(super) error: Option<String>,
}

/// The last runs, the newest at the end. They are in memory: after a restart the bugs alone have their verdicts.
pub(super) type Runs = Arc<Mutex<VecDeque<ReplaysAnswer>>>;

/// The run of this name.
pub(super) fn of(runs: &Runs, id: &str) -> Option<ReplaysAnswer> {
    let runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
    runs.iter().find(|run| run.id == id).cloned()
}

/// Begins to replay what is asked for, one run at a time. It blocks a short time.
pub(super) fn begin(
    shared: &Shared,
    runs: &Runs,
    shutdown: &Shutdown,
    by: &str,
    body: &ReplaysBody,
) -> Result<ReplaysAnswer, (StatusCode, String)> {
    let unknown = |what: String| (StatusCode::UNPROCESSABLE_ENTITY, what);
    let away = |what: String| (StatusCode::SERVICE_UNAVAILABLE, what);
    let model = shared.models.models.get(&body.model);
    let model = model.ok_or_else(|| unknown("no model of this name is configured".to_owned()))?.clone();
    let mut journal = shared.part("replays");
    journal.follow().map_err(|error| away(error.to_string()))?;
    let state = journal.state();
    let numbers: Vec<u32> = match &body.bugs {
        None => replays::candidates(&state),
        Some(names) => {
            let of = |name: &String| name.strip_prefix("B-").unwrap_or(name).parse().ok();
            let known = |name: &String| Some(state.bug(of(name)?)?.0);
            let all = names
                .iter()
                .map(|name| known(name).ok_or_else(|| unknown(format!("there is no bug {name}"))));
            all.collect::<Result<_, _>>()?
        }
    };
    drop(state);
    let digest = replays::digest(&model.scenario).map_err(|error| away(format!("the scenario: {error}")))?;
    let program = match &model.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(|error| away(error.to_string()))?,
    };
    let now = Utc::now();
    let nanos = now.timestamp_nanos_opt().unwrap_or(0).to_le_bytes();
    let run = ReplaysAnswer {
        id: hex_of(&[b"replays", &nanos[..], digest.as_bytes()]),
        model: body.model.clone(),
        digest,
        by: by.to_owned(),
        began: now.to_rfc3339_opts(SecondsFormat::Millis, true),
        ended: None,
        bugs: Vec::new(),
        without: Vec::new(),
        left: numbers.iter().map(|number| format!("B-{number}")).collect(),
        error: None,
    };
    {
        let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.iter().any(|run| run.ended.is_none()) {
            return Err((
                StatusCode::TOO_MANY_REQUESTS,
                "others are being replayed; try again later".to_owned(),
            ));
        }
        if runs.len() >= KEPT {
            runs.pop_front();
        }
        runs.push_back(run.clone());
    }
    let work = Run { runs: runs.clone(), id: run.id.clone(), shutdown: shutdown.clone() };
    let place = shared.place.clone();
    let begun = thread::Builder::new().name("incidents".to_owned()).spawn(move || {
        let error = work.replay(journal, &place, &numbers, &model, program).err();
        work.change(|run| run.error = error);
    });
    begun.map(|_| run).map_err(|error| away(error.to_string()))
}

/// A run that goes on. It has ended when this goes, however that comes.
struct Run {
    runs: Runs,
    id: String,
    shutdown: Shutdown,
}

impl Run {
    fn change(&self, change: impl FnOnce(&mut ReplaysAnswer)) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.iter_mut().find(|run| run.id == self.id) {
            change(run);
        }
    }

    fn replay(
        &self,
        mut journal: Journal<Anywhere>,
        place: &Place,
        numbers: &[u32],
        model: &ModelConfig,
        program: PathBuf,
    ) -> Result<(), String> {
        let digest = of(&self.runs, &self.id).map(|run| run.digest).unwrap_or_default();
        let memory = work::bytes(&model.limits.memory);
        let go_on = || !self.shutdown.is_thrown();
        let on = On { program: &program, scenario: &model.scenario, memory, go_on: &go_on };
        for number in numbers {
            let bug = format!("B-{number}");
            let schedules = replays::schedules(&journal.state(), place, *number, &model.scenario);
            let replayed = schedules.map(|schedules| schedules.replay(on));
            if !go_on() {
                return Err("the service ended".to_owned());
            }
            if let Some(one) = &replayed {
                let verdict = one.verdict.word().to_owned();
                let event = Event::Replayed { bug: one.bug, model: digest.clone(), verdict };
                journal.say(event).map_err(|error| error.to_string())?;
            }
            self.change(|run| {
                run.left.retain(|left| *left != bug);
                match &replayed {
                    Some(one) => run.bugs.push(ReplayedView::from(one)),
                    None => run.without.push(bug),
                }
            });
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        self.change(|run| run.ended = Some(now));
    }
}
