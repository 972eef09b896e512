//! What serves a wanted step, against each matcher's description read literally.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use demi_minimize::oracle::matcher::Matcher;
use demi_replay::script::Want;
use demi_replay::{
    ActorId, Ctx, ExternalMessage, Guidance, Logs, Model, Names, PendingKind, Simulator, View, Violation,
    World,
};
use demi_schemas::scenario::Mask;
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use serde_json::Value;

const ACTORS: u16 = 2;
const TIMERS: [&str; 3] = ["t0", "t1", "t2"];
/// The first two come in place of each other.
const TYPES: [&str; 3] = ["A", "B", "C"];
const ALIKE: usize = 2;
const ALL: [Matcher; 7] = [
    Matcher::Payload,
    Matcher::Exact,
    Matcher::TypeOldest,
    Matcher::TypeNewest,
    Matcher::ClockOldest,
    Matcher::ClockNewest,
    Matcher::ExactOrClock,
];

/// What a message says; the generation is masked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Content {
    type_: usize,
    content: u8,
    generation: u8,
    clock: Option<i64>,
}

impl Content {
    fn masked(&self) -> String {
        format!("{}({},{:?},g_)", TYPES[self.type_], self.content, self.clock)
    }

    fn payload(&self) -> String {
        self.masked().replace("g_", &format!("g{}", self.generation))
    }
}

/// How something comes to be pending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// Sent by an actor; 0 sends without a name.
    Sent(u16),
    Outside,
    Timer(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    Said(Content),
    /// Send or arm this.
    Do(Way, u16, Content),
    Clock(Option<i64>),
}

#[derive(Clone)]
struct Puppets(Vec<ActorId>);

impl Model for Puppets {
    type State = Option<i64>;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> Option<i64> {
        None
    }

    fn deliver(&self, clock: &mut Option<i64>, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Said(_) => {}
            Msg::Clock(now) => *clock = *now,
            Msg::Do(Way::Timer(timer), _, content) => {
                ctx.set_timer(TIMERS[*timer], Msg::Said(content.clone()));
            }
            Msg::Do(Way::Sent(0), to, content) => {
                ctx.send_unordered(ActorId(*to), Msg::Said(content.clone()), demi_schemas::Via::Scheduler);
            }
            Msg::Do(_, to, content) => ctx.send(ActorId(*to), Msg::Said(content.clone())),
        }
    }

    fn check(&self, _: &View<'_, Option<i64>>, (): &mut (), _: &mut Vec<Violation>) {}

    fn logs(&self) -> &dyn Logs<Option<i64>, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<Option<i64>, Msg> {
        self
    }
}

impl Logs<Option<i64>, Msg> for Puppets {
    fn type_name(&self, msg: &Msg) -> String {
        let name = match msg {
            Msg::Said(content) => TYPES[content.type_],
            _ => "Order",
        };
        name.to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        match msg {
            Msg::Said(content) => content.payload(),
            other => format!("{other:?}"),
        }
    }

    fn role(&self, type_: &str, _: &str) -> Option<String> {
        TYPES[..ALIKE].contains(&type_).then(|| "first or second".into())
    }

    fn external(&self, _: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        Err("not needed".into())
    }

    fn masks(&self) -> Vec<Mask> {
        vec![Mask { type_: None, pattern: r"g\d+\)$".into(), replace: "g_)".into() }]
    }

    fn describe(&self, clock: &Option<i64>, _: &Names) -> Value {
        (*clock).into()
    }
}

impl Guidance<Option<i64>, Msg> for Puppets {
    fn clock(&self, msg: &Msg) -> Option<i64> {
        match msg {
            Msg::Said(content) => content.clock,
            _ => None,
        }
    }

    fn actor_clock(&self, clock: &Option<i64>) -> Option<i64> {
        *clock
    }
}

/// A pending entry, as the test knows it.
#[derive(Clone, Debug)]
struct Entry {
    way: Way,
    to: u16,
    content: Content,
    usable: bool,
}

/// A wanted step, as the test knows it.
#[derive(Clone, Debug)]
struct Wish {
    way: Way,
    to: u16,
    content: Content,
    clock: Option<i8>,
}

fn from(way: &Way) -> u16 {
    match way {
        Way::Sent(from) => *from,
        Way::Outside | Way::Timer(_) => 0,
    }
}

/// Timers are sought among the receiver's timers, whichever; messages between the same two.
fn same_place(wish: &Wish, entry: &Entry) -> bool {
    let timer = |way: &Way| matches!(way, Way::Timer(_));
    wish.to == entry.to
        && timer(&wish.way) == timer(&entry.way)
        && (timer(&wish.way) || from(&wish.way) == from(&entry.way))
}

/// How the entry's clock stands to its receiver's, where both have one.
fn standing(entry: &Entry, clocks: &[Option<i64>]) -> Option<i8> {
    let (message, actor) = (entry.content.clock?, clocks[usize::from(entry.to) - 1]?);
    Some(if message < actor { -1 } else { i8::from(message > actor) })
}

/// The matchers, one after the other, as they are described.
fn expected(matcher: Matcher, wish: &Wish, entries: &[Entry], clocks: &[Option<i64>]) -> Option<usize> {
    let all = |fits: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
        (0..entries.len())
            .filter(|&i| entries[i].usable && same_place(wish, &entries[i]) && fits(&entries[i]))
            .collect()
    };
    let payload = |e: &Entry| e.content.payload() == wish.content.payload();
    let exact = |e: &Entry| e.content.masked() == wish.content.masked();
    let type_ = |e: &Entry| e.content.type_ == wish.content.type_;
    let clock = |e: &Entry| type_(e) && (wish.clock.is_none() || standing(e, clocks) == wish.clock);
    // A message from outside is itself or nothing.
    let outside = wish.way == Way::Outside;
    let found = match matcher {
        _ if outside => all(&payload),
        Matcher::Payload => all(&payload),
        Matcher::Exact => all(&exact),
        Matcher::TypeOldest | Matcher::TypeNewest => all(&type_),
        Matcher::ClockOldest | Matcher::ClockNewest => all(&clock),
        Matcher::ExactOrClock if all(&exact).is_empty() => all(&clock),
        Matcher::ExactOrClock => all(&exact),
    };
    let alike =
        !outside && wish.content.type_ < ALIKE && !matches!(matcher, Matcher::Payload | Matcher::Exact);
    let found = if found.is_empty() && alike { all(&|e| e.content.type_ < ALIKE) } else { found };
    match matcher {
        Matcher::TypeNewest | Matcher::ClockNewest => found.last().copied(),
        _ => found.first().copied(),
    }
}

fn content() -> impl Strategy<Value = Content> {
    (0..TYPES.len(), 0..2u8, 0..2u8, prop::option::weighted(0.8, 0..3i64))
        .prop_map(|(type_, content, generation, clock)| Content { type_, content, generation, clock })
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => (0..=ACTORS).prop_map(Way::Sent),
        2 => Just(Way::Outside),
        2 => (0..TIMERS.len()).prop_map(Way::Timer),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    (way(), 1..=ACTORS, content(), prop::bool::weighted(0.8)).prop_map(|(way, to, content, usable)| Entry {
        way,
        to,
        content,
        usable,
    })
}

fn wish() -> impl Strategy<Value = Wish> {
    (way(), 1..=ACTORS, content(), prop::option::weighted(0.8, -1..=1i8))
        .prop_map(|(way, to, content, clock)| Wish { way, to, content, clock })
}

fn simulator() -> (Simulator<Puppets>, World<Puppets>) {
    let mut names = Names::default();
    let actors: Vec<ActorId> = (1..=ACTORS).map(|n| names.id(&format!("actor-{n}"))).collect();
    let scenario = Scenario::parse("model = \"puppets\"\nnetwork = \"fifo\"").unwrap();
    let mut sim = Simulator::new(Puppets(actors.clone()), names, &scenario).unwrap();
    let mut world = sim.empty_world();
    actors.iter().for_each(|&a| sim.start(&mut world, a));
    (sim, world)
}

fn tell(sim: &mut Simulator<Puppets>, world: &mut World<Puppets>, to: u16, msg: Msg) {
    let msg = sim.intern(msg);
    let at = sim.inject(world, ActorId(to), msg).unwrap();
    sim.deliver(world, at, NetworkRule::Unordered);
}

fn want(sim: &mut Simulator<Puppets>, wish: &Wish) -> Want {
    let msg = sim.intern(Msg::Said(wish.content.clone()));
    let info = sim.info(msg).clone();
    Want {
        // Senders are not compared for timers, so that of a timer here is another than the entry's.
        from: ActorId(from(&wish.way)),
        to: ActorId(wish.to),
        type_: info.type_,
        role: info.role,
        payload: info.payload,
        fingerprint: info.fingerprint,
        timer: matches!(wish.way, Way::Timer(_)),
        which: None,
        external: (wish.way == Way::Outside).then_some(msg),
        copy: false,
        clock: wish.clock,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matchers_do_what_they_say(
        mut entries in prop::collection::vec(entry(), 0..14),
        wishes in prop::collection::vec(wish(), 1..8),
        clocks in prop::collection::vec(prop::option::weighted(0.8, 0..3i64), usize::from(ACTORS)),
    ) {
        let (mut sim, mut world) = simulator();
        // Arming a timer replaces the one of its name: the later of two counts.
        let armed = |e: &Entry| if let Way::Timer(t) = e.way { Some((e.to, t)) } else { None };
        for at in (0..entries.len()).rev() {
            if armed(&entries[at]).is_some() && entries[at + 1..].iter().any(|e| armed(e) == armed(&entries[at])) {
                entries.remove(at);
            }
        }
        for e in &entries {
            if e.way == Way::Outside {
                let msg = sim.intern(Msg::Said(e.content.clone()));
                let at = sim.inject(&mut world, ActorId(e.to), msg).unwrap();
                prop_assert_eq!(world.pending()[at].kind, PendingKind::External);
            } else {
                let who = match e.way { Way::Sent(from) if from > 0 => from, _ => e.to };
                tell(&mut sim, &mut world, who, Msg::Do(e.way.clone(), e.to, e.content.clone()));
            }
        }
        for (at, clock) in clocks.iter().enumerate() {
            tell(&mut sim, &mut world, at as u16 + 1, Msg::Clock(*clock));
        }
        prop_assert_eq!(world.pending().len(), entries.len());
        for wish in &wishes {
            let want = want(&mut sim, wish);
            for matcher in ALL {
                let got = matcher.find(&sim, &world, &want, |i, _| entries[i].usable);
                prop_assert_eq!(got, expected(matcher, wish, &entries, &clocks), "{:?} {:?}", matcher, wish);
            }
        }
    }
}
