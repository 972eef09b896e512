//! The direct causes of each event of a slice, and vector clocks over the slice alone.
//!
//! A slice may leave out events that carry order (those of other actors): what happens before through them still does.
//! A clock counts the slice's events only, but is passed on by every event (F. Mattern, "Virtual time and global states
//! of distributed systems", 1989).

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::skeleton::{Joint, NONE, Skeleton};
use super::trace::Trace;

/// Why one event of a slice comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is the one before it in the log of its actor.
    Log,
    /// It sent the message that is received, or set the timer that fires.
    Message(Joint),
    /// Through events that the slice leaves out.
    Indirect,
}

impl Cause {
    /// The word written in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Log => "log",
            Cause::Message(joint) => joint.as_str(),
            Cause::Indirect => "indirect",
        }
    }
}

/// An event of the slice with its vector clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Position in the slice.
    pub at: u32,
    /// The line it stands on: one for the chain of each actor, one for each loose event. Lines are numbered as they
    /// first appear.
    pub line: u32,
    /// By line: how many of its events happen before this one or are it; sorted by line, none is 0.
    pub clock: Vec<(u32, u32)>,
}

impl Stamp {
    fn knows(&self, other: &Stamp) -> bool {
        let known = |line: u32| match self.clock.binary_search_by_key(&line, |c| c.0) {
            Ok(i) => self.clock[i].1,
            Err(_) => 0,
        };
        known(other.line) >= known_own(other)
    }
}

fn known_own(stamp: &Stamp) -> u32 {
    stamp.clock.binary_search_by_key(&stamp.line, |c| c.0).map_or(0, |i| stamp.clock[i].1)
}

/// The latest events of the slice that happen before a place: none of them happens before another.
type Front = Vec<Rc<Stamp>>;

/// Walks over a slice in order and tells each event's clock and causes. Memory is that of the clocks of the actors and
/// of the messages on their way.
pub struct Causes<'a> {
    trace: &'a Trace,
    /// By line: how many of its events were seen.
    counts: Vec<u32>,
    line_of_actor: Vec<u32>,
    /// By actor: what its next event follows.
    now: Vec<Front>,
    /// By send that is not received yet: what its receive follows.
    sent: FxHashMap<u32, Front>,
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
            now: vec![Front::new(); actors],
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
    fn incoming(&mut self, e: u32) -> Front {
        let s = &self.trace.skeleton;
        let mut front = match s.place[e as usize] {
            NONE => Front::new(),
            _ => std::mem::take(&mut self.now[s.actor[e as usize] as usize]),
        };
        if let Some(other) = sender(s, e).and_then(|send| self.sent.remove(&send)) {
            for stamp in other {
                if !front.iter().any(|f| f.knows(&stamp)) {
                    front.retain(|f| !stamp.knows(f));
                    front.push(stamp);
                }
            }
        }
        front
    }

    fn leave(&mut self, e: u32, front: Front) {
        let s = &self.trace.skeleton;
        if s.is_send(e) {
            self.sent.insert(e, front.clone());
        }
        if s.place[e as usize] != NONE {
            self.now[s.actor[e as usize] as usize] = front;
        }
    }

    fn causes(&self, e: u32, front: &Front) -> Vec<(u32, Cause)> {
        let (s, events) = (&self.trace.skeleton, &self.trace.events);
        let position = |e: u32| events.binary_search(&e).ok().map(|at| at as u32);
        let before = s.previous(e).and_then(position);
        let sent = sender(s, e).and_then(position);
        let mut causes: Vec<(u32, Cause)> = Vec::with_capacity(2);
        causes.extend(before.map(|at| (at, Cause::Log)));
        causes.extend(
            sent.filter(|at| Some(*at) != before).map(|at| (at, Cause::Message(s.joint[e as usize]))),
        );
        for stamp in front {
            if !causes.iter().any(|c| c.0 == stamp.at) {
                causes.push((stamp.at, Cause::Indirect));
            }
        }
        causes
    }
}

/// The event that sent what `e` receives.
fn sender(s: &Skeleton, e: u32) -> Option<u32> {
    let mate = s.mate[e as usize];
    (mate != NONE && mate < e).then_some(mate)
}

impl Iterator for Causes<'_> {
    /// The event's clock, and its direct causes as positions in the slice.
    type Item = (Rc<Stamp>, Vec<(u32, Cause)>);

    fn next(&mut self) -> Option<Self::Item> {
        let e = *self.trace.events.get(self.at)?;
        for passed in self.next..e {
            let front = self.incoming(passed);
            self.leave(passed, front);
        }
        self.next = e + 1;
        let front = self.incoming(e);
        let causes = self.causes(e, &front);
        let line = self.line(e);
        self.counts[line as usize] += 1;
        let mut clock: Vec<(u32, u32)> = front.iter().flat_map(|f| f.clock.iter().copied()).collect();
        clock.push((line, self.counts[line as usize]));
        // The largest count of each line.
        clock.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        clock.dedup_by_key(|c| c.0);
        let stamp = Rc::new(Stamp { at: self.at as u32, line, clock });
        self.leave(e, vec![stamp.clone()]);
        self.at += 1;
        Some((stamp, causes))
    }
}
