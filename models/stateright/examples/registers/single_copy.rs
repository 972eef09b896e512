//! Servers that each have a register of their own: linearizable where there is one server.

use std::borrow::Cow;

use stateright::actor::register::RegisterMsg;
use stateright::actor::{Actor, Id, Network, Out};

use super::register::{Clients, Request, Value, with_clients};

/// A server.
#[derive(Clone, Debug)]
pub struct Server;

impl Actor for Server {
    type Msg = RegisterMsg<Request, Value, ()>;
    type Timer = ();
    type State = Value;
    type Storage = ();
    type Random = ();

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) -> Value {
        Value::default()
    }

    fn on_msg(&self, _: Id, held: &mut Cow<'_, Value>, from: Id, msg: Self::Msg, out: &mut Out<Self>) {
        match msg {
            RegisterMsg::Put(request, value) => {
                *held = Cow::Owned(value);
                out.send(from, RegisterMsg::PutOk(request));
            }
            RegisterMsg::Get(request) => out.send(from, RegisterMsg::GetOk(request, **held)),
            _ => {}
        }
    }
}

/// So many servers and two clients.
pub fn system(servers: usize) -> Clients<Server> {
    with_clients(vec![Server; servers], 2, Network::new_unordered_nonduplicating([]))
}
