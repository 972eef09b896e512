//! A store's tables on an engine, pinned to one version of its events, and what can be asked there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use demi_common::nearest;
use demi_lineage::ViolationError;
use demi_lineage::query::{PastAnswer, Relation};
use demi_schemas::EventId;
use demi_schemas::event::ENVIRONMENT;
use demi_schemas::tables;
use demi_store::{LineageTable, Store};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::engine::{ColumnType, Engine, Files, Small};
use crate::error::PlanError;
use crate::frontier::{
    self, Closed, ClosedBy, DELTA, Effort, FRONTIER, Frontier, Options, as_table, target_of,
};
use crate::refresh::{Log, logs, version};
use crate::sql::Step;
use crate::{Counted, Position};

/// Most names of actors in a message.
const NAMED: usize = 20;

const NAMES: &[(&str, ColumnType)] = &[
    ("place", ColumnType::Long),
    ("actor", ColumnType::Long),
    ("name", ColumnType::Text),
    ("incarnation", ColumnType::Long),
    ("seq", ColumnType::Long),
];
pub(crate) const BOUNDS: &[(&str, ColumnType)] = &[
    ("target", ColumnType::Long),
    ("number", ColumnType::Long),
    ("actor", ColumnType::Text),
    ("incarnation", ColumnType::Long),
    ("seq", ColumnType::Long),
];
pub(crate) const UNORDERED: &[(&str, ColumnType)] = &[
    ("target", ColumnType::Long),
    ("number", ColumnType::Long),
    ("actor", ColumnType::Text),
    ("ord", ColumnType::Long),
];

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of its log.
    number: i64,
    /// Its position there.
    ord: i64,
    /// Whether it stands outside its log's order and has no causes.
    alone: bool,
}

impl Place {
    /// Its log and its position there.
    pub(crate) fn position(self) -> Position {
        (self.number, self.ord)
    }

    /// Takes it for an event in the order of its log: then what stands before it there counts.
    pub(crate) fn put_in_order(&mut self) {
        self.alone = false;
    }

    /// Where its past begins to be looked for.
    pub(crate) fn start(self) -> Option<Position> {
        (!self.alone).then_some((self.number, self.ord))
    }
}

/// What a cut is, as far as the edges between logs tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineCut {
    /// By actor, the last event in the cut.
    pub cut: BTreeMap<String, String>,
    /// Whether everything that happens before an event in the cut is in it.
    pub consistent: bool,
    /// Messages between logs that were sent in the cut and received after it; absent where the cut is not consistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// An event outside the cut, and the one in it that it happens before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<(String, String)>,
}

/// Tables on an engine.
pub struct Session<'a> {
    pub(crate) engine: &'a mut dyn Engine,
    pub(crate) store: &'a Store,
    pub(crate) options: Options,
    pub(crate) scratch: PathBuf,
    /// By number.
    pub(crate) logs: FxHashMap<i64, Log>,
    by_actor: FxHashMap<(String, String), i64>,
    by_event: FxHashMap<(String, String, i64, i64), i64>,
    versions: BTreeMap<String, u64>,
    /// The system whose events are open.
    events: Option<String>,
    pub(crate) counted: Counted,
}

impl<'a> Session<'a> {
    /// Opens the tables of these systems. Temporary files go to the folder `scratch`.
    ///
    /// # Errors
    /// When the tables were not made, or the engine cannot read them.
    pub fn open(
        engine: &'a mut dyn Engine,
        store: &'a Store,
        systems: &[String],
        options: Options,
        scratch: &Path,
    ) -> Result<Session<'a>, PlanError> {
        let not_made =
            |reason: String| PlanError::NotMade { reason, store: store.dir().display().to_string() };
        let mut session = Session {
            engine,
            store,
            options,
            scratch: scratch.to_owned(),
            logs: FxHashMap::default(),
            by_actor: FxHashMap::default(),
            by_event: FxHashMap::default(),
            versions: BTreeMap::new(),
            events: None,
            counted: Counted::none(),
        };
        for system in systems {
            let made = version(store, system)?;
            let made = made.ok_or_else(|| {
                not_made(format!("the store has no whole tables of lineage for '{system}'"))
            })?;
            session.versions.insert(system.clone(), made);
            for log in logs(store, system)? {
                match log.alone {
                    Some((incarnation, seq)) => {
                        let key = (system.clone(), log.actor.clone(), i64::from(incarnation), seq);
                        session.by_event.insert(key, log.number);
                    }
                    None => {
                        session.by_actor.insert((system.clone(), log.actor.clone()), log.number);
                    }
                }
                session.logs.insert(log.number, log);
            }
        }
        let names = [
            (LineageTable::Messages, "messages"),
            (LineageTable::Checkpoints, "checkpoints"),
            (LineageTable::Runs, "runs"),
        ];
        let mut tables = Vec::new();
        for (table, name) in names {
            let mut files = Vec::new();
            for system in systems {
                files.extend(
                    store.lineage_files(table, system)?.into_iter().map(|file| file.path().to_owned()),
                );
            }
            tables.push(Files { name, columns: columns(&table.schema(), &["system", "bucket"]), files });
        }
        session.engine.open(&tables)?;
        Ok(session)
    }

    /// The version of the events that a system's tables were made from, where the store has a later one.
    #[must_use]
    pub fn behind(&self, system: &str) -> Option<u64> {
        self.versions.get(system).copied().filter(|version| *version != self.store.version())
    }

    /// The version of the events that a system's tables were made from.
    #[must_use]
    pub fn version(&self, system: &str) -> Option<u64> {
        self.versions.get(system).copied()
    }

    /// What the engine counted since the tables were opened.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// The logs of a system that are an actor's.
    pub(crate) fn actors_of<'s>(&'s self, system: &'s str) -> impl Iterator<Item = &'s Log> {
        self.logs.values().filter(move |log| log.system == system && log.alone.is_none())
    }

    pub(crate) fn log(&self, number: i64) -> Result<&Log, PlanError> {
        self.logs.get(&number).ok_or_else(|| PlanError::Broken(format!("there is no log {number}")))
    }

    /// The number of an actor's log.
    pub(crate) fn actor(&self, system: &str, name: &str) -> Option<i64> {
        self.by_actor.get(&(system.to_owned(), name.to_owned())).copied()
    }

    /// Opens the events of a system, of the version that its tables are of.
    pub(crate) fn open_events(&mut self, system: &str) -> Result<(), PlanError> {
        if self.events.as_deref() == Some(system) {
            return Ok(());
        }
        let version = self.versions.get(system).copied().unwrap_or_default();
        let not_made =
            |reason: String| PlanError::NotMade { reason, store: self.store.dir().display().to_string() };
        let files = self.store.event_files_at(system, version).map_err(|error| {
            not_made(format!("the events that the tables were made from cannot be read ({error})"))
        })?;
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.path().to_owned()).collect();
        if let Some(gone) = files.iter().find(|file| !file.exists()) {
            return Err(not_made(format!("{} was merged away since the tables were made", gone.display())));
        }
        let columns = columns(&tables::store_events(), &["system", "date"]);
        self.engine.open(&[Files { name: "events", columns, files }])?;
        self.events = Some(system.to_owned());
        Ok(())
    }

    pub(crate) fn query(&mut self, step: Step) -> Result<Vec<Vec<i64>>, PlanError> {
        let answer = self.engine.query(step, &[])?;
        self.counted.add(answer.counted);
        Ok(answer.rows)
    }

    /// Where the events of these names stand.
    ///
    /// # Errors
    /// When there is no such event.
    pub fn places(&mut self, system: &str, names: &[String]) -> Result<Vec<Place>, PlanError> {
        let mut wanted = Vec::new();
        for name in names {
            let readings = EventId::readings(name).map_err(ViolationError::from)?;
            let known: Vec<(i64, EventId)> =
                readings.iter().filter_map(|id| Some((self.actor(system, &id.actor)?, id.clone()))).collect();
            if known.is_empty() {
                return Err(self.no_actor(system, readings.last().map_or(name, |id| &id.actor)).into());
            }
            wanted.push(known);
        }
        self.places_of(system, names, &wanted)
    }

    /// Where the events of these readings stand: of each the first that is there.
    fn places_of(
        &mut self,
        system: &str,
        names: &[String],
        wanted: &[Vec<(i64, EventId)>],
    ) -> Result<Vec<Place>, PlanError> {
        let mut table = Small::new("named", NAMES);
        let all: Vec<(usize, i64, EventId)> = (0..)
            .zip(wanted)
            .flat_map(|(at, known)| known.iter().map(move |(number, id)| (at, *number, id.clone())))
            .collect();
        for (place, (_, number, id)) in (0_i64..).zip(&all) {
            let (incarnation, seq) = (i64::from(id.incarnation), i64::try_from(id.seq).unwrap_or(i64::MAX));
            table.push(vec![
                place.into(),
                (*number).into(),
                id.actor.as_str().into(),
                incarnation.into(),
                seq.into(),
            ]);
        }
        self.engine.put(&[table])?;
        let mut ords: FxHashMap<i64, i64> = FxHashMap::default();
        for row in self.query(Step::Places)? {
            if let [place, _, ord] = row[..] {
                ords.insert(place, ord);
            }
        }
        // Only a thread's sends stand outside the order of an ordinary log.
        let ask = all.iter().any(|(_, number, _)| {
            self.logs.get(number).is_some_and(|log| log.outside > 0 && log.actor != ENVIRONMENT)
        });
        let mut threads = BTreeSet::new();
        if ask {
            self.open_events(system)?;
            threads.extend(self.query(Step::Stands)?.into_iter().filter_map(|row| row.first().copied()));
        }
        let mut found: Vec<Option<Place>> = vec![None; wanted.len()];
        for (place, (at, number, id)) in (0_i64..).zip(&all) {
            let (Some(&ord), None) = (ords.get(&place), found[*at]) else { continue };
            let key = (system.to_owned(), id.actor.clone(), i64::from(id.incarnation), id.seq as i64);
            found[*at] = Some(match self.by_event.get(&key) {
                Some(&number) => Place { number, ord: 1, alone: false },
                None => {
                    let alone = id.actor == ENVIRONMENT || threads.contains(&place);
                    Place { number: *number, ord, alone }
                }
            });
        }
        let mut places = Vec::new();
        for (at, place) in found.into_iter().enumerate() {
            places.push(place.ok_or_else(|| {
                let last = wanted[at].first().and_then(|(number, _)| self.logs.get(number));
                let has = last.map_or(String::new(), |log| {
                    format!("the log of '{}' has {} events, none of this name", log.actor, log.last_ord)
                });
                ViolationError::NoEvent { name: names[at].clone(), has }
            })?);
        }
        Ok(places)
    }

    /// Where the last event of an actor stands.
    pub(crate) fn last_place(&mut self, system: &str, number: i64) -> Result<Place, PlanError> {
        let ord = self.log(number)?.last_ord;
        let names = self.names(&[(0, number, ord)])?;
        let id =
            names.into_iter().next().ok_or_else(|| PlanError::Broken(format!("log {number} has no end")))?;
        let name = id.to_string();
        let places = self.places_of(system, &[name], &[vec![(number, id)]])?;
        places.into_iter().next().ok_or_else(|| PlanError::Broken(format!("log {number} has no end")))
    }

    pub(crate) fn no_actor(&self, system: &str, name: &str) -> ViolationError {
        let mut all: Vec<&str> = self.actors_of(system).map(|log| log.actor.as_str()).collect();
        all.sort_unstable();
        let mut actors = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if all.len() > NAMED {
            actors.push_str(&format!(" and {} more", all.len() - NAMED));
        }
        let near = nearest(name, all.iter().copied()).map(str::to_owned);
        ViolationError::NoActor { name: name.to_owned(), nearest: near, actors }
    }

    /// The names of positions, as (target, log, position), in their order.
    pub(crate) fn names(&mut self, wanted: &[(i64, i64, i64)]) -> Result<Vec<EventId>, PlanError> {
        let mut table = Small::new("wanted", FRONTIER);
        let mut found: FxHashMap<(i64, i64), EventId> = FxHashMap::default();
        let mut asked = BTreeSet::new();
        for &(_, actor, ord) in wanted {
            let log = self.log(actor)?;
            if let Some((incarnation, seq)) = log.alone {
                let id =
                    EventId { actor: log.actor.clone(), incarnation: incarnation as u32, seq: seq as u64 };
                found.insert((actor, ord), id);
            } else if asked.insert((actor, ord)) {
                table.push([0, actor, ord].map(Into::into).to_vec());
            }
        }
        if !asked.is_empty() {
            self.engine.put(&[table])?;
            for row in self.query(Step::Names)? {
                let [_, actor, ord, incarnation, seq] = row[..] else {
                    return Err(PlanError::Broken(format!("a name is {row:?}")));
                };
                let name = self.log(actor)?.actor.clone();
                let id = EventId { actor: name, incarnation: incarnation as u32, seq: seq as u64 };
                found.insert((actor, ord), id);
            }
        }
        let name = |&(_, actor, ord): &(i64, i64, i64)| {
            let found = found.get(&(actor, ord)).cloned();
            found.ok_or_else(|| PlanError::Broken(format!("position {ord} of log {actor} has no name")))
        };
        wanted.iter().map(name).collect()
    }

    /// Closes the pasts of targets, each of some events, in one loop.
    ///
    /// # Errors
    /// When the engine fails.
    pub fn pasts(&mut self, targets: &[Vec<Place>]) -> Result<Closed, PlanError> {
        let starts = |places: &Vec<Place>| places.iter().filter_map(|place| place.start()).collect();
        let targets: Vec<Vec<Position>> = targets.iter().map(starts).collect();
        let logs = &self.logs;
        let block = |number: i64| logs.get(&number).map(|log| log.block);
        let closed = frontier::close(self.engine, &block, &targets, self.options, &self.scratch)?;
        self.counted.add(closed.effort.counted);
        Ok(closed)
    }

    /// The events outside their log's order and without causes that are in each past, by log and position.
    pub(crate) fn alone_in(&mut self, frontiers: &[Frontier]) -> Result<Vec<BTreeSet<Position>>, PlanError> {
        let mut alone = vec![BTreeSet::new(); frontiers.len()];
        if self.logs.values().all(|log| log.outside == 0) {
            return Ok(alone);
        }
        self.engine.put(&[as_table(frontiers)])?;
        for row in self.query(Step::Alone)? {
            let target = target_of(&row, frontiers.len())?;
            if let [_, actor, ord] = row[..] {
                alone[target].insert((actor, ord));
            }
        }
        Ok(alone)
    }

    /// By target and log: how many events before a position stand outside the order. `before` are the positions that are not counted any more.
    fn outside_before(
        &mut self,
        system: &str,
        before: &[Frontier],
    ) -> Result<FxHashMap<(usize, i64), i64>, PlanError> {
        let (mut wanted, mut unordered) = (Vec::new(), Small::new("unordered", UNORDERED));
        for (target, frontier) in (0_i64..).zip(before) {
            for (&actor, &ord) in frontier {
                let log = self.log(actor)?;
                if log.outside == 0 || log.alone.is_some() {
                    continue;
                }
                if log.by_name {
                    wanted.push((target, actor, ord));
                } else {
                    unordered.push(vec![target.into(), actor.into(), log.actor.as_str().into(), ord.into()]);
                }
            }
        }
        let mut counts = FxHashMap::default();
        let mut steps = Vec::new();
        let mut bounds = Small::new("bounds", BOUNDS);
        for (id, &(target, actor, _)) in self.names(&wanted)?.iter().zip(&wanted) {
            let (incarnation, seq) = (i64::from(id.incarnation), id.seq as i64);
            bounds.push(vec![
                target.into(),
                actor.into(),
                id.actor.as_str().into(),
                incarnation.into(),
                seq.into(),
            ]);
        }
        steps.extend((!bounds.rows().is_empty()).then_some(Step::Outside));
        steps.extend((!unordered.rows().is_empty()).then_some(Step::OutsideUnordered));
        if steps.is_empty() {
            return Ok(counts);
        }
        self.open_events(system)?;
        self.engine.put(&[bounds, unordered])?;
        for step in steps {
            for row in self.query(step)? {
                let target = target_of(&row, before.len())?;
                if let [_, actor, n] = row[..] {
                    counts.insert((target, actor), n);
                }
            }
        }
        Ok(counts)
    }

    /// Where only what is certain is asked for, refuses a system with logs in which no clock tells events apart: their order is left out then, but for
    /// spans and their parents, which the tables do not have.
    fn refuse_ties(&mut self, system: &str) -> Result<(), PlanError> {
        if !self.options.certain {
            return Ok(());
        }
        let tied = self.query(Step::Tied)?;
        let of_system = |row: &Vec<i64>| {
            row.first().and_then(|number| self.logs.get(number)).is_some_and(|log| log.system == system)
        };
        match tied.iter().any(of_system) {
            false => Ok(()),
            true => Err(PlanError::Refused {
                what: "a certain order where events of one log have equal times",
                why: "an index of spans and their parents",
                way: "ask on --engine local, or fetch a past with --fetch",
            }),
        }
    }

    /// The sizes and frontiers of the pasts of events, in one loop.
    ///
    /// # Errors
    /// When there is no such event, or the engine fails.
    pub fn past_answers(
        &mut self,
        system: &str,
        events: &[String],
    ) -> Result<(Vec<PastAnswer>, Effort), PlanError> {
        self.refuse_ties(system)?;
        let places = self.places(system, events)?;
        let targets: Vec<Vec<Place>> = places.iter().map(|place| vec![*place]).collect();
        let Closed { frontiers, effort } = self.pasts(&targets)?;
        let alone = self.alone_in(&frontiers)?;
        // What stands at the frontier is in the order, so that it bounds what stands before it.
        let before = self.outside_before(system, &frontiers)?;
        let mut answers = Vec::new();
        for (target, frontier) in frontiers.iter().enumerate() {
            let (mut inside, mut outside) = (0, alone[target].len() as i64);
            let mut wanted = Vec::new();
            for (&actor, &ord) in frontier {
                match self.log(actor)?.alone {
                    Some(_) => outside += 1,
                    None => {
                        inside += ord - before.get(&(target, actor)).copied().unwrap_or(0);
                        wanted.push((0, actor, ord));
                    }
                }
            }
            let own = self.is_outside(places[target]);
            outside += i64::from(places[target].alone);
            answers.push(self.answer(system, &events[target], &wanted, inside, outside, own)?);
        }
        Ok((answers, effort))
    }

    fn is_outside(&self, place: Place) -> bool {
        place.alone || self.logs.get(&place.number).is_some_and(|log| log.alone.is_some())
    }

    fn answer(
        &mut self,
        system: &str,
        event: &str,
        wanted: &[(i64, i64, i64)],
        inside: i64,
        outside: i64,
        own: bool,
    ) -> Result<PastAnswer, PlanError> {
        let names = self.names(wanted)?;
        let mut frontier = BTreeMap::new();
        for id in names {
            frontier.insert(id.actor.clone(), id.to_string());
        }
        let readings = EventId::readings(event).map_err(ViolationError::from)?;
        let known = readings.iter().find(|id| self.actor(system, &id.actor).is_some());
        Ok(PastAnswer {
            event: known.map_or_else(|| event.to_owned(), ToString::to_string),
            size: (inside + outside - 1).max(0) as u64,
            outside: (outside - i64::from(own)).max(0) as u64,
            concurrent: None,
            frontier,
        })
    }

    /// By target: the first position of each log that is after one of its events.
    fn futures_of(&mut self, targets: &[Vec<Place>]) -> Result<(Vec<Frontier>, Effort), PlanError> {
        let mut frontiers = vec![Frontier::new(); targets.len()];
        let mut effort =
            Effort { rounds: 0, counted: Counted::none(), closed_by: ClosedBy::Rounds, fetched: 0 };
        let mut delta = Small::new("delta", DELTA);
        for (target, places) in targets.iter().enumerate() {
            for place in places {
                let (number, ord) = (place.number, place.ord);
                let hi = if place.alone { ord } else { i64::MAX };
                delta.push(
                    [target as i64, number, 0, ord, hi, i64::from(place.alone)].map(Into::into).to_vec(),
                );
                if !place.alone {
                    let known = frontiers[target].entry(number).or_insert(ord);
                    *known = ord.min(*known);
                }
            }
        }
        while !delta.rows().is_empty() {
            self.engine.put(&[delta, as_table(&frontiers)])?;
            let answer = self.engine.query(Step::Later, &[])?;
            effort.rounds += 1;
            effort.counted.add(answer.counted);
            delta = Small::new("delta", DELTA);
            for row in &answer.rows {
                let target = target_of(row, targets.len())?;
                let [_, actor, ord] = row[..] else {
                    return Err(PlanError::Broken(format!("a round answered {row:?}")));
                };
                let before = frontiers[target].insert(actor, ord).unwrap_or(i64::MAX);
                delta.push(
                    [target as i64, actor, 0, ord, before.saturating_sub(1), 0].map(Into::into).to_vec(),
                );
            }
        }
        self.counted.add(effort.counted);
        Ok((frontiers, effort))
    }

    /// The sizes and frontiers of the futures of events, in one loop.
    ///
    /// # Errors
    /// As [`Session::past_answers`].
    pub fn future_answers(
        &mut self,
        system: &str,
        events: &[String],
    ) -> Result<(Vec<PastAnswer>, Effort), PlanError> {
        let places = self.places(system, events)?;
        let targets: Vec<Vec<Place>> = places.iter().map(|place| vec![*place]).collect();
        let (frontiers, effort) = self.futures_of(&targets)?;
        let before = self.outside_before(system, &frontiers)?;
        let mut answers = Vec::new();
        for (target, frontier) in frontiers.iter().enumerate() {
            let (mut inside, mut outside) = (0, i64::from(places[target].alone));
            let mut wanted = Vec::new();
            for (&actor, &ord) in frontier {
                let log = self.log(actor)?;
                match log.alone {
                    Some(_) => outside += 1,
                    None => {
                        let earlier = before.get(&(target, actor)).copied().unwrap_or(0);
                        inside += log.last_ord - ord + 1 - (log.outside - earlier);
                        wanted.push((0, actor, ord));
                    }
                }
            }
            let own = self.is_outside(places[target]);
            answers.push(self.answer(system, &events[target], &wanted, inside, outside, own)?);
        }
        Ok((answers, effort))
    }

    /// How the first of each pair stands to the second; one loop answers all.
    ///
    /// # Errors
    /// As [`Session::past_answers`].
    pub fn orders(
        &mut self,
        system: &str,
        pairs: &[(String, String)],
    ) -> Result<(Vec<Relation>, Effort), PlanError> {
        self.refuse_ties(system)?;
        let names: Vec<String> = pairs.iter().flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let places = self.places(system, &names)?;
        let mut targets: Vec<Vec<Place>> = places.iter().map(|place| vec![*place]).collect();
        targets.sort_unstable();
        targets.dedup();
        let Closed { frontiers, effort } = self.pasts(&targets)?;
        let alone = self.alone_in(&frontiers)?;
        let precedes = |a: Place, b: Place| {
            let Ok(target) = targets.binary_search(&vec![b]) else { return false };
            match a.alone {
                true => alone[target].contains(&(a.number, a.ord)),
                false => frontiers[target].get(&a.number).is_some_and(|&ord| a.ord <= ord),
            }
        };
        let relation = |pair: &[Place]| match (pair[0], pair[1]) {
            (a, b) if a == b => Relation::Equal,
            (a, b) if precedes(a, b) => Relation::Before,
            (a, b) if precedes(b, a) => Relation::After,
            _ => Relation::Concurrent,
        };
        Ok((places.chunks(2).map(relation).collect(), effort))
    }

    /// What is known of a cut, as the last event of each actor in it, or of the smallest consistent cut with events.
    ///
    /// # Errors
    /// As [`Session::past_answers`].
    pub fn cut(&mut self, system: &str, events: &[String], at: &[String]) -> Result<EngineCut, PlanError> {
        let frontier = match at.is_empty() {
            true => {
                let named: Vec<String> =
                    events.iter().filter(|name| !name.ends_with("/0")).cloned().collect();
                let places = self.places(system, &named)?;
                places
                    .iter()
                    .filter(|place| !self.is_outside(**place))
                    .map(|place| (place.number, place.ord))
                    .collect()
            }
            false => {
                let places = self.places(system, at)?;
                self.pasts(&[places])?.frontiers.swap_remove(0)
            }
        };
        let wanted: Vec<(i64, i64, i64)> = frontier.iter().map(|(&actor, &ord)| (0, actor, ord)).collect();
        let mut cut = BTreeMap::new();
        for (id, (_, actor, _)) in self.names(&wanted)?.into_iter().zip(&wanted) {
            if self.log(*actor)?.alone.is_none() {
                cut.insert(id.actor.clone(), id.to_string());
            }
        }
        self.engine.put(&[as_table(&[frontier])])?;
        let missing = match self.query(Step::Inconsistent)?.first().map(Vec::as_slice) {
            Some(&[ra, rp, sa, sp]) => {
                let names = self.names(&[(0, sa, sp), (0, ra, rp)])?;
                Some((names[0].to_string(), names[1].to_string()))
            }
            _ => None,
        };
        let in_flight = match missing {
            Some(_) => None,
            None => self.query(Step::InFlight)?.first().and_then(|row| row.first()).map(|&n| n as u64),
        };
        Ok(EngineCut { cut, consistent: missing.is_none(), in_flight, missing })
    }
}

/// The columns of a table, but for those in paths.
fn columns(schema: &arrow_schema::Schema, without: &[&str]) -> Vec<(String, ColumnType)> {
    let fields = schema.fields().iter().filter(|field| !without.contains(&field.name().as_str()));
    let kind = |kind: &DataType| match kind {
        DataType::Int64 => ColumnType::Long,
        DataType::Int32 => ColumnType::Int,
        DataType::Boolean => ColumnType::Flag,
        _ => ColumnType::Text,
    };
    fields.map(|field| (field.name().clone(), kind(field.data_type()))).collect()
}
