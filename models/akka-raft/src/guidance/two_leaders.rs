//! Lower bound: how many deliveries are missing at least to two leaders of one term.
//!
//! It is admissible. Every delivery has one receiver and one kind, so what different members must still take, and
//! different kinds of messages, add up: at each future leader its configuration, a timer and votes; for each vote that is
//! not pending yet, the delivery of the request at the voter; and what voters and candidates need to come to the term. A
//! member becomes leader in one of few ways, each with a bound of its own; the least sum counts.
//!
//! `replay/tests/it/raft_bound.rs` tests it: along random walks it falls by at most one a delivery, and it is at most one
//! before the violation. So it is consistent, and never above the true distance.

use super::scene::{FAR, Scene};
use crate::message::Msg;
use crate::state::{Member, Role};
use demi_replay::names::ActorId;

/// In which term a member is elected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// In the term in which it is candidate or leader now.
    This(i32),
    /// In a term after its present one, which is given; what lies between costs extra.
    Later(i32),
    /// The same for a leader, which takes any later term in stepping down.
    SteppedDown(i32),
    /// In any: an append throws it back first.
    Any,
}

impl Term {
    /// Whether it may be this term.
    pub fn may_be(self, term: i32) -> bool {
        match self {
            Term::This(now) => term == now,
            Term::Later(before) | Term::SteppedDown(before) => term > before,
            // Nobody is elected in term 0.
            Term::Any => term > 0,
        }
    }
}

/// One way to become (or stay) leader until the end.
#[derive(Clone, Copy)]
pub struct Way {
    /// The term.
    pub term: Term,
    /// Deliveries at the member itself.
    pub own: usize,
    /// Votes of others that are not counted yet.
    votes: usize,
    /// Members, by bit, whose votes are counted, where they count only once.
    counted: u64,
    /// Whether it may still vote for the other.
    votes_for_other: bool,
    /// Whether that would cost it something which is not in `own` and `votes` already.
    at_a_cost: bool,
}

impl Scene<'_> {
    /// What is missing at least until both are leaders of one term.
    pub fn pair(&self, a: ActorId, b: ActorId) -> usize {
        // Deliveries neither bring back who has failed nor start anybody.
        let (Some(first), Some(second)) = (self.view.state(a), self.view.state(b)) else { return FAR };
        let size = self.cluster_size();
        let (for_a, for_b) = (self.ways(first, a, b, size), self.ways(second, b, a, size));
        let both = for_a.iter().flatten().flat_map(|a| for_b.iter().flatten().map(move |b| (a, b)));
        both.filter_map(|(wa, wb)| {
            let raise = self.meet(wa.term, wb.term)?;
            let fits = |term| wa.term.may_be(term) && wb.term.may_be(term);
            let (missing_a, missing_b) = (self.missing(wa, a, fits), self.missing(wb, b, fits));
            let voters = self.voters((wa, missing_a, a), (wb, missing_b, b), fits)?;
            Some(wa.own + wb.own + missing_a.0 + missing_b.0 + raise + voters)
        })
        .min()
        .unwrap_or(FAR)
    }

    /// How many votes of others are neither counted nor pending, and who has voted already.
    pub fn missing(&self, way: &Way, me: ActorId, fits: impl Fn(i32) -> bool) -> (usize, u64) {
        let (mut missing, mut voted) = (way.votes, way.counted);
        for w in self.waiting.iter().filter(|w| w.to == me) {
            let Msg::VoteCandidate { term } = w.msg else { continue };
            if !self.unchecked() && !fits(*term) {
                continue;
            }
            let voter = self.bit(w.from);
            if self.on.raft45_duplicate_votes || voted & voter == 0 {
                missing = missing.saturating_sub(1);
                voted |= voter;
            }
        }
        // Where one may vote twice, nobody is out of the question.
        (missing, if self.on.raft45_duplicate_votes { 0 } else { voted })
    }

    /// Whether what terms say cannot be relied on.
    fn unchecked(&self) -> bool {
        self.on.no_term_checks || self.on.raft46_stale_votes
    }

    /// How a member becomes leader: as it stands, by a new election, or after an append has thrown its term back.
    pub fn ways(&self, m: &Member, me: ActorId, other: ActorId, size: usize) -> [Option<Way>; 3] {
        let majority = size / 2 + 1;
        let term = m.term;
        let this = match m.role {
            Role::Leader => Some(Way {
                term: Term::This(term),
                own: 0,
                votes: 0,
                counted: 0,
                votes_for_other: false,
                at_a_cost: true,
            }),
            Role::Candidate => {
                let missing = majority.saturating_sub(m.tally.count as usize);
                // Its own vote counts when it asks for others, unless it has voted in this term.
                let own_vote = match m.vote(term) {
                    _ if self.on.no_term_checks => missing,
                    None if !m.tally.voters.contains(&me) => 1,
                    _ => 0,
                };
                let of_others = missing.saturating_sub(own_vote);
                // A majority is seen when a vote comes in, be it one that does not count.
                let (votes, voters) =
                    if of_others == 0 { (1, &[][..]) } else { (of_others, &m.tally.voters[..]) };
                let counted = voters.iter().fold(0, |set, voter| set | self.bit(*voter));
                let votes_for_other =
                    m.vote(term).is_none_or(|voted| voted == other) || self.on.no_term_checks;
                Some(Way {
                    term: Term::This(term),
                    own: missing.max(1),
                    votes,
                    counted,
                    votes_for_other,
                    at_a_cost: m.vote(term).is_none(),
                })
            }
            Role::Follower | Role::Init => None,
        };
        // A leader steps down first, one without a configuration gets it; then the timer, and a majority.
        let before = usize::from(m.role == Role::Leader) + self.configuration(m, me);
        let of_others = if self.on.no_term_checks { 1 } else { majority.saturating_sub(1).max(1) };
        let election = |term, more: usize| Way {
            term,
            own: before + more + 1 + majority,
            votes: of_others,
            counted: 0,
            votes_for_other: true,
            // One that is thrown back pays for that anyway.
            at_a_cost: term != Term::Any,
        };
        let later = if m.role == Role::Leader { Term::SteppedDown(term) } else { Term::Later(term) };
        [this, Some(election(later, 0)), self.on.term_from_log.then(|| election(Term::Any, 1))]
    }

    /// What it costs that both are elected in one term; nothing if they cannot be.
    fn meet(&self, a: Term, b: Term) -> Option<usize> {
        if self.on.no_term_checks {
            return Some(0);
        }
        match (a, b) {
            (Term::Any, _) | (_, Term::Any) => Some(0),
            (Term::This(a), Term::This(b)) => (a == b).then_some(0),
            // The timer raises the term by one; from further below something else has to raise it before.
            (Term::This(now), Term::Later(below)) | (Term::Later(below), Term::This(now)) => {
                (below < now).then(|| usize::from(below + 1 < now))
            }
            (Term::This(now), Term::SteppedDown(below)) | (Term::SteppedDown(below), Term::This(now)) => {
                (below < now).then_some(0)
            }
            (Term::Later(a), Term::Later(b)) => Some(usize::from(a != b)),
            (Term::SteppedDown(_), _) | (_, Term::SteppedDown(_)) => Some(0),
        }
    }

    /// What the votes that are not on the way cost besides the deliveries of the requests; nothing if there can't be
    /// so many.
    ///
    /// The two may vote for each other, but one that votes for the other in the term in which it is elected itself
    /// did so before its own vote, which then does not count, or was thrown back to an older term by an append in
    /// between: one delivery more either way. (Votes of earlier terms, where they count, cost nothing.)
    fn voters(
        &self,
        (wa, (votes_a, voted_a), a): (&Way, (usize, u64), ActorId),
        (wb, (votes_b, voted_b), b): (&Way, (usize, u64), ActorId),
        fits: impl Fn(i32) -> bool,
    ) -> Option<usize> {
        if votes_a + votes_b == 0 {
            return Some(0);
        }
        let thirds = |voted: u64| {
            let free = self.members.iter().filter(|m| **m != a && **m != b && self.bit(**m) & voted == 0);
            let mut costs: Vec<usize> =
                free.filter_map(|m| Some(self.before_a_vote(self.view.state(*m)?, *m, &fits))).collect();
            costs.sort_unstable();
            costs
        };
        let (thirds_a, thirds_b) = (thirds(voted_a), thirds(voted_b));
        let each_other = |of_rival: bool, votes: usize, rival: &Way| {
            usize::from(of_rival && votes > 0 && rival.at_a_cost && !self.unchecked())
        };
        let doubles = self.on.raft45_duplicate_votes;
        // Of how many of its votes one can be sure that others than the rival must give them.
        let others = |votes: usize, of_rival: bool| match (votes, of_rival, doubles) {
            (0, _, _) | (_, true, true) => 0,
            (_, false, true) => 1,
            (votes, of_rival, false) => votes - usize::from(of_rival),
        };
        // Too few of them is no proof: a vote may be repeated that does not count in the end.
        let cheapest = |costs: &[usize], n: usize| costs[..n.min(costs.len())].iter().sum::<usize>();
        let ways = [(false, false), (false, true), (true, false), (true, true)];
        let cost = |(of_b, of_a): (bool, bool)| {
            let has_voted = self.bit(b) & voted_a != 0 && of_b || self.bit(a) & voted_b != 0 && of_a;
            if (of_b && !wb.votes_for_other) || (of_a && !wa.votes_for_other) || has_voted {
                return None;
            }
            let for_a = cheapest(&thirds_a, others(votes_a, of_b));
            let for_b = cheapest(&thirds_b, others(votes_b, of_a));
            // A third member may vote for both.
            Some(for_a.max(for_b) + each_other(of_b, votes_a, wb) + each_other(of_a, votes_b, wa))
        };
        ways.into_iter().filter_map(cost).min()
    }

    /// What a member outside the pair must take before it can vote: its configuration, and what brings it to the
    /// term of the election.
    pub fn before_a_vote(&self, m: &Member, me: ActorId, fits: impl Fn(i32) -> bool) -> usize {
        let elsewhere = match (self.on.no_term_checks, self.on.raft46_stale_votes) {
            (true, _) => false,
            // Votes of other terms may count, but there are none of term 0.
            (false, true) => m.term == 0,
            (false, false) => !fits(m.term),
        };
        self.configuration(m, me) + usize::from(elsewhere)
    }
}
