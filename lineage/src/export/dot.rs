//! Graphviz: one cluster an actor, solid edges for messages, dashed ones for what rests on a guess, dotted ones for what the slice
//! leaves out.

use std::io::Write;

use super::causes::{Causes, EdgeReason};
use super::error::ExportError;
use super::trace::Trace;

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    writeln!(out, "digraph execution {{")?;
    writeln!(out, "  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];")?;
    let mut by_actor = vec![Vec::new(); s.actors.len()];
    for (at, &e) in trace.events.iter().enumerate() {
        by_actor[s.actor[e as usize] as usize].push(at);
    }
    for (actor, events) in by_actor.iter().enumerate().filter(|(_, events)| !events.is_empty()) {
        writeln!(out, "  subgraph cluster_{actor} {{\n    label={};", quoted(&s.actors[actor]))?;
        for &at in events {
            let e = trace.events[at];
            let mut tip = s.id(e).to_string();
            if let Some(payload) = trace.contents[at].payload.as_deref() {
                tip.push('\n');
                tip.push_str(payload);
            }
            let kept = if s.kept[e as usize] { "" } else { ", color=gray60, fontcolor=gray60" };
            let label = quoted(&trace.label(at));
            writeln!(out, "    e{e} [label={label}, tooltip={}{kept}];", quoted(&tip))?;
        }
        writeln!(out, "  }}")?;
    }
    for (stamp, causes) in Causes::new(trace) {
        let to = trace.events[stamp.at as usize];
        for cause in causes {
            let from = trace.events[cause.at as usize];
            let style = match cause.why {
                EdgeReason::Log => "style=solid, color=gray70, arrowhead=none",
                EdgeReason::Indirect => "style=dotted",
                EdgeReason::Edge(_) if cause.certain => "style=solid",
                EdgeReason::Edge(_) => "style=dashed",
            };
            let guess = if cause.certain { "" } else { " (not certain)" };
            writeln!(out, "  e{from} -> e{to} [{style}, tooltip=\"{}{guess}\"];", cause.why.as_str())?;
        }
    }
    writeln!(out, "}}")?;
    Ok(())
}

/// A quoted string of the DOT language: quotes and backslashes are escaped, line ends become `\n`.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
