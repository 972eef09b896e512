//! Logs for ShiViz: line 1 is the parser expression, line 2 the delimiter expression (empty), then two lines an event.
//!
//! ShiViz asks that a host's own component begins with 1 and rises by 1, that no clock names a host or an event that is
//! not there, and that hosts have neither white space nor braces (`js/model/parser.js`, `modelGraph.js`).

use std::collections::HashSet;
use std::io::Write;

use serde_json::{Map, Value};

use super::WriteOptions;
use super::causes::Causes;
use super::error::ExportError;
use super::skeleton::NONE;
use super::trace::Trace;

/// The parser expression of the logs that are written.
pub(crate) const PARSER: &str = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})";

pub(crate) fn write(trace: &Trace, options: WriteOptions, out: &mut dyn Write) -> Result<(), ExportError> {
    let hosts = hosts(trace, options);
    writeln!(out, "{PARSER}\n")?;
    // Shared hosts count their events in the order of the slice, over all lines that share them.
    let mut counts = vec![0_u64; hosts.names.len()];
    let mut of_line: Vec<(usize, Vec<u64>)> = Vec::new();
    for (stamp, _) in Causes::new(trace) {
        let at = stamp.at as usize;
        let host = hosts.of[at];
        if of_line.len() <= stamp.line as usize {
            of_line.push((host, Vec::new()));
        }
        counts[host] += 1;
        of_line[stamp.line as usize].1.push(counts[host]);
        let mut clock = Map::new();
        for &(line, count) in &stamp.clock {
            let (host, numbers) = &of_line[line as usize];
            let known = numbers[count as usize - 1];
            let entry = clock.entry(hosts.names[*host].clone()).or_insert_with(|| Value::from(0));
            if entry.as_u64() < Some(known) {
                *entry = Value::from(known);
            }
        }
        let content = &trace.contents[at];
        let mut event = trace.label(at);
        if let Some(payload) = content.payload.as_deref() {
            event.push_str(": ");
            event.push_str(payload);
        }
        writeln!(out, "{}\n{} {}", one_line(&event), hosts.names[host], serde_json::to_string(&clock)?)?;
    }
    Ok(())
}

/// The hosts of a slice.
struct Hosts {
    names: Vec<String>,
    /// By position in the slice.
    of: Vec<usize>,
}

/// The host of each event. Names are made fit for ShiViz and stay different from each other.
fn hosts(trace: &Trace, options: WriteOptions) -> Hosts {
    let s = &trace.skeleton;
    let (mut names, mut taken) = (Vec::new(), HashSet::new());
    let mut add = |name: &str, names: &mut Vec<String>| {
        let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '{' | '}');
        let base: String = name.chars().map(|c| if bad(c) { '_' } else { c }).collect();
        let base = if base.is_empty() { "_".to_owned() } else { base };
        let mut unique = base.clone();
        let mut n = 1;
        while !taken.insert(unique.clone()) {
            n += 1;
            unique = format!("{base}~{n}");
        }
        names.push(unique);
        names.len() - 1
    };
    let mut of_actor = vec![[usize::MAX; 2]; s.actors.len()];
    let mut of = Vec::with_capacity(trace.events.len());
    for &e in &trace.events {
        let actor = s.actor[e as usize] as usize;
        let loose = s.place[e as usize] == NONE;
        of.push(if loose && options.split_loose {
            add(&s.id(e).to_string(), &mut names)
        } else {
            // What threads of an actor send is beside its log, not in it.
            let slot = usize::from(loose && !s.chain[actor].is_empty());
            if of_actor[actor][slot] == usize::MAX {
                let suffix = if slot == 1 { "~threads" } else { "" };
                of_actor[actor][slot] = add(&format!("{}{suffix}", s.actors[actor]), &mut names);
            }
            of_actor[actor][slot]
        });
    }
    Hosts { names, of }
}

/// Line ends would begin another event, and other control characters show as nothing: both are written as escapes.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // JavaScript ends lines at these as well.
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => line.push_str(&c.escape_default().to_string()),
            c if c.is_control() => line.push_str(&c.escape_default().to_string()),
            c => line.push(c),
        }
    }
    line
}
