//! A register that is written once, by single-decree Paxos (L. Lamport, 2001): whoever is asked to write proposes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use stateright::actor::register::RegisterMsg;
use stateright::actor::{Actor, Id, Network, Out, model_peers};

use super::register::{Clients, Request, Value, with_clients};

/// Ballots are ordered by round, then by proposer.
pub type Ballot = (u32, Id);
/// What a client wants to be chosen, so that it can be told.
pub type Wish = (Request, Id, Value);

/// What servers tell each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Msg {
    Prepare(Ballot),
    Promise(Ballot, Option<(Ballot, Wish)>),
    Accept(Ballot, Wish),
    Accepted(Ballot),
    Chosen(Wish),
}

/// A server: acceptor, and proposer for its clients.
#[derive(Clone, Debug)]
pub struct Server {
    peers: Vec<Id>,
    /// How many servers are a quorum, itself included.
    quorum: usize,
}

/// What a proposer is at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Proposal {
    ballot: Ballot,
    wish: Wish,
    promised: BTreeMap<Id, Option<(Ballot, Wish)>>,
    accepted: BTreeSet<Id>,
    /// What is proposed in the end: the wish, or what a promise told.
    sent: Option<Wish>,
}

/// What a server knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    promised: Ballot,
    accepted: Option<(Ballot, Wish)>,
    proposal: Option<Proposal>,
    chosen: Option<Wish>,
}

type Wire = RegisterMsg<Request, Value, Msg>;

impl Server {
    fn propose(&self, me: Id, known: &mut Known, wish: Wish, out: &mut Out<Self>) {
        let ballot = (known.promised.0 + 1, me);
        known.promised = ballot;
        known.proposal = Some(Proposal {
            ballot,
            wish,
            promised: BTreeMap::from([(me, known.accepted)]),
            accepted: BTreeSet::new(),
            sent: None,
        });
        out.broadcast(&self.peers, &Wire::Internal(Msg::Prepare(ballot)));
        self.go_on(me, known, out);
    }

    /// The next phase, where a quorum is reached.
    fn go_on(&self, me: Id, known: &mut Known, out: &mut Out<Self>) {
        let Some(proposal) = &mut known.proposal else { return };
        if proposal.sent.is_none() && proposal.promised.len() >= self.quorum {
            let told = proposal.promised.values().flatten().max();
            let wish = told.map_or(proposal.wish, |(_, wish)| *wish);
            proposal.sent = Some(wish);
            proposal.accepted.insert(me);
            known.accepted = Some((proposal.ballot, wish));
            out.broadcast(&self.peers, &Wire::Internal(Msg::Accept(proposal.ballot, wish)));
        }
        let Some(wish) = proposal.sent.filter(|_| proposal.accepted.len() >= self.quorum) else { return };
        if known.chosen.is_none() {
            known.chosen = Some(wish);
            out.broadcast(&self.peers, &Wire::Internal(Msg::Chosen(wish)));
            out.send(wish.1, Wire::PutOk(wish.0));
        }
    }

    fn hear(&self, me: Id, known: &mut Known, from: Id, msg: Msg, out: &mut Out<Self>) {
        let mine = |known: &Known, ballot| known.promised == ballot && known.proposal.is_some();
        match msg {
            Msg::Prepare(ballot) if ballot > known.promised => {
                known.promised = ballot;
                known.proposal = None;
                out.send(from, Wire::Internal(Msg::Promise(ballot, known.accepted)));
            }
            Msg::Accept(ballot, wish) if ballot >= known.promised => {
                known.promised = ballot;
                known.accepted = Some((ballot, wish));
                out.send(from, Wire::Internal(Msg::Accepted(ballot)));
            }
            Msg::Promise(ballot, accepted) if mine(known, ballot) => {
                known.proposal.iter_mut().for_each(|p| {
                    p.promised.insert(from, accepted);
                });
                self.go_on(me, known, out);
            }
            Msg::Accepted(ballot) if mine(known, ballot) => {
                known.proposal.iter_mut().for_each(|p| {
                    p.accepted.insert(from);
                });
                self.go_on(me, known, out);
            }
            Msg::Chosen(wish) => known.chosen = Some(wish),
            Msg::Prepare(_) | Msg::Accept(..) | Msg::Promise(..) | Msg::Accepted(_) => {}
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
        Known::default()
    }

    fn on_msg(&self, me: Id, state: &mut Cow<'_, Known>, from: Id, msg: Wire, out: &mut Out<Self>) {
        let mut known = state.clone().into_owned();
        match msg {
            RegisterMsg::Put(request, value) if known.proposal.is_none() => {
                self.propose(me, &mut known, (request, from, value), out);
            }
            RegisterMsg::Get(request) => {
                if let Some((.., value)) = known.chosen {
                    out.send(from, Wire::GetOk(request, value));
                }
            }
            RegisterMsg::Internal(msg) => self.hear(me, &mut known, from, msg, out),
            _ => {}
        }
        if known != **state {
            *state = Cow::Owned(known);
        }
    }
}

/// So many servers and two clients. With the bug half of the servers are taken for a majority, rounded down.
pub fn system(servers: usize, half_is_a_quorum: bool) -> Clients<Server> {
    let quorum = if half_is_a_quorum { servers / 2 } else { servers / 2 + 1 };
    let server = |index| Server { peers: model_peers(index, servers), quorum };
    with_clients((0..servers).map(server).collect(), 2, Network::new_unordered_nonduplicating([]))
}
