//! What the registers have in common: clients that write and then read, and what is asked of a register.

use stateright::Expectation;
use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{Actor, ActorModel, Id, Network};
use stateright::semantics::LinearizabilityTester;
use stateright::semantics::register::Register;

/// What a register holds: a letter of a client, or nothing yet.
pub type Value = char;
/// A client's number for what it asked.
pub type Request = u64;
/// What clients asked and were told so far.
pub type Told = LinearizabilityTester<Id, Register<Value>>;
/// Servers and clients of a register.
pub type Clients<S> = ActorModel<RegisterActor<S>, (), Told>;

/// A register of these servers, with clients that each write once and then read once. Every history is to be
/// linearizable, and some read is to return what was written.
pub fn with_clients<S, M>(servers: Vec<S>, clients: usize, network: Network<S::Msg>) -> Clients<S>
where
    S: Actor<Msg = RegisterMsg<Request, Value, M>>,
    S::Timer: Ord,
    M: Clone + std::fmt::Debug + Eq + std::hash::Hash + Ord,
{
    let server_count = servers.len();
    let client = |_| RegisterActor::Client { put_count: 1, server_count };
    ActorModel::new((), Told::new(Register(Value::default())))
        .actors(servers.into_iter().map(RegisterActor::Server))
        .actors((0..clients).map(client))
        .init_network(network)
        .record_msg_in(RegisterMsg::record_returns)
        .record_msg_out(RegisterMsg::record_invocations)
        .property(Expectation::Always, "linearizable", |_, state| {
            state.history.serialized_history().is_some()
        })
        .property(Expectation::Sometimes, "value chosen", |_, state| {
            let returns = |msg: &RegisterMsg<Request, Value, M>| match msg {
                RegisterMsg::GetOk(_, value) => *value != Value::default(),
                _ => false,
            };
            state.network.iter_deliverable().any(|envelope| returns(envelope.msg))
        })
}
