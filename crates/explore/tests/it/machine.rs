//! Small random systems: what an actor does is a table.

use demi_replay::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, Simulator, View, Violation, Workload,
};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;

pub const ACTORS: u16 = 3;
pub const STATES: u8 = 3;
pub const KINDS: u8 = 2;
/// How often a message begets others.
const HOPS: u8 = 3;

/// What an actor does with a kind of message in a state.
#[derive(Clone, Debug)]
pub struct Rule {
    pub next: u8,
    pub sends: Vec<(u16, u8)>,
    /// Sets the timer with that kind, or cancels it.
    pub timer: Option<Option<u8>>,
}

/// A system. Two pairs of states of the first two actors are violations.
#[derive(Clone, Debug)]
pub struct Table {
    pub rules: Vec<Rule>,
    pub bad: [(u8, u8); 2],
    pub outside: Vec<(u16, u8)>,
    pub clients: Vec<(u16, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Msg {
    kind: u8,
    hops: u8,
}

#[derive(Clone, Debug)]
pub struct Machine {
    table: Table,
    actors: Vec<ActorId>,
}

impl Model for Machine {
    type State = u8;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> u8 {
        0
    }

    fn start(&self, _: &mut u8, _: &mut Ctx<'_, Msg>) {}

    fn deliver(&self, state: &mut u8, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = self.actors.iter().position(|&actor| actor == ctx.me()).unwrap();
        let at =
            (me * usize::from(STATES) + usize::from(*state)) * usize::from(KINDS) + usize::from(msg.kind);
        let rule = &self.table.rules[at];
        *state = rule.next;
        let Some(hops) = msg.hops.checked_sub(1) else { return };
        for &(to, kind) in &rule.sends {
            ctx.send(self.actors[usize::from(to)], Msg { kind, hops });
        }
        match rule.timer {
            Some(Some(kind)) => ctx.set_timer("t", Msg { kind, hops }),
            Some(None) => ctx.cancel_timer("t"),
            None => {}
        }
    }

    fn check(&self, view: &View<'_, u8>, (): &mut (), found: &mut Vec<Violation>) {
        let states = (view.state(self.actors[0]).copied(), view.state(self.actors[1]).copied());
        for (n, bad) in self.table.bad.iter().enumerate() {
            if states == (Some(bad.0), Some(bad.1)) {
                found.push(Violation { fingerprint: format!("Bad{n}"), affected: self.actors[..2].to_vec() });
            }
        }
    }

    fn logs(&self) -> &dyn Logs<u8, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<u8, Msg> {
        self
    }
}

impl Logs<u8, Msg> for Machine {
    fn payload(&self, msg: &Msg, _: &Names) -> String {
        format!("{} {}", msg.kind, msg.hops)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        let (kind, hops) = message.payload.split_once(' ').ok_or("no message")?;
        let number = |text: &str| text.parse().map_err(|_| "no number".to_owned());
        Ok(Msg { kind: number(kind)?, hops: number(hops)? })
    }
}

impl Workload<u8, Msg> for Machine {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        let one =
            |&(to, kind): &(u16, u8)| Proposal::new(self.actors[usize::from(to)], Msg { kind, hops: HOPS });
        self.table.outside.iter().map(one).collect()
    }

    fn client_message(&self, n: u64, _: u64, _: &Names) -> Option<Proposal<Msg>> {
        let &(to, kind) = self.table.clients.get(n as usize)?;
        Some(Proposal::new(self.actors[usize::from(to)], Msg { kind, hops: HOPS }))
    }
}

/// Random systems.
pub fn table() -> impl Strategy<Value = Table> {
    let message = || (0..ACTORS, 0..KINDS);
    let timer = prop_oneof![
        4 => Just(None),
        2 => (0..KINDS).prop_map(|kind| Some(Some(kind))),
        1 => Just(Some(None)),
    ];
    let rule = (0..STATES, prop::collection::vec(message(), 0..3), timer)
        .prop_map(|(next, sends, timer)| Rule { next, sends, timer });
    let cells = usize::from(ACTORS) * usize::from(STATES) * usize::from(KINDS);
    let bad = (0..STATES, 0..STATES).prop_filter("everything begins there", |&bad| bad != (0, 0));
    (
        prop::collection::vec(rule, cells),
        [bad.clone(), bad],
        prop::collection::vec(message(), 1..3),
        prop::collection::vec(message(), 0..2),
    )
        .prop_map(|(rules, bad, outside, clients)| Table { rules, bad, outside, clients })
}

/// The scenario and the simulator of a system.
pub fn simulator(table: &Table, rule: NetworkRule) -> (Scenario, Simulator<Machine>) {
    let clients = table.clients.len();
    let text = format!("model = 'machine'\nnetwork = '{rule}'\n[fuzz]\nclient_messages = {clients}");
    let scenario = Scenario::parse(&text).unwrap();
    let mut names = Names::default();
    let actors = (0..ACTORS).map(|n| names.id(&format!("actor-{n}"))).collect();
    let machine = Machine { table: table.clone(), actors };
    let sim = Simulator::new(machine, names, &scenario).unwrap();
    (scenario, sim)
}
