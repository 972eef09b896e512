//! Random systems, and what happens before what in them: by brute force from their records, from what the generator knows that
//! records may not tell, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};

use demi_lineage::generate::{Generated, Generator, Mix, Traces, traces};
use demi_schemas::event::EARLIEST_ID;
use demi_schemas::{EventRecord, Kind, Via};
use proptest::prelude::*;

/// What a system is like.
#[derive(Clone, Debug)]
pub enum Kinds {
    /// Actors that send messages, with ids, clocks or neither.
    Messages(Mix),
    /// The same, with ids that were made by taking the earliest send of equal content.
    Earliest(Mix),
    /// Services with spans.
    Spans(Traces),
}

/// Records, and by record those that directly cause it.
pub struct System {
    pub records: Vec<EventRecord>,
    causes: Vec<Vec<usize>>,
    /// By record, those that cause it only as far as somebody guessed right.
    guesses: Vec<Vec<usize>>,
}

/// A strict order of events that are known by name: by event, those before it, a bit each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub names: Vec<String>,
    pub past: Vec<u128>,
}

impl Relation {
    /// The closure of edges from causes to effects.
    pub fn closed(names: Vec<String>, edges: &[(usize, usize)]) -> Relation {
        assert!(names.len() <= 128, "{} events", names.len());
        let mut past = vec![0_u128; names.len()];
        edges.iter().for_each(|&(cause, effect)| past[effect] |= 1 << cause);
        for via in 0..past.len() {
            let more = past[via];
            for of in &mut past {
                if *of >> via & 1 == 1 {
                    *of |= more;
                }
            }
        }
        Relation { names, past }
    }

    pub fn before(&self, a: usize, b: usize) -> bool {
        self.past[b] >> a & 1 == 1
    }

    /// What this says of some of the events, which are given in an order of their own.
    pub fn of(&self, names: &[String]) -> Relation {
        let place = |name: &String| self.names.iter().position(|n| n == name);
        let places: Vec<usize> =
            names.iter().map(|name| place(name).unwrap_or_else(|| panic!("{name} is no event"))).collect();
        let past = places.iter().map(|&b| {
            let inside = places.iter().enumerate().filter(|(_, a)| self.before(**a, b));
            inside.fold(0, |past, (i, _)| past | 1 << i)
        });
        Relation { past: past.collect(), names: names.to_vec() }
    }
}

impl Kinds {
    pub fn system(&self) -> System {
        match self {
            Kinds::Messages(mix) => messages(Generator::new(mix).collect(), false),
            Kinds::Earliest(mix) => {
                let mut events: Vec<Generated> = Generator::new(mix).collect();
                let ids = events.iter_mut().filter_map(|g| g.record.msg_id.as_mut());
                ids.for_each(|id| id.insert_str(0, EARLIEST_ID));
                messages(events, true)
            }
            Kinds::Spans(mix) => traced(traces(mix)),
        }
    }
}

impl System {
    pub fn truth(&self) -> Relation {
        self.closure(self.causes.iter().zip(&self.guesses).map(|(causes, guesses)| [&causes[..], guesses]))
    }

    /// What nobody guessed: nothing beyond it is certain.
    pub fn known(&self) -> Relation {
        self.closure(self.causes.iter().map(|causes| [&causes[..], &[]]))
    }

    fn closure<'a>(&'a self, causes: impl Iterator<Item = [&'a [usize]; 2]>) -> Relation {
        let names = self.records.iter().map(|r| r.id().to_string()).collect();
        let edges = causes
            .enumerate()
            .flat_map(|(effect, causes)| causes.into_iter().flatten().map(move |&cause| (cause, effect)));
        Relation::closed(names, &edges.collect::<Vec<_>>())
    }
}

/// Whether an event has no place in the order of its log.
fn alone(r: &EventRecord) -> bool {
    r.actor == "_environment" || matches!(r.kind, Kind::Send | Kind::TimerSet) && r.via == Some(Via::Thread)
}

/// Logs are in the order of their numbers. Of a message each receiver's first receive has the send for a cause; a message that is not for
/// several has one receiver. A clock knows of each event that it counts, and a span comes after its parent, and after what it links to. A link
/// is a guess, and so are messages whose ids are.
fn messages(events: Vec<Generated>, guessed: bool) -> System {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    let mut received: BTreeSet<(u64, Option<&str>)> = BTreeSet::new();
    let (mut causes, mut guesses) = (Vec::new(), Vec::new());
    let own = |r: &EventRecord| r.vector_clock.as_ref().and_then(|clock| clock.get(&r.actor).copied());
    for (i, g) in events.iter().enumerate() {
        let (mut direct, mut guess) = (Vec::new(), Vec::new());
        if !alone(&g.record) {
            direct.extend(last.insert(&g.record.actor, i));
        }
        if let Some(send) = g.cause {
            let to_all = events[send as usize].record.to.as_deref() == Some("*");
            if received.insert((send, to_all.then_some(g.record.actor.as_str()))) {
                if guessed { guess.push(send as usize) } else { direct.push(send as usize) }
            }
        }
        if let Some(clock) = &g.record.vector_clock {
            let known = |r: &EventRecord| own(r).is_some_and(|n| clock.get(&r.actor) >= Some(&n));
            direct.extend((0..i).filter(|&j| known(&events[j].record)));
        }
        let (linked, parents): (Vec<u64>, Vec<u64>) =
            g.spans.iter().partition(|&&place| Some(place) == g.link);
        // Of two links to one span, one may be to the parent.
        let parent = g.record.attrs.contains_key("parent_span_id");
        direct.extend(
            parents
                .iter()
                .chain(linked.first().filter(|_| parent && parents.is_empty()))
                .map(|p| *p as usize),
        );
        guess.extend(linked.into_iter().map(|place| place as usize));
        causes.push(direct);
        guesses.push(guess);
    }
    System { records: events.into_iter().map(|g| g.record).collect(), causes, guesses }
}

/// A span comes after its parent, and after the send of the message that it received. Logs are in the order of their stamps, unless that
/// contradicts: then of the events that contradict, the earliest goes next whose causes are all there.
fn traced(records: Vec<EventRecord>) -> System {
    let n = records.len();
    let attr = |r: &EventRecord, name: &str| r.attrs.get(name).and_then(|v| v.as_str()).map(str::to_owned);
    let mut strong = vec![Vec::new(); n];
    for (i, r) in records.iter().enumerate() {
        let parent = attr(r, "parent_span_id");
        let is_parent = |p: &EventRecord| {
            parent.is_some() && attr(p, "span_id") == parent && attr(p, "trace_id") == attr(r, "trace_id")
        };
        let sent = |p: &EventRecord| {
            r.kind == Kind::Receive && p.kind == Kind::Send && p.msg_id.is_some() && p.msg_id == r.msg_id
        };
        strong[i].extend((0..n).filter(|&j| is_parent(&records[j]) || sent(&records[j])));
    }
    let mut stamped: Vec<usize> = (0..n).collect();
    stamped.sort_by_key(|&i| (&records[i].actor, records[i].seq));
    let behind: BTreeMap<usize, usize> = stamped
        .windows(2)
        .filter(|w| records[w[0]].actor == records[w[1]].actor)
        .map(|w| (w[1], w[0]))
        .collect();
    let mut edges: Vec<(usize, usize)> = behind.iter().map(|(&later, &earlier)| (earlier, later)).collect();
    edges.extend(strong.iter().enumerate().flat_map(|(i, causes)| causes.iter().map(move |&c| (c, i))));
    let all = Relation::closed(records.iter().map(|r| r.id().to_string()).collect(), &edges);
    let knotted = |a: usize, b: usize| all.before(a, b) && all.before(b, a);
    let mut order = stamped.clone();
    let mut done = BTreeSet::new();
    for &first in &stamped {
        if !all.before(first, first) || done.contains(&first) {
            continue;
        }
        let knot: Vec<usize> = stamped.iter().copied().filter(|&e| knotted(first, e)).collect();
        let mut left: BTreeSet<usize> = knot.iter().copied().collect();
        let mut taken = Vec::new();
        while !left.is_empty() {
            let place = |e: usize| (records[e].seq, knot.iter().position(|&k| k == e));
            let free = |e: &&usize| strong[**e].iter().all(|c| !left.contains(c));
            let ready = |e: &&usize| free(e) && behind.get(*e).is_none_or(|b| !left.contains(b));
            let next = left.iter().filter(ready).min_by_key(|e| place(**e));
            let next = *next.or(left.iter().filter(free).min_by_key(|e| place(**e))).unwrap();
            left.remove(&next);
            taken.push(next);
        }
        // They take the places of the log that they had together.
        let mut places: Vec<usize> = (0..n).filter(|&at| knot.contains(&stamped[at])).collect();
        for e in taken {
            let own = places.iter().position(|&at| records[stamped[at]].actor == records[e].actor).unwrap();
            order[places.remove(own)] = e;
        }
        done.extend(knot);
    }
    let mut causes = strong;
    for w in order.windows(2).filter(|w| records[w[0]].actor == records[w[1]].actor) {
        causes[w[1]].push(w[0]);
    }
    System { guesses: vec![Vec::new(); records.len()], records, causes }
}

/// Systems whose records tell the truth: what must be guessed can be guessed right.
pub fn systems() -> impl Strategy<Value = Kinds> {
    let share = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    let shape = (any::<u64>(), 1..6_u32, 4..56_u64);
    let shares = [share(0.3), share(0.2), share(0.1), share(0.3), share(0.3), share(0.2), share(0.2)];
    let with_ids = (shape.clone(), shares, share(0.5), any::<bool>()).prop_map(
        |(
            (seed, actors, events),
            [loss, duplicate, restart, forward, timer, environment, thread],
            multicast,
            in_order,
        )| {
            Mix {
                seed,
                actors,
                events,
                loss,
                duplicate,
                restart,
                forward,
                timer,
                environment,
                thread,
                multicast,
                in_order,
                ..Mix::default()
            }
        },
    );
    let with_clocks =
        (with_ids.clone(), share(0.5)).prop_map(|(mix, hidden)| Mix { clocks: true, hidden, ..mix });
    let with_spans = (with_ids.clone(), any::<bool>(), 0.1..0.6_f64, share(1.0), share(1.0))
        .prop_map(|(mix, clocks, spans, parents, links)| Mix { clocks, spans, parents, links, ..mix });
    let earliest = (with_ids.clone(), any::<bool>()).prop_map(|(mix, clocks)| Mix { clocks, ..mix });
    let by_content = (shape, prop_oneof![Just(0.0), Just(0.5)], 0..4_u32, any::<bool>()).prop_map(
        |((seed, actors, events), ids, contents, clocks)| Mix {
            seed,
            actors,
            events,
            ids,
            contents,
            clocks,
            ..Mix::default()
        },
    );
    let traced = (any::<u64>(), 1..5_u32, 1..40_u32, 0.0..0.5_f64, 0.0..1.0_f64, 0..9_u64, 0..5_u64)
        .prop_map(|(seed, services, spans, roots, messages, skew, jitter)| {
            Kinds::Spans(Traces { seed, services, spans, roots, messages, skew, jitter })
        });
    prop_oneof![
        2 => with_ids.prop_map(Kinds::Messages),
        2 => with_clocks.prop_map(Kinds::Messages),
        2 => with_spans.prop_map(Kinds::Messages),
        1 => earliest.prop_map(Kinds::Earliest),
        1 => by_content.prop_map(Kinds::Messages),
        2 => traced,
    ]
}
