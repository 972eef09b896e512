//! A register that is written often, by ABD with several writers (H. Attiya, A. Bar-Noy and D. Dolev, 1995): a quorum tells
//! its newest label, then a quorum stores a label.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use stateright::actor::register::RegisterMsg;
use stateright::actor::{Actor, Id, Network, Out, model_peers};

use super::register::{Clients, Request, Value, with_clients};

/// Writes are ordered by number, then by the server that made them.
pub type Label = (u32, Id);

/// What servers tell each other; each names the request that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Msg {
    Ask(Request),
    Tell(Request, Label, Value),
    Store(Request, Label, Value),
    Stored(Request),
}

/// A server.
#[derive(Clone, Debug)]
pub struct Server {
    peers: Vec<Id>,
    quorum: usize,
    older_overwrites: bool,
}

/// What a server does for a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Asking { write: Option<Value>, told: BTreeMap<Id, (Label, Value)> },
    Storing { read: Option<Value>, stored: BTreeSet<Id> },
}

/// What a server knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Known {
    label: Label,
    value: Value,
    serves: Option<(Request, Id, Phase)>,
}

type Wire = RegisterMsg<Request, Value, Msg>;

impl Server {
    fn store(&self, known: &mut Known, label: Label, value: Value) {
        if label > known.label || self.older_overwrites {
            (known.label, known.value) = (label, value);
        }
    }

    fn serve(&self, me: Id, known: &mut Known, asked: (Request, Id, Option<Value>), out: &mut Out<Self>) {
        let (request, client, write) = asked;
        let told = BTreeMap::from([(me, (known.label, known.value))]);
        known.serves = Some((request, client, Phase::Asking { write, told }));
        out.broadcast(&self.peers, &Wire::Internal(Msg::Ask(request)));
        self.go_on(me, known, out);
    }

    /// The next phase, where a quorum is reached.
    fn go_on(&self, me: Id, known: &mut Known, out: &mut Out<Self>) {
        let Some((request, client, phase)) = known.serves.clone() else { return };
        match phase {
            Phase::Asking { write, told } if told.len() >= self.quorum => {
                let newest = told.values().max().copied().unwrap_or((known.label, known.value));
                let (label, value) = write.map_or(newest, |value| ((newest.0.0 + 1, me), value));
                let read = write.is_none().then_some(value);
                known.serves = Some((request, client, Phase::Storing { read, stored: BTreeSet::from([me]) }));
                self.store(known, label, value);
                out.broadcast(&self.peers, &Wire::Internal(Msg::Store(request, label, value)));
                self.go_on(me, known, out);
            }
            Phase::Storing { read, stored } if stored.len() >= self.quorum => {
                known.serves = None;
                out.send(client, read.map_or(Wire::PutOk(request), |value| Wire::GetOk(request, value)));
            }
            Phase::Asking { .. } | Phase::Storing { .. } => {}
        }
    }

    fn hear(&self, me: Id, known: &mut Known, from: Id, msg: Msg, out: &mut Out<Self>) {
        match msg {
            Msg::Ask(request) => {
                out.send(from, Wire::Internal(Msg::Tell(request, known.label, known.value)));
            }
            Msg::Store(request, label, value) => {
                self.store(known, label, value);
                out.send(from, Wire::Internal(Msg::Stored(request)));
            }
            Msg::Tell(request, label, value) => {
                if let Some((served, _, Phase::Asking { told, .. })) = &mut known.serves
                    && *served == request
                {
                    told.insert(from, (label, value));
                    self.go_on(me, known, out);
                }
            }
            Msg::Stored(request) => {
                if let Some((served, _, Phase::Storing { stored, .. })) = &mut known.serves
                    && *served == request
                {
                    stored.insert(from);
                    self.go_on(me, known, out);
                }
            }
        }
    }
}

impl Actor for Server {
    type Msg = Wire;
    type Timer = ();
    type State = Known;
    type Storage = ();
    type Random = ();

    fn name(&self) -> String {
        "server".to_owned()
    }

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) -> Known {
        Known { label: (0, Id::from(0)), value: Value::default(), serves: None }
    }

    fn on_msg(&self, me: Id, state: &mut Cow<'_, Known>, from: Id, msg: Wire, out: &mut Out<Self>) {
        let mut known = state.clone().into_owned();
        match msg {
            RegisterMsg::Put(request, value) if known.serves.is_none() => {
                self.serve(me, &mut known, (request, from, Some(value)), out);
            }
            RegisterMsg::Get(request) if known.serves.is_none() => {
                self.serve(me, &mut known, (request, from, None), out);
            }
            RegisterMsg::Internal(msg) => self.hear(me, &mut known, from, msg, out),
            _ => {}
        }
        if known != **state {
            *state = Cow::Owned(known);
        }
    }
}

/// So many servers and two clients. With the bug a server stores what is older than what it has.
pub fn system(servers: usize, older_overwrites: bool) -> Clients<Server> {
    let quorum = servers / 2 + 1;
    let server = |index| Server { peers: model_peers(index, servers), quorum, older_overwrites };
    with_clients((0..servers).map(server).collect(), 2, Network::new_unordered_nonduplicating([]))
}
