//! What a page says without its script: the steps of its schedule as text.

use std::fmt::Write;

use demi_common::text::markup;
use demi_schemas::{EventId, Kind};

use crate::data::{Columns, Page, TraceData};

/// Most steps that are listed, and most letters of one's content.
const STEPS: usize = 400;
const LETTERS: usize = 200;

/// What stands on the page where scripts are off, as markup. Of several executions it is the second, as the page opens there.
pub(crate) fn listed(page: &Page) -> String {
    let mut out = String::from(
        "<p>This page shows an execution of a distributed program as a space-time diagram. It draws it with JavaScript, which is off.</p>",
    );
    let Some(trace) = page.traces.get(1).or(page.traces.first()) else { return out };
    for fact in &page.facts {
        let _ = write!(out, "<p>{}: {}</p>", markup(&fact.name), markup(&fact.value));
    }
    let columns = &trace.columns;
    let steps: Vec<usize> = (0..columns.actor.len()).filter(|&k| is_step(page, columns, k)).collect();
    if page.served || steps.len() > STEPS {
        let _ = write!(
            out,
            "<p>The {} execution has {} events, too many to list here. <code>demi-lineage export EXECUTION --format merged-log</code> writes them as text.</p>",
            markup(&trace.name),
            trace.events
        );
        return out;
    }
    let _ = write!(out, "<p>Steps of the {} execution:</p><ol>", markup(&trace.name));
    for k in steps {
        let violation = if trace.violations.contains(&(k as u32)) { " (violation)" } else { "" };
        let _ = write!(out, "<li>{}{violation}</li>", markup(&line(page, trace, k)));
    }
    out.push_str("</ol>");
    if !page.violation.is_empty() {
        let _ = write!(out, "<p>After the last step: {}</p>", markup(&page.violation.join(", ")));
    }
    out
}

/// Whether a walk through the schedule stops at an event; the page's script says the same.
fn is_step(page: &Page, columns: &Columns, k: usize) -> bool {
    let within =
        [Kind::Send, Kind::TimerSet, Kind::TimerCancel, Kind::State, Kind::BlockBegin, Kind::BlockEnd];
    let name = columns.kind.get(k).and_then(|code| page.kinds.get(usize::from(*code)));
    name.is_some_and(|name| within.iter().all(|kind| kind.as_str() != *name))
}

/// The name of an event, what it is, and its content.
fn line(page: &Page, trace: &TraceData, k: usize) -> String {
    let columns = &trace.columns;
    let text = |column: &[i64]| {
        let number = column.get(k).and_then(|n| usize::try_from(*n).ok())?;
        columns.texts.get(number).map(String::as_str)
    };
    let actor = trace.actors.get(columns.actor[k] as usize).cloned().unwrap_or_default();
    let id = EventId { actor, incarnation: columns.incarnation[k], seq: columns.seq[k] };
    let kind = page.kinds.get(usize::from(columns.kind[k])).copied().unwrap_or_default();
    let mut line = format!("{id} {}", kind.replace('_', " "));
    for (before, column) in [("", &columns.type_), ("from ", &columns.from), ("", &columns.payload)] {
        if let Some(text) = text(column) {
            line.push(' ');
            line.push_str(before);
            line.extend(text.chars().take(LETTERS));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(events: usize) -> Page {
        let mut page = Page::new("s".into());
        let code = |kind: Kind| page.kinds.iter().position(|k| *k == kind.as_str()).unwrap() as u8;
        let (receive, send) = (code(Kind::Receive), code(Kind::Send));
        let mut columns = Columns { texts: vec!["<Vote>".into(), "b".into()], ..Columns::default() };
        for k in 0..events {
            columns.actor.push(0);
            columns.incarnation.push(0);
            columns.seq.push(k as u64 + 1);
            columns.kind.push(if k % 2 == 0 { receive } else { send });
            columns.type_.push(0);
            columns.from.push(1);
            columns.payload.push(-1);
        }
        let violations = vec![2];
        page.traces.push(TraceData {
            name: "recorded".into(),
            actors: vec!["a".into()],
            events: events as u64,
            columns,
            violations,
            ..TraceData::default()
        });
        page
    }

    #[test]
    fn steps_are_listed_as_text_that_is_no_markup() {
        let text = listed(&page(4));
        assert!(text.contains("<li>a/1 receive &lt;Vote&gt; from b</li>"), "{text}");
        assert!(text.contains("<li>a/3 receive &lt;Vote&gt; from b (violation)</li>"), "{text}");
        assert!(!text.contains("a/2 "), "what a step does is none: {text}");
    }

    #[test]
    fn too_many_steps_are_counted() {
        assert!(listed(&page(2 * STEPS)).contains(&format!("<li>a/{} ", 2 * STEPS - 1)));
        let text = listed(&page(2 * STEPS + 1));
        assert!(!text.contains("<li>") && text.contains("has 801 events"), "{text}");
        assert!(listed(&Page::new("s".into())).contains("JavaScript"));
    }
}
