//! All known bugs as a regression suite: the schedules of each, replayed on a model.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use demi_common::text::markup;
use demi_schemas::summary::ReplaySummary;
use schemars::JsonSchema;
use serde::Serialize;

use crate::child::{Ended, Limits, Ran, run};
use crate::fold::{Bug, State, Status};
use crate::id::hex_of;
use crate::place::Place;
use crate::view;

/// How long a replay may take.
const REPLAY: Duration = Duration::from_secs(300);
/// The budget of the search around a schedule that cannot be followed.
const SEARCH: &str = "10s";
/// How far that search goes.
const BOUND: &str = "2";

/// What came of a bug on a model, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every step was followed, and nothing breaks.
    Gone,
    /// Some steps could not be followed, and a search around them finds nothing.
    Searched,
    /// Some steps could not be followed, and the search did not end.
    Unknown,
    /// Another invariant breaks.
    Other,
    /// The same invariant breaks.
    Violates,
}

impl Verdict {
    /// A stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Gone => "gone",
            Verdict::Searched => "gone_searched",
            Verdict::Unknown => "unknown",
            Verdict::Other => "other",
            Verdict::Violates => "violates",
        }
    }

    /// Whether the bug does not happen on this model.
    #[must_use]
    pub fn is_gone(self) -> bool {
        matches!(self, Verdict::Gone | Verdict::Searched)
    }
}

/// On what schedules are replayed.
#[derive(Clone, Copy)]
pub struct On<'a> {
    /// The program that has the model.
    pub program: &'a Path,
    /// The scenario file.
    pub scenario: &'a Path,
    /// Most bytes of memory of a replay.
    pub memory: Option<u64>,
    /// Asked often: where it says no, what is left is not known.
    pub go_on: &'a dyn Fn() -> bool,
}

/// What came of a bug, as it is told.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReplayedView {
    /// The bug.
    pub bug: String,
    /// The invariant.
    pub invariant: String,
    /// `violates`, `other`, `gone`, `gone_searched` or `unknown`.
    pub verdict: &'static str,
    /// How many schedules were replayed.
    pub schedules: usize,
    /// How long it took.
    pub seconds: f64,
    /// What was said where nothing could be found out.
    pub said: String,
}

impl From<&Replayed> for ReplayedView {
    fn from(one: &Replayed) -> Self {
        ReplayedView {
            bug: format!("B-{}", one.bug),
            invariant: one.invariant.clone(),
            verdict: one.verdict.word(),
            schedules: one.schedules,
            seconds: one.seconds,
            said: one.said.clone(),
        }
    }
}

/// What came of one bug.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Its number.
    pub bug: u32,
    /// The invariant.
    pub invariant: String,
    /// The worst of its schedules.
    pub verdict: Verdict,
    /// How many schedules were replayed.
    pub schedules: usize,
    /// How long it took.
    pub seconds: f64,
    /// What was said where nothing could be found out.
    pub said: String,
}

/// The bugs that have schedules.
#[must_use]
pub fn candidates(state: &State) -> Vec<u32> {
    let has =
        |bug: &Bug| !matches!(bug.status(), Status::Merged { .. }) && !schedules_of(state, bug).is_empty();
    state.bugs().iter().filter(|(_, bug)| has(bug)).map(|(number, _)| *number).collect()
}

/// One schedule of each class of a bug, that of its representative first: its incident and its name.
fn schedules_of(state: &State, bug: &Bug) -> Vec<(crate::IncidentId, String)> {
    let mut seen = BTreeSet::new();
    let rest = bug.incidents().iter().copied().filter(|id| *id != bug.representative());
    std::iter::once(bug.representative())
        .chain(rest)
        .filter_map(|id| {
            let incident = state.incidents().get(&id)?;
            let schedule = view::file(incident, "schedule")?;
            let class = incident.findings().keys.as_ref().map(|keys| keys.exact.clone());
            seen.insert(class.unwrap_or_else(|| id.to_string())).then_some((id, schedule))
        })
        .collect()
}

/// The model that a scenario names, as its text has it.
fn model_of(scenario: &Path) -> Option<toml::Value> {
    let text = std::fs::read_to_string(scenario).ok()?;
    let table: toml::Table = text.parse().ok()?;
    table.get("model").cloned()
}

/// The schedules of a bug that a scenario's model can replay.
#[derive(Clone, Debug)]
pub struct Schedules {
    bug: u32,
    invariant: String,
    files: Vec<PathBuf>,
}

/// The schedules of a bug; nothing where they are of another model than the scenario's.
#[must_use]
pub fn schedules(state: &State, place: &Place, number: u32, scenario: &Path) -> Option<Schedules> {
    let (number, bug) = state.bug(number)?;
    let model = model_of(scenario);
    let files: Vec<PathBuf> = schedules_of(state, bug)
        .into_iter()
        .map(|(id, name)| place.data(id).join(name))
        .filter(|path| {
            let here = |path: &Path| path.is_file() || place.bring(path).is_ok();
            here(path) && here(&path.with_file_name("scenario.toml"))
        })
        .filter(|path| model_of(&path.with_file_name("scenario.toml")) == model)
        .collect();
    let stands = state.incidents().get(&bug.representative())?;
    let found = Schedules { bug: number, invariant: stands.invariant().to_owned(), files };
    (!found.files.is_empty()).then_some(found)
}

impl Schedules {
    /// Replays all of them; the worst that comes of one is what comes of the bug.
    #[must_use]
    pub fn replay(self, on: On<'_>) -> Replayed {
        let invariant = self.invariant.split(':').next().unwrap_or_default();
        let (mut verdict, mut said, mut seconds) = (Verdict::Gone, String::new(), 0.0);
        for schedule in &self.files {
            let (found, why, time) = one(on, schedule, invariant);
            seconds += time.as_secs_f64();
            if found > verdict {
                (verdict, said) = (found, why);
            }
        }
        let schedules = self.files.len();
        Replayed { bug: self.bug, invariant: self.invariant, verdict, schedules, seconds, said }
    }
}

fn one(on: On<'_>, schedule: &Path, invariant: &str) -> (Verdict, String, Duration) {
    let On { program, scenario, memory, go_on } = on;
    let limits = Limits { time: REPLAY, memory };
    let call = |arguments: &[&dyn AsRef<std::ffi::OsStr>]| -> Result<Ran, String> {
        let arguments: Vec<OsString> = arguments.iter().map(|word| word.as_ref().to_owned()).collect();
        run(program, &arguments, limits, &mut || go_on()).map_err(|error| error.to_string())
    };
    let ran = match call(&[&"-q", &"replay", &schedule, &"--scenario", &scenario, &"--json"]) {
        Ok(ran) => ran,
        Err(error) => return (Verdict::Unknown, error, Duration::ZERO),
    };
    let Ok(summary) = serde_json::from_str::<ReplaySummary>(&ran.output) else {
        return (Verdict::Unknown, ran.said.trim().to_owned(), ran.time);
    };
    let same = |fingerprint: &String| fingerprint.split(':').next() == Some(invariant);
    if !summary.violation.is_empty() {
        let verdict = if summary.violation.iter().any(same) { Verdict::Violates } else { Verdict::Other };
        return (verdict, summary.violation.join(", "), ran.time);
    }
    // That nothing breaks says something only of a schedule that was followed.
    if summary.divergences == 0 {
        return (Verdict::Gone, String::new(), ran.time);
    }
    let Ok(folder) = tempfile::tempdir() else {
        return (Verdict::Unknown, "there is no temporary folder".to_owned(), ran.time);
    };
    let out = folder.path().join("explored");
    let searched = call(&[
        &"-q",
        &"explore",
        &"--scenario",
        &scenario,
        &"--from",
        &schedule,
        &"--every",
        &"1",
        &"--bound",
        &BOUND,
        &"--budget",
        &SEARCH,
        &"--out",
        &out,
    ]);
    let steps = format!("{} steps could not be followed", summary.divergences);
    match searched {
        Ok(found) => {
            let time = ran.time + found.time;
            match found.ended {
                Ended::Status(0) => (Verdict::Searched, steps, time),
                Ended::Status(1) => {
                    (Verdict::Violates, format!("{steps}, and a search around them finds it"), time)
                }
                _ => (Verdict::Unknown, format!("{steps}, and the search around them did not end"), time),
            }
        }
        Err(error) => (Verdict::Unknown, error, ran.time),
    }
}

/// A digest of a scenario, by which verdicts are kept.
///
/// # Errors
/// When it cannot be read.
pub fn digest(scenario: &Path) -> std::io::Result<String> {
    Ok(hex_of(&[std::fs::read(scenario)?]))
}

/// The verdicts as JUnit has them, for CI.
#[must_use]
pub fn junit(all: &[Replayed]) -> String {
    let failures = all.iter().filter(|one| matches!(one.verdict, Verdict::Violates | Verdict::Other)).count();
    let skipped = all.iter().filter(|one| one.verdict == Verdict::Unknown).count();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"demi-lineage bugs\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">\n",
        all.len()
    );
    for one in all {
        let name = markup(&format!("B-{} {}", one.bug, one.invariant));
        text.push_str(&format!("  <testcase name=\"{name}\" time=\"{:.3}\">", one.seconds));
        let (word, said) = (one.verdict.word(), markup(&one.said));
        match one.verdict {
            Verdict::Violates | Verdict::Other => {
                text.push_str(&format!("<failure message=\"{word}\">{said}</failure>"));
            }
            Verdict::Unknown => text.push_str(&format!("<skipped message=\"{said}\"/>")),
            Verdict::Gone | Verdict::Searched => {}
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junit_has_a_case_for_each_bug() {
        let one = |bug, verdict, said: &str| Replayed {
            bug,
            invariant: "A<b>&\"".to_owned(),
            verdict,
            schedules: 1,
            seconds: 0.5,
            said: said.to_owned(),
        };
        let text = junit(&[
            one(1, Verdict::Gone, ""),
            one(2, Verdict::Violates, "x<y\u{0}"),
            one(3, Verdict::Unknown, "the search did not end"),
        ]);
        assert!(text.contains("tests=\"3\" failures=\"1\" skipped=\"1\""), "{text}");
        assert!(
            text.contains("B-2 A&lt;b&gt;&amp;&quot;") && text.contains(">x&lt;y\u{fffd}</failure>"),
            "{text}"
        );
        assert!(text.contains("<skipped message=\"the search did not end\"/>"), "{text}");
    }

    #[test]
    fn the_worst_verdict_is_the_last() {
        let words = [Verdict::Gone, Verdict::Searched, Verdict::Unknown, Verdict::Other, Verdict::Violates];
        assert!(words.windows(2).all(|two| two[0] < two[1]));
        assert_eq!(words.iter().filter(|verdict| verdict.is_gone()).count(), 2);
    }
}
