//! The schedule of what was kept, as text.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use demi_common::sealed::{SealedFile, SealedWriter};
use demi_schemas::summary::BuildSummary;
use demi_schemas::{Kind, TimerInfo};
use rustc_hash::FxHashMap;

use super::analysis::Lineage;
use crate::error::LineageError;
use crate::execution::{Composer, Folder, Lines, SCHEDULE, StepContext, header, write_lines};
use crate::order::Provenance;
use crate::read::gather::chosen_in_order;
use crate::read::{Events, NONE, Placement, UnitRole, is_send, role, timers_set};

/// The steps of what was kept, on their way to the schedule.
pub(super) struct Steps<'a> {
    events: &'a Events,
    lineage: &'a Lineage,
    provenance: &'a Provenance,
    scratch: PathBuf,
    composer: Composer,
    lines: Lines,
    /// By first receive of a message: how many times its actor receives it again.
    again: FxHashMap<u32, u32>,
}

impl<'a> Steps<'a> {
    /// No steps yet.
    pub(super) fn new(
        events: &'a Events,
        lineage: &'a Lineage,
        provenance: &'a Provenance,
        scratch: &Path,
    ) -> Steps<'a> {
        let mut again: FxHashMap<u32, u32> = FxHashMap::default();
        for (first, later) in &lineage.matching().repeats {
            *again.entry(*first).or_default() += u32::from(provenance.kept()[*later as usize]);
        }
        let lines = Lines::new(scratch, events.len() as u64);
        Steps {
            events,
            lineage,
            provenance,
            scratch: scratch.to_owned(),
            composer: Composer::default(),
            lines,
            again,
        }
    }

    /// Takes the records of these events, in order. Of each step that was kept all records must come.
    pub(super) fn add(&mut self, batch: &RecordBatch, here: &[u32]) -> Result<(), LineageError> {
        let Steps { events, lineage, provenance, again, lines, .. } = self;
        let placed = |row: usize| {
            let event = here[row];
            let e = event as usize;
            let mate = lineage.matching().mates()[e];
            let sent_via = if mate == NONE || is_send(events.kind[e]) { None } else { events.via(mate) };
            StepContext::new(
                u64::from(lineage.order().rank[e]),
                provenance.kept()[e],
                sent_via,
                again.get(&event).copied().unwrap_or(0),
            )
        };
        self.composer.add(batch, placed, &mut keep(lines))
    }

    /// Ends the last step.
    pub(super) fn close(&mut self) -> Result<(), LineageError> {
        self.composer.close(&mut keep(&mut self.lines))
    }

    /// Reads the records of what was kept, and no others.
    pub(super) fn read(&mut self, files: &[SealedFile], placement: &Placement) -> Result<(), LineageError> {
        let wanted = self.wanted();
        let numbers: Vec<u32> = (0..self.events.len() as u32).filter(|&e| wanted[e as usize]).collect();
        let scratch = self.scratch.clone();
        let chosen = |event: u32| wanted[event as usize];
        chosen_in_order(files, placement, chosen, &scratch, &mut |first, batch| {
            let first = first as usize;
            self.add(batch, &numbers[first..first + batch.num_rows()])
        })?;
        self.close()?;
        // What is said of timers counts wherever it is said.
        if self.events.kind.contains(&Kind::TimerSet) {
            let mut names = BTreeSet::new();
            timers_set(files, &mut |timer, type_| {
                let named =
                    timer.and_then(|t| serde_json::from_str::<TimerInfo>(t).ok()).and_then(|t| t.name);
                names.extend(named.or_else(|| type_.map(str::to_owned)));
            })?;
            self.composer.timers_recorded = names;
        }
        Ok(())
    }

    /// By event: whether a step that was kept needs it. Its members are all those up to the next, kept or not.
    fn wanted(&self) -> Vec<bool> {
        let kept = self.provenance.kept();
        let mut wanted = kept.to_vec();
        for actor in 0..self.events.actors.len() as u32 {
            let mut open = false;
            for e in self.events.of_actor(actor) {
                let i = e as usize;
                match role(self.events.kind[i], self.events.via(e), self.events.in_environment(e)) {
                    UnitRole::Head => open = kept[i],
                    UnitRole::Alone | UnitRole::Member => wanted[i] |= open,
                }
            }
        }
        wanted
    }

    /// Writes the schedule.
    pub(super) fn write(self, summary: &BuildSummary, folder: &Folder) -> Result<(), LineageError> {
        let path = folder.path(SCHEDULE);
        let file = SealedWriter::new(File::create(&path).map_err(LineageError::io(&path))?);
        let mut out = BufWriter::with_capacity(1 << 17, file);
        write_lines(&header(summary, self.composer.timers_recorded), self.lines, &mut out, &path)?;
        let file = out.into_inner().map_err(|e| LineageError::io(&path)(e.into_error()))?;
        file.finish(&path).map_err(LineageError::io(&path))
    }
}

/// What takes the lines of steps that were kept.
fn keep(lines: &mut Lines) -> impl FnMut(u64, bool, &[u8]) -> Result<(), LineageError> + '_ {
    |order, kept, line| if kept { lines.add(order, line) } else { Ok(()) }
}
