//! The result for people: numbered steps with what each changed, and a ShiViz log.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use demi_replay::script::{Act, Script, ScriptError};
use demi_replay::{Did, Model, Pending, Simulator};
use demi_schemas::summary::{MinimizeSummary, PassYield};
use demi_schemas::{Certificate, NetworkRule, Schedule};
use serde_json::Value;

use crate::oracle::causes::Causes;

/// One step as it happened.
#[derive(Clone, Debug)]
pub struct Told {
    /// The step of the schedule, from 0; none for the start of an actor that the schedule leaves unsaid.
    pub step: Option<usize>,
    /// The actor.
    pub actor: String,
    /// What happened.
    pub what: String,
    /// The step (from 0) that sent the message or armed the timer, if one did.
    pub cause: Option<usize>,
    /// Which of the things that step sent: a position in its `sent`.
    pub cause_sent: Option<usize>,
    /// What was sent, for people.
    pub sends: Vec<String>,
    /// What was sent and which timers were set, in order.
    pub sent: Vec<ToldSent>,
    /// Variables of the actor that changed: name, before, after.
    pub changes: Vec<(String, String, String)>,
    /// All variables of the actor after the step; null where it does not run.
    pub state: Value,
}

/// A message that a step sent, or a timer that it set.
#[derive(Clone, Debug)]
pub struct ToldSent {
    /// The sender it names.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Message type tag.
    pub type_: String,
    /// Full content.
    pub payload: String,
    /// Whether it is a timer.
    pub timer: bool,
}

/// Runs a schedule and tells each step.
///
/// # Errors
/// When the model cannot re-create a message from outside.
pub fn tell<M: Model>(
    sim: &Simulator<M>,
    schedule: &Schedule,
    rule: NetworkRule,
) -> Result<Vec<Told>, ScriptError> {
    let mut sim = sim.clone();
    let (script, started) = Script::compile(&mut sim, schedule)?;
    let mut world = sim.empty_world();
    let mut causes = Causes::default();
    let mut told: Vec<Told> = Vec::with_capacity(script.acts.len());
    for (index, act) in script.acts.iter().enumerate() {
        let actor = act.actor().map(|a| sim.names().get(a).to_owned()).unwrap_or_default();
        let before = describe(&sim, &world, act);
        let delivered = match act {
            Act::Deliver(want) => want.find(&sim, &world),
            _ => None,
        };
        if act.perform(&mut sim, &mut world, &script.actions, rule).is_err()
            || matches!(act, Act::Inject(..) | Act::Noted(_) | Act::Sent)
        {
            causes.follow(world.pending(), None, &[], told.len());
            continue;
        }
        let cause = causes.follow(world.pending(), delivered, sim.did(), told.len());
        let what = what(&sim, &script, act);
        let (mut sends, mut sent) = (Vec::new(), Vec::new());
        for did in sim.did() {
            if let Did::Sent(entry) | Did::TimerSet(entry) = did {
                sent.push(told_sent(&sim, entry));
            }
            match did {
                Did::Sent(entry) => {
                    let (to, payload) = (sim.names().get(entry.to), sim.text(sim.info(entry.msg).payload));
                    // Who seems to speak is told where it is not the actor itself, as in what it puts back.
                    let other = act.actor().is_some_and(|a| a != entry.from) && entry.via.is_some();
                    let from =
                        if other { format!(", from {}", sim.names().get(entry.from)) } else { String::new() };
                    sends.push(format!("to {to}{from}: {payload}"));
                }
                Did::TimerSet(_) | Did::TimerCancelled(_) | Did::Started(_) => {}
                Did::Crashed(actor) => {
                    let reason = sim.crash_reason().unwrap_or("");
                    sends.push(format!("{} fails: {reason}", sim.names().get(*actor)));
                }
                // The step itself says so.
                Did::Restarted(actor) if matches!(act, Act::Restart(own) if own == actor) => {}
                Did::Restarted(actor) => {
                    sends.push(format!("{} starts its next incarnation", sim.names().get(*actor)))
                }
            }
        }
        let state = describe(&sim, &world, act);
        let (step, changes) = (index.checked_sub(started), changes(&before, &state));
        let (cause, cause_sent) = (cause.map(|c| c.0), cause.map(|c| c.1));
        told.push(Told { step, actor, what, cause, cause_sent, sends, sent, changes, state });
    }
    Ok(told)
}

fn told_sent<M: Model>(sim: &Simulator<M>, entry: &Pending) -> ToldSent {
    let info = sim.info(entry.msg);
    ToldSent {
        from: sim.names().get(entry.from).to_owned(),
        to: sim.names().get(entry.to).to_owned(),
        type_: sim.text(info.type_).to_owned(),
        payload: sim.text(info.payload).to_owned(),
        timer: entry.kind.is_timer(),
    }
}

fn what<M: Model>(sim: &Simulator<M>, script: &Script, act: &Act) -> String {
    match act {
        Act::Start(_) => "starts".to_owned(),
        Act::Crash(_) => "fails (injected)".to_owned(),
        Act::Restart(_) => "starts its next incarnation".to_owned(),
        Act::Isolate(_) => "is cut off".to_owned(),
        Act::Heal(_) => "is back on the network".to_owned(),
        Act::Stop(_) => "is gone".to_owned(),
        Act::Duplicate(want) => {
            format!("is sent again by the network {}", sim.text(want.payload))
        }
        Act::Inject(..) | Act::Noted(_) | Act::Sent => String::new(),
        Act::Action(index) => {
            format!("runs {}", script.actions.get(*index as usize).map_or("", |(name, _)| name.as_str()))
        }
        Act::Deliver(want) => {
            let payload = sim.text(want.payload);
            match (want.timer, want.external.is_some()) {
                (true, _) => format!("timer {payload}"),
                (false, true) => format!("takes from outside {payload}"),
                (false, false) => format!("takes from {} {payload}", sim.names().get(want.from)),
            }
        }
    }
}

fn describe<M: Model>(sim: &Simulator<M>, world: &demi_replay::World<M>, act: &Act) -> Value {
    act.actor()
        .and_then(|actor| sim.view(world).state(actor))
        .map_or(Value::Null, |state| sim.model().logs().describe(state, sim.names()))
}

fn changes(before: &Value, after: &Value) -> Vec<(String, String, String)> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return Vec::new() };
    after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(*value))
        .map(|(key, value)| (key.clone(), before.get(key).map_or_else(String::new, plain), plain(value)))
        .collect()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The text of `trace.md`: the steps, what each changed and sent, and what breaks without it.
#[must_use]
pub fn trace_md(told: &[Told], summary: &MinimizeSummary, certificate: &Certificate) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "# {}\n", summary.violation.join(", "));
    let _ = writeln!(
        text,
        "{} steps with {} deliveries and {} external events, down from {}, {} and {}. Network rule: {}. {}\n",
        summary.steps,
        summary.deliveries,
        summary.externals,
        summary.initial_steps,
        summary.initial_deliveries,
        summary.initial_externals,
        summary.network,
        if summary.one_minimal {
            "Locally minimal: no single step can be left out."
        } else {
            "Not shown to be locally minimal."
        }
    );
    if let Some(settled) = &certificate.settled {
        let _ = writeln!(
            text,
            "No violating execution with any subset of the recorded external events has fewer than {} steps: the search was exhaustive.\n",
            settled.steps
        );
    } else if let Some(shortest) = &certificate.shortest {
        let _ = match shortest.optimal {
            true => writeln!(
                text,
                "No shorter execution exists with these external events{}: the search was exhaustive.\n",
                if shortest.starts_at_any_time { "" } else { " and all actors started first" }
            ),
            false => writeln!(
                text,
                "With these external events{} no execution shorter than {} deliveries exists{}{}.\n",
                if shortest.starts_at_any_time { "" } else { " and all actors started first" },
                shortest.at_least,
                if shortest.at_least < summary.deliveries { "; what lies between is open" } else { "" },
                shortest.limit().map_or_else(String::new, |why| format!(": {why}"))
            ),
        };
    }
    if told.is_empty() && summary.steps > 0 {
        text.push_str("The budget ended before the steps could be told: `schedule.jsonl` has them.\n");
    }
    for (index, step) in told.iter().enumerate() {
        let _ = write!(text, "{}. **{}** {}", index + 1, step.actor, step.what);
        if let Some(cause) = step.cause {
            let _ = write!(text, " (from step {})", cause + 1);
        }
        text.push('\n');
        for (name, before, after) in &step.changes {
            let before = if before.is_empty() { "–".into() } else { last_lines(before, 1) };
            let _ = writeln!(text, "    - {name}: {before} → {}", last_lines(after, VALUE_LINES));
        }
        for sent in &step.sends {
            let _ = writeln!(text, "    - {sent}");
        }
        if let Some(removal) = certificate.removals.get(index) {
            let _ = writeln!(text, "    - {}", removal.why());
        }
    }
    let _ = writeln!(text, "\nAfter the last step: **{}**.", summary.violation.join(", "));
    text.push_str(&passes_md(&summary.passes));
    text
}

/// Lines of a value that a trace shows: a program may write hundreds in a step.
const VALUE_LINES: usize = 12;

/// The last lines of a text, and how many stand before them. What went wrong stands at the end of what a program writes.
fn last_lines(text: &str, most: usize) -> Cow<'_, str> {
    let before = text.lines().count().saturating_sub(most);
    if before == 0 {
        return text.into();
    }
    let last: Vec<&str> = text.lines().skip(before).collect();
    format!("({before} lines before) {}", last.join("\n")).into()
}

/// What each pass won that won anything, as a table.
fn passes_md(passes: &[PassYield]) -> String {
    let won = |p: &&PassYield| p.deliveries != 0 || p.externals != 0;
    let mut text = String::new();
    for (at, p) in passes.iter().filter(won).enumerate() {
        if at == 0 {
            text.push_str("\n## What each pass won\n\nAll starts together; runs that start from the same recorded schedule win the same again.\n\n");
            text.push_str("| pass | runs | with gain | deliveries | external events | replays | deliveries executed |\n");
            text.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        }
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            p.pass, p.runs, p.gains, p.deliveries, p.externals, p.replays, p.executed
        );
    }
    text
}

/// The text of `shiviz.log`: parser line, delimiter line, then two lines an event. Vector clocks have a component
/// for each actor, whose own starts at 1 and rises by 1.
#[must_use]
pub fn shiviz(told: &[Told]) -> String {
    let mut text = String::from("(?<event>.*)\\n(?<host>\\S*) (?<clock>{.*})\n\n");
    let mut clocks: Vec<BTreeMap<String, u64>> = Vec::with_capacity(told.len());
    let mut latest: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for step in told {
        let host = host(&step.actor);
        let mut clock = latest.get(&host).cloned().unwrap_or_default();
        if let Some(cause) = step.cause.and_then(|c| clocks.get(c)) {
            for (actor, count) in cause {
                let mine = clock.entry(actor.clone()).or_default();
                *mine = (*mine).max(*count);
            }
        }
        *clock.entry(host.clone()).or_default() += 1;
        let event = step.what.replace(['\n', '\r'], " ");
        let json = serde_json::to_string(&clock).unwrap_or_default();
        let _ = writeln!(text, "{event}\n{host} {json}");
        latest.insert(host, clock.clone());
        clocks.push(clock);
    }
    text
}

/// ShiViz hosts hold neither white space nor braces.
fn host(actor: &str) -> String {
    if actor.is_empty() {
        return "_environment".to_owned();
    }
    actor.chars().map(|c| if c.is_whitespace() || c == '{' || c == '}' { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_value_the_end_is_shown() {
        assert_eq!(last_lines("a\nb", 2), "a\nb");
        assert_eq!(last_lines("a\nb\nc\n", 2), "(1 lines before) b\nc");
        assert_eq!(last_lines("a\nb\nc", 1), "(2 lines before) c");
    }
}
