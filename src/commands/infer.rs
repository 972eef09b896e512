//! `demi-lineage infer`: what held of all states that were told.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_common::text::printable;
use demi_infer::{GroupProfile, Groups, Inferred, Invariant, Options, Variables, infer};
use demi_schemas::{InvariantEntry, InvariantsFile, Standing};
use glob::Pattern;
use serde_json::json;

use super::{Outcome, executions, infer_text, replace_file};
use demi_commands::ui::Ui;

/// Bits from which an invariant that is lost makes `--against` fail.
const WELL_KNOWN: f64 = 20.0;

/// Arguments of `infer`.
#[derive(clap::Args, Debug)]
pub struct InferArgs {
    /// What to infer from: event stores (each system is one execution), executions written by build, and folders with logs of event records. Several
    /// executions refute what a single one suggests.
    #[arg(value_name = "EXEC|STORE|LOGS", required = true, value_parser = super::built::place())]
    sources: Vec<PathBuf>,
    /// The system to use, for stores with several.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The share of the executions that is held out: an invariant that these contradict is refuted.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = share)]
    holdout: f64,
    /// The groups of states to compare, separated by commas: all (the states of all actors at a moment), messages (the states on both sides of a
    /// message), chains (those along causal chains of messages), ever (all states recorded so far).
    #[arg(long, value_name = "NAMES", default_value = "all,messages,chains,ever", value_parser = Groups::parse)]
    groups: Groups,
    /// When the states of all actors are compared: after each state record of one order of the events (order), in any order, two actors at a time
    /// (pairs), or only while no message is in flight (ground). Systems that communicate all the time have few such moments.
    #[arg(long, value_enum, default_value_t = InferredStates::Order)]
    states: InferredStates,
    /// A class of actors, by a pattern of their names. By default names and variables decide. May be given several times.
    #[arg(long, value_name = "NAME=GLOB", value_parser = class)]
    class: Vec<(String, Pattern)>,
    /// Use only variables whose names match a pattern, and the variables inside them. May be given several times.
    #[arg(long, value_name = "GLOB", value_parser = Pattern::new)]
    variables: Vec<Pattern>,
    /// Ignore variables whose names match a pattern. May be given several times.
    #[arg(long, value_name = "GLOB", value_parser = Pattern::new)]
    without: Vec<Pattern>,
    /// The evidence that an invariant needs, in bits; 6.64 bits mean one chance in a hundred that it is a coincidence.
    #[arg(long, value_name = "BITS", default_value_t = 6.64)]
    min_bits: f64,
    /// The number of invariants to print; the file has all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// A file of an earlier release: report what was lost and gained. If an invariant with strong evidence was lost, the status is 1.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The file to write the invariants to. Names and statuses that people gave in it are kept.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Infer also from executions in which an invariant was broken, as if their behaviour were correct.
    #[arg(long)]
    anyway: bool,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
}

/// At which moments states are looked at together.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum InferredStates {
    /// After each state record, in the linear extension.
    Order,
    /// In the linear extension, and for each pair of states that can exist at the same time, as "at most one" needs.
    Pairs,
    /// While no message is in flight.
    Ground,
}

/// Reads the name of a class and the pattern of its actors.
fn class(text: &str) -> Result<(String, Pattern), String> {
    let (name, pattern) = text.split_once('=').ok_or("a class is NAME=GLOB, as in members=raft-member-*")?;
    Ok((name.to_owned(), Pattern::new(pattern).map_err(|e| e.to_string())?))
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("'{text}' is no number"))?;
    if (0.0..=0.9).contains(&share) { Ok(share) } else { Err("a share is between 0 and 0.9".into()) }
}

/// Runs `infer`.
pub fn run(args: &InferArgs, ui: &Ui) -> Outcome {
    // A file that cannot be kept is told before the work.
    let before = args.out.as_deref().filter(|out| out.exists()).map(read).transpose()?;
    let against = args.against.as_deref().map(read).transpose()?;
    let mut opened = executions::open(&args.sources, args.system.as_deref(), ui)?;
    if args.states == InferredStates::Ground {
        opened.iter_mut().try_for_each(executions::Ordered::take_ground)?;
        let states: usize = opened.iter().filter_map(|o| o.ground.as_ref()).map(|ground| ground.states).sum();
        ui.note(&format!("{states} ground states, one after the other"));
    }
    if args.states == InferredStates::Pairs {
        opened.iter_mut().try_for_each(executions::Ordered::take_pairs)?;
        let pairs: usize = opened.iter().map(|o| o.pairs.len()).sum();
        ui.note(&format!("{pairs} pairs of states that can exist at the same time"));
    }
    if !args.anyway {
        for execution in &opened {
            if let Some(first) = execution.query.violations()?.first() {
                return Err(format!(
                    "{}: an invariant was broken there ({first}); what is inferred from it would allow that. \
                     Leave it out, or say --anyway",
                    execution.name
                )
                .into());
            }
        }
    }
    let groups = args.groups;
    let messages = groups.messages || groups.chains;
    let all = opened.iter().map(|o| o.execution(messages)).collect::<Result<Vec<_>, _>>()?;
    let options = Options {
        min_bits: args.min_bits,
        holdout: args.holdout,
        groups,
        classes: args.class.iter().map(|(_, pattern)| pattern.clone()).collect(),
        variables: Variables { only: args.variables.clone(), without: args.without.clone() },
    };
    let bar = ui.progress();
    let inferred =
        infer(&all, &options, &mut |done, of| bar.set_message(format!("checked {done} of {of} candidates")));
    bar.finish_and_clear();
    if inferred.classes.iter().all(|class| class.variables.is_empty() && class.constants.is_empty()) {
        return Err(no_variables(&inferred, !args.variables.is_empty() || !args.without.is_empty()).into());
    }
    let entries = merged(&inferred, before.as_ref(), all.len());
    if let Some(out) = &args.out {
        let text = InvariantsFile::new(entries.clone()).to_text();
        replace_file(out, |file| Ok(file.write_all(text.as_bytes())?))?;
    }
    let changes = against.map(|old| compared(&old, &entries));
    if args.json {
        let refuted: Vec<InvariantEntry> = inferred.refuted.iter().map(|i| entry(i, all.len())).collect();
        let classes: Vec<_> = inferred
            .classes
            .iter()
            .map(|c| {
                let constants: serde_json::Map<String, serde_json::Value> =
                    c.constants.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
                json!({
                    "class": c.class, "actors": c.actors, "states": c.states, "variables": c.variables,
                    "constants": constants, "left_out": c.left_out,
                })
            })
            .collect();
        ui.json(&json!({
            "executions": all.len(), "ground_states": ground_states(&opened), "held_out": inferred.held_out, "classes": classes,
            "groups": groups_json(&inferred), "small_groups": inferred.small_groups,
            "invariants": infer_text::with_nearest(&entries, &inferred, &opened)?, "refuted": refuted, "below": inferred.below,
            "lost": changes.as_ref().map(|c| &c.lost), "gained": changes.as_ref().map(|c| &c.gained),
        }))?;
    } else {
        ui.result(&infer_text::told(&inferred, &opened, &args.class, args.top)?);
        if let Some(changes) = &changes {
            ui.result(&changes.text());
        }
        if let Some(out) = &args.out {
            ui.result(&format!("wrote {}", out.display()));
        }
    }
    let lost = changes.is_some_and(|c| c.lost.iter().any(|l| l.bits >= Some(WELL_KNOWN)));
    Ok(if lost { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Why nothing can be inferred where no variable takes part.
fn no_variables(inferred: &Inferred, are_chosen: bool) -> String {
    let left_out: BTreeSet<&str> =
        inferred.classes.iter().flat_map(|class| &class.left_out).map(String::as_str).collect();
    match left_out.is_empty() {
        true if are_chosen => "no variable is used: --variables and --without leave none".to_owned(),
        true => format!(
            "the recorded states have no variables, so nothing can be inferred; {}",
            executions::HOW_TO_TELL
        ),
        false => format!(
            "no variable is used; these are identifiers, addresses or beyond a limit: {}",
            left_out.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}

/// How many ground states each execution has, where these were looked at.
fn ground_states(opened: &[executions::Ordered]) -> Option<Vec<usize>> {
    opened.iter().map(|o| o.ground.as_ref().map(|ground| ground.states)).collect()
}

fn groups_json(inferred: &Inferred) -> Vec<serde_json::Value> {
    let one = |g: &GroupProfile| json!({ "class": g.class, "rows_are": g.rows_are, "rows": g.rows });
    inferred.groups.iter().map(one).collect()
}

/// Reads a file of invariants; errors name it.
pub fn read(path: &Path) -> Result<InvariantsFile, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    InvariantsFile::parse(&text).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn entry(invariant: &Invariant, executions: usize) -> InvariantEntry {
    InvariantEntry {
        id: invariant.id.clone(),
        name: None,
        holds: invariant.holds.clone(),
        class: Some(invariant.class.clone()),
        status: Standing::Inferred,
        bits: Some(invariant.bits),
        episodes: Some(invariant.episodes as u64),
        executions: Some(executions as u64),
        shadowed_by: invariant.shadowed_by.clone(),
    }
}

/// What was inferred, with what people said before: their names, their standing, and what they wrote themselves.
fn merged(inferred: &Inferred, before: Option<&InvariantsFile>, executions: usize) -> Vec<InvariantEntry> {
    let mut entries: Vec<InvariantEntry> = inferred.invariants.iter().map(|i| entry(i, executions)).collect();
    for old in before.into_iter().flat_map(|file| &file.invariants) {
        match entries.iter_mut().find(|e| e.holds == old.holds && e.class == old.class) {
            Some(entry) => (entry.name, entry.status) = (old.name.clone(), old.status),
            None if old.status != Standing::Inferred || old.name.is_some() || old.id.is_empty() => {
                entries.push(old.clone());
            }
            None => {}
        }
    }
    entries
}

/// The differences from a file of an earlier release.
struct Changes {
    lost: Vec<InvariantEntry>,
    gained: Vec<InvariantEntry>,
}

fn compared(old: &InvariantsFile, new: &[InvariantEntry]) -> Changes {
    let key = |e: &InvariantEntry| (e.holds.clone(), e.class.clone());
    let known: BTreeSet<_> = old.invariants.iter().map(key).collect();
    let now: BTreeSet<_> = new.iter().map(key).collect();
    let lost = old.invariants.iter().filter(|e| e.status != Standing::Muted && !now.contains(&key(e)));
    Changes {
        lost: lost.cloned().collect(),
        gained: new
            .iter()
            .filter(|e| e.shadowed_by.is_empty() && !known.contains(&key(e)))
            .cloned()
            .collect(),
    }
}

impl Changes {
    fn text(&self) -> String {
        let mut text = format!("{} lost, {} gained", self.lost.len(), self.gained.len());
        for (sign, all) in [('-', &self.lost), ('+', &self.gained)] {
            for entry in all {
                let bits = entry.bits.map_or(String::new(), |b| format!(" ({b:.0} bits)"));
                text.push_str(&format!("\n  {sign} {}{bits}", printable(&entry.holds)));
            }
        }
        text
    }
}
