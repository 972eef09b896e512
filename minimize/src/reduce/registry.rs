//! The passes that cost more than a sweep, each once: what runs them, what tells of them and what leaves one out reads this.

use std::fmt;

use demi_replay::Model;
use demi_replay::script::Act;

use super::passes::{
    backtrack, detours, endings, joint, late_starts, renamings, structure, subjects, subsets, window,
};
use super::reducer::Reducer;
use crate::oracle::matcher::Policy;
use crate::plan;
use crate::problem::size::size;

/// A pass over a witness that the sweeps make no smaller. [`PASSES`] says what each does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All steps of one actor.
    Actors,
    /// A step with all that it brought about.
    Cones,
    /// Several steps at different actors, each with all that it brought about.
    Joint,
    /// All steps about one request, slot or key, or about all others.
    Subjects,
    /// All steps of one term, ballot or job.
    Epochs,
    /// All that one actor sends another, or all of one type.
    Channels,
    /// What happened between two moments at which all states were the same.
    Cycles,
    /// A stretch after which two actors change places.
    Renamings,
    /// Starts at later places.
    LateStarts,
    /// Prioritized backtracking into ambiguous matches.
    Backtracks,
    /// Every way to spend fewer deliveries in a window.
    Windows,
    /// Shorter ways between two places of the witness.
    Detours,
    /// The shortest way to the violation from a place on the witness.
    Endings,
}

/// On which witnesses a pass runs. The limits are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Most steps.
    pub steps: usize,
    /// Most deliveries.
    pub deliveries: usize,
}

/// Runs on every witness.
const ANY: Gate = Gate { steps: usize::MAX, deliveries: usize::MAX };

impl Gate {
    /// Whether a witness of these steps passes.
    #[must_use]
    pub fn admits(&self, acts: &[Act]) -> bool {
        acts.len() <= self.steps && size(acts).deliveries <= self.deliveries
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = |most: usize, what: &str| (most < usize::MAX).then(|| format!("at most {most} {what}"));
        let limits = [most(self.steps, "steps"), most(self.deliveries, "deliveries")];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        f.write_str(if limits.is_empty() { "any".to_owned() } else { limits.join(", ") }.as_str())
    }
}

/// What the registry says about a pass.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The pass.
    pub pass: Pass,
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// On which witnesses it runs.
    pub gate: Gate,
    /// What it does, in one line.
    pub doc: &'static str,
}

const fn entry(pass: Pass, name: &'static str, gate: Gate, doc: &'static str) -> Entry {
    Entry { pass, name, gate, doc }
}

/// The registry: passes that cost alike come in this order.
pub const PASSES: [Entry; 13] = [
    entry(Pass::Actors, "actors", ANY, "Leaves out all steps of one actor."),
    entry(Pass::Cones, "cones", ANY, "Leaves out a step with all that it brought about."),
    entry(
        Pass::Joint,
        "joint cones",
        ANY,
        "Leaves out several steps at different actors, each with all that it brought about.",
    ),
    entry(
        Pass::Subjects,
        "subjects",
        ANY,
        "Leaves out all steps about one request, slot or key, or about all others.",
    ),
    entry(Pass::Epochs, "epochs", ANY, "Leaves out all steps of one term, ballot or job."),
    entry(
        Pass::Channels,
        "channels",
        ANY,
        "Leaves out all that one actor sends another, or all of one type.",
    ),
    entry(
        Pass::Cycles,
        "cycles",
        ANY,
        "Leaves out what happened between two moments at which all states were the same.",
    ),
    entry(
        Pass::Renamings,
        "renamings",
        Gate { steps: plan::RENAMED_STEPS, ..ANY },
        "Leaves out a stretch and lets two actors change places in the rest.",
    ),
    entry(
        Pass::LateStarts,
        "late starts",
        Gate { steps: plan::LATE_STARTS, ..ANY },
        "Moves starts to later places.",
    ),
    entry(
        Pass::Backtracks,
        "backtracks",
        Gate { deliveries: plan::BACKTRACK_DELIVERIES, ..ANY },
        "Leaves out one step and tries other messages where a match is ambiguous, the most promising first.",
    ),
    entry(
        Pass::Windows,
        "windows",
        Gate { deliveries: plan::WINDOW_DELIVERIES, ..ANY },
        "Tries every way to spend fewer deliveries in a window.",
    ),
    entry(
        Pass::Detours,
        "detours",
        Gate { deliveries: plan::DETOUR_DELIVERIES, ..ANY },
        "Looks for the shortest way between two places of the witness to what the rest needs.",
    ),
    entry(
        Pass::Endings,
        "endings",
        ANY,
        "Looks for the shortest way to the violation from a place on the witness.",
    ),
];

impl Pass {
    /// What the registry says about it.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        // In the order of the variants, as a test compares.
        &PASSES[self as usize]
    }

    /// The name in the table of yields.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Runs the pass until it gains nothing more, if its gate admits the witness.
    pub fn step<M: Model>(self, reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
        if !self.entry().gate.admits(&reducer.best.acts) {
            return;
        }
        let few = &policies[..policies.len().min(plan::FEW_POLICIES)];
        match self {
            Pass::Actors => subsets::without_actor(reducer, policies),
            Pass::Cones => structure::cones(reducer, policies),
            Pass::Joint => joint::cones(reducer, policies),
            Pass::Subjects => subjects::slices(reducer, policies),
            Pass::Epochs => structure::epochs(reducer, policies),
            Pass::Channels => structure::channels(reducer, policies),
            Pass::Cycles => structure::cycles(reducer, policies),
            Pass::Renamings => renamings::search(reducer, few),
            Pass::LateStarts => late_starts::starts(reducer, few),
            Pass::Backtracks => backtrack::remove(reducer, plan::BRANCHES),
            Pass::Windows => window::search(reducer, plan::WINDOW, few),
            Pass::Detours => detours::search(reducer, plan::DETOUR, few),
            Pass::Endings => endings::search(reducer, plan::ENDING, 1),
        }
    }
}

/// The passes of the registry without those that are left out by name.
#[must_use]
pub fn used(left_out: &[String]) -> Vec<Pass> {
    PASSES.iter().filter(|entry| !left_out.iter().any(|name| name == entry.name)).map(|e| e.pass).collect()
}

/// The names of all passes and strategies: what [`Criteria::without`](crate::Criteria::without) knows.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = PASSES.iter().map(|entry| entry.name).collect();
    for turn in &plan::PLAN {
        if !names.contains(&turn.name) {
            names.push(turn.name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::size::Size;

    #[test]
    fn each_pass_is_at_its_place() {
        for (at, entry) in PASSES.iter().enumerate() {
            assert_eq!(entry.pass as usize, at, "{}", entry.name);
            assert_eq!(entry.pass.entry().name, entry.name);
            assert!(entry.doc.ends_with('.') && !entry.doc.contains('|'), "{}", entry.doc);
        }
        let mut names = names();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name twice");
    }

    #[test]
    fn gates_hold_their_limits() {
        let start = Act::Start(demi_replay::ActorId(0));
        let two = Gate { steps: 2, ..ANY };
        assert!(two.admits(&[start, start]) && !two.admits(&[start, start, start]));
        assert_eq!(size(&[start]), Size { steps: 1, ..size(&[start]) });
        assert_eq!(Gate { deliveries: 3, ..ANY }.to_string(), "at most 3 deliveries");
        assert_eq!(ANY.to_string(), "any");
    }

    #[test]
    fn what_is_left_out_does_not_run() {
        let left = used(&["cones".to_owned(), "restarts".to_owned()]);
        assert_eq!(left.len(), PASSES.len() - 1);
        assert!(!left.contains(&Pass::Cones));
    }
}
