//! `demi-lineage ingest load`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use demi_common::hint::did_you_mean;
use demi_formats::Redaction;
use demi_formats::mapping::{Container, Mapper};
use demi_schemas::Kind;
use demi_schemas::summary::{ActorCompleteness, BackwardStamps, LoadSummary};
use demi_store::{LoadOptions, LoadReport, Progress, Store};

use super::Outcome;
use super::sources::{planned, progress_line, why_nothing};
use demi_commands::ui::Ui;

/// Most rows of the table that is printed for people.
const MOST_ROWS: usize = 200;
/// Most warnings about loaded events that are shown.
const MOST_WARNINGS: usize = 10;
/// Most gaps of an incarnation shown in that table.
const MOST_GAPS: usize = 4;
/// Reasons of quarantine that are explained.
const MOST_REASONS: usize = 3;

/// Arguments of `ingest load`.
#[derive(Args)]
pub struct LoadArgs {
    /// Directory of the event store; created if it does not exist.
    #[arg(long, value_name = "DIR|URL", env = "DEMI_STORE", value_parser = super::built::place())]
    store: PathBuf,
    /// Name of the recorded system or deployment.
    #[arg(long, value_name = "NAME")]
    system: String,
    /// Files, folders (searched for *.jsonl, *.ndjson, *.json, *.log and *-Log.txt, with or without .zst or .gz, and rotated files such as a.log.1),
    /// patterns, or `-` for standard input. The files of a log that was rotated are read oldest first.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    #[command(flatten)]
    mapping: super::ingest_parse::MappingArgs,
    /// A TOML file, such as the daemon's, whose table [redact] says what to remove from records, or to hash, before anything is written.
    #[arg(long, value_name = "FILE")]
    redact: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    /// The longest line to read, in bytes; longer ones go to quarantine.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    max_line_bytes: u64,
}

/// Runs `ingest load`.
pub fn load(args: &LoadArgs, ui: &Ui) -> Outcome {
    demi_store::check_system_name(&args.system)?;
    let sources = planned(&args.paths, ui)?.decoded(args.mapping.encoding);
    let mapper = args.mapping.mapper(sources.0.len() > 1)?;
    let mut options = LoadOptions::new(&args.system);
    options.max_line_bytes = usize::try_from(args.max_line_bytes)?;
    options.redact = args.redact.as_deref().map(Redaction::read).transpose()?.map(Arc::new);
    // Nothing is made for what is refused.
    let mut store = Store::create(&args.store)?;

    let container = mapper.as_ref().map_or(Container::Native, Mapper::container);
    let wrapped = mapper.as_ref().is_some_and(Mapper::is_wrapped);
    let begin = Instant::now();
    let bar = ui.progress();
    let (sources, share) = sources.counted();
    let tell = |now: &Progress| bar.set_message(progress_line(now, &share, begin.elapsed()));
    let report = match mapper {
        None => demi_store::load(&mut store, sources, &options, tell),
        Some(mapper) => demi_store::load_mapped(&mut store, sources, &options, mapper, tell),
    };
    bar.finish_and_clear();
    let report = report?;

    if args.json {
        ui.json(&report.summary)?;
    } else {
        ui.result(&text(&report, begin.elapsed()));
    }
    if report.summary.quarantined > 0 {
        let table = store.quarantine_dir();
        ui.note(&format!(
            "note: {} put in quarantine ({}); table: {}",
            count(report.summary.quarantined, "line"),
            reasons(&report.summary),
            table.display()
        ));
        let all = demi_store::quarantined(&store, Some(&args.system))?;
        for first in
            all.iter().filter(|q| report.summary.quarantine_reasons.contains_key(&q.code)).take(MOST_REASONS)
        {
            let (source, line) = (&first.source, first.line);
            ui.note(&format!("  {source}:{line} ({}): {}", first.code, in_words(&first.code, &first.reason)));
        }
    }
    for warning in BackwardStamps::told(&report.summary.backwards) {
        ui.note(&format!("warning: {warning}"));
    }
    if !report.summary.backwards.is_empty() {
        ui.note(BACKWARDS);
    }
    for warning in report.summary.warnings.iter().take(MOST_WARNINGS) {
        ui.note(&format!("odd: {warning}"));
    }
    if report.summary.warnings.len() > MOST_WARNINGS {
        ui.note(&format!("and {} more; --json lists them", report.summary.warnings.len() - MOST_WARNINGS));
    }
    for damage in &report.damaged {
        ui.error(damage);
    }
    if !report.damaged.is_empty() {
        return Ok(ExitCode::from(2));
    }
    let summary = &report.summary;
    if summary.lines == 0 || summary.added + summary.duplicates + summary.deleted > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    ui.note("nothing was loaded: no line became an event");
    // What is no JSON, or lacks a field, may be something else; what has a wrong kind is an event record.
    let is_record = summary.quarantine_reasons.keys().any(|code| code == "unknown_kind");
    if let Some(reason) = Some(())
        .filter(|()| !is_record)
        .and_then(|()| why_nothing(&args.paths, args.mapping.encoding, container, wrapped))
    {
        ui.note(&format!("likely reason: {reason}"));
    }
    Ok(ExitCode::from(1))
}

/// What can be done about stamps that run backwards.
const BACKWARDS: &str = "The order of an actor's events is that of its sequence numbers, and where a log has none, of its lines. If the newest record \
     stands first, say newest_first = true in [input] of a mapping; if the files were read in a wrong order, name them in the right one.";

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Why a record was put in quarantine, for who wrote the log.
pub(super) fn in_words(code: &str, reason: &str) -> String {
    if reason.contains("EOF while parsing") {
        return "the line ends in the middle of a record: it was cut off, or is still being written"
            .to_owned();
    }
    let kind = reason.split('\'').nth(1).filter(|_| code == "unknown_kind");
    let Some(kind) = kind else { return reason.to_owned() };
    let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    format!("{reason}{}; the kinds are {}", did_you_mean(kind, all.iter().copied()), all.join(", "))
}

fn reasons(summary: &LoadSummary) -> String {
    let parts: Vec<String> =
        summary.quarantine_reasons.iter().map(|(code, n)| format!("{code}: {n}")).collect();
    parts.join(", ")
}

fn text(report: &LoadReport, elapsed: Duration) -> String {
    let s = &report.summary;
    let mut out = format!(
        "{}: {} added from {} in {} ({:.1} MB, {:.1} s)\n{} already there, {} in conflict, {} put in quarantine",
        s.system,
        count(s.added, "record"),
        count(s.lines, "line"),
        count(s.sources, "source"),
        report.bytes as f64 / 1e6,
        elapsed.as_secs_f64(),
        s.duplicates,
        s.conflicts,
        s.quarantined,
    );
    if s.already_quarantined > 0 {
        out.push_str(&format!(", {} there already", s.already_quarantined));
    }
    if s.skipped > 0 {
        out.push_str(&format!(", {} without an event", count(s.skipped, "line")));
    }
    if s.deleted > 0 {
        out.push_str(&format!(", {} deleted before", count(s.deleted, "record")));
    }
    for execution in &s.executions {
        out.push_str(&format!(
            "\n{}: {} of {} actors",
            execution.system,
            count(execution.added, "record"),
            execution.actors.len()
        ));
    }
    if s.actors.is_empty() {
        return out;
    }
    out.push_str("\n\n");
    out.push_str(&table(&s.actors));
    out
}

/// The table of what is complete. A long one shows only incarnations with something to look at, as far as there is room.
pub(super) fn table(actors: &[ActorCompleteness]) -> String {
    let notable = |a: &&ActorCompleteness| a.missing > 0 || a.duplicates > 0 || a.conflicts > 0;
    let shown: Vec<&ActorCompleteness> = if actors.len() <= MOST_ROWS {
        actors.iter().collect()
    } else {
        actors.iter().filter(notable).take(MOST_ROWS).collect()
    };
    let head =
        ["actor", "incarnation", "first", "last", "events", "missing", "duplicates", "conflicts", "gaps"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(shown.iter().map(|a| {
        [
            a.actor.escape_debug().to_string(),
            a.incarnation.to_string(),
            a.first_seq.to_string(),
            a.last_seq.to_string(),
            a.events.to_string(),
            a.missing.to_string(),
            a.duplicates.to_string(),
            a.conflicts.to_string(),
            gaps(a),
        ]
    }));
    let mut widths = [0; 9];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut lines: Vec<String> = Vec::with_capacity(rows.len() + 1);
    for row in rows {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            match i {
                0 => line.push_str(&format!("{cell}{pad}")),
                8 => line.push_str(&format!("  {cell}")),
                _ => line.push_str(&format!("  {pad}{cell}")),
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    if shown.len() < actors.len() {
        lines.push(format!(
            "{} more incarnations of actors; --json lists them all",
            actors.len() - shown.len()
        ));
    }
    lines.join("\n")
}

fn gaps(actor: &ActorCompleteness) -> String {
    let mut parts: Vec<String> = actor
        .gaps
        .iter()
        .take(MOST_GAPS)
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    if actor.gaps.len() > MOST_GAPS {
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(actor: &str, missing: u64, gaps: Vec<(u64, u64)>) -> ActorCompleteness {
        ActorCompleteness {
            actor: actor.into(),
            events: 3,
            first_seq: 1,
            last_seq: 9,
            missing,
            gaps,
            ..Default::default()
        }
    }

    #[test]
    fn the_table_lines_up_and_shortens_gaps() {
        let gaps = vec![(2, 2), (4, 5), (7, 7), (9, 9), (11, 30)];
        let text = table(&[counts("wörker", 6, gaps), counts("a", 0, vec![])]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "actor   incarnation  first  last  events  missing  duplicates  conflicts  gaps"
        );
        assert_eq!(
            lines[1],
            "wörker            0      1     9       3        6           0          0  2, 4-5, 7, 9, …"
        );
        assert_eq!(lines[2], "a                 0      1     9       3        0           0          0");
    }

    #[test]
    fn a_long_table_shows_what_is_incomplete() {
        let mut actors: Vec<_> = (0..500).map(|n| counts(&format!("a{n}"), 0, vec![])).collect();
        actors[321].missing = 4;
        let text = table(&actors);
        assert!(
            text.contains("a321") && text.ends_with("499 more incarnations of actors; --json lists them all"),
            "{text}"
        );
    }
}
