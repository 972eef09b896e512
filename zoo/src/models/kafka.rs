//! Primary–backup replication of a log as Kafka does it: two brokers, a controller that names the leader, a follower that
//! fetches. What both have is committed, and the high watermark tells how far that is.
//!
//! Bug `truncate_to_high_watermark`: a broker that becomes follower cuts its log at its own high watermark, which is behind
//! the leader's by one fetch. If it then becomes leader, committed entries are gone. Source: KIP-101, scenario 1
//! (KAFKA-1211). The repaired protocol asks the leader where the epoch of the last entry ends (and, after KIP-279, again
//! where the leader has no such epoch).

use demi_replay::{ActorId, Ctx, ExternalMessage, Model, Names, Proposal, View, Violation};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: to a broker, an entry; to the controller, the broker that shall lead.
    Produce,
    Elect(usize),
    /// A broker has started.
    Hello,
    Lead { epoch: u32, leader: usize },
    /// Where does the leader's log of an epoch, or of the one before it that the leader has, end?
    EpochEnd { epoch: u32 },
    EndsAt { of: u32, offset: usize, epoch: u32 },
    Fetch { epoch: u32, offset: usize },
    Records { epoch: u32, offset: usize, entries: Vec<u32>, high: usize },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// On a broker's disk: the epoch of each entry, and how many are committed.
    log: Vec<u32>,
    high: usize,
    /// What was last heard from the controller, or what the controller decided; volatile on brokers.
    epoch: u32,
    leader: Option<usize>,
    /// Whether the log was cut to fit the leader's.
    following: bool,
    /// A fetch that waits for something new: its offset and the high watermark that the follower knows.
    parked: Option<usize>,
    told: usize,
}

#[derive(Clone)]
pub struct Kafka {
    actors: Vec<ActorId>,
    brokers: Vec<ActorId>,
    disks: Vec<ActorId>,
    controller: ActorId,
    to_high: bool,
}

impl Kafka {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let brokers = group(names, "broker", 2);
        let controller = names.id("controller");
        let disks = group(names, "disk", 2);
        let actors = [controller].into_iter().chain(brokers.iter().copied()).collect();
        Kafka { actors, brokers, disks, controller, to_high: on(scenario, "truncate_to_high_watermark") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.brokers.iter().position(|&b| b == actor).unwrap_or(0)
    }

    fn fetch(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        state.following = true;
        if let Some(leader) = state.leader {
            ctx.send(self.brokers[leader], Msg::Fetch { epoch: state.epoch, offset: state.log.len() });
        }
    }

    /// Asks the leader where the epoch of the last entry ends.
    fn compare(&self, state: &State, ctx: &mut Ctx<'_, Msg>) {
        if let Some(leader) = state.leader {
            let epoch = state.log.last().copied().unwrap_or(0);
            ctx.send(self.brokers[leader], Msg::EpochEnd { epoch });
        }
    }

    /// The leader answers a parked fetch if there is something to tell.
    fn answer(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        let Some(offset) = state.parked else { return };
        if offset < state.log.len() || state.told < state.high {
            let entries = state.log[offset..].to_vec();
            let to = self.brokers[1 - self.place(ctx.me())];
            ctx.send(to, Msg::Records { epoch: state.epoch, offset, entries, high: state.high });
            (state.parked, state.told) = (None, state.high);
        }
    }
}

impl Model for Kafka {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    /// A broker works on its disk, which outlives it.
    fn cell(&self, actor: ActorId) -> ActorId {
        self.brokers.iter().position(|&b| b == actor).map_or(actor, |at| self.disks[at])
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if ctx.me() != self.controller {
            *state = State { log: std::mem::take(&mut state.log), high: state.high, ..State::default() };
            ctx.send(self.controller, Msg::Hello);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = self.place(ctx.me());
        let leads = ctx.me() != self.controller && state.leader == Some(me);
        match *msg {
            Msg::Elect(leader) => {
                if state.leader != Some(leader) {
                    (state.leader, state.epoch) = (Some(leader), state.epoch + 1);
                    for &to in &self.brokers {
                        ctx.send(to, Msg::Lead { epoch: state.epoch, leader });
                    }
                }
            }
            Msg::Hello => {
                if let Some(leader) = state.leader {
                    ctx.send(ctx.sender(), Msg::Lead { epoch: state.epoch, leader });
                }
            }
            Msg::Lead { epoch, leader } => {
                if epoch <= state.epoch {
                    return;
                }
                (state.epoch, state.leader, state.parked, state.told) = (epoch, Some(leader), None, 0);
                state.following = false;
                if leader == me {
                } else if self.to_high {
                    state.log.truncate(state.high);
                    self.fetch(state, ctx);
                } else {
                    self.compare(state, ctx);
                }
            }
            Msg::EpochEnd { epoch } => {
                if leads {
                    let offset = state.log.iter().take_while(|&&e| e <= epoch).count();
                    let of = state.log[..offset].last().copied().unwrap_or(0);
                    ctx.send(ctx.sender(), Msg::EndsAt { of, offset, epoch: state.epoch });
                }
            }
            Msg::EndsAt { of, offset, epoch } => {
                if epoch == state.epoch && !leads {
                    let older = state.log.iter().take_while(|&&e| e <= of).count();
                    state.log.truncate(offset.min(older));
                    // An epoch that the leader does not have was cut off: the one before it may end differently, too.
                    if state.log.last().is_some_and(|&last| last < of) {
                        self.compare(state, ctx);
                    } else {
                        self.fetch(state, ctx);
                    }
                }
            }
            Msg::Produce => {
                if leads {
                    state.log.push(state.epoch);
                    self.answer(state, ctx);
                }
            }
            Msg::Fetch { epoch, offset } => {
                if leads && epoch == state.epoch && offset <= state.log.len() {
                    state.high = state.high.max(offset);
                    state.parked = Some(offset);
                    self.answer(state, ctx);
                }
            }
            Msg::Records { epoch, offset, ref entries, high } => {
                if epoch == state.epoch && state.following && offset == state.log.len() {
                    state.log.extend(entries);
                    state.high = state.high.max(high.min(state.log.len()));
                    self.fetch(state, ctx);
                }
            }
        }
    }

    fn type_name(&self, msg: &Msg) -> &'static str {
        match msg {
            Msg::Produce => "Produce",
            Msg::Elect(_) => "Elect",
            Msg::Hello => "Hello",
            Msg::Lead { .. } => "Lead",
            Msg::EpochEnd { .. } => "EpochEnd",
            Msg::EndsAt { .. } => "EndsAt",
            Msg::Fetch { .. } => "Fetch",
            Msg::Records { .. } => "Records",
        }
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    /// What a broker knows to be committed is in the log of every later leader.
    fn check(&self, view: &View<'_, Self>, (): &mut (), found: &mut Vec<Violation>) {
        for (at, &leader) in self.brokers.iter().enumerate() {
            let (Some(one), Some(other)) = (view.state(leader), view.state(self.brokers[1 - at])) else { return };
            let later = one.leader == Some(at) && one.epoch > other.epoch;
            if later && one.log.get(..other.high) != other.log.get(..other.high) {
                found.push(Violation { fingerprint: "LostEntry".into(), affected: vec![leader] });
            }
        }
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }

    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let at = (choice / 16 % 2) as usize;
        Some(match choice % 16 {
            0 => Proposal { to: self.controller, msg: Msg::Elect(at), fields: Value::Null },
            _ => Proposal { to: self.brokers[at], msg: Msg::Produce, fields: Value::Null },
        })
    }
}
