//! The arguments of `minimize`, and what they mean to the library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use demi_minimize::reduce::registry::names;
use demi_minimize::{Budget, Contents, Match, Objective, Phases, Repeat};
use demi_schemas::NetworkRule;

use crate::memory::Amount;
use crate::tolerance::Tolerance;

/// Arguments of `minimize`.
#[derive(clap::Args, Debug)]
pub struct MinimizeArgs {
    /// An execution written by build, a folder written by fuzz or explore, or a schedule file.
    #[arg(value_name = "EXEC|SCHEDULE")]
    pub(crate) input: PathBuf,
    /// The scenario file: model, switches, network rule, invariants.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,
    /// The folder to write the result to; an older result there is replaced.
    #[arg(long, value_name = "OUT")]
    pub(crate) out: PathBuf,
    /// The most work to do: time (60s, 2m), replays (20000r) or states (5000000states). With replays or states the result does not depend on the
    /// machine.
    #[arg(long, default_value = "60s", value_name = "BUDGET")]
    pub(crate) budget: Budget,
    /// End when nothing near the results gains any more, with budget left. By default the rest of the budget is spent on searches from other starting
    /// points, unless the result is proven.
    #[arg(long)]
    pub(crate) stop_when_stable: bool,
    /// End with the best result so far when the program uses more memory than this, such as 4GiB.
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) memory: Option<Amount>,
    /// Number of threads, 1 to 1024 [default: all cores]. It does not change the result of a budget of replays or
    /// states.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) jobs: Option<usize>,
    /// The network rule: unordered, fifo-loss or fifo; replaces the scenario's.
    #[arg(long, value_name = "RULE")]
    pub(crate) network: Option<NetworkRule>,
    /// The methods to use: all, or a baseline to compare with.
    #[arg(long, default_value = Phases::All.name(), value_parser = phases())]
    pub(crate) phases: Phases,
    /// Leave out a pass or a strategy, to see what it contributes; docs/passes.md describes each. May be given several times.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    pub(crate) without: Vec<String>,
    /// Search without the model's own knowledge: lower bound, heuristic, smaller contents, clocks and symmetry.
    #[arg(long)]
    pub(crate) no_guidance: bool,
    /// The measure of size. Ties are decided by the other measure, then by deliveries. The rest of the Pareto front over steps and external events is
    /// written beside the result.
    #[arg(long, value_enum, default_value_t = ObjectiveArg::Steps)]
    pub(crate) objective: ObjectiveArg,
    /// The violations in which the result may end.
    #[arg(long = "match", value_enum, default_value_t = MatchArg::Fingerprint, value_name = "MODE")]
    pub(crate) matching: MatchArg,
    /// Another scenario of the same model, such as the repaired program, in which the result must break no
    /// invariant. May be given several times.
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) also: Vec<PathBuf>,
    /// Restrict the search to the defects that the recording needs: switches of the scenario that the reduced recording does not need are off. The
    /// result must break the invariant with all of them on as well.
    #[arg(long)]
    pub(crate) cause: bool,
    /// For models that are not deterministic: a candidate counts if K of N runs violate the invariant.
    #[arg(long, default_value = "1-of-1", value_name = "K-of-N")]
    pub(crate) repeat: Repeat,
    /// Whether messages from outside may get smaller contents, such as a bootstrap list with fewer members.
    #[arg(long, value_enum, default_value_t = ContentsArg::Other)]
    pub(crate) contents: ContentsArg,
    /// The file from which a killed run continues when it is started again. The default is OUT.ledger, which is removed at the end. A file named here
    /// is kept, and later runs skip what was tried before.
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) tolerance: Tolerance,
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: MinimizeArgs,
}

impl MinimizeArgs {
    /// What a command line without further options says.
    pub(crate) fn plain(input: &Path, scenario: &Path, out: &Path) -> Result<Self, clap::Error> {
        let set = |name: &str, path: &Path| {
            let mut arg = OsString::from(name);
            arg.push(path);
            arg
        };
        let end = OsString::from("--");
        let words = [set("minimize", Path::new("")), set("--scenario=", scenario), set("--out=", out)];
        let words = words.into_iter().chain([end, input.into()]);
        Line::try_parse_from(words).map(|line| line.args)
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchArg {
    /// The recorded one: they share a fingerprint.
    Fingerprint,
    /// Any violation of the same invariant, whichever actors break it.
    Invariant,
    /// Any violation.
    Any,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentsArg {
    /// No: contents stay as they were recorded.
    Keep,
    /// In a second result beside the main one.
    Other,
    /// In the main result, if nothing else grows by it.
    Shrink,
}

/// Reads a pipeline by its name; the list of pipelines has the names and what they mean.
fn phases() -> impl TypedValueParser<Value = Phases> {
    let help = |phases: Phases| phases.doc().trim_end_matches('.');
    let values = Phases::ALL.map(|phases| PossibleValue::new(phases.name()).help(help(phases)));
    PossibleValuesParser::new(values).map(|name| {
        // The parser knows no other names.
        Phases::ALL.into_iter().find(|phases| phases.name() == name).unwrap_or(Phases::All)
    })
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectiveArg {
    /// Fewest steps of the schedule first: deliveries, starts, faults, actions.
    #[value(alias = "deliveries")]
    Steps,
    /// Fewest external events first, as DEMi does.
    Externals,
}

impl From<MatchArg> for Match {
    fn from(arg: MatchArg) -> Self {
        match arg {
            MatchArg::Fingerprint => Match::Fingerprint,
            MatchArg::Invariant => Match::Invariant,
            MatchArg::Any => Match::Any,
        }
    }
}

impl From<ContentsArg> for Contents {
    fn from(arg: ContentsArg) -> Self {
        match arg {
            ContentsArg::Keep => Contents::Keep,
            ContentsArg::Other => Contents::Other,
            ContentsArg::Shrink => Contents::Shrink,
        }
    }
}

impl From<ObjectiveArg> for Objective {
    fn from(arg: ObjectiveArg) -> Self {
        match arg {
            ObjectiveArg::Externals => Objective::Externals,
            ObjectiveArg::Steps => Objective::Steps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(more: &[&str]) -> Option<MinimizeArgs> {
        let line = ["minimize", "exec", "--scenario", "s.toml", "--out", "min"];
        Line::try_parse_from(line.iter().chain(more)).ok().map(|line| line.args)
    }

    #[test]
    fn threads_are_as_many_as_a_machine_may_have() {
        assert_eq!(parse(&["--jobs", "1024"]).and_then(|args| args.jobs), Some(1024));
        assert!(["0", "1025", "99999999", "-1"].iter().all(|jobs| parse(&["--jobs", jobs]).is_none()));
    }

    #[test]
    fn names_are_those_of_the_registries() {
        assert_eq!(parse(&[]).map(|args| args.phases), Some(Phases::All));
        for phases in Phases::ALL {
            assert_eq!(parse(&["--phases", phases.name()]).map(|args| args.phases), Some(phases));
        }
        assert!(parse(&["--phases", "some"]).is_none());
        let all: Vec<&str> = names().into_iter().flat_map(|name| ["--without", name]).collect();
        assert_eq!(parse(&all).map(|args| args.without.len()), Some(names().len()));
        assert!(parse(&["--without", "nonesuch"]).is_none());
    }
}
