//! The work on an incident: stages, each a command of this program in a process of its own, up to the page.
//!
//! What a stage makes lies in a folder whose name is a digest of what it was made from. It appears whole or not at all, and the next attempt uses it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use demi_common::owned::{Kind, is_whole};
use demi_schemas::summary::{MinimizeSummary, NeededSummary};

use crate::child::{self, Ended, Limits, Ran};
use crate::class;
use crate::decide::{self, Calm, Receiver, Seen, Worker};
use crate::event::{Event, Findings, Input, Opened, Outcome, Output, Reason, Stage};
use crate::fold::{State, Work};
use crate::id::{IncidentId, hex_of};
use crate::journal::{Journal, JournalError};
use crate::models::{ModelConfig, Models};
use crate::objects::Objects;
use crate::place::{Beat, Place};
use crate::text::{LINE, NOTE, cut, end_of, is_step};

/// The version of what stages make: another one makes all of it anew.
const FORMAT: &str = "2";
/// How much of the work is told as text.
const STORY: usize = 60;
/// Budget of what happened, reduced.
const REDUCE: &str = "10s";
/// Languages of tests, how `export` calls each, and the file.
pub(crate) const TESTS: [(&str, &str, &str); 3] = [
    ("python", "pytest", "test_schedule.py"),
    ("javascript", "js-test", "schedule.test.mjs"),
    ("rust", "rust-test", "schedule_test.rs"),
];
/// The file of a model that is kept with the incidents.
pub const KEPT_MODEL: &str = "model.toml";

/// What a worker needs to know.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who it is, and how long it waits for others.
    pub worker: Worker,
    /// The models that it has.
    pub models: Models,
    /// The program whose commands are run, where a model names none.
    pub program: PathBuf,
    /// Threads of a search.
    pub jobs: usize,
    /// Globs of systems that it works on; all where there is none.
    pub systems: Vec<String>,
    /// Who is told.
    pub receivers: Vec<Receiver>,
}

/// Works on incidents, one at a time.
pub struct Workshop<O> {
    journal: Journal<O>,
    place: Place,
    setup: Setup,
    seen: Seen,
    calm: Calm,
    began: Instant,
}

/// What came of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There was something to decide, but no incident to work on.
    Decided,
    /// An incident was worked on, to its end or until somebody else took it over.
    Worked(IncidentId),
    /// There was nothing to do.
    Idle,
}

/// How the stages came to an end, if not as an error.
enum Stop {
    /// There is a result.
    Done(Outcome, Box<Findings>),
    /// A stage failed.
    Failed(Reason, String),
    /// Somebody else has it, or the worker is told to stop.
    Lost,
}

impl<O: Objects> Workshop<O> {
    /// A worker on the incidents of a place.
    #[must_use]
    pub fn new(journal: Journal<O>, place: Place, setup: Setup) -> Self {
        Workshop {
            journal,
            place,
            setup,
            seen: Seen::default(),
            calm: Calm::default(),
            began: Instant::now(),
        }
    }

    /// What the journal comes to.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        self.journal.state()
    }

    /// The journal.
    pub fn journal(&mut self) -> &mut Journal<O> {
        &mut self.journal
    }

    /// Who is told, from now on.
    pub fn set_receivers(&mut self, receivers: Vec<Receiver>) {
        self.setup.receivers = receivers;
        self.calm = Calm::default();
    }

    /// Decides what is to be decided, and works on one incident. `go_on` is asked often; where it says no, the work ends, and is taken up by whoever
    /// comes next.
    ///
    /// # Errors
    /// When the journal cannot be read or written.
    pub fn turn(&mut self, go_on: &dyn Fn() -> bool) -> Result<Turn, JournalError> {
        self.look()?;
        let (seen, receivers, calm) = (&self.seen, &self.setup.receivers, &mut self.calm);
        let mut decided = false;
        while self.journal.commit(|state| calm.housekeeping(state, seen, receivers))?.is_some() {
            decided = true;
        }
        let (seen, setup) = (&self.seen, &self.setup);
        let mut claimed = None;
        let wrote = self.journal.commit(|state| {
            let can = |incident: &crate::Incident| {
                let system = &incident.opened().system;
                setup.systems.is_empty()
                    || setup.systems.iter().any(|pattern| crate::models::glob(pattern, system))
            };
            let found = decide::claim(state, seen, &setup.worker, can);
            claimed = found.as_ref().and_then(|(id, events)| match events.as_slice() {
                [Event::Claimed { attempt, .. }] => Some((*id, *attempt)),
                _ => None,
            });
            found.map(|(_, events)| events).unwrap_or_default()
        })?;
        let Some((id, attempt)) = claimed.filter(|_| wrote.is_some()) else {
            return Ok(if decided || wrote.is_some() { Turn::Decided } else { Turn::Idle });
        };
        self.one(id, attempt, go_on)?;
        // What comes of it is decided at once.
        self.look()?;
        let (seen, receivers, calm) = (&self.seen, &self.setup.receivers, &mut self.calm);
        while self.journal.commit(|state| calm.housekeeping(state, seen, receivers))?.is_some() {}
        Ok(Turn::Worked(id))
    }

    /// Whether something waits that this worker may take later: it is not settled, or its holder may be lost.
    #[must_use]
    pub fn has_more(&self) -> bool {
        let state = self.journal.state();
        state.active().iter().any(|id| state.incidents()[id].work().is_open())
    }

    fn look(&mut self) -> Result<(), JournalError> {
        self.journal.follow()?;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let objects = self.journal.objects();
        let beat = |id, attempt| -> u64 {
            let bytes = objects.read(&Place::lease(id, attempt)).ok().flatten();
            bytes.and_then(|bytes| serde_json::from_slice::<Beat>(&bytes).ok()).map_or(0, |beat| beat.count)
        };
        self.seen.look(&self.journal.state(), now, beat);
        Ok(())
    }

    fn one(&mut self, id: IncidentId, attempt: u32, go_on: &dyn Fn() -> bool) -> Result<(), JournalError> {
        let (opened, halved, first) = {
            let state = self.journal.state();
            let incident = &state.incidents()[&id];
            let done = |other: &IncidentId| matches!(state.incidents()[other].work(), Work::Done { .. });
            let first = !state.of_kind(incident.opened()).iter().any(done);
            // What failed once may have needed too much.
            (incident.opened().clone(), incident.tries() > 0, first)
        };
        let mut attempt = Attempt {
            shop: self,
            id,
            attempt,
            opened,
            first,
            jobs: 1,
            go_on,
            beat: Beat::default(),
            beaten: None,
            stage_began: Instant::now(),
            published: BTreeSet::new(),
        };
        attempt.jobs = if halved { (attempt.shop.setup.jobs / 2).max(1) } else { attempt.shop.setup.jobs };
        let stop = attempt.stages()?;
        let number = attempt.attempt;
        if let Stop::Done(_, findings) = &stop {
            attempt.share(findings)?;
        }
        let log = attempt.log_file();
        // For whoever looks after it: the work is done without it too.
        let _ = self.place.publish(&log);
        let _ = self.journal.objects().remove(&Place::lease(id, number));
        let event = match stop {
            Stop::Lost => return self.clear_forgotten(id),
            Stop::Done(outcome, findings) => Event::Done { id, attempt: number, outcome, findings },
            Stop::Failed(reason, said) => Event::Failed { id, attempt: number, reason, said },
        };
        self.journal
            .commit(|state| if holds(state, id, number) { vec![event.clone()] } else { Vec::new() })?;
        self.clear_forgotten(id)
    }

    /// Removes what was made of an incident that was forgotten meanwhile: what its children wrote came after all else was removed.
    fn clear_forgotten(&mut self, id: IncidentId) -> Result<(), JournalError> {
        self.journal.follow()?;
        let forgotten =
            self.journal.state().incidents().get(&id).is_some_and(|one| one.work() == Work::Purged);
        if forgotten {
            self.place.remove(&self.place.data(id))?;
        }
        Ok(())
    }
}

fn holds(state: &State, id: IncidentId, attempt: u32) -> bool {
    state
        .incidents()
        .get(&id)
        .is_some_and(|incident| incident.attempt() == attempt && matches!(incident.work(), Work::Held { .. }))
}

/// One attempt at one incident.
struct Attempt<'a, O> {
    shop: &'a mut Workshop<O>,
    id: IncidentId,
    attempt: u32,
    opened: Opened,
    /// Whether it is the first of its kind.
    first: bool,
    jobs: usize,
    go_on: &'a dyn Fn() -> bool,
    beat: Beat,
    beaten: Option<Instant>,
    stage_began: Instant,
    /// What others have, of what it made.
    published: BTreeSet<String>,
}

impl<O: Objects> Attempt<'_, O> {
    fn stages(&mut self) -> Result<Stop, JournalError> {
        let data = self.shop.place.data(self.id);
        if let Err(error) = fs::create_dir_all(&data) {
            return Ok(of_disk(&error));
        }
        let mut findings = Findings::default();
        let (execution, built_from) = match self.build(&data) {
            Ok(built) => built,
            Err(stop) => return Ok(stop),
        };
        let uploads = !execution.starts_with(&data);
        if !uploads {
            findings.outputs.push(folder_output(&execution));
        }
        let Some((name, model, digest)) = self.model() else {
            let page = self.page(&data, &execution, None, &hex_of(&[FORMAT, &built_from]));
            return Ok(match page {
                Ok(page) => {
                    findings.outputs.push(page);
                    findings.symptom = "no model takes this system".to_owned();
                    Stop::Done(Outcome::Unmodelled, Box::new(findings))
                }
                Err(stop) => stop,
            });
        };
        findings.model = name;
        findings.model_digest = digest;
        if !self.enter(Stage::Replaying, &findings)? {
            return Ok(Stop::Lost);
        }
        let scenario = model.scenario.clone();
        let digest = findings.model_digest.clone();
        let key = [FORMAT, built_from.as_str(), digest.as_str()];
        let replayed = match self.replay(&model, &execution, &scenario) {
            Ok(replayed) => replayed,
            Err(stop) => return Ok(stop),
        };
        if let Some((outcome, symptom)) = replayed {
            findings.symptom = symptom;
            return Ok(match self.page(&data, &execution, None, &hex_of(&key)) {
                Ok(page) => {
                    findings.outputs.push(page);
                    Stop::Done(outcome, Box::new(findings))
                }
                Err(stop) => stop,
            });
        }
        // What happened, reduced: in short time, and with the first page.
        if !self.enter(Stage::Reducing, &findings)? {
            return Ok(Stop::Lost);
        }
        let reduced = data.join(format!("reduced-{}", hex_of(&[key[0], key[1], key[2], REDUCE])));
        let fast = ["--phases", "local", "--budget", REDUCE];
        if let Err(stop) = self.minimize(&model, &execution, &scenario, &reduced, &fast) {
            return Ok(stop);
        }
        let needs = match take_result(&reduced, &mut findings) {
            Ok(needs) => needs,
            Err(why) => return Ok(Stop::Failed(Reason::ModelFailed, why)),
        };
        let held = needs.is_some();
        findings.cause = needs.map(cause_of).unwrap_or_default();
        findings.reduced_keys = class::of_result(&reduced).ok().map(|points| class::keys(&points));
        findings.reduced_steps = Some(findings.size[0]);
        findings.outputs.push(folder_output(&reduced));
        match self.page(&data, &reduced, Some(&execution), &hex_of(&[FORMAT, &name_of(&reduced)])) {
            Ok(page) => findings.outputs.push(page),
            Err(stop) => return Ok(stop),
        }
        if !self.enter(Stage::Minimizing, &findings)? {
            return Ok(Stop::Lost);
        }
        let limits = &model.limits;
        let mut budgets = vec![&limits.budget];
        if !self.first && limits.further != limits.budget {
            // A further occurrence is mostly of a bug that is known. One that is not is worth as much as a first one.
            budgets.insert(0, &limits.further);
        }
        let last = budgets.len() - 1;
        for (at, budget) in budgets.into_iter().enumerate() {
            let made = [key[0], key[1], key[2], budget, if held { "held" } else { "" }];
            let mut found = findings.clone();
            let result = match self.shortest(&data, &model, (&execution, held), &made, &mut found)? {
                Ok(result) => result,
                Err(stop) => return Ok(stop),
            };
            if at == last || crate::group::is_known(&self.shop.journal.state(), &self.opened, &found) {
                return self.publish(&data, &model, (&execution, &result), found);
            }
        }
        Ok(Stop::Lost)
    }

    /// The search for the shortest way, with its class. Where it fails, what happened, reduced, is the result.
    fn shortest(
        &mut self,
        data: &Path,
        model: &ModelConfig,
        (execution, held): (&Path, bool),
        made: &[&str; 5],
        findings: &mut Findings,
    ) -> Result<Result<PathBuf, Stop>, JournalError> {
        let limits = &model.limits;
        let budget = made[3];
        let minimized = data.join(format!("minimized-{}", hex_of(made)));
        let jobs = self.jobs.to_string();
        let memory = limits.memory.clone();
        let scenario = model.scenario.clone();
        let mut options = vec!["--budget", budget, "--jobs", &jobs, "--memory", &memory];
        // The search is for what happened: switches that it does not need are off, or the shortest way may be another defect's.
        options.extend(held.then_some("--cause"));
        let searched = self.minimize(model, execution, &scenario, &minimized, &options);
        let result = match searched {
            Ok(()) => {
                let (before, reduced) = (findings.clone(), findings.reduced_steps);
                let needs = match take_result(&minimized, findings) {
                    Ok(needs) => needs.map(cause_of).unwrap_or_default(),
                    Err(why) => return Ok(Err(Stop::Failed(Reason::ModelFailed, why))),
                };
                findings.reduced_steps = reduced;
                // A budget may end before the search is where the local passes were.
                match findings.size > before.size {
                    true => {
                        *findings = before;
                        findings.doubts.push(format!(
                            "the search ended with its budget, {budget}, and found nothing shorter"
                        ));
                        self.reduced(data, findings).unwrap_or(minimized)
                    }
                    false => {
                        // What the shortest way needs less than what happened counts for nothing in either.
                        if findings.cause.is_empty()
                            || (!needs.is_empty() && needs.is_subset(&findings.cause))
                        {
                            findings.cause = needs;
                        }
                        findings.outputs.push(folder_output(&minimized));
                        minimized
                    }
                }
            }
            Err(Stop::Failed(reason @ (Reason::OutOfTime | Reason::OutOfMemory), _)) => {
                findings
                    .doubts
                    .push(format!("the search for the shortest way ended early: {}", reason.word()));
                match self.reduced(data, findings) {
                    Some(folder) => folder,
                    None => return Ok(Err(Stop::Failed(reason, String::new()))),
                }
            }
            Err(stop) => return Ok(Err(stop)),
        };
        if findings.proven.is_empty() {
            findings.doubts.push(open_question(findings, budget));
        }
        match class::of_result(&result) {
            Ok(points) => findings.keys = Some(class::keys(&points)),
            Err(error) => findings.doubts.push(format!("its class is not known: {error}")),
        }
        Ok(Ok(result))
    }

    /// Checks the proof and makes the last page.
    fn publish(
        &mut self,
        data: &Path,
        model: &ModelConfig,
        (execution, result): (&Path, &Path),
        mut findings: Findings,
    ) -> Result<Stop, JournalError> {
        if !self.enter(Stage::Classifying, &findings)? {
            return Ok(Stop::Lost);
        }
        findings.verified = false;
        if !findings.proven.is_empty() {
            let arguments = words(&[&"-q", &"verify", &result]);
            match self.call(model, &arguments, model.limits.report_secs) {
                Ok(ran) if ran.ended == Ended::Status(0) => findings.verified = true,
                Ok(ran) if ran.ended == Ended::Unwanted => return Ok(Stop::Lost),
                _ => {
                    findings.doubts.push(format!("the proof was not checked in time: {}", findings.proven));
                    findings.proven.clear();
                }
            }
        }
        // What was found out follows with the page.
        if !self.say(Stage::Reporting, None)? {
            return Ok(Stop::Lost);
        }
        let named = hex_of(&[FORMAT, &name_of(result), "last"]);
        Ok(match self.page(data, result, Some(execution), &named) {
            Ok(page) => {
                findings.outputs.push(page);
                findings.outputs.extend(files_of(result));
                findings.outputs.extend(self.tests(data, result, &named));
                Stop::Done(Outcome::Minimized, Box::new(findings))
            }
            Err(stop) => stop,
        })
    }

    /// The schedule as a test, in each language in which the model can be tested.
    fn tests(&mut self, data: &Path, result: &Path, key: &str) -> Vec<Output> {
        let mut made = Vec::new();
        for (_, format, file) in TESTS {
            let name = format!("report-{key}/{file}");
            let test = data.join(&name);
            if !test.is_file() {
                let arguments = words(&[&"-q", &"export", &result, &"--format", &format, &"--out", &test]);
                let (limits, program) = (crate::models::Limits::default(), self.program());
                // A model in Rust has no test in Python: that is no failure.
                let _ = self.child(&program, &arguments, limits.report_secs, None);
            }
            if let Ok(bytes) = fs::read(&test) {
                made.push(Output { name, digest: hex_of(&[&bytes]) });
            }
        }
        made
    }

    /// The folder of what happened, reduced.
    fn reduced(&self, data: &Path, findings: &Findings) -> Option<PathBuf> {
        let output = findings.outputs.iter().find(|output| output.name.starts_with("reduced-"))?;
        Some(data.join(&output.name))
    }

    /// The execution, and a digest of what it is made from.
    fn build(&mut self, data: &Path) -> Result<(PathBuf, String), Stop> {
        self.begin(Stage::Building);
        let opened = &self.opened;
        let (mut arguments, from) = match &opened.input {
            Input::Execution { upload } => {
                let folder = self.shop.place.uploads().join(upload);
                self.shop.place.bring(&folder).map_err(|error| of_disk(&error))?;
                return match is_whole(&folder, Kind::Execution) {
                    true => Ok((folder, upload.clone())),
                    false => {
                        Err(Stop::Failed(Reason::StoreUnreadable, "the execution is not whole".to_owned()))
                    }
                };
            }
            Input::Logs { upload, mapping } => {
                let folder = self.shop.place.uploads().join(upload);
                self.shop.place.bring(&folder).map_err(|error| of_disk(&error))?;
                let logs = crate::uploads::brought(&folder);
                let logs = logs.map_err(|error| of_disk(&error))?;
                let mut arguments = words(&[&"-q", &"build"]);
                arguments.extend(logs.into_iter().map(OsString::from));
                let mut from = upload.clone();
                if let Some(mapping) = mapping {
                    arguments.extend(words(&[&"--mapping", mapping]));
                    from = hex_of(&[upload, mapping]);
                }
                (arguments, from)
            }
            Input::Store => {
                (words(&[&"-q", &"build", &"--store", &self.shop.place.store()]), "store".to_owned())
            }
        };
        let mut violation = String::new();
        if !opened.at.is_empty() {
            violation = format!("event:{}", opened.at.join(","));
        } else if let crate::event::Source::Record { event } = &opened.source {
            violation = format!("record:{event}");
        } else if !opened.affected.is_empty() {
            violation = format!("actors:{}", opened.affected.join(","));
        }
        let key = hex_of(&[FORMAT, &from, &opened.system, &violation]);
        let out = data.join(format!("execution-{key}"));
        if is_whole(&out, Kind::Execution) {
            return Ok((out, key));
        }
        arguments.extend(words(&[&"--system", &opened.system, &"--out", &out]));
        if !violation.is_empty() {
            arguments.extend(words(&[&"--violation", &violation]));
        }
        let limits = crate::models::Limits::default();
        let (program, memory) = (self.shop.setup.program.clone(), None);
        let ran = self.child(&program, &arguments, limits.build_secs, memory)?;
        match ran.ended {
            // Damaged logs are built as far as they go.
            Ended::Status(0 | 2) if is_whole(&out, Kind::Execution) => Ok((out, key)),
            _ => Err(failed(&ran, Reason::StoreUnreadable)),
        }
    }

    /// The model of this incident: its name, and a digest of it.
    fn model(&self) -> Option<(String, ModelConfig, String)> {
        let program = &self.shop.setup.program;
        if let Some((name, model)) = self.shop.setup.models.of(&self.opened) {
            let digest = model.digest(program).ok()?;
            return Some((name.to_owned(), model.clone(), digest));
        }
        let kept = self.opened.model.as_deref()?;
        // A name that this program made of a digest.
        if kept.len() != 32 || !kept.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let file = self.shop.place.models().join(kept).join(KEPT_MODEL);
        if !file.is_file() {
            self.shop.place.bring(&file).ok()?;
        }
        let models = Models::read(&file).ok()?;
        let (name, model) = models.models.into_iter().next()?;
        let digest = model.digest(program).ok()?;
        Some((name, model, digest))
    }

    /// Nothing where the violation is reproduced; else how it ended, and with what.
    fn replay(
        &mut self,
        model: &ModelConfig,
        execution: &Path,
        scenario: &Path,
    ) -> Result<Option<(Outcome, String)>, Stop> {
        let arguments = words(&[&"-q", &"replay", &execution, &"--scenario", &scenario]);
        let ran = self.call(model, &arguments, model.limits.replay_secs)?;
        let said = |ran: &Ran| {
            let text = if ran.output.trim().is_empty() { &ran.said } else { &ran.output };
            cut(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim(), LINE)
        };
        match ran.ended {
            Ended::Status(0) => Ok(None),
            Ended::Status(1) => Ok(Some((Outcome::NotReproduced, said(&ran)))),
            Ended::Status(3) => Ok(Some((Outcome::Diverged, said(&ran)))),
            _ => Err(failed(&ran, Reason::ModelFailed)),
        }
    }

    fn minimize(
        &mut self,
        model: &ModelConfig,
        execution: &Path,
        scenario: &Path,
        out: &Path,
        options: &[&str],
    ) -> Result<(), Stop> {
        if is_whole(out, Kind::Minimized) {
            return Ok(());
        }
        let mut arguments =
            words(&[&"-q", &"minimize", &execution, &"--scenario", &scenario, &"--out", &out]);
        arguments.extend(options.iter().map(OsString::from));
        let ran = self.call(model, &arguments, model.limits.minimize_secs)?;
        match ran.ended {
            Ended::Status(0) if is_whole(out, Kind::Minimized) => Ok(()),
            Ended::Status(3) => Err(failed(&ran, Reason::Nondeterministic)),
            Ended::Status(4) => Err(failed(&ran, Reason::OutOfTime)),
            _ => Err(failed(&ran, Reason::ModelFailed)),
        }
    }

    /// A page of an execution or a result.
    fn page(
        &mut self,
        data: &Path,
        input: &Path,
        original: Option<&Path>,
        key: &str,
    ) -> Result<Output, Stop> {
        let name = format!("report-{key}/page.html");
        let page = data.join(&name);
        if !page.is_file() {
            let mut arguments = words(&[&"-q", &"report", &input, &"--html", &page]);
            if let Some(original) = original {
                arguments.extend(words(&[&"--original", &original]));
            }
            let (limits, program) = (crate::models::Limits::default(), self.program());
            let ran = self.child(&program, &arguments, limits.report_secs, None)?;
            if ran.ended != Ended::Status(0) {
                return Err(failed(&ran, Reason::Refused));
            }
        }
        let bytes = fs::read(&page).map_err(|error| of_disk(&error))?;
        Ok(Output { name, digest: hex_of(&[&bytes]) })
    }

    fn program(&self) -> PathBuf {
        let own = self.model().and_then(|(_, model, _)| model.program);
        own.unwrap_or_else(|| self.shop.setup.program.clone())
    }

    fn call(&mut self, model: &ModelConfig, arguments: &[OsString], seconds: u64) -> Result<Ran, Stop> {
        let program = model.program.clone().unwrap_or_else(|| self.shop.setup.program.clone());
        // The command keeps to its limit by itself where it can; this one is the last.
        let memory = bytes(&model.limits.memory).map(|bytes| bytes + bytes / 4 + (256 << 20));
        self.child(&program, arguments, seconds, memory)
    }

    fn child(
        &mut self,
        program: &Path,
        arguments: &[OsString],
        seconds: u64,
        memory: Option<u64>,
    ) -> Result<Ran, Stop> {
        let limits = Limits { time: Duration::from_secs(seconds), memory };
        let mut wanted = || self.alive();
        let ran = child::run(program, arguments, limits, &mut wanted);
        let ran =
            ran.map_err(|error| Stop::Failed(Reason::Refused, format!("{}: {error}", program.display())))?;
        if ran.ended == Ended::Unwanted {
            return Err(Stop::Lost);
        }
        self.log(arguments, &ran);
        Ok(ran)
    }

    fn log_file(&self) -> PathBuf {
        self.shop.place.data(self.id).join(format!("log-{}.txt", self.attempt))
    }

    /// Keeps what children said, for whoever looks after it.
    fn log(&self, arguments: &[OsString], ran: &Ran) {
        let what = arguments.get(1).map(|a| a.to_string_lossy().into_owned()).unwrap_or_default();
        let path = self.log_file();
        let before = fs::read_to_string(&path).unwrap_or_default();
        let said = ran.said.trim_end();
        let text =
            format!("{before}{what}: {} after {:.1} s\n{said}\n", ran.ended.words(), ran.time.as_secs_f64());
        let _ = fs::write(&path, end_of(&text, 64 << 10));
    }

    /// A sign of life now and then; whether the work is still wanted.
    fn alive(&mut self) -> bool {
        let every = Duration::from_millis(self.shop.setup.worker.lease / 4);
        if self.beaten.is_none_or(|at| at.elapsed() >= every) {
            self.beaten = Some(Instant::now());
            self.beat.count += 1;
            self.beat.seconds = self.stage_began.elapsed().as_secs_f64();
            let bytes = serde_json::to_vec(&self.beat).unwrap_or_default();
            let _ = self.shop.journal.objects().replace(&Place::lease(self.id, self.attempt), &bytes);
            // Somebody who saw no sign may have taken over.
            if self.shop.journal.follow().is_ok() && !holds(&self.shop.journal.state(), self.id, self.attempt)
            {
                return false;
            }
        }
        (self.go_on)()
    }

    fn begin(&mut self, stage: Stage) {
        self.stage_began = Instant::now();
        self.beat.stage = Some(stage);
        self.beaten = None;
    }

    /// Says that a stage begins, with what is known so far; whether the attempt still holds the incident.
    fn enter(&mut self, stage: Stage, findings: &Findings) -> Result<bool, JournalError> {
        self.say(stage, Some(Box::new(findings.clone())))
    }

    /// Lets others have what was made, before the journal tells of it.
    fn share(&mut self, findings: &Findings) -> Result<(), JournalError> {
        if !self.shop.place.is_far() {
            return Ok(());
        }
        let data = self.shop.place.data(self.id);
        // What events of the store were made to is made of them anywhere.
        let of_store = |name: &str| self.opened.input == Input::Store && name.starts_with("execution-");
        for output in findings.outputs.iter().filter(|output| !of_store(&output.name)) {
            if !self.published.contains(&output.name) {
                self.shop.place.publish(&data.join(&output.name))?;
                self.published.insert(output.name.clone());
            }
        }
        Ok(())
    }

    fn say(&mut self, stage: Stage, findings: Option<Box<Findings>>) -> Result<bool, JournalError> {
        if let Some(findings) = &findings {
            self.share(findings)?;
        }
        let seconds = self.stage_began.elapsed().as_secs_f64();
        let (id, attempt) = (self.id, self.attempt);
        let event = Event::Stage { id, attempt, stage, seconds, outputs: Vec::new(), findings };
        let written = self
            .shop
            .journal
            .commit(|state| if holds(state, id, attempt) { vec![event.clone()] } else { Vec::new() })?;
        self.begin(stage);
        Ok(written.is_some())
    }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn folder_output(folder: &Path) -> Output {
    Output { name: name_of(folder), digest: String::new() }
}

/// The files of a result that are published by themselves.
pub(crate) fn files_of(result: &Path) -> Vec<Output> {
    let files = ["schedule.jsonl", "certificate.json", "summary.json", "trace.md", "shiviz.log"];
    let of = |file: &str| {
        let digest = hex_of(&[&fs::read(result.join(file)).ok()?]);
        Some(Output { name: format!("{}/{file}", name_of(result)), digest })
    };
    files.into_iter().filter_map(of).collect()
}

fn words(words: &[&dyn AsRef<std::ffi::OsStr>]) -> Vec<OsString> {
    words.iter().map(|word| word.as_ref().to_owned()).collect()
}

/// Why a child failed.
fn failed(ran: &Ran, otherwise: Reason) -> Stop {
    let reason = match ran.ended {
        Ended::OutOfTime => Reason::OutOfTime,
        // What the system ends without being asked is what uses too much memory.
        Ended::OutOfMemory | Ended::Killed => Reason::OutOfMemory,
        _ if ran.said.contains("No space left") => Reason::DiskFull,
        _ => otherwise,
    };
    Stop::Failed(reason, end_of(ran.said.trim_end(), NOTE))
}

fn of_disk(error: &io::Error) -> Stop {
    let full = error.kind() == io::ErrorKind::StorageFull;
    Stop::Failed(if full { Reason::DiskFull } else { Reason::StoreUnreadable }, error.to_string())
}

/// A number of bytes, as in `2GiB`.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The switches without any of which the violation is gone. Where another set does as well, none is the cause.
pub(crate) fn cause_of(needs: NeededSummary) -> BTreeSet<String> {
    if needs.sole { needs.switches.into_iter().collect() } else { BTreeSet::new() }
}

/// Reads what `minimize` wrote; returns which switches of the scenario the result needs, where that is known.
pub(crate) fn take_result(folder: &Path, findings: &mut Findings) -> Result<Option<NeededSummary>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
    let text = fs::read_to_string(folder.join("summary.json")).map_err(|e| failed(&e))?;
    let summary: MinimizeSummary = serde_json::from_str(&text).map_err(|e| failed(&e))?;
    findings.size = [summary.steps, summary.deliveries, summary.externals];
    findings.initial = [summary.initial_steps, summary.initial_deliveries, summary.initial_externals];
    findings.violation = summary.violation;
    findings.network = summary.network.to_string();
    findings.at_least = summary.at_least;
    if let Some(why) = summary.not_schedulable {
        findings.doubts.push(format!("the network of the system cannot do it: {why}"));
    }
    if let Some(steps) = summary.reduced {
        findings.reduced_steps = Some(steps.steps);
    }
    let trace = fs::read_to_string(folder.join("trace.md")).unwrap_or_default();
    let proof = trace.lines().find(|line| line.starts_with("No ") && line.contains("exhaustive"));
    findings.proven = proof.map(|line| cut(line, LINE)).unwrap_or_default();
    if !findings.proven.is_empty() && !summary.switched_off.is_empty() {
        findings.proven.push_str(" Switches that what happened does not need were off.");
    }
    findings.story = story(&trace);
    Ok(summary.needs)
}

/// What is not known of the size of a result without a proof: how far the search for something shorter came.
fn open_question(findings: &Findings, budget: &str) -> String {
    let [_, deliveries, _] = findings.size;
    match findings.at_least {
        Some(least) => format!(
            "whether there is a shorter way: over these external events none has fewer than {least} deliveries, and the result has {deliveries}"
        ),
        None => {
            format!("whether there is a shorter way: the budget, {budget}, ended before that was decided")
        }
    }
}

/// The steps of a `trace.md`, a line each, with what each changed.
fn story(trace: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for line in trace.lines() {
        if is_step(line) {
            steps.push(line.to_owned());
        } else if let (Some(detail), Some(step)) = (line.strip_prefix("    - "), steps.last_mut()) {
            step.push('\n');
            step.push_str(detail);
        } else if line.starts_with("After the last step") {
            break;
        }
    }
    steps.truncate(STORY);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_becomes_steps_with_what_each_changed() {
        let trace = "# X\n\n2 steps.\n\n1. **a** starts\n    - without it step 2 is impossible\n2. **b** takes\n    - x: 0 → 1\n    - y\n\nAfter the last step: **X**.\n3. **c** no\n";
        let steps = ["1. **a** starts\nwithout it step 2 is impossible", "2. **b** takes\nx: 0 → 1\ny"];
        assert_eq!(story(trace), steps);
        assert_eq!(story("no trace"), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_proven_is_said() {
        let searched = |at_least| Findings { size: [26, 22, 8], at_least, ..Findings::default() };
        assert!(open_question(&searched(None), "5s").contains("the budget, 5s, ended"));
        let told = open_question(&searched(Some(20)), "5s");
        assert!(told.contains("none has fewer than 20 deliveries, and the result has 22"), "{told}");
    }

    #[test]
    fn amounts_are_read() {
        assert_eq!(bytes("2GiB"), Some(2 << 30));
        assert_eq!(bytes("512MiB"), Some(512 << 20));
        assert_eq!((bytes("7"), bytes("x"), bytes("3 parsecs")), (Some(7), None, None));
        assert_eq!(bytes("99999999999999999999"), None);
    }
}
