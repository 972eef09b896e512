//! Questions on an engine: those that need no linear extension, and all others about a past that it fetches.

use std::process::ExitCode;

use demi_commands::ui::Ui;
use demi_lineage::query::Query;
use demi_lineage::{BuildOptions, ViolationSpec};

use super::ask::{self, Ask, EventArgs};
use super::{QueryArgs, each_line};
use crate::commands::engine::{fetch, on_engine};
use crate::commands::{Outcome, built};

/// What to do where an engine has no answer.
const WAY: &str = "fetch a past with --fetch EVENT and ask about that, or leave --engine out";

/// What is asked of a session and a system.
type Asking<'a> =
    &'a mut dyn FnMut(&mut demi_plans::Session<'_>, &str) -> Result<(), Box<dyn std::error::Error>>;

/// Answers a question on the engine that is named.
pub fn run(args: &QueryArgs, ui: &Ui) -> Outcome {
    if args.sql.sql.is_some() {
        return Err(refused("--sql", "this program's own tables and functions").into());
    }
    let Some(ask) = &args.ask else { return Err("nothing is asked: name a question (see --help)".into()) };
    if let Some(event) = &args.fetch {
        return on_fetched(args, event, ask, ui);
    }
    let (target, system) = (&args.target, args.system.as_deref());
    let session = |ask: Asking<'_>| {
        on_engine(&args.engine, target, system, args.certain, ui, |session, system| ask(session, system))
    };
    match ask {
        Ask::Past(one) | Ask::Future(one) => {
            let (events, is_past) = (events(one)?, matches!(ask, Ask::Past(_)));
            session(&mut |session, system| {
                if args.certain && !is_past {
                    return Err(refused("a future of certain edges only", "a plan of its own").into());
                }
                let (answers, effort) = match is_past {
                    true => session.past_answers(system, &events)?,
                    false => session.future_answers(system, &events)?,
                };
                let word = if is_past { "before" } else { "after" };
                answers.iter().try_for_each(|answer| ask::show_past(answer, word, one.json, ui))?;
                told(&effort, ui);
                Ok(())
            })?;
        }
        Ask::Order { events, pairs, json } => {
            let mut all = Vec::new();
            match pairs {
                Some(path) => each_line(path, |line| {
                    all.push(ask::pair(line)?);
                    Ok(())
                })?,
                None => all.push((events[0].clone(), events[1].clone())),
            }
            session(&mut |session, system| {
                let (orders, effort) = session.orders(system, &all)?;
                for ((a, b), order) in all.iter().zip(orders) {
                    ask::show_order((a, b), order, None, *json, pairs.is_some(), ui);
                }
                told(&effort, ui);
                Ok(())
            })?;
        }
        Ask::Cut { events, at, cuts: None, state: false, json } => session(&mut |session, system| {
            let cut = session.cut(system, events, at)?;
            if *json {
                ui.result(&serde_json::to_string(&cut)?);
                return Ok(());
            }
            let mut text = match (&cut.missing, cut.in_flight) {
                (Some((event, before)), _) => {
                    format!("not consistent: {event} is outside and happens before {before} inside")
                }
                (None, n) => format!("consistent, {} messages between logs in flight", n.unwrap_or(0)),
            };
            for name in cut.cut.values() {
                text.push_str(&format!("\n  up to {name}"));
            }
            ui.result(&text);
            Ok(())
        })?,
        Ask::Cut { .. } => {
            return Err(refused("a cut with states, or many cuts", "the states in their order").into());
        }
        Ask::Path { .. } => return Err(refused("a path", "the lengths of all chains").into()),
        Ask::Find { .. } => return Err(refused("what holds a text", "the content of all events").into()),
        Ask::Check { .. } => return Err(refused("a predicate over a run", "one order of all events").into()),
        Ask::Stats { .. } => {
            return Err(refused("statistics", "depths, which are of one order of all events").into());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(what: &str, why: &str) -> String {
    format!("{what} needs {why}, which the tables of lineage do not have: {WAY}")
}

/// How much was done for an answer, where notes are shown.
fn told(effort: &demi_plans::Effort, ui: &Ui) {
    let rows = effort.counted.rows_read.map_or_else(String::new, |rows| format!(", {rows} rows read"));
    let fetched = match effort.fetched {
        0 => String::new(),
        n => format!(", then {n} messages fetched"),
    };
    ui.note(&format!("{} rounds{rows}{fetched}", effort.rounds));
}

fn events(one: &EventArgs) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    match one.named() {
        (Some(path), _) => each_line(path, |line| {
            all.push(line.trim().to_owned());
            Ok(())
        })?,
        (None, event) => all.extend(event.map(str::to_owned)),
    }
    Ok(all)
}

/// Fetches the past of an event and answers in an order of that.
fn on_fetched(args: &QueryArgs, event: &str, ask: &Ask, ui: &Ui) -> Outcome {
    let scratch = tempfile::Builder::new().prefix(".demi-plans-").tempdir()?;
    let violation = ViolationSpec::Event(event.to_owned());
    let mut options = BuildOptions { violation: violation.clone(), ..BuildOptions::default() };
    let system = args.system.as_deref();
    let files = fetch(&args.engine, &args.target, system, &violation, scratch.path(), &mut options, ui)?;
    let files = files.into_iter().map(Into::into).collect();
    let folder = scratch.path().join("exec");
    built::build_of(&args.target, files, options, args.refuse_incomplete, &folder, ui)?;
    let query = Query::open(&folder, args.certain)?;
    ui.note(&format!("the answer is about the past of {event}, and nothing else"));
    ask::run(ask, &query, ui)
}
