//! The network rules against a naive reference that keeps one queue for each channel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use demi_replay::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Names, OUTSIDE, Pending, PendingKind, Runtime, Simulator,
    Timer, View, Violation, World, network,
};
use demi_schemas::event::Via;
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use serde_json::Value;

const ACTORS: u16 = 3;
const TIMERS: [&str; 2] = ["t0", "t1"];
const RULES: [NetworkRule; 3] = [NetworkRule::Unordered, NetworkRule::FifoLoss, NetworkRule::Fifo];

/// What the test makes an actor do. Numbers of actors are taken modulo how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Do {
    Send {
        to: u16,
    },
    /// Under another name; `channel` 0 is the outside.
    SendAs {
        from: u16,
        channel: u16,
        to: u16,
    },
    Set {
        timer: usize,
        repeats: bool,
    },
    Cancel {
        timer: usize,
    },
    /// From now on take only messages of even numbers, or everything again.
    Deaf(bool),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Msg {
    /// Does what it says; the number is that of the message it brings about.
    Do(Do, u32),
    /// A message of that number; if it bounces, the receiver forwards it to itself as that number plus 10,000.
    Plain { id: u32, bounces: bool },
}

/// Actors that do what they are told.
#[derive(Clone)]
struct Puppets(Vec<ActorId>);

impl Model for Puppets {
    type State = bool;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.0
    }

    fn initial(&self, _: ActorId) -> bool {
        false
    }

    fn deliver(&self, deaf: &mut bool, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match msg {
            Msg::Plain { id, bounces: true } => ctx.forward(Msg::Plain { id: id + 10_000, bounces: false }),
            Msg::Plain { .. } => {}
            Msg::Do(what, id) => {
                let plain = Msg::Plain { id: *id, bounces: id % 3 == 0 };
                match *what {
                    Do::Send { to } => ctx.send(ActorId(to), plain),
                    Do::SendAs { from, channel, to } => {
                        ctx.send_as(ActorId(from), ActorId(channel), ActorId(to), plain, Via::Scheduler);
                    }
                    Do::Set { timer, repeats } => {
                        let timer = Timer::named(TIMERS[timer]);
                        let timer = if repeats { timer.repeating() } else { timer };
                        ctx.set_timer(timer, Msg::Plain { id: *id, bounces: false });
                    }
                    Do::Cancel { timer } => ctx.cancel_timer(TIMERS[timer]),
                    Do::Deaf(now) => *deaf = now,
                }
            }
        }
    }

    fn check(&self, _: &View<'_, bool>, (): &mut (), _: &mut Vec<Violation>) {}

    fn logs(&self) -> &dyn Logs<bool, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<bool, Msg> {
        self
    }
}

impl Logs<bool, Msg> for Puppets {
    fn type_name(&self, _: &Msg) -> String {
        "Msg".to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        format!("{msg:?}")
    }

    fn external(&self, _: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        Err("not needed".into())
    }

    fn describe(&self, deaf: &bool, _: &Names) -> Value {
        (*deaf).into()
    }
}

impl Runtime<bool, Msg> for Puppets {
    fn accepts(&self, deaf: &bool, _: ActorId, _: ActorId, msg: &Msg) -> bool {
        !deaf || matches!(msg, Msg::Do(..)) || matches!(msg, Msg::Plain { id, .. } if id % 2 == 0)
    }
}

/// The reference: a queue for each channel, and what belongs to none.
#[derive(Default)]
struct Reference {
    queues: BTreeMap<(u16, u16), VecDeque<u32>>,
    /// Messages from outside and without a sender: receiver and number.
    loose: BTreeSet<(u16, u32)>,
    /// By actor and timer: number, and whether it repeats.
    timers: BTreeMap<(u16, usize), (u32, bool)>,
    deaf: BTreeSet<u16>,
    /// The sender that each message names.
    senders: BTreeMap<u32, u16>,
}

impl Reference {
    fn does(&mut self, actor: u16, what: &Do, id: u32) {
        self.senders.insert(id, if let Do::SendAs { from, .. } = what { *from } else { actor });
        match *what {
            Do::Send { to } => self.queues.entry((actor, to)).or_default().push_back(id),
            Do::SendAs { channel: 0, to, .. } => {
                self.loose.insert((to, id));
            }
            Do::SendAs { channel, to, .. } => self.queues.entry((channel, to)).or_default().push_back(id),
            Do::Set { timer, repeats } => {
                self.timers.insert((actor, timer), (id, repeats));
            }
            Do::Cancel { timer } => {
                self.timers.remove(&(actor, timer));
            }
            Do::Deaf(true) => {
                self.deaf.insert(actor);
            }
            Do::Deaf(false) => {
                self.deaf.remove(&actor);
            }
        }
    }

    /// Everything pending: number to receiver and who stands before it, oldest first.
    fn pending(&self) -> BTreeMap<u32, (u16, Vec<u32>)> {
        let mut all = BTreeMap::new();
        for (&(_, to), queue) in &self.queues {
            for (at, &id) in queue.iter().enumerate() {
                all.insert(id, (to, queue.iter().take(at).copied().collect()));
            }
        }
        all.extend(self.loose.iter().map(|&(to, id)| (id, (to, Vec::new()))));
        all.extend(self.timers.iter().map(|(&(to, _), &(id, _))| (id, (to, Vec::new()))));
        all
    }

    /// Delivers a message; if it bounces, its copy goes to the end of the channel of the sender it names.
    fn deliver(&mut self, id: u32, to: u16, bounces: bool, rule: NetworkRule) {
        self.timers.retain(|_, timer| timer.0 != id || timer.1);
        self.loose.remove(&(to, id));
        for queue in self.queues.values_mut() {
            let Some(at) = queue.iter().position(|&q| q == id) else { continue };
            queue.remove(at);
            if rule == NetworkRule::FifoLoss {
                queue.drain(..at);
            }
        }
        if bounces {
            self.queues.entry((self.senders[&id], to)).or_default().push_back(id + 10_000);
        }
    }
}

fn id(sim: &Simulator<Puppets>, entry: &Pending) -> u32 {
    match &sim.info(entry.msg).msg {
        Msg::Plain { id, .. } | Msg::Do(_, id) => *id,
    }
}

/// Compares the rules' answers on everything pending with the reference.
fn compare(sim: &Simulator<Puppets>, world: &World<Puppets>, reference: &Reference, rule: NetworkRule) {
    let expected = reference.pending();
    let pending = world.pending();
    let ids: Vec<u32> = pending.iter().map(|p| id(sim, p)).collect();
    assert_eq!(ids.iter().copied().collect::<BTreeSet<u32>>(), expected.keys().copied().collect());
    assert_eq!(ids.len(), expected.len(), "no entry twice");
    for (index, entry) in pending.iter().enumerate() {
        let (to, before) = &expected[&ids[index]];
        assert_eq!(entry.to.0, *to);
        let blocker = network::blocker(pending, index).map(|i| ids[i]);
        assert_eq!(blocker, before.first().copied(), "who holds {} back", ids[index]);
        let allowed = rule != NetworkRule::Fifo || before.is_empty();
        assert_eq!(network::allows(rule, pending, index), allowed);
        let taken = !reference.deaf.contains(to) || ids[index].is_multiple_of(2);
        assert_eq!(sim.deliverable(world, index, rule), allowed && taken);
        let mut left = pending.to_vec();
        let at = network::overtaken(&mut left, index);
        assert_eq!(left[at], *entry);
        let lost: Vec<u32> = ids.iter().copied().filter(|i| !left.iter().any(|p| id(sim, p) == *i)).collect();
        assert_eq!(
            lost.iter().collect::<BTreeSet<_>>(),
            before.iter().collect(),
            "what {} loses",
            ids[index]
        );
        let kept: Vec<u32> = left.iter().map(|p| id(sim, p)).collect();
        let in_order: Vec<u32> = ids.iter().copied().filter(|i| kept.contains(i)).collect();
        assert_eq!(kept, in_order);
    }
}

/// A step of a random run.
#[derive(Clone, Debug)]
enum Step {
    Tell(u16, Do),
    /// A message from outside that stays pending.
    Inject(u16),
    /// Of what may be delivered, the one of this number, modulo how many there are.
    Deliver(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let actor = || 1..=ACTORS;
    let act = prop_oneof![
        6 => actor().prop_map(|to| Do::Send { to }),
        2 => (actor(), 0..=ACTORS, actor()).prop_map(|(from, channel, to)| Do::SendAs { from, channel, to }),
        2 => (0..TIMERS.len(), any::<bool>()).prop_map(|(timer, repeats)| Do::Set { timer, repeats }),
        1 => (0..TIMERS.len()).prop_map(|timer| Do::Cancel { timer }),
        1 => any::<bool>().prop_map(Do::Deaf),
    ];
    let step = prop_oneof![
        4 => (actor(), act).prop_map(|(a, d)| Step::Tell(a, d)),
        1 => actor().prop_map(Step::Inject),
        3 => any::<usize>().prop_map(Step::Deliver),
    ];
    prop::collection::vec(step, 1..60)
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_are_those_of_queues(steps in steps(), rule in prop::sample::select(RULES.to_vec())) {
        let (mut sim, mut world) = simulator();
        let mut reference = Reference::default();
        for (number, step) in steps.iter().enumerate() {
            let number = number as u32;
            match step {
                Step::Tell(actor, what) => {
                    let msg = sim.intern(Msg::Do(what.clone(), number));
                    let at = sim.inject(&mut world, ActorId(*actor), msg).unwrap();
                    prop_assert!(sim.deliverable(&world, at, rule), "orders from outside wait for nobody");
                    sim.deliver(&mut world, at, rule);
                    reference.does(*actor, what, number);
                }
                Step::Inject(actor) => {
                    let msg = sim.intern(Msg::Plain { id: number, bounces: false });
                    let at = sim.inject(&mut world, ActorId(*actor), msg).unwrap();
                    let entry = world.pending()[at];
                    prop_assert_eq!((entry.channel, entry.kind), (OUTSIDE, PendingKind::External));
                    reference.loose.insert((*actor, number));
                }
                Step::Deliver(choice) => {
                    let all = 0..world.pending().len();
                    let may: Vec<usize> = all.filter(|&i| sim.deliverable(&world, i, rule)).collect();
                    if may.is_empty() {
                        continue;
                    }
                    let entry = sim.deliver(&mut world, may[choice % may.len()], rule);
                    let bounces = matches!(sim.info(entry.msg).msg, Msg::Plain { bounces: true, .. });
                    reference.deliver(id(&sim, &entry), entry.to.0, bounces, rule);
                }
            }
            compare(&sim, &world, &reference, rule);
        }
    }
}
