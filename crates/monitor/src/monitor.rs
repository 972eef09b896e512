//! A monitor: all invariants of a file over the records of one system.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use demi_predicate::{Delivered, State};
use demi_schemas::EventId;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_128;

use crate::interest::{Interest, Record};
use crate::invariant::Invariant;
use crate::order::{Order, Released};
use crate::status::{Counts, InvariantStatus, Options, Unjudged, Violation};
use crate::units::Units;
use crate::watched::{Certainty, WatchRecord, Watched};

/// Handlers that do nothing for so long are done, in milliseconds.
const UNIT_MILLIS: u64 = 200;
/// States after which an actor that something was missing of is certain again.
const UNCERTAIN: u8 = 2;

/// The state of an actor, as a monitor has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Actor {
    pub(crate) incarnation: u32,
    /// By variable: its value.
    pub(crate) values: Box<[Option<Json>]>,
    pub(crate) state: Option<Arc<State>>,
    /// The sequence number of the record that told it.
    pub(crate) told: u64,
    /// How many states it must tell before it is certain.
    pub(crate) uncertain: u8,
}

/// All invariants of a file, watched over the records of one system.
pub struct Monitor<'p> {
    pub(crate) interest: Interest,
    pub(crate) options: Options,
    pub(crate) order: Order,
    pub(crate) units: Units,
    pub(crate) actors: Vec<Actor>,
    /// Actors that something is missing of.
    pub(crate) uncertain: BTreeSet<usize>,
    pub(crate) watched: Vec<Watched<'p>>,
    pub(crate) counts: Counts,
    /// Share of the states of an invariant that are looked at.
    sample: f64,
    /// Actors beyond which some are forgotten.
    crowded: usize,
}

impl<'p> Monitor<'p> {
    /// A monitor that has seen nothing.
    #[must_use]
    pub fn new(invariants: &'p [Invariant], options: Options) -> Monitor<'p> {
        let interest = Interest::of(invariants);
        let watched = invariants.iter().map(|invariant| {
            let verdicts = invariant.predicate.verdicts(options.keys);
            Watched::new(invariant, verdicts, interest.mask(invariant), WatchRecord::default())
        });
        Monitor {
            crowded: options.actors,
            options,
            order: Order::new(interest.of_messages),
            units: Units::default(),
            actors: Vec::new(),
            uncertain: BTreeSet::new(),
            watched: watched.collect(),
            counts: Counts::default(),
            sample: 1.0,
            interest,
        }
    }

    /// What records are cut down to.
    #[must_use]
    pub fn interest(&self) -> &Interest {
        &self.interest
    }

    /// From here on only a share of the states of an invariant is looked at.
    pub fn set_sample(&mut self, sample: f64) {
        self.sample = sample;
    }

    /// Takes a record of the frame `lsn`, at a time in milliseconds; what was taken before is passed over.
    pub fn take(&mut self, record: Record, lsn: u64, now: u64, found: &mut Vec<Violation>) {
        let mut out = Vec::new();
        self.order.push(record, lsn, now, &mut out);
        self.handle(out, now, found);
        if self.order.actors() > self.crowded {
            self.forget_oldest();
        }
    }

    /// Forgets an eighth of the actors that there may be, so that it need not be done for each: those that told nothing for the longest time,
    /// first among those of which no state is known.
    fn forget_oldest(&mut self) {
        let most = self.options.actors.max(1);
        let state = |number: usize| self.actors.get(number).is_some_and(|actor| actor.state.is_some());
        let idle = self.order.idle().filter(|number| !self.units.units.contains_key(number));
        let mut idle: Vec<(bool, u64, usize)> =
            idle.map(|number| (state(number), self.order.logs[number].used, number)).collect();
        let count = (self.order.actors().saturating_sub(most) + most / 8).min(idle.len());
        if count > 0 && count < idle.len() {
            idle.select_nth_unstable(count);
        }
        idle.truncate(count);
        idle.sort_unstable();
        let gone: Vec<usize> = idle.iter().map(|(_, _, number)| *number).collect();
        let told = idle.iter().filter(|(state, ..)| *state);
        let names: BTreeSet<Arc<str>> =
            told.map(|(_, _, number)| self.order.names[*number].clone()).collect();
        self.watched.iter_mut().for_each(|watched| watched.forget(&gone, &names));
        for number in &gone {
            if let Some(actor) = self.actors.get_mut(*number) {
                *actor = Actor::default();
            }
            self.uncertain.remove(number);
        }
        self.order.forget(&gone);
        self.counts.forgotten += gone.len() as u64;
        // Where most are at work, the next attempt is not made at once.
        self.crowded = if self.order.actors() > most { self.order.actors() + most / 8 } else { most };
    }

    /// Time goes by: takes what has waited long enough.
    pub fn tick(&mut self, now: u64, found: &mut Vec<Violation>) {
        let mut out = Vec::new();
        let until = now.saturating_sub(self.options.wait_millis);
        let quiet = now.saturating_sub(UNIT_MILLIS);
        self.order.tick(until, quiet, self.options.wait_records, &mut out);
        self.handle(out, now, found);
        // Who was at work, or waited, may be forgotten now.
        if self.order.actors() > self.options.actors {
            self.forget_oldest();
        }
    }

    /// Records were lost: the states of all actors are unknown until they are told again.
    pub fn lose(&mut self) {
        self.order.lose();
        self.units.units.clear();
        self.actors.iter_mut().for_each(|actor| *actor = Actor::default());
        self.uncertain.clear();
        self.watched.iter_mut().for_each(|watched| watched.verdicts.forget_actors());
    }

    /// The first frame of which a record waits.
    #[must_use]
    pub fn oldest_waiting(&self) -> Option<u64> {
        self.order.oldest()
    }

    /// What it has to say of itself.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            held: self.order.held,
            on_their_way: self.order.sent.len(),
            actors: self.order.actors(),
            kept: self.watched.iter().map(|w| w.verdicts.kept()).sum(),
            untold: self.watched.iter().map(|w| w.verdicts.beyond()).sum(),
            ..self.counts
        }
    }

    /// The invariants as they stand, in the order of the file.
    #[must_use]
    pub fn watching(&self) -> Vec<InvariantStatus> {
        let all = self.watched.iter().map(|Watched { invariant, standing, unseen, verdicts, .. }| {
            let (mut failing, mut unjudged) = (Vec::new(), BTreeMap::new());
            let (mut failing_groups, mut unjudged_groups) = (0, 0);
            for finding in verdicts.findings() {
                let (count, shown) = match &finding.unjudged {
                    Some(_) => (&mut unjudged_groups, unjudged.len()),
                    None => (&mut failing_groups, failing.len()),
                };
                *count += 1;
                match &finding.unjudged {
                    _ if shown >= InvariantStatus::SHOWN => {}
                    Some(reason) => drop(unjudged.insert(finding.of.clone(), reason.clone())),
                    None => failing.push(finding.of.clone()),
                }
            }
            InvariantStatus {
                id: invariant.id.clone(),
                name: invariant.name.clone(),
                holds: invariant.predicate.text().to_owned(),
                muted: standing.muted,
                failing,
                failing_groups,
                checks: standing.checks,
                failures: standing.failures,
                last_failure: standing.last.clone(),
                never_told: self.interest.names(*unseen),
                unjudged,
                unjudged_groups,
            }
        });
        all.collect()
    }

    /// The rows and groups that cannot be judged any more and of which nobody was told, by invariant. Each is told once, until it was
    /// judged again.
    pub fn take_unjudged(&mut self) -> Vec<Unjudged> {
        let mut all = Vec::new();
        for watched in &mut self.watched {
            let mut told: Option<Unjudged> = None;
            for finding in watched.verdicts.findings_mut().filter(|finding| !finding.told) {
                let Some(reason) = &finding.unjudged else { continue };
                finding.told = true;
                let told = told.get_or_insert_with(|| Unjudged {
                    invariant: watched.invariant.id.clone(),
                    of: Vec::new(),
                    groups: 0,
                    reason: reason.clone(),
                });
                told.groups += 1;
                if told.of.len() < InvariantStatus::SHOWN {
                    told.of.push(finding.of.clone());
                }
            }
            all.extend(told);
        }
        all
    }

    /// Mutes an invariant, or lets it be heard again. Says whether there is one of this id or name.
    pub fn mute(&mut self, id: &str, muted: bool) -> bool {
        let mut of = self.watched.iter_mut().filter(|w| w.invariant.id == id || w.invariant.name == id);
        of.next().map(|watched| watched.standing.muted = muted).is_some()
    }

    fn handle(&mut self, out: Vec<Released>, now: u64, found: &mut Vec<Violation>) {
        for out in out {
            match out {
                Released::Record { actor, record, certain } => {
                    self.record(actor, record, certain, now, found)
                }
                Released::Done { actor } => {
                    let name = self.order.names[actor].clone();
                    let state = self.actors.get(actor).and_then(|actor| actor.state.clone());
                    if let Some((delivered, incarnation, seq)) = self.units.done(actor, &name, state.as_ref())
                    {
                        let event = EventId { actor: name.to_string(), incarnation, seq };
                        self.delivered(&delivered, &event, now, found);
                    }
                }
            }
        }
    }

    fn record(&mut self, actor: usize, record: Record, certain: bool, now: u64, found: &mut Vec<Violation>) {
        if self.actors.len() <= actor {
            self.actors.resize_with(actor + 1, Actor::default);
        }
        let known = &mut self.actors[actor];
        if !certain {
            known.uncertain = UNCERTAIN;
            self.uncertain.insert(actor);
            self.counts.uncertain += 1;
        }
        let anew = known.incarnation != record.incarnation;
        if anew || record.is_end {
            // What it told before is gone.
            known.incarnation = record.incarnation;
            known.state = None;
            let name = &self.order.names[actor];
            self.watched.iter_mut().for_each(|watched| watched.verdicts.forget_actor(name));
        }
        if self.interest.of_messages {
            self.units.record(actor, &record, known.state.as_ref().filter(|_| !anew));
        }
        let Some(values) = record.state else { return };
        if known.uncertain > 0 && certain {
            known.uncertain -= 1;
            if known.uncertain == 0 {
                self.uncertain.remove(&actor);
            }
        }
        let changed = known.change(values, &self.interest, anew);
        known.told = record.seq;
        let present = known.present();
        let Some(state) = known.state.clone() else { return };
        let name = self.order.names[actor].clone();
        let event = EventId { actor: name.to_string(), incarnation: record.incarnation, seq: record.seq };
        for i in 0..self.watched.len() {
            let watched = &mut self.watched[i];
            if watched.unseen & present != 0 && watched.is_about(actor, &name) {
                watched.unseen &= !present;
            }
            let looks =
                watched.mask & changed != 0 || watched.verdicts.takes_each() || watched.verdicts.is_stale();
            if !looks || !watched.is_about(actor, &name) {
                continue;
            }
            let look = watched.is_sampled(self.sample, &name, record.seq);
            if watched.tell(&name, record.incarnation, &state, look) {
                self.judge(i, &event, now, found);
            }
        }
    }

    fn delivered(&mut self, delivered: &Delivered, event: &EventId, now: u64, found: &mut Vec<Violation>) {
        for i in 0..self.watched.len() {
            if self.watched[i].deliver(delivered) {
                self.judge(i, event, now, found);
            }
        }
    }

    fn judge(&mut self, number: usize, event: &EventId, now: u64, found: &mut Vec<Violation>) {
        let Monitor { order, uncertain, watched, options, actors, interest, .. } = self;
        let watched = &mut watched[number];
        while watched.verdicts.kept() > options.keys {
            watched.verdicts.forget_half();
        }
        if !watched.verdicts.has_fresh() {
            return;
        }
        let class = &watched.invariant.class;
        let is_certain = |judged: Certainty, affected: &[Arc<str>]| match judged {
            Certainty::Alone => true,
            _ if order.channels_failed => false,
            Certainty::Row => !uncertain.iter().any(|actor| affected.contains(&order.names[*actor])),
            Certainty::Cut => !uncertain.iter().any(|actor| class.has(&order.names[*actor], 0)),
        };
        let event = event.to_string();
        for (of, affected) in watched.judge(&event, now, options, is_certain) {
            let (mut states, mut told_at) = (Map::new(), Vec::new());
            for name in &affected {
                let Some(known) = order.find(name).and_then(|n| actors.get(n)) else { continue };
                if known.state.is_some() {
                    states.insert(name.to_string(), known.object(interest));
                    let told =
                        EventId { actor: name.to_string(), incarnation: known.incarnation, seq: known.told };
                    told_at.push(told.to_string());
                }
            }
            let invariant = watched.invariant;
            found.push(Violation {
                id: format!("{:032x}", xxh3_128(format!("{}\n{of}\n{event}", invariant.id).as_bytes())),
                invariant: invariant.id.clone(),
                name: invariant.name.clone(),
                holds: invariant.predicate.text().to_owned(),
                of,
                event: event.clone(),
                states,
                told_at,
                affected: affected.iter().map(|name| name.to_string()).collect(),
            });
        }
    }
}

impl Actor {
    /// Takes a new state; the variables that changed, all where it is the first of its incarnation.
    fn change(&mut self, values: Box<[Option<Json>]>, interest: &Interest, anew: bool) -> u128 {
        let mut changed = 0;
        let known = self.state.is_some() && self.values.len() == values.len();
        for (i, value) in values.iter().enumerate() {
            if !known || self.values[i] != *value {
                changed |= bit(i);
            }
        }
        if changed != 0 || self.state.is_none() {
            self.state = Some(Arc::new(self.next_state(&values, interest, known)));
            self.values = values;
        }
        if anew || !known { u128::MAX } else { changed }
    }

    /// The state with these values. It shares with the one before what they have in common; `known` says whether there is one.
    fn next_state(&self, values: &[Option<Json>], interest: &Interest, known: bool) -> State {
        let before = self
            .state
            .as_ref()
            .filter(|_| known && self.values.iter().zip(values).all(|(a, b)| a.is_some() == b.is_some()));
        let shape = match before {
            Some(before) => before.shape().clone(),
            None => {
                let present = interest.variables.iter().zip(values).filter(|(_, value)| value.is_some());
                present.map(|(name, _)| Arc::from(name.as_str())).collect()
            }
        };
        let present = values.iter().zip(0..).filter_map(|(value, i): (_, usize)| Some((value.as_ref()?, i)));
        let shared = present.enumerate().map(|(place, (value, i))| {
            let same = before.filter(|_| self.values[i].as_ref() == Some(value));
            same.and_then(|before| before.shared(place)).cloned().unwrap_or_else(|| Arc::new(value.clone()))
        });
        State::of(shape, shared.collect())
    }

    /// The variables that have a value, a bit for each.
    fn present(&self) -> u128 {
        let all = self.values.iter().enumerate().filter(|(_, value)| value.is_some());
        all.fold(0, |bits, (place, _)| bits | bit(place))
    }

    /// Its variables as JSON.
    pub(crate) fn object(&self, interest: &Interest) -> Json {
        let all = interest.variables.iter().zip(&self.values);
        Json::Object(all.filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect())
    }
}

impl Interest {
    /// The variables of an invariant, a bit for each.
    pub(crate) fn mask(&self, invariant: &Invariant) -> u128 {
        let all = invariant.predicate.variables();
        let places = all.iter().filter_map(|name| self.variables.iter().position(|known| known == name));
        // One that reads none is looked at whenever anything changes.
        places.map(bit).reduce(|a, b| a | b).unwrap_or(u128::MAX)
    }

    /// The bits of these variables.
    pub(crate) fn bits(&self, names: &[String]) -> u128 {
        let places = names.iter().filter_map(|name| self.variables.iter().position(|known| known == name));
        places.fold(0, |bits, place| bits | bit(place))
    }

    /// The variables of these bits.
    pub(crate) fn names(&self, bits: u128) -> Vec<String> {
        let all = self.variables.iter().enumerate().filter(|(place, _)| bits & bit(*place) != 0);
        all.map(|(_, name)| name.clone()).collect()
    }
}

/// The bit of a variable; those beyond the last share it.
fn bit(place: usize) -> u128 {
    1 << place.min(127)
}
