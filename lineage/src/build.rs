//! From the store's files to an execution.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::channels::{self, Channels, Seen};
use crate::clocks::{self, Clocks};
use crate::columns;
use crate::content;
use crate::cut::{self, Provenance};
use crate::error::LineageError;
use crate::events::is_send;
use crate::execution::{EVENTS, Folder, MESSAGES, SCHEDULE, SUMMARY};
use crate::gather;
use crate::grow::{self, BaseFacts, OpenEnds};
use crate::index;
use crate::intern::NONE;
use crate::lines::Lines;
use crate::matching::{self, Matching, Reason};
use crate::order::{Graph, Order};
use crate::read::{self, Loaded};
use crate::steps::{Composer, Placed};
use crate::tables_out;
use crate::units::Units;
use crate::unmatched;
use crate::violation::{self, Target, ViolationSpec};
use crate::write;
use arrow_array::Array;
use demi_schemas::schedule::{SCHEDULE_SCHEMA, ScheduleHeader};
use demi_schemas::summary::{BuildSummary, ProvenanceRule};

/// What to build.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// Name of the recorded system, for the files written.
    pub system: String,
    /// How the violation is named.
    pub violation: ViolationSpec,
    /// Which events of the affected actors are kept.
    pub rule: ProvenanceRule,
}

/// What is written beside the tables and the order index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// The schedule of what was kept.
    Schedule,
    /// What the execution can be grown from when events are added to the store.
    Base,
}

/// Everything that was found out about the events.
struct Lineage {
    matching: Matching,
    order: Order,
    target: Target,
    provenance: Provenance,
    units: Units,
    channels_in_order: bool,
    base: Option<BaseFacts>,
}

/// Builds the execution of the events in `files` (Parquet, in the columns of [`tables::store_events`], the partition
/// columns left out) and writes it to the folder `out`, which appears complete or not at all. `progress` is told what is being
/// done.
///
/// The files' order and that of their rows do not matter: the same events give the same bytes.
///
/// # Errors
/// When a file cannot be read, holds no event records, or cannot be written; when the violation names nothing that is
/// there; when `out` holds something else.
pub fn build(
    files: &[PathBuf],
    options: &BuildOptions,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<BuildSummary, LineageError> {
    build_with(files, options, Extra::Schedule, out, progress, &mut |_| Ok(()))
}

/// Builds an execution of all events that can be grown: without a schedule, with what [`crate::grow`] needs. `seal` writes what
/// else belongs in the folder before it appears.
pub(crate) fn build_base(
    files: &[PathBuf],
    system: &str,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<BuildSummary, LineageError> {
    let options = BuildOptions {
        system: system.to_owned(),
        violation: ViolationSpec::None,
        rule: ProvenanceRule::default(),
    };
    build_with(files, &options, Extra::Base, out, progress, seal)
}

fn build_with(
    files: &[PathBuf],
    options: &BuildOptions,
    extra: Extra,
    out: &Path,
    progress: &mut dyn FnMut(&str),
    seal: &mut dyn FnMut(&Folder) -> Result<(), LineageError>,
) -> Result<BuildSummary, LineageError> {
    let folder = Folder::begin(out)?;
    progress("reading events");
    let mut loaded = read::read(files, &options.system)?;
    progress("matching messages and ordering events");
    folder.make()?;
    if extra == Extra::Base {
        let path = folder.base();
        std::fs::create_dir(&path).map_err(LineageError::io(&path))?;
    }
    let lineage = analyse(files, &mut loaded, &folder, options, extra)?;
    let summary = summarize(&loaded, &lineage, options);
    progress("writing the execution");
    write_all(files, &loaded, &lineage, &summary, extra, &folder)?;
    seal(&folder)?;
    folder.finish()?;
    Ok(summary)
}

fn analyse(
    files: &[PathBuf],
    loaded: &mut Loaded,
    folder: &Folder,
    options: &BuildOptions,
    extra: Extra,
) -> Result<Lineage, LineageError> {
    let clocks = match loaded.clocked {
        true => Some(Clocks::read(files, loaded, &folder.scratch())?),
        false => None,
    };
    let events = &mut loaded.events;
    let target = violation::resolve(events, &options.violation)?;
    let mut matching = Matching::none(events.len());
    matching::by_id(events, &mut matching);
    content::timers(events, &mut matching);
    content::messages(events, &mut matching);
    if let Some(clocks) = clocks {
        match clocks.join(events, &mut matching) {
            Ok(warnings) => matching.warnings.extend(warnings),
            Err(problems) => return Err(clocks::refuse(files, loaded, &folder.scratch(), problems)),
        }
    }
    matching.sort_extra();
    let observed = Channels::observe(events, &matching, Seen::default(), true);
    unmatched::explain(events, &mut matching, &observed);
    let base = match extra {
        Extra::Base => Some(BaseFacts::of(events, &matching, &observed, loaded.clocked, &folder.base())?),
        Extra::Schedule => None,
    };
    (events.id, events.content, events.type_) = (Vec::new(), Vec::new(), Vec::new());
    let units = Units::new(events, &matching.extra);
    let (mut wishes, broken) = observed.wishes(events, &matching, &units);
    wishes.extend(channels::log_order(events, &units));
    let mut order = Graph::new(events, &units, wishes).order(&mut matching);
    let mut broken: Vec<String> = broken.0.iter().map(|c| channels::note(events, *c)).collect();
    broken.sort_unstable();
    let channels_in_order = observed.in_order() && broken.is_empty() && !order.channel_dropped;
    order.warnings.extend(broken);
    let provenance = match options.violation {
        ViolationSpec::None => Provenance::all(events),
        _ => cut::provenance(events, &units, &matching, &order.sequence, &target, options.rule),
    };
    Ok(Lineage { matching, order, target, provenance, units, channels_in_order, base })
}

fn summarize(loaded: &Loaded, lineage: &Lineage, options: &BuildOptions) -> BuildSummary {
    let events = &loaded.events;
    let kept = |e: &usize| lineage.provenance.kept[*e];
    let delivery = |e: &usize| events.kind[*e].is_delivery();
    let (matched, unmatched) = unmatched::count(events, &lineage.matching);
    let n_kept = (0..events.len()).filter(kept).count();
    let mut warnings = loaded.warnings.clone();
    warnings.extend(lineage.target.warnings.iter().cloned());
    warnings.extend(lineage.matching.warnings.iter().cloned());
    warnings.extend(lineage.order.warnings.iter().cloned());
    warnings.extend(unmatched::notes(events, &lineage.matching));
    BuildSummary {
        system: options.system.clone(),
        events: events.len() as u64,
        kept: n_kept as u64,
        pruned: (events.len() - n_kept) as u64,
        deliveries: (0..events.len()).filter(delivery).count() as u64,
        kept_deliveries: (0..events.len()).filter(kept).filter(delivery).count() as u64,
        matched,
        clock_edges: lineage.matching.extra_reason.iter().filter(|r| **r == Reason::Clock).count() as u64,
        unmatched,
        affected: lineage.target.affected.clone(),
        violation: lineage.target.fingerprints.clone(),
        rule: options.rule,
        channels_in_order: lineage.channels_in_order,
        depth: u64::from(lineage.order.depth.iter().copied().max().unwrap_or(0)),
        warnings,
    }
}

fn write_all(
    files: &[PathBuf],
    loaded: &Loaded,
    lineage: &Lineage,
    summary: &BuildSummary,
    extra: Extra,
    folder: &Folder,
) -> Result<(), LineageError> {
    let (events, matching) = (&loaded.events, &lineage.matching);
    let event_table = write::event_table(&folder.path(EVENTS))?;
    let message_table = write::message_table(&folder.path(MESSAGES))?;
    let mut open_ends = match extra {
        Extra::Base => Some(OpenEnds::begin(&folder.base())?),
        Extra::Schedule => None,
    };
    let mut lines = Lines::new(&folder.scratch(), events.len() as u64);
    let mut composer = Composer::default();
    let mut keep = |order: u64, kept: bool, line: &[u8]| if kept { lines.add(order, line) } else { Ok(()) };
    let mut states = Vec::new();
    let mut rows = |first: u32, batch: &arrow_array::RecordBatch| {
        let state = columns::text(batch, "state")?;
        states.extend((0..batch.num_rows()).filter(|&r| state.is_valid(r)).map(|r| first + r as u32));
        let placed = |row: usize| {
            let e = first as usize + row;
            let mate = matching.mate[e];
            let sent_via = if mate == NONE || is_send(events.kind[e]) { None } else { events.via(mate) };
            Placed { order: u64::from(lineage.order.position[e]), kept: lineage.provenance.kept[e], sent_via }
        };
        match &mut open_ends {
            None => composer.add(batch, placed, &mut keep)?,
            Some(open) => open.add(batch, first, events, matching)?,
        }
        let schema = event_table.schema();
        event_table.add(tables_out::events(&schema, batch, first, &lineage.provenance, &lineage.order)?)?;
        message_table.add(tables_out::messages(&message_table.schema(), batch, first, events, matching)?)
    };
    let gathered = gather::in_order(files, loaded, &folder.scratch(), &mut rows);
    // An error of a writer is the cause of an error here.
    event_table.finish()?;
    message_table.finish()?;
    gathered?;
    composer.close(&mut keep)?;
    index::write(
        &folder.index(),
        &index::Parts::new(events, matching, &lineage.units, &lineage.order, &states),
    )?;
    if let (Some(open), Some(facts)) = (open_ends, &lineage.base) {
        open.finish()?;
        facts.write(&folder.base())?;
        write_summary(summary, folder)?;
        grow::seal_base(folder)?;
        return Ok(());
    }

    let header = ScheduleHeader {
        schema: SCHEDULE_SCHEMA.into(),
        system: Some(summary.system.clone()),
        violation: summary.violation.clone(),
        affected: summary.affected.clone(),
        deliveries: Some(summary.kept_deliveries),
        conformance: true,
        timers_recorded: composer.timers_recorded.into_iter().collect(),
        ..ScheduleHeader::default()
    };
    let path = folder.path(SCHEDULE);
    let mut out = BufWriter::with_capacity(1 << 17, File::create(&path).map_err(LineageError::io(&path))?);
    serde_json::to_writer(&mut out, &header).map_err(LineageError::table(&path))?;
    out.write_all(b"\n").map_err(LineageError::io(&path))?;
    lines.write(&mut out, &path)?;
    out.flush().map_err(LineageError::io(&path))?;
    write_summary(summary, folder)
}

/// Writes the summary to the folder.
pub(crate) fn write_summary(summary: &BuildSummary, folder: &Folder) -> Result<(), LineageError> {
    let path = folder.path(SUMMARY);
    let mut text = serde_json::to_string_pretty(summary).map_err(LineageError::table(&path))?;
    text.push('\n');
    std::fs::write(&path, text).map_err(LineageError::io(&path))
}
