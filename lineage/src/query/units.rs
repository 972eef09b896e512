//! Handlers of a built execution, and the states that they leave.

use std::ops::Range;
use std::sync::Arc;

use demi_predicate::State;
use demi_schemas::Kind;
use rustc_hash::FxHashMap;

use super::Query;
use super::check::StateHistory;
use crate::error::LineageError;
use crate::index::Role;

/// Kinds of events that begin a unit, besides deliveries.
const HEADS: [Kind; 7] =
    [Kind::Start, Kind::Crash, Kind::Restart, Kind::Stop, Kind::Isolate, Kind::Heal, Kind::Action];

/// What says in the fields of a record that its state is an object of states by logging point, which were taken before the event.
const POINTS: (&str, &str) = ("points", "before");

/// The units of an execution: what happens as one step.
pub(super) struct ExecutionUnits {
    /// By unit: its first event, in order.
    heads: Vec<u32>,
}

impl ExecutionUnits {
    /// The units of an execution, whose events with a cause are given in order.
    pub(super) fn new(query: &Query, causes: &[(u32, u32)]) -> Result<ExecutionUnits, LineageError> {
        let header = query.index.header();
        let mut heads: Vec<u32> = header.actors.iter().map(|a| a.first).collect();
        heads.extend(causes.iter().map(|(effect, _)| *effect));
        let all: Range<u32> = 0..header.events;
        query.each_text("kind", std::slice::from_ref(&all), &mut |event, kind| {
            if HEADS.iter().any(|head| head.as_str() == kind) {
                heads.push(event);
            }
        })?;
        for event in all {
            if query.index.info(event)?.role() == Role::Delivery {
                heads.push(event);
            }
        }
        heads.sort_unstable();
        heads.dedup();
        Ok(ExecutionUnits { heads })
    }

    /// The unit of an event.
    pub(super) fn of(&self, event: u32) -> usize {
        self.heads.partition_point(|head| *head <= event).saturating_sub(1)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The first event of a unit.
    pub(super) fn head(&self, unit: usize) -> u32 {
        self.heads[unit]
    }
}

/// The states that units leave.
pub(super) struct States {
    all: Vec<Arc<State>>,
    /// By unit: its states in `all`. One, or as many as points that were passed.
    of: Vec<Range<u32>>,
    /// By unit: its last record with a state, with its place in the linear extension before it.
    done: Vec<Option<(u32, u32)>>,
    /// All records with a state, in order.
    told: Vec<(u32, Arc<State>)>,
    /// By unit: whether the one before it is of the same incarnation of the same actor.
    goes_on: Vec<bool>,
}

impl States {
    /// The states of all units.
    pub(super) fn new(
        query: &Query,
        told: &StateHistory,
        units: &ExecutionUnits,
    ) -> Result<States, LineageError> {
        let mut events: Vec<u32> = told.records().iter().map(|r| r.event).collect();
        events.sort_unstable();
        let ranges: Vec<Range<u32>> = events.iter().map(|e| *e..*e + 1).collect();
        let mut with_points = Vec::new();
        query.each_text("fields", &ranges, &mut |event, text| {
            if text.contains(POINTS.0) {
                let fields = State::parse(text);
                let says = fields.variable(POINTS.0).and_then(|v| v.as_str());
                with_points.extend((says == Some(POINTS.1)).then_some(event));
            }
        })?;
        with_points.sort_unstable();
        let mut records: Vec<(u32, u32, &Arc<State>)> =
            told.records().iter().map(|r| (r.event, r.order, &told.states()[r.state])).collect();
        records.sort_unstable_by_key(|record| record.0);
        let count = units.heads.len();
        let mut states = States {
            all: Vec::new(),
            of: vec![0..0; count],
            done: vec![None; count],
            told: Vec::new(),
            goes_on: Vec::with_capacity(count),
        };
        let mut found: Vec<Vec<Arc<State>>> = vec![Vec::new(); count];
        let mut points: FxHashMap<(String, String), Arc<State>> = FxHashMap::default();
        for (event, order, state) in records {
            let passed = with_points.binary_search(&event).is_ok();
            let unit = if passed { units.of(event.saturating_sub(1)) } else { units.of(event) };
            states.done[unit] = states.done[unit].max(Some((order, event)));
            if !passed {
                states.told.push((event, state.clone()));
                found[unit] = vec![state.clone()];
                continue;
            }
            for (point, variables) in state.variables().filter_map(|name| Some((name, state.variable(name)?)))
            {
                let key = (point.to_owned(), variables.to_string());
                let state = points.entry(key).or_insert_with(|| {
                    let point = serde_json::json!({ POINT: point });
                    Arc::new(State::new(point).with(&State::new(variables.clone())))
                });
                if found[unit].len() < MOST_POINTS {
                    found[unit].push(state.clone());
                }
            }
        }
        let mut before: Option<(usize, u32)> = None;
        for (unit, own) in found.into_iter().enumerate() {
            let head = units.heads[unit];
            let (actor, incarnation) = (query.index.actor_of(head), query.index.name(head)?.incarnation);
            let goes_on = before == Some((actor, incarnation));
            before = Some((actor, incarnation));
            states.goes_on.push(goes_on);
            // What was taken at a point is stale at the next event.
            states.of[unit] = match (own.is_empty(), goes_on && with_points.is_empty()) {
                (false, _) => {
                    let from = states.all.len() as u32;
                    states.all.extend(own);
                    from..states.all.len() as u32
                }
                (true, true) => states.of[unit - 1].clone(),
                (true, false) => 0..0,
            };
        }
        Ok(states)
    }

    /// The states in effect when the unit of an event was done; none where its actor had told none.
    pub(super) fn of(&self, event: u32, units: &ExecutionUnits) -> &[Arc<State>] {
        let range = &self.of[units.of(event)];
        &self.all[range.start as usize..range.end as usize]
    }

    /// The state in effect when a unit began.
    pub(super) fn before(&self, unit: usize) -> Option<Arc<State>> {
        let range = self.of.get(unit.checked_sub(1)?).filter(|_| self.goes_on[unit])?;
        self.all[range.start as usize..range.end as usize].last().cloned()
    }

    /// The state in effect at an event outside the handlers.
    pub(super) fn at(&self, event: u32, query: &Query) -> Result<Option<Arc<State>>, LineageError> {
        let until = self.told.partition_point(|(told, _)| *told <= event);
        let Some((told, state)) = until.checked_sub(1).map(|i| &self.told[i]) else { return Ok(None) };
        let (told, own) = (query.index.name(*told)?, query.index.name(event)?);
        let same = told.actor == own.actor && told.incarnation == own.incarnation;
        Ok(same.then(|| state.clone()))
    }

    /// A unit's last record with a state, with its place in the linear extension before it.
    pub(super) fn done(&self, unit: usize) -> Option<(u32, u32)> {
        self.done[unit]
    }
}

/// The variable of a state that says at which point it was taken.
const POINT: &str = "logging_point";
/// Most points of one unit that count.
const MOST_POINTS: usize = 8;
