//! One log of all actors, as text: a line an event, in an order that keeps happens-before.

use std::io::Write;

use super::error::ExportError;
use super::trace::Trace;

/// Names up to this width stand in a column; longer ones push their line to the right.
const WIDEST: usize = 40;

/// Writes each event on a line: its name, its time where any event has one, what it is, its ends, its content.
pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0).min(WIDEST);
    let names = width(&mut trace.events.iter().map(|&e| plain(&s.id(e).to_string()).chars().count()));
    let time_of = |time: &Option<Box<str>>| plain(time.as_deref().unwrap_or_default());
    let times = width(&mut trace.contents.iter().map(|content| time_of(&content.time).chars().count()));
    for (&e, content) in trace.events.iter().zip(&trace.contents) {
        let mut line = format!("{:names$}", plain(&s.id(e).to_string()));
        if times > 0 {
            line.push_str(&format!("  {:times$}", time_of(&content.time)));
        }
        line.push_str("  ");
        line.push_str(s.kind[e as usize].as_str());
        let mut say = |before: &str, text: &Option<Box<str>>| {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                line.push_str(before);
                line.push_str(&plain(text));
            }
        };
        say(" ", &content.type_);
        say(" from ", &content.from);
        say(" to ", &content.to);
        say(" id ", &content.msg_id);
        say("  ", &content.payload);
        say("  ", &content.fields);
        say("  state ", &content.state);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// A text that cannot end the line or change the terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_break(c) { ' ' } else { c }).collect()
}

/// What some programs take for the end of a line.
fn is_break(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}
