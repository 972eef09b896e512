//! Writing an execution: its rows are streamed from the store's files to the tables and the schedule.

use std::fs::File;
use std::io::BufWriter;

use arrow_array::Array;
use demi_common::sealed::Sealing;
use demi_schemas::summary::BuildSummary;
use rustc_hash::FxHashMap;

use super::analysis::Lineage;
use super::options::Extra;
use crate::error::LineageError;
use crate::execution::{
    Composer, EVENTS, Folder, Lines, MESSAGES, Placed, SCHEDULE, SUMMARY, header, rows, write_lines,
    write_summary, writer,
};
use crate::grow::{self, OpenEnds};
use crate::index;
use crate::read::gather::Gathering;
use crate::read::{Events, NONE, columns, is_send};

/// Writes tables, order index, schedule and summary to the folder.
pub(super) fn write_all(
    gathered: Gathering,
    events: &Events,
    lineage: &Lineage,
    summary: &BuildSummary,
    extra: Extra,
    readable: bool,
    folder: &Folder,
) -> Result<(), LineageError> {
    let matching = &lineage.matching;
    let event_table = writer::event_table(&folder.path(EVENTS))?;
    let message_table = writer::message_table(&folder.path(MESSAGES))?;
    let mut open_ends = match extra {
        Extra::Base => Some(OpenEnds::begin(&folder.base())?),
        Extra::Schedule => None,
    };
    let mut lines = readable.then(|| Lines::new(&folder.scratch(), events.len() as u64));
    let mut composer = Composer::default();
    let mut keep = |order: u64, kept: bool, line: &[u8]| match &mut lines {
        Some(lines) if kept => lines.add(order, line),
        _ => Ok(()),
    };
    let mut states = Vec::new();
    let mut again: FxHashMap<u32, u32> = FxHashMap::default();
    for (first, later) in &matching.repeats {
        *again.entry(*first).or_default() += u32::from(lineage.provenance.kept[*later as usize]);
    }
    let mut rows = |first: u32, batch: &arrow_array::RecordBatch| {
        let state = columns::text(batch, "state")?;
        states.extend((0..batch.num_rows()).filter(|&r| state.is_valid(r)).map(|r| first + r as u32));
        let placed = |row: usize| {
            let e = first as usize + row;
            let mate = matching.mate[e];
            let sent_via = if mate == NONE || is_send(events.kind[e]) { None } else { events.via(mate) };
            let again = again.get(&(e as u32)).copied().unwrap_or(0);
            Placed {
                order: u64::from(lineage.order.rank[e]),
                kept: lineage.provenance.kept[e],
                sent_via,
                again,
            }
        };
        match &mut open_ends {
            None if readable => composer.add(batch, placed, &mut keep)?,
            None => {}
            Some(open) => open.add(batch, first, events, matching)?,
        }
        let schema = event_table.schema();
        event_table.add(rows::events(&schema, batch, first, &lineage.provenance, &lineage.order)?)?;
        message_table.add(rows::messages(&message_table.schema(), batch, first, events, matching)?)
    };
    let parts = index::Parts::new(events, matching, &lineage.units, &lineage.order);
    // The index needs the rows for nothing but their states.
    let (gathered, index) = std::thread::scope(|scope| {
        let index = scope.spawn(|| index::write(&folder.index(), &parts));
        let gathered = gathered.give(&mut rows);
        (gathered, index.join().unwrap_or(Err(LineageError::WriterGone)))
    });
    // An error of a writer is the cause of an error here.
    event_table.finish()?;
    message_table.finish()?;
    gathered?;
    composer.close(&mut keep)?;
    index::add_states(&folder.index(), index?, &states)?;
    if let (Some(open), Some(facts)) = (open_ends, &lineage.base) {
        open.finish()?;
        grow::depths::write(&folder.base(), events, matching, &lineage.units, &lineage.order)?;
        facts.write(&folder.base())?;
        write_summary(summary, &folder.path(SUMMARY))?;
        grow::seal_base(folder)?;
        return Ok(());
    }

    if let Some(lines) = lines {
        let path = folder.path(SCHEDULE);
        let file = Sealing::new(File::create(&path).map_err(LineageError::io(&path))?);
        let mut out = BufWriter::with_capacity(1 << 17, file);
        write_lines(&header(summary, composer.timers_recorded), lines, &mut out, &path)?;
        let file = out.into_inner().map_err(|e| LineageError::io(&path)(e.into_error()))?;
        file.finish(&path).map_err(LineageError::io(&path))?;
    }
    write_summary(summary, &folder.path(SUMMARY))
}
