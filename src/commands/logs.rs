//! Logs that an execution is built of without a store.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use demi_common::sealed::SealedFile;
use demi_formats::Redaction;
use demi_formats::mapping::{Container, Mapper};
use demi_schemas::summary::{ActorCompleteness, BackwardStamps, LoadSummary};
use demi_store::{Gathered, LoadOptions, LoadReport, Quarantined, check_system_name};
use tempfile::TempDir;

use super::ingest_parse::MappingArgs;
use super::sources::{planned, progress_line, why_nothing};
use demi_commands::ui::Ui;

/// Name of a system that has none.
const UNNAMED: &str = "logs";

/// Which logs are read, and how.
#[derive(clap::Args)]
pub struct LogArgs {
    /// Logs: files, folders or patterns, or `-` for standard input, as for `ingest load`.
    #[arg(value_name = "LOG")]
    pub logs: Vec<String>,
    #[command(flatten)]
    mapping: MappingArgs,
    /// For logs: a TOML file whose table [redact] says what to remove from records, or to hash, before anything is written.
    #[arg(long, value_name = "FILE", requires = "logs")]
    redact: Option<PathBuf>,
    /// For logs: the execution to build, if a mapping finds several.
    #[arg(long, value_name = "NAME", requires = "mapping")]
    execution: Option<String>,
}

/// Events of logs in files that last as long as this.
pub struct Logs {
    gathered: Gathered,
    report: LoadReport,
    system: String,
    _files: TempDir,
}

impl LogArgs {
    /// Reads the logs. Files that an execution at `out` is to refer to stand beside it until it is built.
    pub fn read(&self, system: Option<&str>, out: &Path, ui: &Ui) -> Result<Logs, Box<dyn Error>> {
        let base = system.unwrap_or(UNNAMED);
        check_system_name(base)?;
        let sources = planned(&self.logs, ui)?.decoded(self.mapping.encoding);
        let mapper = self.mapping.mapper(sources.0.len() > 1)?;
        let container = mapper.as_ref().map_or(Container::Native, Mapper::container);
        let wrapped = mapper.as_ref().is_some_and(Mapper::is_wrapped);
        let mut options = LoadOptions::new(base);
        options.redact = self.redact.as_deref().map(Redaction::read).transpose()?.map(Arc::new);
        let beside = out.parent().filter(|parent| parent.is_dir()).unwrap_or(Path::new("."));
        let files = tempfile::Builder::new().prefix(".demi-logs-").tempdir_in(beside)?;
        let begin = Instant::now();
        let bar = ui.progress();
        let (sources, share) = sources.counted();
        let tell = |now: &demi_store::Progress| bar.set_message(progress_line(now, &share, begin.elapsed()));
        let read = Gathered::read(files.path(), sources, &options, mapper, tell);
        bar.finish_and_clear();
        let (gathered, report) = read?;
        if report.summary.added == 0 {
            let why = why_nothing(&self.logs, self.mapping.encoding, container, wrapped);
            let why = why.map_or_else(String::new, |why| format!("; likely reason: {why}"));
            return Err(
                format!("no line of the logs is an event{}{why}", first_reason(&gathered, base)).into()
            );
        }
        let system = self.chosen(base, &gathered)?;
        Ok(Logs { gathered, report, system, _files: files })
    }

    /// The system of the execution that is meant.
    fn chosen(&self, base: &str, gathered: &Gathered) -> Result<String, Box<dyn Error>> {
        let all: Vec<&str> = gathered.systems().collect();
        let prefix = format!("{base}/");
        let of = |system: &str| system.strip_prefix(&prefix).map(str::to_owned);
        if let Some(execution) = &self.execution {
            let found = all.iter().find(|system| of(system).as_ref() == Some(execution));
            let known: Vec<String> = all.iter().filter_map(|system| of(system)).collect();
            return found.map(|system| (*system).to_owned()).ok_or_else(|| {
                format!("the logs hold no execution '{execution}'; they hold {}", known.join(", ")).into()
            });
        }
        match all.as_slice() {
            [only] => Ok((*only).to_owned()),
            many => {
                let names: Vec<String> =
                    many.iter().map(|system| of(system).unwrap_or_else(|| (*system).to_owned())).collect();
                let names = names.join(", ");
                Err(format!("the logs hold several executions; name one with --execution: {names}").into())
            }
        }
    }

    /// Whether something is said of logs.
    pub fn says_how(&self) -> bool {
        self.mapping.mapping.is_some() || self.mapping.encoding.is_some() || self.mapping.wrapper.is_some()
    }
}

/// Why the first line is no event.
fn first_reason(gathered: &Gathered, system: &str) -> String {
    let found = gathered.quarantined(system).unwrap_or_default();
    found.first().map_or_else(String::new, |first| {
        format!(": {}:{}: {}", first.source.escape_debug(), first.line, first.reason.escape_debug())
    })
}

impl Logs {
    /// Name of the system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Files of the events.
    pub fn files(&self) -> &[SealedFile] {
        self.gathered.event_files(&self.system)
    }

    /// What is no event record, or contradicts one.
    pub fn quarantined(&self) -> Result<Vec<Quarantined>, Box<dyn Error>> {
        Ok(self.gathered.quarantined(&self.system)?)
    }

    /// Actors whose stamps run backwards.
    pub fn backwards(&self) -> &[BackwardStamps] {
        self.gathered.backward_stamps(&self.system)
    }

    /// What is complete.
    pub fn actors(&self) -> &[ActorCompleteness] {
        &self.summary().actors
    }

    /// What was read of the execution.
    fn summary(&self) -> &LoadSummary {
        let all = &self.report.summary;
        all.executions.iter().find(|one| one.system == self.system).unwrap_or(all)
    }

    /// Says of which sources only the beginning could be read, and gives whether there are any.
    pub fn damaged(&self, ui: &Ui) -> bool {
        for damage in &self.report.damaged {
            ui.error(damage);
        }
        !self.report.damaged.is_empty()
    }

    /// What was read, in a line.
    pub fn in_words(&self) -> String {
        let summary = self.summary();
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut text = format!(
            "read {} in {} of {}",
            count(summary.added, "event"),
            count(summary.lines, "line"),
            count(summary.sources, "source")
        );
        let others = [
            (summary.duplicates, "there twice"),
            (summary.conflicts, "in conflict"),
            (summary.quarantined.saturating_sub(summary.conflicts), "no event records"),
            (summary.skipped, "without an event"),
        ];
        for (n, what) in others.into_iter().filter(|(n, _)| *n > 0) {
            text.push_str(&format!(", {n} {what}"));
        }
        text
    }
}
