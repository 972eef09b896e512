//! The order of all events: a linear extension of happens-before (A. B. Kahn, CACM 5(11), 1962), and depths.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use demi_schemas::Kind;
use demi_schemas::event::MONITOR;
use rayon::prelude::*;

use super::cycle;
use super::graph::{Graph, Group, group};
use crate::matching::{Matching, Preference};
use crate::read::{Events, NONE, is_send};

/// The linear extension.
pub(crate) struct Order {
    /// Units, first to last.
    pub(crate) sequence: Vec<u32>,
    /// By event: its rank in the linear extension, from 1.
    pub(crate) rank: Vec<u32>,
    /// By event: length of the longest chain that ends in it, from 1.
    pub(crate) depth: Vec<u32>,
    /// Whether a preference of a channel had to be dropped.
    channel_dropped: bool,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

impl Order {
    /// Whether a preference of a channel had to be dropped.
    pub(crate) fn channel_dropped(&self) -> bool {
        self.channel_dropped
    }
}

impl Graph<'_> {
    fn priority(&self, monitor: u32, unit: u32) -> usize {
        let first = self.units().first(unit);
        match self.events().kind[first as usize] {
            Kind::Start => 0,
            _ if self.events().in_environment(first) => 1,
            _ if self.events().actor[first as usize] == monitor => 3,
            _ => 2,
        }
    }

    /// Orders everything; edges that would close a cycle are taken out, preferences first, then the least certain message.
    pub(crate) fn order(mut self, matching: &mut Matching) -> Order {
        let mut warnings = Vec::new();
        drop_backward(self.events(), matching, &mut warnings);
        self.take_extra(matching);
        let mut open = self.edges_into(matching);
        let monitor = self.events().find_actor(MONITOR).unwrap_or(NONE);
        let mut ready: [VecDeque<u32>; 4] = Default::default();
        for u in (0..open.len() as u32).filter(|&u| open[u as usize] == 0) {
            ready[self.priority(monitor, u)].push_back(u);
        }
        let mut sequence = Vec::with_capacity(open.len());
        let mut channel_dropped = false;
        for round in 0.. {
            while let Some(u) = ready.iter_mut().find_map(VecDeque::pop_front) {
                sequence.push(u);
                self.each_edge(matching, u, |to, _| {
                    open[to as usize] -= 1;
                    if open[to as usize] == 0 {
                        ready[self.priority(monitor, to)].push_back(to);
                    }
                });
            }
            if sequence.len() == open.len() {
                break;
            }
            let cut = cycle::edges_to_cut(&self, matching, &|u| open[u as usize] == 0, round > 32);
            let mut channels: Vec<Group> =
                cut.preferences.iter().map(|&w| group(&self.preferences()[w as usize])).collect();
            channels.sort_unstable();
            channels.dedup();
            // What the channels asked of units not placed yet is no longer asked.
            let asked =
                |w: &&Preference| channels.binary_search(&group(w)).is_ok() && open[w.before() as usize] > 0;
            let released: Vec<u32> = self.preferences().iter().filter(asked).map(|w| w.after()).collect();
            for (channel, undelivered) in channels {
                if channel.1 != NONE && !undelivered {
                    channel_dropped = true;
                    warnings.push(crate::matching::note(self.events(), channel));
                }
                self.dropped.insert((channel, undelivered));
            }
            released.into_iter().for_each(|u| close(u, &mut open, &mut ready, |u| self.priority(monitor, u)));
            cut.doubted.into_iter().for_each(|receive| matching.doubt(receive));
            for receive in cut.receives {
                matching.part(receive);
                let unit = self.units().unit_of(receive);
                close(unit, &mut open, &mut ready, |u| self.priority(monitor, u));
            }
            for (effect, certain) in cut.clocked {
                let unplaced = |c: &u32| open[self.units().unit_of(*c) as usize] > 0;
                let clocked = matching.extra_into(effect).filter(|(_, how)| how.is_order(certain));
                let waits = clocked.filter(|(c, _)| unplaced(c)).count();
                matching.drop_extra(effect, |how| how.is_order(certain));
                let unit = self.units().unit_of(effect);
                (0..waits).for_each(|_| close(unit, &mut open, &mut ready, |u| self.priority(monitor, u)));
            }
            self.take_extra(matching);
            warnings.extend(cut.notes);
        }
        let (rank, depth) = self.number(matching, &sequence);
        Order { sequence, rank, depth, channel_dropped, warnings }
    }

    /// By unit: how many edges lead to it.
    fn edges_into(&self, matching: &Matching) -> Vec<u32> {
        let into: Vec<AtomicU32> = (0..self.units().len()).map(|_| AtomicU32::new(0)).collect();
        // A sum is the same whoever adds first.
        let count = |to: u32, _| _ = into[to as usize].fetch_add(1, Ordering::Relaxed);
        (0..into.len() as u32).into_par_iter().for_each(|unit| self.each_edge(matching, unit, count));
        into.into_iter().map(AtomicU32::into_inner).collect()
    }

    fn take_extra(&mut self, matching: &Matching) {
        let edges = matching.extra().iter().zip(matching.extra_evidence());
        self.extra = edges.map(|(&(cause, effect), &how)| (cause, effect, how)).collect();
        self.extra.sort_unstable();
    }

    fn number(&self, matching: &Matching, sequence: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut rank = vec![0; self.events().len()];
        let mut depth = vec![0_u32; self.events().len()];
        let mut last = vec![0_u32; self.events().actors.len()];
        let mut n = 0;
        for &unit in sequence {
            for e in self.units().events(self.events(), unit) {
                let i = e as usize;
                n += 1;
                rank[i] = n;
                depth[i] = 1;
                if !self.units().is_alone(unit) {
                    let last = &mut last[self.events().actor[i] as usize];
                    let mate = matching.mates()[i];
                    let cause = match mate {
                        NONE => 0,
                        _ if is_send(self.events().kind[i]) => 0,
                        _ => depth[mate as usize],
                    };
                    let further = matching.extra_into(e).map(|(cause, _)| depth[cause as usize]).max();
                    depth[i] = 1 + cause.max(*last).max(further.unwrap_or(0));
                    *last = depth[i];
                }
            }
        }
        (rank, depth)
    }
}

fn close(unit: u32, open: &mut [u32], ready: &mut [VecDeque<u32>; 4], priority: impl Fn(u32) -> usize) {
    open[unit as usize] -= 1;
    if open[unit as usize] == 0 {
        ready[priority(unit)].push_back(unit);
    }
}

/// A message that its receiver sends itself only later is no message.
fn drop_backward(events: &Events, matching: &mut Matching, warnings: &mut Vec<String>) {
    for r in 0..events.len() as u32 {
        let s = matching.mate(r);
        let kind = events.kind[r as usize];
        if s != NONE && kind.is_delivery() && s > r && events.actor[s as usize] == events.actor[r as usize] {
            let thread = events.via(s) == Some(demi_schemas::Via::Thread) || events.in_environment(s);
            if !thread {
                matching.part(r);
                let (r, s) = (events.name(r), events.name(s));
                warnings.push(format!("cycle: {r} receives what {s} sends only later; the edge was dropped"));
            }
        }
    }
}
