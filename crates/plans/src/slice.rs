//! What comes down: the causal past of a violation with all columns, of which a build is made as of any files.
//!
//! Handlers are atomic, so a frontier is raised to the ends of its handlers; nothing is received inside one, and no further round follows. Sends outside their log's
//! order come when their message is received in the past, and the actions of the environment always.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_cast::cast;
use arrow_schema::DataType;
use demi_lineage::{ViolationError, ViolationSpec};
use demi_schemas::EventId;
use demi_schemas::event::{ENVIRONMENT, ViolationFields};
use demi_schemas::summary::ProvenanceRule;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::engine::{ColumnType, Small};
use crate::error::PlanError;
use crate::frontier::{Effort, Frontier, as_table};
use crate::session::{BOUNDS, Place, Session, UNORDERED};
use crate::sql::Step;

const SINGLES: &[(&str, ColumnType)] =
    &[("actor", ColumnType::Text), ("incarnation", ColumnType::Long), ("seq", ColumnType::Long)];

/// A past that was fetched.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The files of its events.
    pub files: Vec<PathBuf>,
    /// What it took.
    pub summary: SliceSummary,
}

/// What a slice took: `rounds`, `rows_read`, `bytes_read` and `closed_by` of its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SliceSummary {
    /// The effort of the frontier.
    #[serde(flatten)]
    pub effort: Effort,
    /// Events at or before the frontier, those outside their log's order among them.
    pub events: u64,
}

/// A name as the place of a bound: what stands before it is inside.
type Bound = (i64, i64);

impl Session<'_> {
    /// The violation of a system as the events whose past is taken, and the records that name it.
    fn violation(
        &mut self,
        system: &str,
        spec: &ViolationSpec,
    ) -> Result<(Vec<Place>, Vec<EventId>), PlanError> {
        let actors = |session: &Self, names: &[String], lenient: bool| {
            let mut found = BTreeSet::new();
            for name in names {
                match session.actor(system, name) {
                    Some(number) => {
                        found.insert(number);
                    }
                    None if lenient => {}
                    None => return Err(session.no_actor(system, name)),
                }
            }
            match (found.is_empty(), names.first()) {
                (true, Some(name)) => Err(session.no_actor(system, name)),
                _ => Ok(found),
            }
        };
        let mut records = Vec::new();
        let affected = match spec {
            ViolationSpec::Event(text) => {
                // A name may have commas of its own.
                let places = match self.places(system, std::slice::from_ref(text)) {
                    Err(PlanError::Violation(_)) if text.contains(',') => {
                        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
                        self.places(system, &names)?
                    }
                    found => found?,
                };
                return Ok((places, records));
            }
            ViolationSpec::Actors(names) => actors(self, names, false)?,
            ViolationSpec::Recorded | ViolationSpec::Record(_) => {
                let only = match spec {
                    ViolationSpec::Record(name) => {
                        Some(EventId::readings(name).map_err(ViolationError::from)?)
                    }
                    _ => None,
                };
                let mut names = Vec::new();
                for (id, fields) in self.records(system)? {
                    if only.as_ref().is_some_and(|only| !only.contains(&id)) {
                        continue;
                    }
                    let bad = |e: serde_json::Error| ViolationError::BadFields {
                        event: id.to_string(),
                        reason: e.to_string(),
                    };
                    let fields: ViolationFields = match &fields {
                        Some(text) => serde_json::from_str(text).map_err(bad)?,
                        None => ViolationFields::default(),
                    };
                    names.extend(fields.affected);
                    records.push(id);
                }
                let all = || {
                    let mut all: Vec<&str> = self.actors_of(system).map(|log| log.actor.as_str()).collect();
                    all.sort_unstable();
                    all.join(", ")
                };
                match (records.first(), &only) {
                    (None, Some(only)) => {
                        let name = only.first().map(ToString::to_string).unwrap_or_default();
                        return Err(ViolationError::NotARecord(name).into());
                    }
                    (None, None) => return Err(ViolationError::NoRecord(all()).into()),
                    (Some(first), _) if names.is_empty() => {
                        let (event, actors) = (first.to_string(), all());
                        return Err(ViolationError::NamesNobody { event, actors }.into());
                    }
                    _ => actors(self, &names, true)?,
                }
            }
            ViolationSpec::None => {
                return Err(PlanError::Refused {
                    what: "a build without a violation",
                    why: "all events in one order",
                    way: "leave --engine out, or name a violation",
                });
            }
            ViolationSpec::Unknown(text) if text.starts_with("text:") || text.starts_with("line:") => {
                return Err(PlanError::Refused {
                    what: "a violation that is named by a text or a line",
                    why: "the content of all events in one order",
                    way: "name the event (demi-lineage query STORE find TEXT says which it is)",
                });
            }
            ViolationSpec::Unknown(text) => return Err(ViolationError::Unknown(text.clone()).into()),
        };
        let mut places = Vec::new();
        for number in affected {
            places.push(self.last_place(system, number)?);
        }
        Ok((places, records))
    }

    /// The violation records of a system with their fields.
    fn records(&mut self, system: &str) -> Result<Vec<(EventId, Option<String>)>, PlanError> {
        self.open_events(system)?;
        let path = self.scratch.join("records.parquet");
        let saved = self.engine.save(Step::Records, &path)?;
        self.counted.add(saved.counted);
        let mut found = Vec::new();
        for path in &saved.files {
            let file = File::open(path).map_err(PlanError::io(path))?;
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(PlanError::table(path))?;
            let names = ["actor", "incarnation", "seq", "fields"];
            let mask = ProjectionMask::columns(builder.parquet_schema(), names);
            for batch in builder.with_projection(mask).build().map_err(PlanError::table(path))? {
                let batch = batch?;
                let column = |name: &str, kind: DataType| {
                    let missing = || PlanError::Broken(format!("{} has no column '{name}'", path.display()));
                    Ok::<_, PlanError>(cast(batch.column_by_name(name).ok_or_else(missing)?, &kind)?)
                };
                let (actor, fields) = (column("actor", DataType::Utf8)?, column("fields", DataType::Utf8)?);
                let (actor, fields) = (actor.as_string::<i32>(), fields.as_string::<i32>());
                let incarnation = column("incarnation", DataType::UInt32)?;
                let incarnation = incarnation.as_primitive::<arrow_array::types::UInt32Type>();
                let seq = column("seq", DataType::UInt64)?;
                let seq = seq.as_primitive::<arrow_array::types::UInt64Type>();
                found.extend((0..batch.num_rows()).map(|row| {
                    let (incarnation, seq) = (incarnation.value(row), seq.value(row));
                    let id = EventId { actor: actor.value(row).to_owned(), incarnation, seq };
                    (id, fields.is_valid(row).then(|| fields.value(row).to_owned()))
                }));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Fetches the causal past of the violation of each system into files, for a build by `rule`; all frontiers are closed in one loop.
    ///
    /// # Errors
    /// When a violation names what is not there, a past is larger than `max_events`, or the engine fails.
    pub fn slices(
        &mut self,
        wanted: &[(String, ViolationSpec)],
        rule: ProvenanceRule,
        max_events: u64,
    ) -> Result<Vec<Slice>, PlanError> {
        let (mut targets, mut records) = (Vec::new(), Vec::new());
        for (system, spec) in wanted {
            let (places, named) = self.violation(system, spec)?;
            targets.push(places);
            records.push(named);
        }
        // The strict rule is about the last delivery before what is named, also where that stands outside its log's order.
        let mut aims = targets.clone();
        if rule == ProvenanceRule::Strict {
            let ordinary = |place: &Place| {
                self.logs.get(&place.position().0).is_some_and(|log| log.actor != ENVIRONMENT)
            };
            aims.iter_mut().flatten().filter(|place| ordinary(place)).for_each(Place::put_in_order);
        }
        let closed = self.pasts(&aims)?;
        let alone = self.alone_in(&closed.frontiers)?;
        self.engine.put(&[as_table(&closed.frontiers)])?;
        let mut receives: FxHashMap<(i64, i64), i64> = FxHashMap::default();
        for row in self.query(Step::NextReceive)? {
            if let [target, actor, ord] = row[..] {
                receives.insert((target, actor), ord);
            }
        }
        let mut slices = Vec::new();
        for (target, (system, _)) in wanted.iter().enumerate() {
            let frontier = &closed.frontiers[target];
            let mut events = alone[target].len() as u64;
            for (&actor, &ord) in frontier {
                events += if self.log(actor)?.alone.is_some() { 1 } else { ord as u64 };
            }
            if events > max_events {
                return Err(PlanError::TooMany { events, limit: max_events });
            }
            let next = |actor: i64| receives.get(&(target as i64, actor)).copied();
            let mut single: BTreeSet<(i64, i64)> = alone[target].clone();
            single.extend(
                targets[target].iter().filter(|place| place.start().is_none()).map(|place| place.position()),
            );
            self.bounds(system, frontier, &next, &single, &records[target])?;
            let path = self.scratch.join(format!("slice-{target}.parquet"));
            let saved = self.engine.save(Step::Slice, &path)?;
            self.counted.add(saved.counted);
            slices
                .push(Slice { files: saved.files, summary: SliceSummary { effort: closed.effort, events } });
        }
        Ok(slices)
    }

    /// Puts what a slice is bounded by: the ends of handlers, and single events.
    fn bounds(
        &mut self,
        system: &str,
        frontier: &Frontier,
        next_receive: &dyn Fn(i64) -> Option<i64>,
        alone: &BTreeSet<(i64, i64)>,
        records: &[EventId],
    ) -> Result<(), PlanError> {
        self.open_events(system)?;
        let (mut ordered, mut unordered) = (Vec::new(), Vec::new());
        let mut singles: BTreeSet<(String, i64, i64)> = BTreeSet::new();
        for (&actor, &ord) in frontier {
            let log = self.log(actor)?;
            match (log.alone, log.by_name) {
                (Some((incarnation, seq)), _) => {
                    singles.insert((log.actor.clone(), i64::from(incarnation), seq));
                }
                (None, true) => ordered.push((actor, log.actor.clone(), ord)),
                (None, false) => unordered.push((actor, log.actor.clone(), ord)),
            }
        }
        // Behind the frontier's events, to begin with.
        let mut bounds: FxHashMap<i64, Bound> = FxHashMap::default();
        let wanted: Vec<(i64, i64, i64)> = ordered.iter().map(|&(actor, _, ord)| (0, actor, ord)).collect();
        for (id, (_, actor, _)) in self.names(&wanted)?.iter().zip(&wanted) {
            bounds.insert(*actor, (i64::from(id.incarnation), (id.seq as i64).saturating_add(1)));
        }
        let ends: FxHashMap<i64, i64> = unordered.iter().map(|&(actor, _, ord)| (actor, ord + 1)).collect();
        self.put_bounds(&ordered, &bounds, &unordered, &ends, &BTreeSet::new())?;
        // The first beginning of a handler behind that, or none: then to the end of the log.
        let mut until: FxHashMap<i64, Bound> = FxHashMap::default();
        let mut lower = |actor: i64, bound: Bound| {
            let known = until.entry(actor).or_insert(bound);
            *known = bound.min(*known);
        };
        for row in self.query(Step::NextHead)? {
            if let [actor, incarnation, seq] = row[..] {
                lower(actor, (incarnation, seq));
            }
        }
        let received: Vec<(i64, i64, i64)> =
            ordered.iter().filter_map(|&(actor, ..)| Some((0, actor, next_receive(actor)?))).collect();
        for (id, (_, actor, _)) in self.names(&received)?.iter().zip(&received) {
            lower(*actor, (i64::from(id.incarnation), id.seq as i64));
        }
        let mut ends: FxHashMap<i64, i64> = FxHashMap::default();
        if !unordered.is_empty() {
            for row in self.query(Step::NextHeadUnordered)? {
                if let [actor, ord] = row[..] {
                    ends.insert(actor, ord);
                }
            }
            for &(actor, ..) in &unordered {
                if let Some(ord) = next_receive(actor) {
                    let known = ends.entry(actor).or_insert(ord);
                    *known = ord.min(*known);
                }
            }
        }
        for (actor, ..) in &ordered {
            until.entry(*actor).or_insert((i64::MAX, 0));
        }
        for (actor, ..) in &unordered {
            ends.entry(*actor).or_insert(i64::MAX);
        }
        let wanted: Vec<(i64, i64, i64)> = alone.iter().map(|&(actor, ord)| (0, actor, ord)).collect();
        for (id, (_, actor, ord)) in self.names(&wanted)?.into_iter().zip(&wanted) {
            let name = (i64::from(id.incarnation), id.seq as i64);
            let inside = until.get(actor).is_some_and(|&bound| name < bound)
                || ends.get(actor).is_some_and(|end| ord < end);
            if !inside {
                singles.insert((id.actor, name.0, name.1));
            }
        }
        singles.extend(records.iter().map(|id| (id.actor.clone(), i64::from(id.incarnation), id.seq as i64)));
        self.put_bounds(&ordered, &until, &unordered, &ends, &singles)
    }

    fn put_bounds(
        &mut self,
        ordered: &[(i64, String, i64)],
        bounds: &FxHashMap<i64, Bound>,
        unordered: &[(i64, String, i64)],
        ends: &FxHashMap<i64, i64>,
        singles: &BTreeSet<(String, i64, i64)>,
    ) -> Result<(), PlanError> {
        let mut bounds_table = Small::new("bounds", BOUNDS);
        for (actor, name, _) in ordered {
            let (incarnation, seq) = bounds.get(actor).copied().unwrap_or_default();
            bounds_table.push(vec![
                0.into(),
                (*actor).into(),
                name.as_str().into(),
                incarnation.into(),
                seq.into(),
            ]);
        }
        let mut unordered_table = Small::new("unordered", UNORDERED);
        for (actor, name, _) in unordered {
            let end = ends.get(actor).copied().unwrap_or_default();
            unordered_table.push(vec![0.into(), (*actor).into(), name.as_str().into(), end.into()]);
        }
        let mut singles_table = Small::new("singles", SINGLES);
        for (actor, incarnation, seq) in singles {
            singles_table.push(vec![actor.as_str().into(), (*incarnation).into(), (*seq).into()]);
        }
        self.engine.put(&[bounds_table, unordered_table, singles_table])
    }
}
