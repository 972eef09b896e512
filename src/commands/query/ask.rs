//! The questions that have a word of their own.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_lineage::query::{CutAnswer, CutSpec, InFlight, PastAnswer, Query, Relation};
use serde_json::json;

use super::{CheckedStates, check, each_line};
use crate::commands::Outcome;
use crate::commands::find::{self, LineOf, Needle};
use demi_commands::ui::Ui;

/// What to ask. Events are ACTOR/SEQ, or ACTOR/INCARNATION/SEQ for any incarnation but the first.
#[derive(clap::Subcommand, Debug)]
pub enum Ask {
    /// Which of two events happens before the other.
    Order {
        /// The events.
        #[arg(value_name = "EVENT", num_args = 2, required_unless_present = "pairs")]
        events: Vec<String>,
        /// Read pairs from a file (- for standard input), one per line: two names separated by a blank or tab, or ["A","B"].
        #[arg(long, value_name = "FILE", conflicts_with = "events")]
        pairs: Option<PathBuf>,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// The events that hold a text, or that a line of a log became.
    Find {
        /// The text, in type, content, fields, state, sender, receiver, message id or time, whatever the case; or the name of a kind, such as
        /// restart.
        #[arg(value_name = "TEXT", required_unless_present = "line")]
        text: Option<String>,
        /// Read TEXT as a regular expression.
        #[arg(long, requires = "text")]
        regex: bool,
        /// The events that a line of a file became; lines are counted from 1.
        #[arg(long, value_name = "FILE:LINE", conflicts_with = "text")]
        line: Option<LineOf>,
        /// Print at most so many.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// The causal past of an event: its size, and the last event of each actor.
    Past(EventArgs),
    /// The causal future of an event: its size, and the first event of each actor.
    Future(EventArgs),
    /// A shortest causal chain from one event to another.
    Path {
        /// The earlier event.
        from: String,
        /// The later event.
        to: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Whether a cut is consistent, and what is in flight there.
    Cut {
        /// The last event of each actor in the cut. Actors that are not named have no events in the cut; ACTOR/0 is an empty log.
        #[arg(value_name = "EVENT", required_unless_present_any = ["at", "cuts"])]
        events: Vec<String>,
        /// Take the smallest consistent cut with these events: their causal past.
        #[arg(long, value_name = "EVENT", conflicts_with_all = ["events", "cuts"])]
        at: Vec<String>,
        /// Read cuts from a file (- for standard input), one per line: {"ACTOR": SEQ, ..} or names of events.
        #[arg(long, value_name = "FILE", conflicts_with = "events")]
        cuts: Option<PathBuf>,
        /// Print the state of each actor too, from its last state record in the cut.
        #[arg(long)]
        state: bool,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Where a predicate over the states of all actors first fails, and at which cut (exit status 1 if it fails).
    Check {
        /// The predicate, as after HAVING in SQL. There is one row for each actor, with the variables
        /// of its state. Examples: "count(*) FILTER (WHERE role = 'Leader') <= 1" or "WHERE role =
        /// 'Leader' GROUP BY term HAVING count(*) <= 1". Without an aggregate it must hold for each
        /// actor.
        predicate: String,
        /// The global states in which a predicate is evaluated.
        #[arg(long, value_enum, default_value_t = CheckedStates::All)]
        states: CheckedStates,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Longest causal chain, concurrency, fate of messages, and latencies by channel.
    Stats {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// A question about one event, or many from a file.
#[derive(clap::Args, Debug)]
pub struct EventArgs {
    /// The event.
    #[arg(value_name = "EVENT", required_unless_present = "events")]
    event: Option<String>,
    /// Read events from a file (- for standard input), one per line.
    #[arg(long, value_name = "FILE", conflicts_with = "event")]
    events: Option<PathBuf>,
    /// One JSON object per line.
    #[arg(long)]
    pub(super) json: bool,
}

impl EventArgs {
    /// The file of events, or the event.
    #[cfg(feature = "plans")]
    pub fn named(&self) -> (Option<&Path>, Option<&str>) {
        (self.events.as_deref(), self.event.as_deref())
    }
}

impl Ask {
    /// Whether many questions are asked at once, from a file.
    pub fn is_many(&self) -> bool {
        matches!(
            self,
            Ask::Order { pairs: Some(_), .. }
                | Ask::Cut { cuts: Some(_), .. }
                | Ask::Past(EventArgs { events: Some(_), .. })
                | Ask::Future(EventArgs { events: Some(_), .. })
        )
    }

    /// The file of events whose pasts are asked for, if there is one.
    pub fn many_pasts(&self) -> Option<&Path> {
        match self {
            Ask::Past(EventArgs { events: Some(file), .. }) => Some(file),
            _ => None,
        }
    }
}

/// Answers a question.
pub fn run(ask: &Ask, query: &Query, ui: &Ui) -> Outcome {
    match ask {
        Ask::Order { events, pairs, json } => match pairs {
            Some(path) => each_line(path, |line| {
                let (a, b) = pair(line)?;
                order(query, &a, &b, *json, true, ui)
            })?,
            None => order(query, &events[0], &events[1], *json, false, ui)?,
        },
        Ask::Find { text, regex, line, limit, json } => {
            let needle = match (line, text) {
                (Some(line), _) => Needle::Line(line.clone()),
                (None, text) => Needle::text(text.as_deref().unwrap_or_default(), *regex)?,
            };
            return found(query, &needle, *limit, *json, ui);
        }
        Ask::Past(one) => each_event(one, |text| {
            let answer = query.past(query.index().event(text)?)?;
            show_past(&answer, "before", one.json, ui)
        })?,
        Ask::Future(one) => each_event(one, |text| {
            let answer = query.future(query.index().event(text)?)?;
            show_past(&answer, "after", one.json, ui)
        })?,
        Ask::Path { from, to, json } => path(query, from, to, *json, ui)?,
        Ask::Cut { events, at, cuts, state, json } => {
            let messages = if *json { MESSAGES_TO_MACHINES } else { MESSAGES_TO_PEOPLE };
            let show = CutView { state: *state, json: *json, messages };
            cut(query, events, at, cuts.as_ref(), show, ui)?;
        }
        Ask::Check { predicate, states, json } => return check::run(query, predicate, *states, *json, ui),
        Ask::Stats { json } => stats(query, *json, ui)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The outcome of answering a question.
type Answered = Result<(), Box<dyn std::error::Error>>;

fn each_event(one: &EventArgs, mut f: impl FnMut(&str) -> Answered) -> Answered {
    match (&one.events, &one.event) {
        (Some(path), _) => each_line(path, |line| f(line.trim())),
        (None, Some(event)) => f(event),
        (None, None) => Ok(()),
    }
}

/// Longest text of an event that is shown to people.
const CLIPPED: usize = 120;

/// The events that hold what is looked for; exit status 1 where none does.
fn found(query: &Query, needle: &Needle, limit: usize, json: bool, ui: &Ui) -> Outcome {
    let hits = find::find(query.folder(), needle)?;
    if hits.is_empty() {
        ui.note("no event holds it");
        return Ok(ExitCode::from(1));
    }
    let skeleton = demi_lineage::export::skeleton(query.folder())?;
    for hit in hits.iter().take(limit) {
        let (name, kind) = (skeleton.id(hit.rank).to_string(), skeleton.kind[hit.rank as usize].as_str());
        let c = &hit.content;
        if json {
            let value = json!({
                "event": name, "kind": kind, "type": c.type_, "from": c.from, "to": c.to, "payload": c.payload,
                "time": c.time, "source": c.source, "offset": c.offset,
            });
            ui.result(&value.to_string());
            continue;
        }
        let mut line = format!("{name}  {kind}");
        if let Some(text) = c.type_.as_deref() {
            line.push_str(&format!(" {text}"));
        }
        for (word, who) in [("from", &c.from), ("to", &c.to)] {
            if let Some(who) = who {
                line.push_str(&format!(" {word} {who}"));
            }
        }
        let said = [&c.payload, &c.fields, &c.state].into_iter().flatten().next();
        if let Some(text) = said {
            let text = text.replace(char::is_control, " ");
            let short: String = text.chars().take(CLIPPED).collect();
            line.push_str(&format!(": {short}{}", if short.len() < text.len() { "…" } else { "" }));
        }
        ui.result(&line);
    }
    if hits.len() > limit {
        ui.note(&format!("{} of {} events (--limit shows more)", limit, hits.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Two names of events on a line.
pub(super) fn pair(line: &str) -> Result<(String, String), Box<dyn std::error::Error>> {
    let line = line.trim();
    if line.starts_with('[') {
        return Ok(serde_json::from_str(line)?);
    }
    let words: Vec<&str> = match line.contains('\t') {
        true => line.split('\t').map(str::trim).collect(),
        false => line.split_whitespace().collect(),
    };
    match words.as_slice() {
        [a, b] => Ok(((*a).to_owned(), (*b).to_owned())),
        _ => Err(format!("'{line}' is not a pair of events").into()),
    }
}

fn order(query: &Query, a: &str, b: &str, json: bool, batch: bool, ui: &Ui) -> Answered {
    let (one, other) = (query.index().event(a)?, query.index().event(b)?);
    let (relation, certain) = query.order_and_doubt(one, other)?;
    show_order((a, b), relation, Some(certain), json, batch, ui);
    Ok(())
}

/// Shows how two events stand to each other; and whether that hangs on no uncertain edge, where it is known.
pub(super) fn show_order(
    (a, b): (&str, &str),
    relation: Relation,
    certain: Option<bool>,
    json: bool,
    batch: bool,
    ui: &Ui,
) {
    let word = relation.as_str();
    if json {
        let mut answer = json!({"a": a, "b": b, "order": word});
        if let Some(certain) = certain {
            answer["certain"] = certain.into();
        }
        ui.result(&answer.to_string());
    } else if batch {
        let doubt = if certain == Some(false) { "\tnot certain" } else { "" };
        ui.result(&format!("{a}\t{word}\t{b}{doubt}"));
    } else {
        let doubt = if certain == Some(false) { ", but that is not certain" } else { "" };
        ui.result(&match word {
            "before" => format!("{a} happens before {b}{doubt}"),
            "after" => format!("{a} happens after {b}{doubt}"),
            "equal" => format!("{a} and {b} are the same event"),
            _ if certain == Some(false) => format!("it is not certain how {a} and {b} are ordered"),
            _ => format!("{a} and {b} are concurrent"),
        });
    }
}

pub(super) fn show_past(answer: &PastAnswer, word: &str, json: bool, ui: &Ui) -> Answered {
    if json {
        ui.result(&serde_json::to_string(answer)?);
        return Ok(());
    }
    let mut text = format!("{} events happen {word} {}", answer.size, answer.event);
    if answer.outside > 0 {
        text.push_str(&format!(" ({} of them outside the order of their logs)", answer.outside));
    }
    let end = if word == "before" { "up to" } else { "from" };
    for name in answer.frontier.values() {
        text.push_str(&format!("\n  {end} {name}"));
    }
    ui.result(&text);
    Ok(())
}

fn path(query: &Query, from: &str, to: &str, json: bool, ui: &Ui) -> Answered {
    let (a, b) = (query.index().event(from)?, query.index().event(to)?);
    let found = query.path(a, b)?;
    if json {
        ui.result(&json!({"from": from, "to": to, "path": found}).to_string());
        return Ok(());
    }
    let Some(hops) = found else {
        ui.result(&format!("{from} does not happen before {to}"));
        return Ok(());
    };
    let messages = hops.iter().filter(|h| h.events == 1 && !h.is_log()).count();
    let mut text = format!("{from} happens before {to}, through {messages} messages");
    for hop in &hops {
        let doubt = if hop.certain { "" } else { ", not certain" };
        let how = match hop.is_log() {
            true => format!("log, {} events on{doubt}", hop.events),
            false => format!("message, {}{doubt}", hop.reason.as_str()),
        };
        text.push_str(&format!("\n  {} -> {}  ({how})", hop.from, hop.to));
    }
    ui.result(&text);
    Ok(())
}

/// Messages in flight that are listed at a cut.
const MESSAGES_TO_PEOPLE: usize = 20;
const MESSAGES_TO_MACHINES: usize = 1000;

/// Options of showing a cut.
#[derive(Clone, Copy)]
struct CutView {
    state: bool,
    /// How many messages in flight are listed at most.
    messages: usize,
    json: bool,
}

fn cut(
    query: &Query,
    events: &[String],
    at: &[String],
    cuts: Option<&PathBuf>,
    show: CutView,
    ui: &Ui,
) -> Answered {
    if let Some(path) = cuts {
        let show = CutView { messages: 0, ..show };
        return each_line(path, |line| one_cut(query, &CutSpec::parse(query, line)?, &[], show, ui));
    }
    let mut cut = CutSpec::default();
    events.iter().try_for_each(|text| cut.add(query, text))?;
    let at = at.iter().map(|text| query.index().event(text)).collect::<Result<Vec<_>, _>>()?;
    one_cut(query, &cut, &at, show, ui)
}

fn one_cut(query: &Query, cut: &CutSpec, at: &[u32], show: CutView, ui: &Ui) -> Answered {
    if !show.state {
        let answer = query.cut_with_messages(cut, at, show.messages)?;
        let text = if show.json { serde_json::to_string(&answer)? } else { cut_text(&answer) };
        ui.result(&text);
        return Ok(());
    }
    let answer = query.state_of(cut, at)?;
    if show.json {
        ui.result(&serde_json::to_string(&answer)?);
        return Ok(());
    }
    let mut text = cut_text(&answer.cut);
    if answer.states.is_empty() {
        text.push_str("\nno log has a state record in the cut");
    }
    for (actor, known) in &answer.states {
        text.push_str(&format!("\n  {actor} at {}: {}", known.event, known.state));
    }
    ui.result(&text);
    Ok(())
}

pub(super) fn cut_text(answer: &CutAnswer) -> String {
    let mut text = match (&answer.missing, answer.ground_state) {
        (Some(m), _) => {
            format!("not consistent: {} is outside and happens before {} inside", m.event, m.before)
        }
        (None, true) => "consistent, a ground state: no message is in flight".to_owned(),
        (None, false) => format!("consistent, {} messages in flight", answer.in_flight.unwrap_or(0)),
    };
    text.push_str(&format!(
        "\n{} events; {} messages sent in it were never received ({} of them lost)",
        answer.events, answer.never_received, answer.lost
    ));
    for name in answer.cut.values() {
        text.push_str(&format!("\n  up to {name}"));
    }
    for InFlight { send, receive, certain } in &answer.messages {
        let doubt = if *certain { "" } else { ", not certain" };
        text.push_str(&format!("\n  in flight: {send} -> {receive}{doubt}"));
    }
    let listed = answer.messages.len() as u64;
    match answer.in_flight.unwrap_or(0).saturating_sub(listed) {
        more if listed > 0 && more > 0 => text.push_str(&format!("\n  and {more} more in flight")),
        _ => {}
    }
    text
}

/// Channels shown to people.
const CHANNELS: usize = 20;

fn stats(query: &Query, json: bool, ui: &Ui) -> Answered {
    let stats = query.stats()?;
    if json {
        ui.result(&serde_json::to_string(&stats)?);
        return Ok(());
    }
    let mut text = format!(
        "{} events of {} actors\nlongest causal chain: {} events, up to {}\nside by side: {:.2} events on average, {} at most at one depth",
        stats.events, stats.actors, stats.longest_chain, stats.chain_ends_at, stats.parallelism, stats.widest
    );
    text.push_str("\nmessages and timers:");
    for (status, count) in &stats.messages {
        text.push_str(&format!("\n  {status}: {count}"));
    }
    text.push_str(&format!("\n  matched, but not certain: {}", stats.uncertain));
    if stats.tied > 0 {
        text.push_str(&format!(
            "\nevents of the same time as others of their log, in the order in which they were read: {}",
            stats.tied
        ));
    }
    text.push_str("\nchannels:");
    for channel in stats.channels.iter().take(CHANNELS) {
        let latency = channel.latency.map_or(String::new(), |l| {
            format!("; {} / {} / {} microseconds (least, median, most)", l.least, l.median, l.most)
        });
        text.push_str(&format!("\n  {} -> {}: {}{latency}", channel.from, channel.to, channel.messages));
    }
    if stats.channels.len() > CHANNELS {
        text.push_str(&format!("\n  and {} more (--json has all)", stats.channels.len() - CHANNELS));
    }
    for doubt in &stats.doubts {
        text.push_str(&format!("\nodd: {doubt}"));
    }
    ui.result(&text);
    Ok(())
}
