//! The order index of a base and its delta together.
//!
//! Events are numbered by actor, so that the delta's events of an actor stand behind its base's and move all later ones.

use std::ops::Range;
use std::path::Path;

use super::order::Ordered;
use crate::error::LineageError;
use crate::index::{
    self, ActorEntry, BLOCK, CLOCKS, COUNTS, GrownFrom, INDEX_SCHEMA, INFOS, Index, IndexHeader, Info, LINKS,
    MATES, ORDERS, Parts, RUNS, Role, STATES, Tally, with_file,
};
use crate::read::NONE;

/// An actor of the whole: its events in the base, and those added, both by their own numbers.
struct Log {
    name: String,
    base: Option<usize>,
    old: Range<u32>,
    added: Range<u32>,
    /// Number of its first event in the whole.
    first: u32,
}

/// Consecutive events of the whole: their other ends, ranks, and what they are.
#[derive(Default)]
struct Stretch {
    mates: Vec<u32>,
    ranks: Vec<u32>,
    infos: Vec<u8>,
}

impl Stretch {
    fn clear(&mut self) {
        self.mates.clear();
        self.ranks.clear();
        self.infos.clear();
    }
}

/// The merge of a base and a delta.
struct Merge<'a> {
    base: &'a Index,
    ordered: &'a Ordered,
    parts: Parts<'a>,
    logs: Vec<Log>,
    /// By actor of the base: what is added to the numbers of its events.
    moved: Vec<u32>,
    /// By block of the base's events: the actor of its first, and behind the last block the last actor.
    actors: Vec<usize>,
    /// By actor of the delta: the log in the whole.
    log_of: Vec<usize>,
    /// Open sends of the base, in order: base number, delta number.
    reopened: Vec<(u32, u32)>,
    events: u32,
}

/// Writes the index of the whole to `folder`; `states` gives the added events with a state, once the rest is written.
pub(crate) fn write(
    folder: &Path,
    base: &Index,
    ordered: &Ordered,
    states: impl FnOnce() -> Result<Vec<u32>, LineageError>,
) -> Result<(), LineageError> {
    let merge = Merge::new(base, ordered)?;
    merge.events(folder)?;
    let (states, first_state) = merge.states(&states()?)?;
    with_file(folder, STATES, |out| out.put_numbers(&states))?;
    let (runs, first_run) = merge.runs()?;
    with_file(folder, RUNS, |out| {
        runs.iter()
            .try_for_each(|&(incarnation, seq, first)| out.put(&index::run_bytes(incarnation, seq, first)))
    })?;
    with_file(folder, LINKS, |_| Ok(()))?;
    let mut header = merge.header()?;
    (header.runs, header.states) = (runs.len() as u32, states.len() as u32);
    for (actor, (run, state)) in header.actors.iter_mut().zip(first_run.into_iter().zip(first_state)) {
        (actor.first_run, actor.first_state) = (run, state);
    }
    let (before, wanted) = (base.header().stride, header.stride);
    let actors = merge.actors_of_base();
    // Clocks that stand a little too close cost less than to make all anew.
    let known = (before > 0 && wanted > 0 && wanted <= 2 * before).then_some(GrownFrom::new(base, &actors));
    if known.is_some() {
        header.stride = before;
    }
    index::store(folder, &header)?;
    if header.stride == 0 {
        return Ok(());
    }
    let mut made_of = Index::open(folder)?;
    if known.is_none() {
        header.stride = index::fitting_stride(&made_of)?;
        index::store(folder, &header)?;
        made_of = Index::open(folder)?;
    }
    match index::make_clocks(&made_of, known)? {
        Some(values) => with_file(folder, CLOCKS, |out| out.put_numbers(&values)),
        None => {
            header.stride = 0;
            index::store(folder, &header)
        }
    }
}

impl<'a> Merge<'a> {
    fn new(base: &'a Index, ordered: &'a Ordered) -> Result<Merge<'a>, LineageError> {
        let events = ordered.events();
        let mut logs: Vec<Log> = Vec::new();
        for (a, actor) in base.header().actors.iter().enumerate() {
            let (name, old) = (actor.name.clone(), base.events_of(a));
            logs.push(Log { name, base: Some(a), old, added: 0..0, first: 0 });
        }
        for actor in 0..events.actors.len() as u32 {
            let all = events.of_actor(actor);
            let open = all.clone().take_while(|&e| !ordered.is_added(e)).count() as u32;
            let added = all.start + open..all.end;
            let name = events.actor_name(actor);
            match logs[..base.header().actors.len()].binary_search_by(|log| log.name.as_str().cmp(name)) {
                Ok(log) => logs[log].added = added,
                Err(_) => logs.push(Log { name: name.to_owned(), base: None, old: 0..0, added, first: 0 }),
            }
        }
        logs.sort_by(|a, b| a.name.cmp(&b.name));
        let mut number = 0_u64;
        for log in &mut logs {
            log.first = u32::try_from(number).unwrap_or(NONE);
            number += log.old.len() as u64 + log.added.len() as u64;
        }
        if number >= u64::from(NONE) {
            return Err(LineageError::TooMany(number));
        }
        let mut moved = vec![0; base.header().actors.len()];
        let mut log_of = vec![0; events.actors.len()];
        for (i, log) in logs.iter().enumerate() {
            if let Some(a) = log.base {
                moved[a] = log.first - log.old.start;
            }
            if let Some(actor) = events.find_actor(&log.name) {
                log_of[actor as usize] = i;
            }
        }
        let in_base = ordered.delta().in_base.iter().enumerate();
        let mut reopened: Vec<(u32, u32)> = in_base.filter_map(|(e, b)| b.map(|b| (b, e as u32))).collect();
        reopened.sort_unstable();
        let parts = Parts::new(events, ordered.matching(), ordered.units(), &ordered.order);
        let blocks = 0..base.header().events.div_ceil(BLOCK);
        let mut actors: Vec<usize> = blocks.map(|block| base.actor_of(block * BLOCK)).collect();
        actors.push(moved.len().saturating_sub(1));
        Ok(Merge { base, ordered, parts, logs, moved, actors, log_of, reopened, events: number as u32 })
    }

    /// By actor of the base: its log in the whole.
    fn actors_of_base(&self) -> Vec<usize> {
        let mut actors = vec![0; self.moved.len()];
        let known = self.logs.iter().enumerate().filter_map(|(i, log)| Some((log.base?, i)));
        known.for_each(|(base, i)| actors[base] = i);
        actors
    }

    /// The number in the whole of an event of the base.
    fn of_base(&self, event: u32) -> u32 {
        // Looking an actor up among all of them for each event would take most of the time.
        let block = ((event / BLOCK) as usize).min(self.actors.len() - 2);
        let (first, last) = (self.actors[block], self.actors[block + 1]);
        let behind = &self.base.header().actors[first + 1..=last];
        event + self.moved[first + behind.partition_point(|actor| actor.first <= event)]
    }

    /// The number in the whole of an event of the delta, or of an open send of the base among them.
    fn of_delta(&self, e: u32) -> u32 {
        match self.ordered.delta().in_base[e as usize] {
            Some(event) => self.of_base(event),
            None => {
                let log = &self.logs[self.log_of[self.ordered.events().actor[e as usize] as usize]];
                log.first + log.old.len() as u32 + (e - log.added.start)
            }
        }
    }

    fn mate_of_delta(&self, e: u32) -> u32 {
        match self.ordered.matching().mate(e) {
            NONE => NONE,
            mate => self.of_delta(mate),
        }
    }

    /// Calls `f` with the events of the whole, in their order, stretch by stretch.
    fn each(&self, mut f: impl FnMut(&Stretch) -> Result<(), LineageError>) -> Result<(), LineageError> {
        let mut reopened = self.reopened.iter().peekable();
        let mut stretch = Stretch::default();
        for log in &self.logs {
            let mut event = log.old.start;
            while event < log.old.end {
                let number = event / BLOCK;
                let end = log.old.end.min((number + 1) * BLOCK);
                let part = (event % BLOCK) as usize..(event % BLOCK + end - event) as usize;
                let (mates, orders) = (self.base.mates().block(number)?, self.base.orders().block(number)?);
                let infos = self.base.infos().block(number)?;
                stretch.clear();
                let moved = |mate: &u32| if *mate == NONE { NONE } else { self.of_base(*mate) };
                stretch.mates.extend(mates[part.clone()].iter().map(moved));
                stretch.ranks.extend_from_slice(&orders[part.clone()]);
                stretch.infos.extend_from_slice(&infos[part]);
                while let Some(&(open, e)) = reopened.next_if(|r| r.0 < end) {
                    let at = (open - event) as usize;
                    stretch.mates[at] = self.mate_of_delta(e);
                    stretch.infos[at] = self.parts.info(e).0;
                }
                f(&stretch)?;
                event = end;
            }
            stretch.clear();
            for e in log.added.clone() {
                stretch.mates.push(self.mate_of_delta(e));
                stretch.ranks.push(self.ordered.order.rank[e as usize]);
                stretch.infos.push(self.parts.info(e).0);
            }
            f(&stretch)?;
        }
        Ok(())
    }

    fn environment(&self) -> Option<u32> {
        self.logs.iter().position(|l| l.name == demi_schemas::event::ENVIRONMENT).map(|i| i as u32)
    }

    /// The files with an entry an event.
    fn events(&self, folder: &Path) -> Result<(), LineageError> {
        let environment = self.environment().map(|a| {
            let log = &self.logs[a as usize];
            log.first..log.first + (log.old.len() + log.added.len()) as u32
        });
        with_file(folder, MATES, |mates| {
            with_file(folder, ORDERS, |orders| {
                with_file(folder, INFOS, |infos| {
                    with_file(folder, COUNTS, |counts| {
                        let (mut tally, mut number) = (Tally::default(), 0_u32);
                        self.each(|stretch| {
                            for (&mate, &info) in stretch.mates.iter().zip(&stretch.infos) {
                                if number.is_multiple_of(BLOCK) {
                                    counts.put(&tally.bytes())?;
                                }
                                number += 1;
                                let info = Info(info);
                                let outside = || environment.as_ref().is_some_and(|e| e.contains(&mate));
                                tally.add(info, mate != NONE, info.role() == Role::Send && outside());
                            }
                            mates.put_numbers(&stretch.mates)?;
                            orders.put_numbers(&stretch.ranks)?;
                            infos.put(&stretch.infos)
                        })
                    })
                })
            })
        })
    }

    /// Events with a state, and by log the first of them.
    fn states(&self, added: &[u32]) -> Result<(Vec<u32>, Vec<u32>), LineageError> {
        let base = self.base.header();
        let (mut states, mut firsts) = (Vec::new(), Vec::new());
        for log in &self.logs {
            firsts.push(states.len() as u32);
            if let Some(a) = log.base {
                let end = base.actors.get(a + 1).map_or(base.states, |next| next.first_state);
                for i in base.actors[a].first_state..end {
                    states.push(self.base.states().get(i)? + self.moved[a]);
                }
            }
            let from = added.partition_point(|&e| e < log.added.start);
            let here = added[from..].iter().take_while(|&&e| e < log.added.end);
            states.extend(here.map(|&e| self.of_delta(e)));
        }
        Ok((states, firsts))
    }

    /// Runs of events (incarnation, sequence number, first event), and by log the first of them.
    #[expect(clippy::type_complexity, reason = "runs, and where each log's begin")]
    fn runs(&self) -> Result<(Vec<(u32, u64, u32)>, Vec<u32>), LineageError> {
        let (mut runs, mut firsts) = (Vec::new(), Vec::new());
        for log in &self.logs {
            let begin = runs.len();
            firsts.push(begin as u32);
            let mut number = log.first;
            if let Some(a) = log.base {
                for (incarnation, from, to) in self.base.runs_of_log(a)? {
                    runs.push((incarnation, from, number));
                    number += (to - from + 1) as u32;
                }
            }
            for e in log.added.clone() {
                let (incarnation, seq) = self.ordered.events().places.get(e);
                let follows = runs[begin..].last().is_some_and(|&(l, s, first): &(u32, u64, u32)| {
                    l == incarnation && s.checked_add(u64::from(number - first)) == Some(seq)
                });
                if !follows {
                    runs.push((incarnation, seq, number));
                }
                number += 1;
            }
        }
        Ok((runs, firsts))
    }

    /// The header, without runs and states.
    fn header(&self) -> Result<IndexHeader, LineageError> {
        let base = self.base.header();
        let added = || (0..self.ordered.events().len() as u32).filter(|&e| self.ordered.is_added(e));
        let mut first_out: Vec<Option<u32>> =
            self.logs.iter().map(|l| l.base.and_then(|a| base.actors[a].first_out)).collect();
        let mut last_in: Vec<Option<u32>> =
            self.logs.iter().map(|l| l.base.and_then(|a| base.actors[a].last_in)).collect();
        for e in 0..self.ordered.events().len() as u32 {
            let log = self.log_of[self.ordered.events().actor[e as usize] as usize];
            let rank = Some(self.ordered.order.rank[e as usize]);
            if self.parts.reaches(e, true) {
                first_out[log] = first_out[log].map_or(rank, |known| Some(known).min(rank));
            }
            if self.parts.reaches(e, false) {
                last_in[log] = last_in[log].max(rank);
            }
        }
        let entry = |(i, log): (usize, &Log)| ActorEntry {
            name: log.name.clone(),
            first: log.first,
            first_run: 0,
            first_state: 0,
            appended: log.added.len() as u32,
            first_out: first_out[i],
            last_in: last_in[i],
        };
        let actors: Vec<ActorEntry> = self.logs.iter().enumerate().map(entry).collect();
        Ok(IndexHeader {
            schema: INDEX_SCHEMA.into(),
            events: self.events,
            runs: 0,
            states: 0,
            links: 0,
            uncertain: base.uncertain + added().filter(|&e| self.parts.is_uncertain(e)).count() as u64,
            alone: base.alone + added().filter(|&e| self.parts.alone(e)).count() as u64,
            environment: self.environment(),
            stride: index::clock_stride(self.events, actors.len()),
            sealed: true,
            digest: None,
            actors,
        })
    }
}
