//! `demi-lineage ingest parse` and `ingest mappings`: what a mapping makes of a log, and which there are.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use demi_formats::Encoding;
use demi_formats::mapping::{Mapper, Mapping, Overrides, Unit, Wrapper, shipped};
use demi_formats::{Events, Fate};
use serde_json::{Value, json};

use super::Outcome;
use demi_commands::out::{is_closed, stdout};
use demi_commands::ui::Ui;

/// How a log is read.
#[derive(Args, Clone)]
pub struct MappingArgs {
    /// Mapping of the log's format: a name of `ingest mappings`, or a TOML file.
    #[arg(long, value_name = "NAME|FILE")]
    pub mapping: Option<String>,
    /// For text logs: the regular expression of a record, in place of the mapping's or of the one in the file's first line.
    #[arg(long, value_name = "REGEX", requires = "mapping")]
    pub parser: Option<String>,
    /// The regular expression of the line between two executions. A group named `trace` gives the name of
    /// the next execution.
    #[arg(long, value_name = "REGEX", requires = "mapping")]
    pub delimiter: Option<String>,
    /// What a container runtime or a system logger wrote around each line: cri, docker, compose, kubectl, journal or syslog. It is taken off, and
    /// lines that were cut are joined again.
    #[arg(long, value_name = "NAME")]
    pub wrapper: Option<Wrapper>,
    /// The encoding of text that is not UTF-8: windows-1252, utf-16 and others, or lossy for UTF-8 with bad bytes replaced. Offsets then count
    /// decoded bytes.
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<Encoding>,
}

impl MappingArgs {
    /// The mapper of the arguments; none for event records as they are.
    pub fn mapper(&self, several: bool) -> Result<Option<Mapper>, Box<dyn std::error::Error>> {
        let named = self.mapping.as_deref().filter(|n| *n != "native");
        let Some(name) = named.or(self.wrapper.map(|_| "native")) else { return Ok(None) };
        let (parser, delimiter) = (self.parser.clone(), self.delimiter.clone());
        let overrides = Overrides { parser, delimiter, wrapper: self.wrapper, several };
        Ok(Some(Mapper::with(&Mapping::find(name)?, overrides)?))
    }
}

/// Arguments of `ingest parse`.
#[derive(Args)]
pub struct ParseArgs {
    #[command(flatten)]
    mapping: MappingArgs,
    /// Files, folders or patterns, or `-` for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// Print one JSON object per record: its line, its number of lines, and the events made of it.
    #[arg(long)]
    json: bool,
    /// Show only rejected records.
    #[arg(long)]
    rejected: bool,
}

/// Numbers of lines by outcome.
#[derive(Default)]
struct Counts {
    events: u64,
    skipped: u64,
    rejected: u64,
}

/// Runs `ingest parse`. The exit status is 1 if a line was rejected.
pub fn parse(args: &ParseArgs, ui: &Ui) -> Outcome {
    let sources = super::sources::planned(&args.paths, ui)?.decoded(args.mapping.encoding);
    let name = args.mapping.mapping.clone().unwrap_or_else(|| "native".to_owned());
    let mapper = match args.mapping.mapper(sources.0.len() > 1)? {
        Some(mapper) => mapper,
        None => Mapper::new(&Mapping::named("native")?)?,
    };
    let (container, wrapped) = (mapper.container(), mapper.is_wrapped());
    let mut counts = Counts::default();
    let mut out = stdout();
    let mut written = Ok(());
    mapper.try_on(sources, |source, unit| {
        match &unit.fate {
            Fate::Row(Events { records, .. }) => counts.events += records.len() as u64,
            Fate::LeftOut(_) => counts.skipped += 1,
            Fate::Quarantined(_) => counts.rejected += 1,
        }
        if args.rejected && !matches!(unit.fate, Fate::Quarantined(_)) {
            return true;
        }
        let text = if args.json { format!("{}\n", as_json(source, unit)) } else { as_text(source, unit) };
        written = out.write_all(text.as_bytes());
        written.is_ok()
    })?;
    let closed = match written.and_then(|()| out.flush()) {
        Err(error) if !is_closed(&error) => return Err(error.into()),
        written => written.is_err(),
    };
    if !closed {
        ui.note(&format!(
            "{name}: {} events, {} skipped, {} rejected",
            counts.events, counts.skipped, counts.rejected
        ));
        if counts.events == 0
            && counts.rejected > 0
            && let Some(reason) =
                super::sources::why_nothing(&args.paths, args.mapping.encoding, container, wrapped)
        {
            ui.note(&format!("likely reason: {reason}"));
        }
    }
    Ok(if counts.rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn as_json(source: &str, unit: &Unit) -> Value {
    let mut value = json!({ "source": source, "line": unit.line.number, "lines": unit.lines });
    if let Some(execution) = &unit.execution {
        value["execution"] = json!(execution);
    }
    match &unit.fate {
        Fate::Row(Events { records, warnings }) => {
            value["became"] = json!("events");
            value["events"] = json!(records);
            if !warnings.is_empty() {
                value["warnings"] = json!(warnings);
            }
        }
        Fate::LeftOut(why) => {
            value["became"] = json!("skipped");
            value["reason"] = json!(why);
        }
        Fate::Quarantined(why) => {
            value["became"] = json!("rejected");
            value["code"] = json!(why.code());
            value["reason"] = json!(why.reason());
            value["raw"] = json!(String::from_utf8_lossy(&unit.raw));
        }
    }
    value
}

fn as_text(source: &str, unit: &Unit) -> String {
    let more = unit.raw.iter().filter(|byte| **byte == b'\n').count() as u64;
    let place = match more {
        0 => format!("{source}:{}", unit.line.number),
        more => format!("{source}:{}-{}", unit.line.number, unit.line.number + more),
    };
    let execution = unit.execution.as_ref().map_or_else(String::new, |e| format!(" [{e}]"));
    let mut out = String::new();
    match &unit.fate {
        Fate::LeftOut(why) => out.push_str(&format!("{place}: skipped: {why}\n")),
        Fate::Quarantined(why) => {
            out.push_str(&format!("{place}: REJECTED ({}): {}\n", why.code(), why.reason()));
            let raw = String::from_utf8_lossy(&unit.raw);
            raw.lines().take(3).for_each(|l| out.push_str(&format!("    | {}\n", short(l, 160))));
        }
        Fate::Row(Events { records, warnings }) => {
            for record in records {
                out.push_str(&format!("{place}:{execution} {} {}", record.id(), record.kind.as_str()));
                let clock = record.vector_clock.as_ref().and_then(|c| serde_json::to_string(c).ok());
                let parts = [
                    ("type", &record.type_),
                    ("from", &record.from),
                    ("to", &record.to),
                    ("msg_id", &record.msg_id),
                    ("payload", &record.payload),
                    ("clock", &clock),
                ];
                for (name, value) in parts {
                    if let Some(value) = value {
                        out.push_str(&format!(" {name}={}", short(value, 80)));
                    }
                }
                if let Some(state) = &record.state {
                    out.push_str(&format!(" state={}", short(&state.to_string(), 80)));
                }
                out.push('\n');
            }
            warnings.iter().for_each(|w| out.push_str(&format!("    odd: {w}\n")));
        }
    }
    out
}

/// At most so many characters, on one line.
fn short(text: &str, most: usize) -> String {
    let one_line: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(most).is_some() { format!("{one_line}…") } else { one_line }
}

/// Arguments of `ingest mappings`.
#[derive(Args)]
pub struct MappingsArgs {
    /// Print this mapping as TOML, as a start for one of your own.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `ingest mappings`.
pub fn mappings(args: &MappingsArgs, ui: &Ui) -> Outcome {
    if let Some(name) = &args.name {
        let mapping = Mapping::named(name)?;
        let text = shipped().iter().find(|s| s.name == mapping.name).map_or("", |s| s.text);
        ui.result(text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let mut list = Vec::new();
    for entry in shipped() {
        list.push(Mapping::named(entry.name)?);
    }
    if args.json {
        let rows: Vec<Value> =
            list.iter().map(|m| json!({ "name": m.name, "description": m.description })).collect();
        ui.json(&rows)?;
    } else {
        let width = list.iter().map(|m| m.name.len()).max().unwrap_or(0);
        let rows: Vec<String> =
            list.iter().map(|m| format!("{:width$}  {}", m.name, m.description)).collect();
        ui.result(&rows.join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}
