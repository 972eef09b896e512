//! The direct causes of each event of a slice, and vector clocks over the slice alone.
//!
//! A slice may leave out events that carry order (those of other actors): what happens before through them still does.
//! A clock counts the slice's events only, but is passed on by every event (F. Mattern, "Virtual time and global states
//! of distributed systems", 1989).

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::skeleton::{Joint, NONE};
use super::trace::Trace;

/// The reason why one event of a slice comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeReason {
    /// It is the one before it in the log of its actor.
    Log,
    /// By an edge between logs: a message, a timer, a clock, a parent.
    Edge(Joint),
    /// Through events that the slice leaves out.
    Indirect,
}

impl EdgeReason {
    /// The word written in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeReason::Log => "log",
            EdgeReason::Edge(joint) => joint.as_str(),
            EdgeReason::Indirect => Joint::Indirect.as_str(),
        }
    }
}

/// A direct cause of an event of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its position in the slice.
    pub at: u32,
    /// Why it comes before.
    pub why: EdgeReason,
    /// Whether that does not rest on a guess.
    pub certain: bool,
}

/// An event of the slice with its vector clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockedEvent {
    /// Position in the slice.
    pub at: u32,
    /// The line it stands on: one for the chain of each actor, one for each loose event. Lines are numbered as they
    /// first appear.
    pub line: u32,
    /// By line: how many of its events happen before this one or are it; sorted by line, none is 0.
    pub clock: Vec<(u32, u32)>,
}

impl ClockedEvent {
    fn count(&self, line: u32) -> u32 {
        match self.clock.binary_search_by_key(&line, |c| c.0) {
            Ok(i) => self.clock[i].1,
            Err(_) => 0,
        }
    }

    fn knows(&self, other: &ClockedEvent) -> bool {
        self.count(other.line) >= other.count(other.line)
    }
}

/// The latest events of the slice that happen before a place, and whether they do without a guess: none of them happens before another.
type Frontier = Vec<(Rc<ClockedEvent>, bool)>;

/// Adds what is known at the end of an edge.
fn add(frontier: &mut Frontier, other: &Frontier, certain: bool) {
    for (stamp, sure) in other {
        let sure = *sure && certain;
        if let Some(same) = frontier.iter_mut().find(|f| f.0.at == stamp.at) {
            same.1 |= sure;
        } else if !frontier.iter().any(|f| f.0.knows(stamp)) {
            frontier.retain(|f| !stamp.knows(&f.0));
            frontier.push((stamp.clone(), sure));
        }
    }
}

/// Walks over a slice in order and tells each event's clock and causes. Memory is that of the clocks of the actors and
/// of the messages on their way.
pub struct Causes<'a> {
    trace: &'a Trace,
    /// By line: how many of its events were seen.
    counts: Vec<u32>,
    line_of_actor: Vec<u32>,
    /// By actor: what its next event follows.
    now: Vec<Frontier>,
    /// By event with effects to come: what these follow, and how many they are.
    sent: FxHashMap<u32, (Frontier, usize)>,
    /// The first event of the execution that was not walked over.
    next: u32,
    /// The position in the slice that comes next.
    at: usize,
}

impl<'a> Causes<'a> {
    /// Begins before the first event.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        let actors = trace.skeleton.actors.len();
        Causes {
            trace,
            counts: Vec::new(),
            line_of_actor: vec![NONE; actors],
            now: vec![Frontier::new(); actors],
            sent: FxHashMap::default(),
            next: 0,
            at: 0,
        }
    }

    fn line(&mut self, e: u32) -> u32 {
        let s = &self.trace.skeleton;
        let actor = s.actor[e as usize] as usize;
        if s.place[e as usize] != NONE && self.line_of_actor[actor] != NONE {
            return self.line_of_actor[actor];
        }
        let fresh = self.counts.len() as u32;
        self.counts.push(0);
        if s.place[e as usize] != NONE {
            self.line_of_actor[actor] = fresh;
        }
        fresh
    }

    /// What happens before `e`, as the latest events of the slice.
    fn incoming(&mut self, e: u32) -> Frontier {
        let s = &self.trace.skeleton;
        let mut frontier = match s.place[e as usize] {
            NONE => Frontier::new(),
            _ => std::mem::take(&mut self.now[s.actor[e as usize] as usize]),
        };
        for edge in s.causes(e) {
            let Some((other, left)) = self.sent.get_mut(&edge.event) else { continue };
            add(&mut frontier, other, edge.certain);
            *left -= 1;
            if *left == 0 {
                self.sent.remove(&edge.event);
            }
        }
        frontier
    }

    fn leave(&mut self, e: u32, frontier: Frontier) {
        let s = &self.trace.skeleton;
        let effects = s.effects(e).count();
        if effects > 0 {
            self.sent.insert(e, (frontier.clone(), effects));
        }
        if s.place[e as usize] != NONE {
            self.now[s.actor[e as usize] as usize] = frontier;
        }
    }

    fn causes(&self, e: u32, frontier: &Frontier) -> Vec<Cause> {
        let (s, events) = (&self.trace.skeleton, &self.trace.events);
        let position = |e: u32| events.binary_search(&e).ok().map(|at| at as u32);
        let mut causes: Vec<Cause> = Vec::with_capacity(2);
        let before = s.previous(e).and_then(position);
        causes.extend(before.map(|at| Cause { at, why: EdgeReason::Log, certain: true }));
        let edge = |edge: super::Neighbor| {
            Some(Cause {
                at: position(edge.event)?,
                why: EdgeReason::Edge(edge.joint),
                certain: edge.certain,
            })
        };
        causes.extend(s.causes(e).filter_map(edge));
        for (stamp, certain) in frontier {
            if !causes.iter().any(|c| c.at == stamp.at) {
                causes.push(Cause { at: stamp.at, why: EdgeReason::Indirect, certain: *certain });
            }
        }
        causes
    }
}

impl Iterator for Causes<'_> {
    /// The event's clock, and its direct causes.
    type Item = (Rc<ClockedEvent>, Vec<Cause>);

    fn next(&mut self) -> Option<Self::Item> {
        let e = *self.trace.events.get(self.at)?;
        for passed in self.next..e {
            let frontier = self.incoming(passed);
            self.leave(passed, frontier);
        }
        self.next = e + 1;
        let frontier = self.incoming(e);
        let causes = self.causes(e, &frontier);
        let line = self.line(e);
        self.counts[line as usize] += 1;
        let mut clock: Vec<(u32, u32)> = frontier.iter().flat_map(|f| f.0.clock.iter().copied()).collect();
        clock.push((line, self.counts[line as usize]));
        // The largest count of each line.
        clock.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        clock.dedup_by_key(|c| c.0);
        let stamp = Rc::new(ClockedEvent { at: self.at as u32, line, clock });
        self.leave(e, vec![(stamp.clone(), true)]);
        self.at += 1;
        Some((stamp, causes))
    }
}
