//! The invariants and what they remember from one check to the next.

use super::config::Config;
use super::state::{Entry, Member, Role};
use demi_replay::model::Violation;
use demi_replay::names::{ActorId, Names};

/// What earlier checks of a run have seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The first leader seen in each term, by term.
    first_leaders: Vec<(i32, ActorId)>,
    /// The last leader seen in each term, by term.
    last_leaders: Vec<(i32, ActorId)>,
    /// Every entry seen committed anywhere, by term.
    committed: Vec<Entry>,
    /// Every entry seen in each member's log, in the order in which they were first seen.
    entries: Vec<(ActorId, Vec<Entry>)>,
    /// Whether leaders or committed entries came in since all leaders were found complete.
    unsettled: bool,
}

/// A member that answers.
type Seen<'a> = (ActorId, &'a Member);

/// Checks one configuration. `members` are those that answer, by name.
pub fn check(
    config: &Config,
    names: &Names,
    members: &[Seen<'_>],
    history: &mut History,
    found: &mut Vec<Violation>,
) {
    let on = &config.invariants;
    if on.election_safety {
        election_safety(config, names, members, history, found);
    }
    if on.log_match && members.iter().any(|(_, m)| !m.log.is_empty()) {
        log_match(names, members, found);
    }
    if on.leader_completeness {
        leader_completeness(names, members, history, found);
    }
    if on.state_machine {
        state_machine(names, members, found);
    }
}

fn election_safety(
    config: &Config,
    names: &Names,
    members: &[Seen<'_>],
    history: &mut History,
    found: &mut Vec<Violation>,
) {
    for (id, m) in members.iter().filter(|(_, m)| m.role == Role::Leader) {
        let first = match history.first_leaders.binary_search_by_key(&m.term, |(term, _)| *term) {
            Ok(at) => history.first_leaders[at].1,
            Err(at) => {
                history.first_leaders.insert(at, (m.term, *id));
                continue;
            }
        };
        if first != *id {
            let mut key = pair("ElectionSafety", first, *id, names);
            if config.payload.violation_names_term {
                key.push_str(&format!(":Term({})", m.term));
            }
            report(key, &[first, *id], found);
        }
    }
}

fn log_match(names: &Names, members: &[Seen<'_>], found: &mut Vec<Violation>) {
    for (a, ma) in members {
        for (b, mb) in members.iter().filter(|(b, _)| b != a) {
            let Some(mismatch) = log_mismatch(&ma.log, &mb.log) else { continue };
            let kind = if mismatch < mb.log.len() { "LogMatch" } else { "LogMatchNotLongEnough" };
            report(pair(kind, *a, *b, names), &[*a, *b], found);
            break;
        }
    }
}

/// The first position at which `a` and `b` differ, if `a` has an entry there or later that `b` also has
/// somewhere.
fn log_mismatch(a: &[Entry], b: &[Entry]) -> Option<usize> {
    let mismatch = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let shared = |x: &Entry| b.iter().any(|y| y.index == x.index && y.term == x.term);
    a[mismatch..].iter().any(shared).then_some(mismatch)
}

fn leader_completeness(
    names: &Names,
    members: &[Seen<'_>],
    history: &mut History,
    found: &mut Vec<Violation>,
) {
    for (id, m) in members {
        history.remember(*id, m);
    }
    if !history.unsettled {
        return;
    }
    for entry in &history.committed {
        let later = history.last_leaders.partition_point(|(term, _)| *term <= entry.term);
        for (_, leader) in &history.last_leaders[later..] {
            let complete =
                history.entries.iter().any(|(member, entries)| member == leader && contains(entries, entry));
            if !complete {
                // Not settled: it is broken until the leader gets the entry.
                report(format!("LeaderCompleteness:{}", names.get(*leader)), &[*leader], found);
                return;
            }
        }
    }
    history.unsettled = false;
}

/// Whether an entry is in the list, which is likely to have it at its index.
fn contains(entries: &[Entry], entry: &Entry) -> bool {
    let likely = usize::try_from(i64::from(entry.index) - 1).ok().and_then(|at| entries.get(at));
    likely == Some(entry) || entries.contains(entry)
}

impl History {
    fn remember(&mut self, id: ActorId, m: &Member) {
        if m.role == Role::Leader {
            match self.last_leaders.binary_search_by_key(&m.term, |(term, _)| *term) {
                Ok(at) if self.last_leaders[at].1 == id => {}
                Ok(at) => {
                    self.last_leaders[at].1 = id;
                    self.unsettled = true;
                }
                Err(at) => {
                    self.last_leaders.insert(at, (m.term, id));
                    self.unsettled = true;
                }
            }
        }
        if m.log.is_empty() {
            return;
        }
        self.remember_log(id, &m.log);
        let committed = usize::try_from(m.committed).unwrap_or(0).min(m.log.len());
        for entry in &m.log[..committed] {
            let key = |e: &Entry| (e.term, e.index, e.word);
            if let Err(at) = self.committed.binary_search_by_key(&key(entry), key) {
                self.committed.insert(at, *entry);
                self.unsettled = true;
            }
        }
    }

    fn remember_log(&mut self, id: ActorId, log: &[Entry]) {
        let at = match self.entries.iter().position(|(member, _)| *member == id) {
            Some(at) => at,
            None => {
                self.entries.push((id, Vec::with_capacity(log.len())));
                self.entries.len() - 1
            }
        };
        let entries = &mut self.entries[at].1;
        // A log that only grew is seen again with something at the end.
        let known = log.iter().zip(entries.iter()).take_while(|(x, y)| x == y).count();
        if known == entries.len() {
            entries.extend_from_slice(&log[known..]);
            return;
        }
        for entry in &log[known..] {
            if !entries.contains(entry) {
                entries.push(*entry);
            }
        }
    }
}

fn state_machine(names: &Names, members: &[Seen<'_>], found: &mut Vec<Violation>) {
    let Some((_, longest)) = members.iter().max_by_key(|(_, m)| m.words.len()) else { return };
    let mismatch = |m: &Member| m.words.iter().zip(&longest.words).position(|(x, y)| x != y);
    let Some(position) = members.iter().filter_map(|(_, m)| mismatch(m)).min() else { return };
    let reach: Vec<ActorId> =
        members.iter().filter(|(_, m)| m.words.len() > position).map(|(id, _)| *id).collect();
    let listed: Vec<&str> = reach.iter().map(|id| names.get(*id)).collect();
    report(format!("StateMachine:{}", listed.join("-")), &reach, found);
}

/// A key that names two members, by name.
fn pair(kind: &str, a: ActorId, b: ActorId, names: &Names) -> String {
    let (a, b) = (names.get(a), names.get(b));
    format!("{kind}:{}:{}", a.min(b), a.max(b))
}

/// Reports a violation once.
pub fn report(fingerprint: String, affected: &[ActorId], found: &mut Vec<Violation>) {
    if found.iter().all(|violation| violation.fingerprint != fingerprint) {
        found.push(Violation { fingerprint, affected: affected.to_vec() });
    }
}
