//! `demi-lineage check`: whether the invariants of a file hold of executions.

use std::path::PathBuf;
use std::process::ExitCode;

use demi_common::text::printable;
use demi_lineage::query::{CheckAnswer, ClassPredicate, Predicate, Scope};
use demi_schemas::{InvariantEntry, Standing};
use serde::Serialize;

use super::query::CheckedStates;
use super::{Outcome, executions, infer};
use demi_commands::ui::Ui;

/// Arguments of `check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// What to check: event stores (each system is one execution), executions written by build, and folders with logs of event records.
    #[arg(value_name = "EXEC|STORE|LOGS", required = true, value_parser = super::built::place())]
    sources: Vec<PathBuf>,
    /// The file of invariants; muted ones are skipped.
    #[arg(long, value_name = "FILE")]
    invariants: PathBuf,
    /// Check only the invariant with this id or name.
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// The system to use, for stores with several.
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// The global states in which a predicate is evaluated.
    #[arg(long, value_enum, default_value_t = CheckedStates::All)]
    states: CheckedStates,
    /// Print all answers as JSON.
    #[arg(long)]
    json: bool,
}

/// The outcome of an invariant in an execution.
#[derive(Serialize)]
struct Answer<'a> {
    execution: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(flatten)]
    answer: CheckAnswer,
}

/// Runs `check`.
pub fn run(args: &CheckArgs, ui: &Ui) -> Outcome {
    let file = infer::read(&args.invariants)?;
    let wanted = |e: &&InvariantEntry| match &args.only {
        Some(only) => e.id == *only || e.name.as_ref() == Some(only),
        None => e.status != Standing::Muted,
    };
    let chosen: Vec<&InvariantEntry> = file.invariants.iter().filter(wanted).collect();
    let path = args.invariants.display();
    if let (true, Some(only)) = (chosen.is_empty(), &args.only) {
        let known = file.invariants.iter().flat_map(|e| e.name.as_deref().into_iter().chain([e.id.as_str()]));
        let hint = demi_common::hint::did_you_mean(only, known);
        return Err(format!("{path}: no invariant is called '{only}'{hint}").into());
    }
    let mut asked = Vec::new();
    for entry in &chosen {
        let place =
            entry.name.as_deref().unwrap_or(if entry.id.is_empty() { &entry.holds } else { &entry.id });
        asked.push(ClassPredicate::of(entry).map_err(|e| format!("{path}: '{place}': {e}"))?);
    }
    let opened = executions::open(&args.sources, args.system.as_deref(), ui)?;
    let bar = ui.progress();
    let (mut answers, mut failing) = (Vec::new(), 0);
    for execution in &opened {
        let name = &execution.name;
        let begun = |i: usize| bar.set_message(format!("{name}: {}", chosen[i].holds));
        let found = execution.query.check_many(&execution.told, &asked, args.states.into(), &begun);
        for (entry, answer) in chosen.iter().zip(found) {
            let answer = answer.map_err(|e| format!("{}: '{}': {e}", execution.name, entry.holds))?;
            failing += usize::from(!answer.holds);
            answers.push(Answer {
                execution: &execution.name,
                id: &entry.id,
                name: entry.name.as_deref(),
                answer,
            });
        }
    }
    bar.finish_and_clear();
    for Answer { execution, answer, .. } in answers.iter().filter(|a| a.answer.unfinished) {
        ui.note(&format!(
            "{execution}: '{}': there are more pairs of states than were checked",
            answer.predicate
        ));
    }
    let mut silent = Vec::new();
    for (i, entry) in chosen.iter().enumerate() {
        // The answers come execution by execution, each with all invariants in their order.
        let mut own = answers.iter().skip(i).step_by(chosen.len());
        if let Some(absent) = own.clone().find_map(|a| a.answer.absent.as_ref())
            && own.all(|a| a.answer.absent.is_some())
        {
            let of = entry.class.as_deref().map_or(String::new(), |class| format!(" of {class}"));
            let holds = &entry.holds;
            if asked.get(i).is_none_or(|a| absent != a.predicate.scope().to_string().trim()) {
                return Err(format!("{path}: '{holds}': no state{of} has a variable '{absent}'").into());
            }
            silent.push(format!("'{holds}': no message{of} is one of '{absent}'"));
        }
    }
    // A run need not have messages of every sort.
    match silent.first() {
        Some(first) if silent.len() == chosen.len() => return Err(format!("{path}: {first}").into()),
        _ => silent.iter().for_each(|what| ui.note(what)),
    }
    if args.json {
        ui.json(&answers)?;
    } else {
        answers.iter().filter(|a| !a.answer.holds).for_each(|a| ui.result(&failure(a)));
        let (all, executions) = (chosen.len() - silent.len(), counted(opened.len(), "execution"));
        let rest = match silent.len() {
            0 => String::new(),
            1 => "; 1 other says nothing about it".to_owned(),
            n => format!("; {n} others say nothing about it"),
        };
        ui.result(&match failing {
            0 if all == 1 => format!("the invariant holds in {executions}{rest}"),
            0 => format!("all {} hold in {executions}{rest}", counted(all, "invariant")),
            n => format!("{} of {} in {executions}{rest}", counted(n, "failure"), counted(all, "invariant")),
        });
    }
    Ok(if failing == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A number with what is counted.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What the rows of a predicate are called.
fn rows_of(predicate: &str) -> &'static str {
    match Predicate::parse(predicate).map(|p| p.scope().clone()) {
        Ok(Scope::Messages(_)) => "messages",
        Ok(Scope::Chain) => "chains",
        _ => "states",
    }
}

fn failure(answer: &Answer<'_>) -> String {
    let Answer { execution, id, name, answer } = answer;
    let called = name.unwrap_or(id);
    let mut text = format!("{}: fails: {called}\n  {}", printable(execution), printable(&answer.predicate));
    if let Some(first) = answer.failures.first() {
        let of = if first.of.is_empty() { String::new() } else { format!(" ({})", printable(&first.of)) };
        text.push_str(&format!(
            "\n  from {}{of}, in {} of {} {}",
            first.from,
            answer.failing,
            answer.checked,
            rows_of(&answer.predicate)
        ));
    }
    for (actor, known) in answer.first.iter().flat_map(|f| &f.states) {
        let state = known.state.to_string();
        text.push_str(&format!("\n    {} at {}: {}", printable(actor), known.event, printable(&state)));
    }
    text
}
