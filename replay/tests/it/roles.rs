//! Systems of roles: the same as the same system written as one model, with disks and requests.

use std::collections::BTreeMap;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::roles::{Me, Role, Roles};
use demi_replay::{
    ActorId, Ctx, Group, Logs, Model, Names, Proposal, Runtime, Serialized, Simulator, View, Violation,
    Workload,
};
use demi_schemas::summary::Verdict;
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// Clients write numbers to a store, which keeps them on a disk or not; a writer is told the last number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Msg {
    Write(u64),
    Done { by: ActorId, last: u64 },
    Again,
}

const SCENARIO: &str = "model = 'store'\nnetwork = 'fifo'\nmembers = 3\n[fuzz]\nclient_messages = 6\nweight_crash = 0.1\nweight_restart = 0.3\n";

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
struct Stored {
    last: u64,
    count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
struct Written {
    told: BTreeMap<ActorId, u64>,
    /// Whether the number of a store ever fell.
    fell: bool,
}

fn write(state: &mut Stored, msg: &Msg, to: ActorId, ctx: &mut Ctx<'_, Msg>) {
    if let Msg::Write(n) = msg {
        *state = Stored { last: *n, count: state.count + 1 };
        ctx.send(to, Msg::Done { by: ctx.me(), last: state.last });
        ctx.set_timer("again", Msg::Again);
    } else {
        ctx.send(to, Msg::Done { by: ctx.me(), last: state.last });
    }
}

fn told(state: &mut Written, msg: &Msg) {
    if let Msg::Done { by, last } = msg {
        let before = state.told.insert(*by, *last);
        state.fell |= before > Some(*last);
    }
}

struct Store {
    reader: ActorId,
    disk: bool,
}

impl Role for Store {
    type Msg = Msg;
    type State = Stored;

    fn initial(&self, _: Me<'_>) -> Stored {
        Stored::default()
    }

    fn start(&self, me: Me<'_>, state: &mut Stored, ctx: &mut Ctx<'_, Msg>) {
        ctx.send(self.reader, Msg::Done { by: me.id(), last: state.last });
    }

    fn deliver(&self, me: Me<'_>, state: &mut Stored, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        assert_eq!(me.id(), me.group().members()[me.index()]);
        assert_eq!((me.id(), me.role()), (ctx.me(), "store"));
        write(state, msg, self.reader, ctx);
    }

    fn recovered(&self, _: Me<'_>, failed: &Stored) -> Option<Stored> {
        self.disk.then(|| failed.clone())
    }
}

struct Reader;

impl Role for Reader {
    type Msg = Msg;
    type State = Written;

    fn initial(&self, _: Me<'_>) -> Written {
        Written::default()
    }

    fn deliver(&self, _: Me<'_>, state: &mut Written, msg: &Msg, _: &mut Ctx<'_, Msg>) {
        told(state, msg);
    }
}

fn request(stores: &[ActorId], n: u64, choice: u64) -> (ActorId, Msg) {
    (stores[choice as usize % stores.len()], Msg::Write(n + 1))
}

fn roles(disk: bool, names: &mut Names) -> Roles<Msg> {
    let (reader, stores) = (Group::single(names, "reader"), Group::numbered(names, "store", 3));
    let to = stores.members().to_vec();
    Roles::new()
        .with(&stores, Store { reader: reader.members()[0], disk })
        .with(&reader, Reader)
        .invariant("NeverBack", |states| {
            states.all::<Written>().filter(|(_, read)| read.fell).map(|(actor, _)| actor).collect()
        })
        .begins_with(stores.members()[0], Msg::Write(100))
        .requests(move |n, choice| Some(request(&to, n, choice)))
}

/// The same as one model.
#[derive(Clone)]
struct Plain {
    actors: Vec<ActorId>,
    disk: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
enum State {
    Store(Stored),
    Reader(Written),
}

impl Model for Plain {
    type State = State;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, actor: ActorId) -> State {
        match actor == self.actors[3] {
            true => State::Reader(Written::default()),
            false => State::Store(Stored::default()),
        }
    }

    fn start(&self, state: &mut State, ctx: &mut Ctx<'_, Msg>) {
        if let State::Store(stored) = state {
            ctx.send(self.actors[3], Msg::Done { by: ctx.me(), last: stored.last });
        }
    }

    fn deliver(&self, state: &mut State, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match state {
            State::Store(stored) => write(stored, msg, self.actors[3], ctx),
            State::Reader(written) => told(written, msg),
        }
    }

    fn check(&self, view: &View<'_, State>, (): &mut (), found: &mut Vec<Violation>) {
        if let Some(State::Reader(read)) = view.state(self.actors[3])
            && read.fell
        {
            found.push(Violation { fingerprint: "NeverBack".into(), affected: vec![self.actors[3]] });
        }
    }

    fn logs(&self) -> &dyn Logs<State, Msg> {
        &Serialized
    }

    fn runtime(&self) -> &dyn Runtime<State, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<State, Msg> {
        self
    }
}

impl Runtime<State, Msg> for Plain {
    fn recovered(&self, _: ActorId, failed: &State) -> Option<State> {
        (self.disk && matches!(failed, State::Store(_))).then(|| failed.clone())
    }
}

impl Workload<State, Msg> for Plain {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        vec![Proposal::new(self.actors[0], Msg::Write(100))]
    }

    fn client_message(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let (to, msg) = request(&self.actors[..3], n, choice);
        Some(Proposal::new(to, msg))
    }
}

fn simulator<M: Model>(scenario: &Scenario, make: impl FnOnce(&mut Names) -> M) -> Simulator<M> {
    let mut names = Names::default();
    let model = make(&mut names);
    Simulator::new(model, names, scenario).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_system_of_roles_runs_as_the_same_model_does(seed: u64, disk: bool) {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let options = FuzzOptions::new(seed, 30, 60);
        let mut of_roles = simulator(&scenario, |names| roles(disk, names));
        let mut plain = simulator(&scenario, |names| {
            let (reader, stores) = (names.id("reader"), Group::numbered(names, "store", 3));
            Plain { actors: [stores.members(), &[reader]].concat(), disk }
        });
        let found = fuzz(&mut of_roles, &scenario, &options, &mut |_| true).unwrap();
        let same = fuzz(&mut plain, &scenario, &options, &mut |_| true).unwrap();
        prop_assert_eq!(found.is_some(), same.is_some());
        if let (Some(found), Some(same)) = (found, same) {
            prop_assert_eq!(found.schedule.to_text(), same.schedule.to_text());
            // From text, in a simulator that knows nothing of the run.
            let text = demi_schemas::Schedule::parse(&found.schedule.to_text()).unwrap();
            let rule = ReplayOptions { rule: NetworkRule::Fifo, strict: true, interval: 1 };
            let again = replay(&mut simulator(&scenario, |names| roles(disk, names)), &text, &rule).unwrap();
            prop_assert_eq!((again.verdict, again.violation), (Verdict::Violates, found.violation));
        }
    }
}

#[test]
fn some_run_breaks_the_store_without_a_disk() {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let mut sim = simulator(&scenario, |names| roles(false, names));
    let found = fuzz(&mut sim, &scenario, &FuzzOptions::new(3, 500, 80), &mut |_| true).unwrap();
    assert_eq!(found.unwrap().violation, ["NeverBack"]);
}

#[test]
fn a_name_that_the_system_does_not_know_is_refused() {
    let scenario = Scenario::parse("model = 'store'\nnetwork = 'fifo'\ninvariants = ['NeverBak']").unwrap();
    let refused = roles(true, &mut Names::default()).known_to(&scenario, &[], &[]);
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("'NeverBak'") && error.contains("'NeverBack'"), "{error}");
}
