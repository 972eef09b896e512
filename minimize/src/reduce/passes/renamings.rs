//! Removal of a stretch after which two actors change places.
//!
//! What happened early often decides which of several alike actors plays which part: who leads, who holds the lock. Where such a stretch is left
//! out, the rest is impossible as it stands, and possible with the parts exchanged. The model need not call its actors interchangeable: what
//! comes out is run, and counts only where it violates.

use demi_replay::names::TextId;
use demi_replay::script::{Act, Want};
use demi_replay::{ActorId, Model, OUTSIDE};

use crate::oracle::matcher::{EXACT, Matcher, Policy};
use crate::plan::{RENAMED, RENAMED_WIDTHS};
use crate::reduce::reducer::Reducer;

/// Tries each stretch, the widest first, with each exchange of two actors that take something in common; after a success starts again.
pub fn search<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) {
    while one(reducer, policies) {}
}

/// Leaves out the first stretch that makes the witness smaller. Says whether there is one.
fn one<M: Model>(reducer: &mut Reducer<'_, M>, policies: &[Policy]) -> bool {
    let best = reducer.best.clone();
    let (acts, first) = (&best.acts, best.pinned);
    let problem = reducer.engine.problem.clone();
    let pairs = alike(acts);
    // Names stand in contents, so the same content never comes from another actor.
    let by_type = |policy: &&Policy| !matches!(policy.matcher, Matcher::Payload | Matcher::Exact);
    let policies: Vec<Policy> = policies.iter().filter(by_type).copied().collect();
    let limit = reducer.engine.limit(&best, 0);
    let mut left = RENAMED;
    for width in widths(acts.len().saturating_sub(first)) {
        for from in first..=acts.len() - width {
            let mut before = None;
            for pair in &pairs {
                let rest = renamed(&acts[from..], width, *pair, &acts[..from], &problem.raw);
                for policy in &policies {
                    if reducer.ended() || left == 0 {
                        return false;
                    }
                    left -= 1;
                    let (world, done) = before.get_or_insert_with(|| reducer.engine.world_at(&best, from));
                    let (world, done) = (world.clone(), done.clone());
                    let ran = reducer.engine.run(world, done, rest.iter(), *policy, limit);
                    let found = ran.and_then(|acts| reducer.engine.first_witness(&acts, EXACT));
                    if reducer.keep(found) {
                        return true;
                    }
                }
            }
        }
    }
    false
}

/// How wide the stretches are: every width up to a limit, and then ever wider ones; the widest first.
fn widths(acts: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = (1..=RENAMED_WIDTHS.min(acts)).collect();
    let mut width = RENAMED_WIDTHS + RENAMED_WIDTHS / 4;
    while width < acts {
        widths.push(width);
        width += width / 4;
    }
    widths.reverse();
    widths
}

/// Pairs of actors that take something of one type.
fn alike(acts: &[Act]) -> Vec<(ActorId, ActorId)> {
    let mut takes: Vec<(ActorId, Vec<TextId>)> = Vec::new();
    for act in acts {
        let Act::Deliver(want) = act else { continue };
        match takes.iter_mut().find(|(actor, _)| *actor == want.to) {
            Some((_, types)) if types.contains(&want.type_) => {}
            Some((_, types)) => types.push(want.type_),
            None => takes.push((want.to, vec![want.type_])),
        }
    }
    let mut pairs = Vec::new();
    for (at, (a, types)) in takes.iter().enumerate() {
        let common = takes[at + 1..].iter().filter(|(_, others)| others.iter().any(|t| types.contains(t)));
        pairs.extend(common.map(|(b, _)| (*a, *b)));
    }
    pairs
}

/// Some acts without the first `width`, but for the starts among these, and with two actors exchanged. Starts stay whose they are, and of what
/// comes from outside there is only what was recorded: where the other actor got nothing alike, it stays too.
fn renamed(acts: &[Act], width: usize, (a, b): (ActorId, ActorId), before: &[Act], pool: &[Act]) -> Vec<Act> {
    let other = |actor: ActorId| match actor {
        actor if actor == a => b,
        actor if actor == b => a,
        actor => actor,
    };
    let mut used: Vec<Act> = before.iter().filter(|act| act.is_external()).copied().collect();
    let mut rest = Vec::with_capacity(acts.len());
    for (at, act) in acts.iter().enumerate() {
        if at < width && !matches!(act, Act::Start(_)) {
            continue;
        }
        let act = match act {
            Act::Deliver(want) if want.external.is_some() => {
                let alike = |known: &&Act| matches!(known, Act::Deliver(o) if o.external.is_some() && o.to == other(want.to) && o.type_ == want.type_);
                let recorded = pool.iter().filter(alike).find(|known| !used.contains(known));
                recorded.copied().unwrap_or(*act)
            }
            Act::Deliver(want) => Act::Deliver(exchanged(want, other)),
            Act::Duplicate(want) => Act::Duplicate(exchanged(want, other)),
            Act::Crash(actor) => Act::Crash(other(*actor)),
            Act::Restart(actor) => Act::Restart(other(*actor)),
            Act::Isolate(actor) => Act::Isolate(other(*actor)),
            Act::Heal(actor) => Act::Heal(other(*actor)),
            Act::Stop(actor) => Act::Stop(other(*actor)),
            Act::Noted(actor) => Act::Noted(other(*actor)),
            act @ (Act::Start(_) | Act::Inject(..) | Act::Action(_) | Act::Sent) => *act,
        };
        // A fault of an actor to which none was recorded is nobody's to add.
        let act = if act.is_fault() && !known(&act, pool) { acts[at] } else { act };
        if act.is_external() {
            used.push(act);
        }
        rest.push(act);
    }
    rest
}

fn exchanged(want: &Want, other: impl Fn(ActorId) -> ActorId) -> Want {
    let from = if want.from == OUTSIDE { OUTSIDE } else { other(want.from) };
    Want { from, to: other(want.to), ..*want }
}

/// Whether a fault of this sort happened to this actor.
fn known(fault: &Act, pool: &[Act]) -> bool {
    pool.iter().any(|act| {
        std::mem::discriminant(act) == std::mem::discriminant(fault) && act.actor() == fault.actor()
    })
}
