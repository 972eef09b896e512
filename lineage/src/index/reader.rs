//! An index that was opened.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::clocks::Clocks;
use super::counts::Counts;
use super::header::{COUNTS, HEADER, INDEX_SCHEMA, INFOS, IndexHeader, LINKS, MATES, ORDERS, RUNS, STATES};
use super::info::{Info, Role};
use super::links::Links;
use super::logs::ExplicitCause;
use super::names::ByName;
use super::pages::Pages;
use super::seal::damaged;
use crate::error::LineageError;
use crate::matching::Evidence;
use crate::read::NONE;

/// The order index of an execution. Only the parts that a question needs are read.
pub struct Index {
    folder: PathBuf,
    pub(crate) header: IndexHeader,
    mates: Pages<u32>,
    orders: Pages<u32>,
    infos: Pages<u8>,
    runs: Pages<u64>,
    states: Pages<u32>,
    links: Links,
    counts: Counts,
    pub(crate) clocks: Clocks,
    /// By actor: its runs by name, where they are in another order. Found when first asked for.
    by_name: Vec<OnceCell<Option<Box<ByName>>>>,
}

impl Index {
    /// By event: the other end of its message.
    pub(crate) fn mates(&self) -> &Pages<u32> {
        &self.mates
    }

    /// By event: its place in the linear extension.
    pub(crate) fn orders(&self) -> &Pages<u32> {
        &self.orders
    }

    /// By event: what it is.
    pub(crate) fn infos(&self) -> &Pages<u8> {
        &self.infos
    }

    /// The runs of names.
    pub(crate) fn runs(&self) -> &Pages<u64> {
        &self.runs
    }

    /// The events with a state.
    pub(crate) fn states(&self) -> &Pages<u32> {
        &self.states
    }

    /// The explicit causes and effects.
    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// The tallies before each block.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// By actor: its runs by name, where they are in another order. Found when first asked for.
    pub(super) fn names_by_log(&self) -> &[OnceCell<Option<Box<ByName>>>] {
        &self.by_name
    }
}

impl Index {
    /// Opens the index in `folder`.
    ///
    /// # Errors
    /// When there is none, or it is of another version or not whole.
    pub fn open(folder: &Path) -> Result<Index, LineageError> {
        let path = folder.join(HEADER);
        let text = demi_common::regular::read(&path).map_err(LineageError::io(&path))?;
        let broken = |reason: String| LineageError::Index { path: path.clone(), reason };
        let header: IndexHeader = serde_json::from_slice(&text).map_err(|e| broken(e.to_string()))?;
        if header.schema != INDEX_SCHEMA {
            return Err(broken(format!("version '{}', expected '{INDEX_SCHEMA}'", header.schema)));
        }
        if header.digest.as_ref().is_some_and(|d| header.own_digest().ok().as_ref() != Some(d))
            || header.sealed != header.digest.is_some()
        {
            return Err(damaged(&path));
        }
        let ordered = header.actors.windows(2).all(|w| {
            w[0].name < w[1].name
                && w[0].first < w[1].first
                && w[0].first_run < w[1].first_run
                && w[0].first_state <= w[1].first_state
        });
        let inside = header.actors.last().is_some_and(|a| {
            a.first < header.events && a.first_run < header.runs && a.first_state <= header.states
        });
        if !ordered || !inside || header.actors[0].first != 0 {
            return Err(broken("the actors are not in order".into()));
        }
        let ends = header.actors.iter().skip(1).map(|next| next.first).chain([header.events]);
        if header.actors.iter().zip(ends).any(|(actor, end)| actor.appended > end - actor.first) {
            return Err(broken("an actor has fewer events than were added".into()));
        }
        if header.environment.is_some_and(|actor| actor as usize >= header.actors.len()) {
            return Err(broken("the environment is none of the actors".into()));
        }
        let runs = header.runs.checked_mul(super::names::RUN);
        let runs = runs.ok_or_else(|| broken(format!("{} runs", header.runs)))?;
        let at = |name: &str| folder.join(name);
        let (events, sealed) = (header.events, header.sealed);
        Ok(Index {
            mates: Pages::open(&at(MATES), events, sealed)?,
            orders: Pages::open(&at(ORDERS), events, sealed)?,
            infos: Pages::open(&at(INFOS), events, sealed)?,
            runs: Pages::open(&at(RUNS), runs, sealed)?,
            states: Pages::open(&at(STATES), header.states, sealed)?,
            links: Links::open(&at(LINKS), header.links, sealed),
            counts: Counts::open(&at(COUNTS), events, sealed)?,
            clocks: Clocks::open(folder, &header)?,
            by_name: header.actors.iter().map(|_| OnceCell::new()).collect(),
            folder: folder.to_owned(),
            header,
        })
    }

    /// What the index holds.
    #[must_use]
    pub fn header(&self) -> &IndexHeader {
        &self.header
    }

    /// The numbers of an actor's events, in the order of its log.
    #[must_use]
    pub fn events_of(&self, actor: usize) -> std::ops::Range<u32> {
        self.header.events_of(actor)
    }

    /// The actor of an event.
    #[must_use]
    pub fn actor_of(&self, event: u32) -> usize {
        self.header.actors.partition_point(|a| a.first <= event).saturating_sub(1)
    }

    /// An error about the files as a whole.
    pub(crate) fn broken(&self, reason: String) -> LineageError {
        LineageError::Index { path: self.folder.clone(), reason }
    }

    /// What the event is.
    pub(crate) fn info(&self, event: u32) -> Result<Info, LineageError> {
        Ok(Info(self.infos.get(event)?))
    }

    /// The place of the event in the linear extension, from 1.
    pub(crate) fn order(&self, event: u32) -> Result<u32, LineageError> {
        self.orders.get(event)
    }

    /// The other end of the event's message.
    pub(crate) fn mate(&self, event: u32) -> Result<Option<u32>, LineageError> {
        match self.mates.get(event)? {
            NONE => Ok(None),
            mate if mate < self.header.events => Ok(Some(mate)),
            mate => Err(self.broken(format!("event {event} is joined to {mate}, which is not there"))),
        }
    }

    fn edge(&self, event: u32, info: Info) -> Result<Option<ExplicitCause>, LineageError> {
        let cause = |event| ExplicitCause::of(event, info.reason(), info.is_certain());
        Ok(self.mate(event)?.map(cause))
    }

    /// Calls `f` with each cause of the event outside its own log's order.
    pub(crate) fn each_cause(
        &self,
        event: u32,
        info: Info,
        mut f: impl FnMut(ExplicitCause) -> Result<(), LineageError>,
    ) -> Result<(), LineageError> {
        if info.role() == Role::Delivery
            && let Some(cause) = self.edge(event, info)?
        {
            f(cause)?;
        }
        if info.is_linked() {
            for (cause, Evidence { reason, certain }) in self.links.causes(event)? {
                f(ExplicitCause::of(self.checked(cause)?, reason, certain))?;
            }
        }
        Ok(())
    }

    /// Calls `f` with each effect of the event outside its own log's order.
    pub(crate) fn each_effect(
        &self,
        event: u32,
        info: Info,
        mut f: impl FnMut(ExplicitCause) -> Result<(), LineageError>,
    ) -> Result<(), LineageError> {
        if info.role() == Role::Send
            && let Some(effect) = self.edge(event, info)?
        {
            f(effect)?;
        }
        if info.is_linked() {
            for (effect, Evidence { reason, certain }) in self.links.effects(event)? {
                f(ExplicitCause::of(self.checked(effect)?, reason, certain))?;
            }
        }
        Ok(())
    }

    /// The events with explicit effects, in order.
    pub(crate) fn linked_causes(&self) -> Result<Vec<u32>, LineageError> {
        let mut causes = Vec::new();
        for (cause, ..) in self.links.all()? {
            if causes.last() != Some(&cause) {
                causes.push(self.checked(cause)?);
            }
        }
        Ok(causes)
    }

    fn checked(&self, event: u32) -> Result<u32, LineageError> {
        match event < self.header.events {
            true => Ok(event),
            false => Err(self.broken(format!("a cause names event {event}, which is not there"))),
        }
    }
}
