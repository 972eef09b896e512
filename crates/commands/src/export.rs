//! `demi-lineage export`: an execution, a slice of it, or a minimized schedule in the formats of other tools.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_lineage::execution::{is_execution, write_schedule};
use demi_lineage::export::{Format, Selection, Trace, Window, WriteOptions, write};
use demi_programs::Told;
use demi_replay::Registry;
use demi_schemas::{Scenario, Schedule};

use crate::Outcome;
use crate::export_test::{self, Language};
use crate::files::{read_scenario, read_schedule, replace_file};
use crate::input::{Wanted, expect};
use crate::out::stdout;
use crate::permission::RunArgs;
use crate::report::own_scenario;
use crate::ui::{Ui, program};

/// Which events are wanted; conditions are joined by "and".
#[derive(clap::Args, Debug)]
pub struct SliceArgs {
    /// Only this event and what happens after it.
    #[arg(long, value_name = "ACTOR/SEQ")]
    from: Option<String>,
    /// Only this event and what happens before it; with --from, what lies between the two.
    #[arg(long, value_name = "ACTOR/SEQ", visible_alias = "past")]
    to: Option<String>,
    /// Only what is in the causal past of the violation.
    #[arg(long)]
    kept: bool,
    /// Only the last N of the remaining events, in an order that keeps happens-before.
    #[arg(long, value_name = "N", conflicts_with = "around", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
    /// Only the events around this one, half of them before it.
    #[arg(long, value_name = "ACTOR/SEQ")]
    around: Option<String>,
    /// With --around: the number of events.
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "around", value_parser = clap::value_parser!(u32).range(1..))]
    window: u32,
}

impl SliceArgs {
    /// The selection of these arguments, and of actors.
    pub fn selection(&self, actors: &[String]) -> Selection {
        let around = |event: &String| Window::Around { event: event.clone(), events: self.window as usize };
        let last = self.last.map(|events| Window::Last(events as usize));
        Selection {
            window: last.or(self.around.as_ref().map(around)),
            past: None,
            from: self.from.clone(),
            to: self.to.clone(),
            actors: actors.to_vec(),
            kept: self.kept,
        }
    }
}

/// Arguments of `export`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Events are named ACTOR/SEQ or ACTOR/INCARNATION/SEQ. Of a result of minimize, the events are \
                        the steps of its schedule and what they send, numbered for each actor from 1."
)]
pub struct ExportArgs {
    /// An execution written by build, or a result written by minimize.
    #[arg(value_name = "EXEC|OUT")]
    input: PathBuf,
    /// What to write.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: FormatArg,
    #[command(flatten)]
    slice: SliceArgs,
    /// Only events of these actors. Order that arises through other actors is kept.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    actors: Vec<String>,
    /// For ShiViz: give each send by the environment or by a thread a host of its own. By default they share one host and seem ordered, which they
    /// are not.
    #[arg(long)]
    split: bool,
    /// The scenario, for a result whose folder has none.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    /// The file to write [default: standard output].
    #[arg(long, short, alias = "output", value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FormatArg {
    /// A log with vector clocks for ShiViz.
    Shiviz,
    /// A Graphviz digraph.
    Dot,
    /// GraphML, for networkx, yEd, Gephi.
    Graphml,
    /// Chrome trace events with flows, for Perfetto.
    Perfetto,
    /// A Mermaid sequence diagram.
    Mermaid,
    /// JSON for programs.
    Json,
    /// One log of all actors as text, a line an event, in an order that keeps happens-before.
    MergedLog,
    /// The schedule as JSON lines: the kept part of an execution, or a result. `build` writes it itself if it is short.
    Schedule,
    /// A test for pytest or unittest that fails while the bug is there, for a model that is a command.
    Pytest,
    /// A test for `node --test` that fails while the bug is there, for a model that is a command.
    JsTest,
    /// A test for `cargo test` that fails while the bug is there, for a model in Rust.
    RustTest,
    /// A shell script that feeds each node of a program its lines, without this program.
    MaelstromScript,
}

impl FormatArg {
    /// The language, if it is a test.
    fn test(self) -> Option<Language> {
        match self {
            FormatArg::Pytest => Some(Language::Python),
            FormatArg::JsTest => Some(Language::JavaScript),
            FormatArg::RustTest => Some(Language::Rust),
            _ => None,
        }
    }

    fn format(self) -> Format {
        match self {
            FormatArg::Shiviz => Format::Shiviz,
            FormatArg::Dot => Format::Dot,
            FormatArg::Graphml => Format::Graphml,
            FormatArg::Perfetto => Format::Perfetto,
            FormatArg::Mermaid => Format::Mermaid,
            FormatArg::MergedLog => Format::MergedLog,
            FormatArg::Json
            | FormatArg::Schedule
            | FormatArg::Pytest
            | FormatArg::JsTest
            | FormatArg::RustTest
            | FormatArg::MaelstromScript => Format::Json,
        }
    }
}

/// Runs `export`.
pub fn run(args: ExportArgs, models: &impl Registry, ui: &Ui) -> Outcome {
    args.run.in_child.apply(models);
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    if let Some(language) = args.format.test() {
        return test(&args, language, scenario, ui);
    }
    if args.format == FormatArg::MaelstromScript {
        return script(&args, scenario, ui);
    }
    let selection = args.slice.selection(&args.actors);
    if args.format == FormatArg::Schedule {
        return schedule(&args, &selection, ui);
    }
    expect(&args.input, Wanted::Shown)?;
    let scenario = match scenario {
        None => own_scenario(&args.input, None, args.run, ui)?,
        given => given,
    };
    let trace = demi_report::open_trace(models, &args.input, scenario.as_ref(), &selection)?;
    let (format, options) = (args.format.format(), WriteOptions { split_loose: args.split });
    match &args.out {
        Some(path) => write_file(&trace, format, options, path)?,
        None => {
            let mut out = stdout();
            write(&trace, format, options, &mut out)?;
            out.flush()?;
        }
    }
    ui.note(&format!("{} of {} events", trace.events.len(), trace.skeleton.len()));
    for note in trace.notes(format, options) {
        ui.note(&format!("note: {note}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The schedule of a result, or of a run that `fuzz` found, and its scenario.
fn scheduled(
    args: &ExportArgs,
    scenario: Option<Scenario>,
) -> Result<(Schedule, Scenario), Box<dyn std::error::Error>> {
    let of_folder = args.input.join("schedule.jsonl");
    let input = if of_folder.is_file() { &of_folder } else { &args.input };
    let schedule = read_schedule(input, false)?;
    let scenario = match scenario {
        Some(scenario) => scenario,
        None => read_scenario(&args.input.join("scenario.toml"))
            .map_err(|e| format!("{e}; name the scenario with --scenario"))?,
    };
    Ok((schedule, scenario))
}

/// Writes a text where it was asked for.
fn put(args: &ExportArgs, text: &str, ui: &Ui) -> Result<(), Box<dyn std::error::Error>> {
    match &args.out {
        Some(path) => replace_file(path, |file| Ok(file.write_all(text.as_bytes())?))?,
        None => ui.result(text.trim_end()),
    }
    Ok(())
}

/// Writes a schedule as a test.
fn test(args: &ExportArgs, language: Language, scenario: Option<Scenario>, ui: &Ui) -> Outcome {
    let (schedule, scenario) = scheduled(args, scenario)?;
    put(args, &export_test::text(language, &scenario, &schedule, &program())?, ui)?;
    ui.note(&format!("a test of {} steps", schedule.steps.len()));
    Ok(ExitCode::SUCCESS)
}

/// Writes what the nodes of a program read in a schedule as a script.
fn script(args: &ExportArgs, scenario: Option<Scenario>, ui: &Ui) -> Outcome {
    let (schedule, scenario) = scheduled(args, scenario)?;
    put(args, &Told::of(&scenario, &schedule)?.script(), ui)?;
    ui.note(&format!("a script of {} steps", schedule.steps.len()));
    Ok(ExitCode::SUCCESS)
}

/// Writes the schedule of an execution or a result as it is.
fn schedule(args: &ExportArgs, selection: &Selection, ui: &Ui) -> Outcome {
    if *selection != Selection::default() && *selection != (Selection { kept: true, ..Selection::default() })
    {
        return Err("a schedule is written whole: leave out what chooses events".into());
    }
    let write = |out: &mut dyn Write, scratch: &Path| -> Result<(), Box<dyn std::error::Error>> {
        let mut out = BufWriter::new(out);
        if is_execution(&args.input) {
            write_schedule(&args.input, scratch, &mut out, &args.input)?;
        } else {
            out.write_all(read_schedule(&args.input, true)?.to_text().as_bytes())?;
        }
        Ok(out.flush()?)
    };
    match &args.out {
        Some(path) => {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            replace_file(path, |file| write(file, folder))?;
        }
        None => write(&mut stdout(), &std::env::temp_dir())?,
    }
    ui.note("the schedule of what was kept");
    Ok(ExitCode::SUCCESS)
}

/// The file appears complete or not at all.
fn write_file(
    trace: &Trace,
    format: Format,
    options: WriteOptions,
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    replace_file(path, |file| {
        let mut out = BufWriter::new(file);
        write(trace, format, options, &mut out)?;
        Ok(out.flush()?)
    })
}
