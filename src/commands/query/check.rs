//! Where a predicate over states fails.

use std::process::ExitCode;

use demi_order::query::{CheckAnswer, Predicate, Query};

use super::ask::cut_text;
use crate::commands::Outcome;
use demi_lineage::ui::Ui;

/// Failures shown to people.
const SHOWN: usize = 20;

/// Checks a predicate; exit status 1 where it fails.
pub fn run(query: &Query, predicate: &str, json: bool, ui: &Ui) -> Outcome {
    let answer = query.check(&Predicate::parse(predicate)?)?;
    let text = if json { serde_json::to_string(&answer)? } else { shown(&answer) };
    ui.result(&text);
    Ok(if answer.holds { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn shown(answer: &CheckAnswer) -> String {
    if answer.holds {
        return format!("holds of all {} global states", answer.checked);
    }
    let mut text = format!("fails of {} of {} global states:", answer.failing, answer.checked);
    for failure in answer.failures.iter().take(SHOWN) {
        let of = if failure.of.is_empty() { String::new() } else { format!(" ({})", failure.of) };
        let until = match &failure.until {
            Some(event) => format!("until {event}"),
            None => "to the end".to_owned(),
        };
        text.push_str(&format!("\n  from {} {until}{of}", failure.from));
    }
    if answer.failures.len() > SHOWN {
        text.push_str(&format!("\n  and {} more (--json has all)", answer.failures.len() - SHOWN));
    }
    if let Some(first) = &answer.first {
        text.push_str(&format!("\nthe smallest cut with the first failure: {}", cut_text(&first.cut)));
        for (actor, known) in &first.states {
            text.push_str(&format!("\n  {actor} at {}: {}", known.event, known.state));
        }
    }
    text
}
