//! The first steps of a recorded run: timers, state timeout, forwarding and votes.

use demi_akka_raft::AkkaRaft;
use demi_replay::{ActorId, Did, Model, Names, PendingKind, Simulator, World};
use demi_schemas::{NetworkRule, Scenario};

struct Run {
    sim: Simulator<AkkaRaft>,
    world: World<AkkaRaft>,
}

impl Run {
    fn new() -> Run {
        let scenario = Scenario::parse(
            "model = \"akka-raft\"\nnetwork = \"unordered\"\n[switches]\nterm_from_log = true\n\
             leader_forgets_votes = true\nraft66_truncate = true\nnewer_decline_ignored = true\n",
        )
        .unwrap();
        let mut names = Names::default();
        let model = AkkaRaft::new(&scenario, &mut names).unwrap();
        let mut sim = Simulator::new(model, names, &scenario).unwrap();
        let mut run = Run { world: sim.empty_world(), sim };
        for actor in run.sim.model().actors().to_vec() {
            run.sim.start(&mut run.world, actor);
        }
        for proposal in run.sim.model().workload().bootstrap(run.sim.names()) {
            let msg = run.sim.intern(proposal.msg);
            run.sim.inject(&mut run.world, proposal.to, msg).unwrap();
        }
        run
    }

    fn member(&self, actor: ActorId) -> u32 {
        self.sim.names().get(actor).trim_start_matches("raft-member-").parse().unwrap_or(0)
    }

    fn payload(&self, msg: demi_replay::MsgId) -> &str {
        self.sim.text(self.sim.info(msg).payload)
    }

    /// Delivers the oldest pending entry for `to` whose payload starts so, and says what was sent and armed.
    fn deliver(&mut self, payload: &str, to: u32) -> Vec<String> {
        let pending = self.world.pending();
        let at =
            pending.iter().position(|p| self.member(p.to) == to && self.payload(p.msg).starts_with(payload));
        let at = at.unwrap_or_else(|| panic!("{payload} to {to} is not pending"));
        self.sim.deliver(&mut self.world, at, NetworkRule::Unordered);
        let text = |did: &Did| match did {
            Did::Sent(p) => {
                Some(format!("{}>{} {}", self.member(p.from), self.member(p.to), self.payload(p.msg)))
            }
            Did::TimerSet(p) if p.kind == PendingKind::Timer => Some(self.payload(p.msg).to_owned()),
            _ => None,
        };
        self.sim.did().iter().filter_map(text).collect()
    }
}

fn timer(generation: u32) -> String {
    format!("TimerFingerprint(election-timer,ElectionTimeout,false,{generation})")
}

fn request(term: u32) -> String {
    format!("(RequestVote,Term({term}),raft-member-2,Term(0),0)")
}

#[test]
fn first_steps_of_raft_66() {
    let mut run = Run::new();
    let none = Vec::<String>::new();
    let asked = |to: u32, term: u32| format!("2>{to} {}", request(term));
    assert_eq!(run.deliver("ChangeConfiguration", 2), [timer(1)]);
    let sent = run.deliver(&timer(1), 2);
    assert_eq!(sent, ["2>2 BeginElection", &timer(3), "TimeoutMarkerFingerprint"]);
    assert_eq!(run.deliver("ChangeConfiguration", 4), [timer(1)]);
    assert_eq!(run.deliver("ChangeConfiguration", 3), [timer(1)]);
    assert_eq!(run.deliver("TimeoutMarkerFingerprint", 2), none);
    assert_eq!(run.deliver("BeginElection", 2), [asked(1, 1), asked(3, 1), asked(4, 1)]);
    assert_eq!(run.deliver(&request(1), 3), [asked(3, 1)]);
    assert_eq!(run.deliver(&request(1), 3), [timer(2), "3>2 VoteCandidate(Term(1))".to_owned()]);
    assert_eq!(run.deliver("VoteCandidate(Term(1))", 2), none);
    assert_eq!(run.deliver(&request(1), 4), [asked(4, 1)]);
    assert_eq!(run.deliver("ChangeConfiguration", 1), [timer(1)]);
    assert_eq!(run.deliver(&timer(3), 2), ["2>2 BeginElection", &timer(4)]);
    assert_eq!(run.deliver(&request(1), 1), [asked(1, 1)]);
    assert_eq!(run.deliver("BeginElection", 2), [asked(1, 2), asked(3, 2), asked(4, 2)]);
    assert_eq!(run.deliver(&request(2), 3), [asked(3, 2)]);
    assert_eq!(run.deliver(&request(2), 4), [asked(4, 2)]);
    assert_eq!(run.deliver(&request(2), 4), [timer(2), "4>2 VoteCandidate(Term(2))".to_owned()]);
}
