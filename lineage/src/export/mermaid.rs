//! A Mermaid sequence diagram: an arrow a message where it is received, a note for anything else.

use std::io::Write;

use demi_schemas::Kind;

use super::error::ExportError;
use super::skeleton::{Joint, NONE};
use super::trace::Trace;

/// Longest text of an arrow or note, in characters: more makes a diagram that nobody can read.
const LONGEST: usize = 80;

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    writeln!(out, "sequenceDiagram")?;
    let mut shown = vec![false; s.actors.len()];
    trace.events.iter().for_each(|&e| shown[s.actor[e as usize] as usize] = true);
    let inside = |e: u32| e != NONE && trace.events.binary_search(&e).is_ok();
    for (actor, name) in s.actors.iter().enumerate().filter(|(a, _)| shown[*a]) {
        writeln!(out, "  participant a{actor} as {}", text(name))?;
    }
    for (at, &e) in trace.events.iter().enumerate() {
        let (i, content) = (e as usize, &trace.contents[at]);
        let (actor, mate) = (s.actor[i], s.mate[i]);
        let what = content.payload.as_deref().or(content.type_.as_deref()).unwrap_or("");
        match s.kind[i] {
            Kind::Send | Kind::TimerSet if inside(mate) => {}
            Kind::Send if matches!(s.joint[i], Joint::Lost | Joint::InFlight) => {
                let to =
                    content.to.as_deref().and_then(|to| s.find_actor(to)).filter(|to| shown[*to as usize]);
                let word = s.joint[i].as_str().replace('_', " ");
                writeln!(out, "  a{actor}-xa{}: {} ({word})", to.unwrap_or(actor), text(what))?;
            }
            Kind::Receive if inside(mate) => {
                writeln!(out, "  a{}->>a{actor}: {}", s.actor[mate as usize], text(what))?;
            }
            _ => writeln!(out, "  Note over a{actor}: {}", text(&format!("{} {}", trace.label(at), what)))?,
        }
    }
    Ok(())
}

/// Text as Mermaid takes it: one line, without what its grammar reads (`;`, `#`, `:` at the start, brackets, quotes).
fn text(raw: &str) -> String {
    let mut written = String::new();
    for (n, c) in raw.trim().chars().enumerate() {
        if n == LONGEST {
            written.push('…');
            break;
        }
        match c {
            c if c.is_alphanumeric()
                || matches!(c, ' ' | '-' | '_' | '.' | ',' | '(' | ')' | '/' | '=' | '+' | '*') =>
            {
                written.push(c);
            }
            c if c.is_control() || c.is_whitespace() => written.push(' '),
            c => written.push_str(&format!("#{};", u32::from(c))),
        }
    }
    // Nothing at all is no text, and `end` closes a block.
    if written.trim().is_empty() || written.eq_ignore_ascii_case("end") {
        written.push_str("#8203;");
    }
    written
}
