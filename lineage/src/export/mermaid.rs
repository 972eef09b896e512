//! A Mermaid sequence diagram: a line for each event, numbered by its place in the order; a message is an arrow where it is received.
//!
//! An arrow of a sequence diagram is one moment of both its ends. So a send is drawn with its receive, as `3-5. Vote`, only where no
//! event of the sender comes between, or the diagram would say that this came before the receive; else the send has a line of
//! its own, and the arrow names it: `(3) 5. Vote`. A dashed arrow is an edge beside that of a message, as clocks and parents of spans tell it,
//! or one that goes through events that are left out. Events that have no place in the order of their log stand under a name of
//! their own.

use std::io::Write;

use demi_schemas::Kind;

use super::causes::{Cause, Causes, EdgeReason};
use super::error::ExportError;
use super::skeleton::{Joint, NONE};
use super::trace::Trace;

/// Longest text of an arrow or note, in characters: more makes a diagram that nobody can read.
const LONGEST: usize = 80;

/// An edge that is drawn as an arrow: from this position in the slice, and why.
struct Drawn<'a> {
    trace: &'a Trace,
    /// By position in the slice: its causes in other logs.
    causes: Vec<Vec<Cause>>,
    /// By position: the receive that it is drawn with, if any.
    with: Vec<Option<u32>>,
}

impl<'a> Drawn<'a> {
    fn new(trace: &'a Trace) -> Drawn<'a> {
        let not_log = |causes: Vec<Cause>| causes.into_iter().filter(|c| c.why != EdgeReason::Log).collect();
        let causes: Vec<Vec<Cause>> = Causes::new(trace).map(|(_, causes)| not_log(causes)).collect();
        let mut drawn = Drawn { trace, causes, with: vec![None; trace.events.len()] };
        let mut met = vec![false; trace.events.len()];
        let s = &trace.skeleton;
        // By line: the last position on it.
        let mut last = vec![[NONE; 2]; s.actors.len()];
        for at in 0..trace.events.len() as u32 {
            if let Some(message) = drawn.message(at) {
                let from = message.at as usize;
                let (actor, slot) = drawn.line(message.at);
                let alone = slot == 1 || last[actor][slot] == message.at;
                if !met[from]
                    && alone
                    && drawn.causes[from].is_empty()
                    && s.kind[drawn.event(from)] == Kind::Send
                {
                    drawn.with[from] = Some(at);
                }
            }
            drawn.causes[at as usize].iter().for_each(|cause| met[cause.at as usize] = true);
            let (actor, slot) = drawn.line(at);
            last[actor][slot] = at;
        }
        drawn
    }

    fn event(&self, at: usize) -> usize {
        self.trace.events[at] as usize
    }

    /// The actor of a position, and 1 for an event that has no place in the order of its log.
    fn line(&self, at: u32) -> (usize, usize) {
        let (s, e) = (&self.trace.skeleton, self.event(at as usize));
        (s.actor[e] as usize, usize::from(s.place[e] == NONE))
    }

    /// The name of a position's line.
    fn name(&self, at: u32) -> String {
        let (actor, slot) = self.line(at);
        name(actor, slot)
    }

    /// The number of a position in the order of all events.
    fn number(&self, at: u32) -> u32 {
        self.trace.events[at as usize] + 1
    }

    /// The message that a position receives.
    fn message(&self, at: u32) -> Option<Cause> {
        let receives = self.trace.skeleton.kind[self.event(at as usize)] == Kind::Receive;
        let message = |c: &&Cause| matches!(c.why, EdgeReason::Edge(joint) if joint.is_message());
        self.causes[at as usize].iter().find(message).copied().filter(|_| receives)
    }
}

fn name(actor: usize, slot: usize) -> String {
    format!("{}{actor}", if slot == 1 { 'u' } else { 'a' })
}

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    let drawn = Drawn::new(trace);
    writeln!(out, "sequenceDiagram")?;
    let mut shown = vec![[false; 2]; s.actors.len()];
    for at in 0..trace.events.len() as u32 {
        let (actor, slot) = drawn.line(at);
        shown[actor][slot] = true;
    }
    for (actor, text_of) in s.actors.iter().enumerate() {
        for slot in (0..2).filter(|slot| shown[actor][*slot]) {
            let aside = if slot == 1 { " (in no order)" } else { "" };
            writeln!(out, "  participant {} as {}{aside}", name(actor, slot), text(text_of))?;
        }
    }
    for at in 0..trace.events.len() as u32 {
        if drawn.with[at as usize].is_some() {
            continue;
        }
        let (here, number, content) = (drawn.name(at), drawn.number(at), &trace.contents[at as usize]);
        let (e, label) = (drawn.event(at as usize), trace.label(at as usize));
        let what = content.payload.as_deref().or(content.type_.as_deref()).unwrap_or("");
        let message = drawn.message(at);
        for cause in drawn.causes[at as usize].iter().filter(|c| Some(**c) != message) {
            let (from, why, guess) = (drawn.number(cause.at), cause.why.as_str(), guess(cause));
            writeln!(out, "  {}-->>{here}: ({from}) {number}. {}{guess}", drawn.name(cause.at), text(why))?;
        }
        match (message, s.kind[e]) {
            (Some(cause), _) => {
                let (from, guess) = (drawn.number(cause.at), guess(&cause));
                let numbers = match drawn.with[cause.at as usize] == Some(at) {
                    true => format!("{from}-{number}."),
                    false => format!("({from}) {number}."),
                };
                writeln!(out, "  {}->>{here}: {numbers} {}{guess}", drawn.name(cause.at), text(what))?;
            }
            (None, Kind::Send) if matches!(s.joint[e], Joint::Lost | Joint::InFlight) => {
                let to = content.to.as_deref().and_then(|to| s.find_actor(to));
                let to =
                    to.filter(|to| shown[*to as usize][0]).map_or(here.clone(), |to| name(to as usize, 0));
                let word = s.joint[e].as_str().replace('_', " ");
                writeln!(out, "  {here}-x{to}: {number}. {} ({word})", text(what))?;
            }
            _ => {
                let line = text(&format!("{label} {what}"));
                writeln!(out, "  Note over {here}: {number}. {line}")?;
            }
        }
    }
    Ok(())
}

fn guess(cause: &Cause) -> &'static str {
    if cause.certain { "" } else { " (not certain)" }
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
