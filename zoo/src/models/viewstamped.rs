//! Viewstamped Replication Revisited: replicas without disks agree on a log, change the primary by views, and recover what a
//! failed one has lost from the others.
//!
//! Bug `forgets_view`: a replica that fails and recovers forgets the view change it took part in. It goes on in the old view,
//! while what it sent for the new one still counts, so an operation that is acknowledged meanwhile is lost. Source: Michael,
//! Ports, Sharma, Szekeres, "Recovering Shared Objects Without Stable Storage", DISC 2017, extended version. In the repaired
//! protocol a replica writes its view to a disk before it sends anything for it, as in Oki and Liskov, PODC 1988; it does not
//! recover into an older view, and the others leave theirs if they hear of a newer one.
//!
//! The network keeps no order, as the protocol allows: in order, whoever may answer a recovering replica has heard of the view
//! change before, and takes part in it.

use std::collections::{BTreeMap, BTreeSet};

use demi_replay::{
    ActorId, Ctx, ExternalMessage, Logs, Model, Names, Proposal, Runtime, View, Violation, Workload,
};
use demi_schemas::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{group, on};
use crate::wire;

const REPLICAS: usize = 3;
/// How many may fail at a time.
const FAILURES: usize = 1;

/// Operations by the clients who want them, and how many of them are committed.
type Log = (Vec<u8>, usize);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Msg {
    /// From outside: a client wants an operation.
    Request(u8),
    /// The view and the log of its primary; the last operation is new.
    Prepare(u32, Log),
    /// The view, and how many operations the sender has.
    PrepareOk(u32, usize),
    StartViewChange(u32),
    /// The view, the last one in which the sender was normal, and its log.
    DoViewChange(u32, u32, Log),
    StartView(u32, Log),
    /// The sender's life, and the view it knows to have reached.
    Recovery(u32, u32),
    /// The receiver's life, the sender's view, and the log if it is the primary.
    RecoveryResponse(u32, u32, Option<Log>),
    Timeout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    #[default]
    Normal,
    ViewChange,
    Recovering,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    status: Status,
    /// How often the replica has failed: tells answers to one recovery from those to another.
    life: u32,
    view: u32,
    last_normal: u32,
    log: Vec<u8>,
    executed: Vec<u8>,
    /// Primary: how many operations each of the others has.
    prepared: BTreeMap<usize, usize>,
    starts: BTreeSet<usize>,
    changes: BTreeMap<usize, (u32, Log)>,
    responses: BTreeMap<usize, (u32, Option<Log>)>,
}

#[derive(Clone)]
pub struct Viewstamped {
    replicas: Vec<ActorId>,
    forgets_view: bool,
}

fn primary(view: u32) -> usize {
    view as usize % REPLICAS
}

impl State {
    fn log(&self) -> Log {
        (self.log.clone(), self.executed.len())
    }

    fn execute(&mut self, committed: usize) {
        let done = self.executed.len();
        self.executed.extend(self.log.iter().take(committed).skip(done));
    }

    /// A view begins, or is taken up, with a log.
    fn normal(&mut self, view: u32, (log, committed): Log) {
        let (life, executed) = (self.life, std::mem::take(&mut self.executed));
        *self = State { life, view, last_normal: view, log, executed, ..State::default() };
        self.execute(committed);
    }
}

impl Viewstamped {
    pub fn new(scenario: &Scenario, names: &mut Names) -> Self {
        let replicas = group(names, "replica", REPLICAS);
        Viewstamped { replicas, forgets_view: on(scenario, "forgets_view") }
    }

    fn place(&self, actor: ActorId) -> usize {
        self.replicas.iter().position(|&r| r == actor).unwrap_or(0)
    }

    fn others(&self, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        self.replicas.iter().filter(|&&r| r != me).for_each(|&to| ctx.send(to, msg.clone()));
    }

    /// Leaves its view for a newer one.
    fn change(&self, state: &mut State, view: u32, ctx: &mut Ctx<'_, Msg>) {
        (state.view, state.status) = (view, Status::ViewChange);
        state.starts.clear();
        state.changes.clear();
        self.others(&Msg::StartViewChange(view), ctx);
        ctx.set_timer("timeout", Msg::Timeout);
    }

    /// The primary of a new view has this from a replica, perhaps from itself.
    fn collect(&self, state: &mut State, from: usize, change: (u32, Log), ctx: &mut Ctx<'_, Msg>) {
        state.changes.insert(from, change);
        let complete = state.changes.len() > FAILURES && state.changes.contains_key(&self.place(ctx.me()));
        let newest = state.changes.values().max_by_key(|(last, log)| (*last, log.0.len()));
        if let Some((_, (log, _))) = newest.filter(|_| complete) {
            let committed = state.changes.values().map(|(_, log)| log.1).max().unwrap_or(0);
            let log = (log.clone(), committed);
            self.others(&Msg::StartView(state.view, log.clone()), ctx);
            state.normal(state.view, log);
            ctx.cancel_timer("timeout");
        }
    }

    /// A replica follows a primary: it acknowledges what it has.
    fn follow(&self, state: &mut State, view: u32, log: Log, ctx: &mut Ctx<'_, Msg>) {
        state.normal(view, log);
        ctx.send(self.replicas[primary(view)], Msg::PrepareOk(view, state.log.len()));
        ctx.set_timer("timeout", Msg::Timeout);
    }

    fn ask(&self, state: &State, ctx: &mut Ctx<'_, Msg>) {
        self.others(&Msg::Recovery(state.life, state.view), ctx);
        ctx.set_timer("timeout", Msg::Timeout);
    }

    /// Recovers once enough have answered, with them the primary of the newest view.
    fn recover(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        let newest = state.responses.values().map(|r| r.0).max().unwrap_or(0);
        let current = state.responses.get(&primary(newest)).filter(|r| r.0 == newest);
        if let Some((_, Some(log))) = current
            && state.responses.len() > FAILURES
            && newest >= state.view
        {
            state.normal(newest, log.clone());
            ctx.set_timer("timeout", Msg::Timeout);
        }
    }
}

impl Model for Viewstamped {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.replicas
    }

    fn initial(&self, _: ActorId) -> State {
        State::default()
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if state.status == Status::Recovering {
            self.ask(state, ctx);
        } else if self.place(ctx.me()) != primary(0) {
            ctx.set_timer("timeout", Msg::Timeout);
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        let (me, from) = (self.place(ctx.me()), self.place(ctx.sender()));
        if state.status == Status::Recovering {
            // It takes no part in anything else.
            return match *msg {
                Msg::RecoveryResponse(life, view, ref log) if life == state.life => {
                    state.responses.insert(from, (view, log.clone()));
                    self.recover(state, ctx);
                }
                Msg::Timeout => self.ask(state, ctx),
                _ => {}
            };
        }
        let normal = state.status == Status::Normal;
        match *msg {
            Msg::Request(client) => {
                if normal && primary(state.view) == me {
                    state.log.push(client);
                    self.others(&Msg::Prepare(state.view, state.log()), ctx);
                }
            }
            Msg::Prepare(view, ref log) => {
                let longer = log.0.len() > state.log.len();
                if view > state.view || view == state.view && normal && longer {
                    self.follow(state, view, log.clone(), ctx);
                }
            }
            Msg::PrepareOk(view, count) => {
                if view == state.view && normal {
                    let has = state.prepared.entry(from).or_default();
                    *has = (*has).max(count);
                    if state.prepared.values().filter(|&&has| has >= count).count() >= FAILURES {
                        state.execute(count);
                    }
                }
            }
            Msg::StartViewChange(view) => {
                if view > state.view {
                    self.change(state, view, ctx);
                }
                if view == state.view && state.status == Status::ViewChange {
                    state.starts.insert(from);
                    if state.starts.len() == FAILURES {
                        let change = (state.last_normal, state.log());
                        if primary(view) == me {
                            self.collect(state, me, change, ctx);
                        } else {
                            let to = self.replicas[primary(view)];
                            ctx.send(to, Msg::DoViewChange(view, change.0, change.1));
                        }
                    }
                }
            }
            Msg::DoViewChange(view, last_normal, ref log) => {
                if view > state.view {
                    self.change(state, view, ctx);
                }
                if view == state.view && state.status == Status::ViewChange {
                    self.collect(state, from, (last_normal, log.clone()), ctx);
                }
            }
            Msg::StartView(view, ref log) => {
                if view > state.view || view == state.view && !normal {
                    self.follow(state, view, log.clone(), ctx);
                }
            }
            Msg::Recovery(life, view) => {
                if view > state.view {
                    self.change(state, view, ctx);
                } else if normal {
                    let log = (primary(state.view) == me).then(|| state.log());
                    ctx.send(ctx.sender(), Msg::RecoveryResponse(life, state.view, log));
                }
            }
            Msg::Timeout => self.change(state, state.view + 1, ctx),
            Msg::RecoveryResponse(..) => {}
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        let states: Vec<_> = self.replicas.iter().filter_map(|&r| Some((r, view.state(r)?))).collect();
        for &(replica, executed) in &states {
            // Whatever is executed stays in the log of every later primary.
            let lost = |&&(r, s): &&(ActorId, &State)| {
                let leads = s.status == Status::Normal && primary(s.view) == self.place(r);
                leads && s.view >= executed.view && !s.log.starts_with(&executed.executed)
            };
            if let Some(&(primary, _)) = states.iter().find(lost) {
                found.push(Violation { fingerprint: "Lost".into(), affected: vec![replica, primary] });
                return;
            }
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Runtime<State, Msg> for Viewstamped {
    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        let view = if self.forgets_view { 0 } else { failed.view };
        Some(State { status: Status::Recovering, life: failed.life + 1, view, ..State::default() })
    }
}

impl Logs<State, Msg> for Viewstamped {
    fn type_name(&self, msg: &Msg) -> String {
        let text = format!("{msg:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }

    fn payload(&self, msg: &Msg, _: &Names) -> String {
        wire::write(msg)
    }

    fn external(&self, message: ExternalMessage<'_>, _: &mut Names) -> Result<Msg, String> {
        wire::read(message.payload)
    }

    fn describe(&self, state: &State, _: &Names) -> Value {
        json!(format!("{state:?}"))
    }
}

impl Workload<State, Msg> for Viewstamped {
    fn client_message(&self, _: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let to = self.replicas[choice as usize % REPLICAS];
        let msg = Msg::Request((choice / 8 % 2) as u8);
        Some(Proposal { to, msg, fields: Value::Null })
    }

    /// `replica-1 begins`: it alone takes part in the view change that makes it the primary. `replica-1 promised`: it has done its
    /// part in a view change. Neither holds while somebody recovers, so that no more fail than the protocol bears.
    fn condition(&self, name: &str, view: &View<'_, State>) -> Result<bool, String> {
        let unknown = || format!("there is no condition '{name}'");
        let (replica, what) = name.split_once(' ').ok_or_else(unknown)?;
        let at = self.replicas.iter().position(|&r| view.names.get(r) == replica).ok_or_else(unknown)?;
        let states: Vec<_> = self.replicas.iter().filter_map(|&r| view.state(r)).collect();
        let Some(state) = view.state(self.replicas[at]) else { return Ok(false) };
        let changes = states.iter().filter(|s| s.status == Status::ViewChange).count();
        let possible = state.status == Status::ViewChange
            && states.iter().all(|s| s.status != Status::Recovering);
        match what {
            "begins" => Ok(possible && changes == 1 && primary(state.view) == at),
            "promised" => Ok(possible && state.starts.len() >= FAILURES),
            _ => Err(unknown()),
        }
    }
}
