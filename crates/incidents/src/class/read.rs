//! The steps of a result, from the files that `minimize` wrote.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use demi_schemas::schedule::StepKind;
use demi_schemas::{Schedule, Step};

use super::Point;

/// A result whose steps cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unread {
    /// A file cannot be read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {why}", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The steps of the schedule in a folder that `minimize` wrote, with what each follows as its `shiviz.log` has it, and what each does as its
/// `trace.md` tells it.
///
/// # Errors
/// When a file cannot be read.
pub fn of_result(folder: &Path) -> Result<Vec<Point>, Unread> {
    let text = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|source| Unread::Io { path, source })
    };
    let path = folder.join("schedule.jsonl");
    let other = |why: String| Unread::Other { path: path.clone(), why };
    let schedule = Schedule::parse(&text("schedule.jsonl")?).map_err(|error| other(error.to_string()))?;
    let run: Vec<&Step> = schedule
        .steps
        .iter()
        .filter(|step| !matches!(step.kind, StepKind::External | StepKind::Send))
        .collect();
    let mut points: Vec<Point> = run.iter().map(|step| point(step)).collect();
    let clocks = clocks(&text("shiviz.log")?);
    // What the schedule leaves unsaid, the start of all actors, stands before its own steps.
    let Some(unsaid) = clocks.len().checked_sub(points.len()) else {
        return Err(other("it has more steps than the log of its run".to_owned()));
    };
    for (at, causes) in causes(&clocks).into_iter().enumerate().skip(unsaid) {
        points[at - unsaid].causes = causes.into_iter().filter_map(|c| c.checked_sub(unsaid)).collect();
    }
    // An explanation is for people: without one, less is known of the steps.
    let told = effects(&text("trace.md").unwrap_or_default());
    if let Some(unsaid) = told.len().checked_sub(points.len()) {
        for (point, effects) in points.iter_mut().zip(told.into_iter().skip(unsaid)) {
            point.effects = effects;
        }
    }
    Ok(points)
}

/// By numbered step of a `trace.md`: what is told of it.
fn effects(trace: &str) -> Vec<Vec<String>> {
    let mut steps: Vec<Vec<String>> = Vec::new();
    for line in trace.lines() {
        if crate::text::is_step(line) {
            steps.push(Vec::new());
        } else if let (Some(effect), Some(step)) = (line.strip_prefix("    - "), steps.last_mut()) {
            step.push(effect.to_owned());
        } else if line.starts_with("After the last step") {
            break;
        }
    }
    steps
}

fn point(step: &Step) -> Point {
    let kind = match step.kind {
        StepKind::Start => "start",
        StepKind::External => "external",
        StepKind::Send => "send",
        StepKind::Deliver => "deliver",
        StepKind::Timer => "timer",
        StepKind::Crash => "crash",
        StepKind::Restart => "restart",
        StepKind::Isolate => "isolate",
        StepKind::Heal => "heal",
        StepKind::Duplicate => "duplicate",
        StepKind::Stop => "stop",
        StepKind::Action => "action",
    };
    Point {
        kind: kind.to_owned(),
        type_: step.type_.clone().unwrap_or_default(),
        external: step.external.unwrap_or(!step.kind.is_delivery()),
        actor: step.to.clone(),
        content: step.payload.clone().unwrap_or_default(),
        causes: Vec::new(),
        effects: Vec::new(),
    }
}

/// A host and the clock of one of its steps.
type Stamp = (String, BTreeMap<String, u64>);

/// The vector clocks of a ShiViz log, in the order of its steps.
fn clocks(log: &str) -> Vec<Stamp> {
    // The first two lines say how to read it; then come two lines a step.
    let lines: Vec<&str> = log.lines().skip(2).collect();
    let stamp = |line: &str| {
        let (host, clock) = line.split_once(' ')?;
        Some((host.to_owned(), serde_json::from_str(clock).ok()?))
    };
    lines.chunks(2).filter_map(|two| stamp(two.get(1)?)).collect()
}

/// By step: the steps of other hosts that it follows directly.
fn causes(clocks: &[Stamp]) -> Vec<Vec<usize>> {
    let mut place: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = Vec::with_capacity(clocks.len());
    for (at, (host, clock)) in clocks.iter().enumerate() {
        let before = last.insert(host, at).map(|at| &clocks[at].1);
        let news: Vec<(&str, u64)> = clock
            .iter()
            .filter(|(other, count)| {
                *other != host && before.and_then(|before| before.get(*other)).copied().unwrap_or(0) < **count
            })
            .map(|(other, count)| (other.as_str(), *count))
            .collect();
        // Of what is new, that which does not come with something else that is new.
        let direct = news.iter().filter(|(other, count)| {
            !news.iter().any(|(through, until)| {
                through != other
                    && place
                        .get(&(*through, *until))
                        .is_some_and(|at| clocks[*at].1.get(*other).copied().unwrap_or(0) >= *count)
            })
        });
        all.push(direct.filter_map(|key| place.get(key).copied()).collect());
        if let Some(own) = clock.get(host) {
            place.insert((host.as_str(), *own), at);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_follows_directly_what_it_took() {
        let log = "(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})\n\n\
                   starts\na {\"a\":1}\nstarts\nb {\"b\":1}\ntakes\nb {\"a\":1,\"b\":2}\ntakes\nc {\"a\":1,\"b\":2,\"c\":1}\n";
        let clocks = clocks(log);
        assert_eq!(clocks.len(), 4);
        assert_eq!(causes(&clocks), [vec![], vec![], vec![0], vec![2]]);
    }
}
