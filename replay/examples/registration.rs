//! A model of a system whose actors share memory and whose threads send by themselves: clients register with a server,
//! and scheduled code repeats that until the server has answered. The bug: a client that repeats too soon counts twice.
//! Run it with `cargo run -p demi-replay --example registration`.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::collections::BTreeSet;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{
    ActorId, Ctx, Guidance, Logs, Model, Names, OUTSIDE, Runtime, Simulator, View, Violation, Workload,
};
use demi_schemas::{Scenario, Via};
use serde_json::{Value, json};

pub(crate) const SCENARIO: &str = r#"
model = "registration"
network = "fifo"
[fuzz]
client_messages = 0
program = [
    { wait = "ready" },
    { action = { name = "create_client", fields = { client = 0 } } },
    { action = { name = "create_client", fields = { client = 1 } } },
    { isolate = "client-1" },
]
"#;

/// What is fixed in a run: who may take part.
#[derive(Clone)]
pub(crate) struct Registration {
    first: [ActorId; 2],
    clients: Vec<ActorId>,
}

impl Registration {
    pub(crate) fn new(names: &mut Names) -> Self {
        let clients = ["client-0", "client-1"].map(|name| names.id(name)).to_vec();
        Registration { first: ["server", "scheduled"].map(|name| names.id(name)), clients }
    }

    /// A thread of a client sends, in its name.
    fn register(&self, client: usize, ctx: &mut Ctx<'_, Msg>) {
        let me = self.clients[client];
        ctx.send_as(me, me, self.first[0], Msg::Register(client), Via::Thread);
        ctx.send_unordered(self.first[1], Msg::Again(client), Via::Scheduler);
    }
}

/// What all actors share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct System {
    ready: bool,
    counted: BTreeSet<usize>,
    twice: bool,
    answered: BTreeSet<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Msg {
    Ready,
    Register(usize),
    Registered(usize),
    /// Code that a scheduler runs for a client. Logs do not tell for which.
    Again(usize),
}

impl Model for Registration {
    type State = System;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.first
    }

    fn initial(&self, _: ActorId) -> System {
        System::default()
    }

    fn start(&self, _: &mut System, ctx: &mut Ctx<'_, Msg>) {
        let me = ctx.me();
        if me == self.first[0] {
            ctx.send_unordered(me, Msg::Ready, Via::Scheduler);
        }
        if let Some(client) = self.clients.iter().position(|c| *c == me) {
            self.register(client, ctx);
        }
    }

    fn deliver(&self, state: &mut System, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        match *msg {
            Msg::Ready => state.ready = true,
            Msg::Register(client) => {
                state.twice |= !state.counted.insert(client);
                ctx.send(ctx.sender(), Msg::Registered(client));
            }
            Msg::Registered(client) => {
                state.answered.insert(client);
            }
            Msg::Again(client) if !state.answered.contains(&client) => self.register(client, ctx),
            Msg::Again(_) => {}
        }
    }

    fn check(&self, view: &View<'_, System>, (): &mut (), found: &mut Vec<Violation>) {
        let server = self.first[0];
        if view.state(server).is_some_and(|state| state.twice) {
            found.push(Violation { fingerprint: "CountedTwice".into(), affected: vec![server] });
        }
    }

    fn logs(&self) -> &dyn Logs<System, Msg> {
        self
    }

    fn runtime(&self) -> &dyn Runtime<System, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<System, Msg> {
        self
    }

    fn guidance(&self) -> &dyn Guidance<System, Msg> {
        self
    }
}

impl Logs<System, Msg> for Registration {
    fn payload(&self, msg: &Msg, _: &Names) -> String {
        match msg {
            Msg::Register(client) => format!("Register(client-{client})"),
            _ => self.type_name(msg),
        }
    }

    fn hidden(&self, msg: &Msg) -> Option<String> {
        match msg {
            Msg::Again(client) | Msg::Registered(client) => Some(format!("client-{client}")),
            _ => None,
        }
    }

    fn describe(&self, state: &System, _: &Names) -> Value {
        json!({ "ready": state.ready, "counted": state.counted, "answered": state.answered })
    }
}

impl Runtime<System, Msg> for Registration {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn starting_up(&self, state: &System) -> bool {
        !state.ready
    }

    fn cell(&self, _: ActorId) -> ActorId {
        OUTSIDE
    }

    fn accepts(&self, state: &System, actor: ActorId, _: ActorId, msg: &Msg) -> bool {
        actor != self.first[0] || state.ready || *msg == Msg::Ready
    }

    fn action(
        &self,
        state: &mut System,
        name: &str,
        fields: Option<&Value>,
        ctx: &mut Ctx<'_, Msg>,
    ) -> Result<(), String> {
        if !state.ready {
            return Err("the server is not ready".into());
        }
        ctx.start_actor(self.creates(name, fields).ok_or("create_client needs 'client', 0 or 1")?);
        Ok(())
    }

    fn creates(&self, name: &str, fields: Option<&Value>) -> Option<ActorId> {
        let client = usize::try_from(fields?.get("client")?.as_u64()?).ok()?;
        self.clients.get(client).copied().filter(|_| name == "create_client")
    }
}

impl Workload<System, Msg> for Registration {
    fn condition(&self, name: &str, view: &View<'_, System>) -> Result<bool, String> {
        match name {
            "ready" => Ok(view.state(self.first[0]).is_some_and(|state| state.ready)),
            _ => Err(format!("there is no condition '{name}', but ready")),
        }
    }
}

impl Guidance<System, Msg> for Registration {
    fn watch(&self, state: &System) -> Option<u64> {
        Some(u64::from(state.twice))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse(SCENARIO)?;
    let mut names = Names::default();
    let model = Registration::new(&mut names);
    let mut sim = Simulator::new(model, names, &scenario)?;
    let options = FuzzOptions::new(1, 100, 50);
    let found = fuzz(&mut sim, &scenario, &options, &mut |_| true)?.ok_or("no run breaks it")?;
    for (actor, records) in &found.records {
        println!("{actor}.jsonl");
        for record in records {
            println!("    {}", serde_json::to_string(record)?);
        }
    }
    println!("{} after {} deliveries", found.violation.join(", "), found.deliveries);
    Ok(())
}
