//! Simulators of the scenarios, and random walks.

use demi_replay::{ActorId, Names, Simulator, Status, Workload, World};
use demi_schemas::{NetworkRule, Scenario};
use demi_tikv_raft::{Client, Msg, Node, State, TikvRaft};

/// The scenario files.
pub const SCENARIOS: [(&str, &str); 7] = [
    ("correct", include_str!("../../scenarios/correct.toml")),
    ("send-before-sync", include_str!("../../scenarios/send-before-sync.toml")),
    ("apply-before-persist", include_str!("../../scenarios/apply-before-persist.toml")),
    ("ignore-must-sync", include_str!("../../scenarios/ignore-must-sync.toml")),
    ("read-without-index", include_str!("../../scenarios/read-without-index.toml")),
    ("removed-goes-on", include_str!("../../scenarios/removed-goes-on.toml")),
    ("removed-reads", include_str!("../../scenarios/removed-reads.toml")),
];

/// The scenario file of that name.
pub fn scenario(name: &str) -> Scenario {
    Scenario::parse(SCENARIOS.iter().find(|(known, _)| *known == name).unwrap().1).unwrap()
}

/// A scenario of three nodes; `rest` is the rest of its text.
pub fn three(rest: &str) -> Scenario {
    Scenario::parse(&format!("model = \"tikv-raft\"\nnetwork = \"unordered\"\n{rest}")).unwrap()
}

/// The simulator of a scenario.
pub fn simulator(scenario: &Scenario) -> Simulator<TikvRaft> {
    let mut names = Names::default();
    let model = TikvRaft::new(scenario, &mut names).unwrap();
    Simulator::new(model, names, scenario).unwrap()
}

/// The node of that number.
pub fn node<'a>(sim: &'a Simulator<TikvRaft>, world: &'a World<TikvRaft>, id: usize) -> &'a Node {
    let actor = sim.model().nodes()[id - 1];
    world.cells()[actor.index()].as_deref().and_then(State::node).unwrap()
}

/// The client.
pub fn client<'a>(sim: &'a Simulator<TikvRaft>, world: &'a World<TikvRaft>) -> &'a Client {
    let actor = sim.model().client();
    world.cells()[actor.index()].as_deref().and_then(State::client).unwrap()
}

/// Delivers the first pending entry to that node that is such a message.
pub fn deliver(
    sim: &mut Simulator<TikvRaft>,
    world: &mut World<TikvRaft>,
    to: usize,
    is: impl Fn(&Msg) -> bool,
) {
    let actor = sim.model().nodes()[to - 1];
    let at = world.pending().iter().position(|p| p.to == actor && is(&sim.info(p.msg).msg)).unwrap();
    sim.deliver(world, at, NetworkRule::Unordered);
}

/// Whether it is a message of the library of that type.
pub fn raft(type_: &str) -> impl Fn(&Msg) -> bool {
    move |msg| matches!(msg, Msg::Raft(wire) if format!("{:?}", wire.message().msg_type) == type_)
}

/// A random walk: what it does is decided by the seed alone.
pub struct Walk {
    pub sim: Simulator<TikvRaft>,
    pub world: World<TikvRaft>,
    random: u64,
    requests: u64,
}

impl Walk {
    pub fn new(scenario: &Scenario, seed: u64) -> Walk {
        let mut sim = simulator(scenario);
        let world = sim.empty_world();
        Walk { sim, world, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, requests: 0 }
    }

    /// The next number of a xorshift generator.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.draw() >> 11) as usize % limit
    }

    /// One step: mostly a delivery, sometimes a request, rarely a crash with a restart.
    pub fn step(&mut self) {
        let kind = self.below(100);
        if kind == 0 {
            let nodes: Vec<ActorId> = self.sim.model().nodes().to_vec();
            let node = nodes[self.below(nodes.len())];
            self.sim.restart(&mut self.world, node);
        } else if kind < 10 {
            let (choice, names) = (self.draw(), self.sim.names().clone());
            self.requests += 1;
            let proposal = self.sim.model().client_message(self.requests, choice, &names).unwrap();
            let msg = self.sim.intern(proposal.msg);
            self.sim.inject(&mut self.world, proposal.to, msg).unwrap();
        } else {
            self.deliver();
        }
    }

    /// Delivers something. Timers wait longer than messages.
    fn deliver(&mut self) {
        let pending = self.world.pending();
        let messages: Vec<usize> = (0..pending.len()).filter(|&at| !pending[at].kind.is_timer()).collect();
        let all = pending.len();
        let at = match self.below(12) > 0 && !messages.is_empty() {
            true => messages[self.below(messages.len())],
            false => self.below(all),
        };
        if self.world.status(self.world.pending()[at].to) == Status::Running {
            self.sim.deliver(&mut self.world, at, NetworkRule::Unordered);
        }
    }

    /// What tells the configuration from others.
    pub fn digest(&self) -> u128 {
        self.world.configuration_hash(false, |p| p.msg.0.into())
    }
}
