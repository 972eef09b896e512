//! One invariant at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use demi_predicate::{Checker, Delivered, Scope, State};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Invariant;

/// How the states of an invariant are to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// A row is one actor's, or one message's: other actors may be uncertain.
    Alone,
    /// Rows are a cut: all of them must be certain.
    Cut,
}

/// What is told of an invariant that is watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// What fails now, in words; empty for all actors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failing: Option<String>,
    /// How many snapshots in a row failed.
    #[serde(default)]
    pub(crate) in_a_row: u64,
    /// Whether that was told.
    #[serde(default)]
    pub(crate) told: bool,
    #[serde(default)]
    pub(crate) checks: u64,
    #[serde(default)]
    pub(crate) failures: u64,
    /// The event of the last failure that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// By group: when an alert was made, in milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) alerted: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) muted: bool,
    /// Why it is not checked any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
}

/// An invariant with its checker.
pub(crate) struct Watched<'p> {
    pub(crate) invariant: &'p Invariant,
    pub(crate) checker: Checker<'p>,
    /// Its variables, a bit for each of the interest's.
    pub(crate) mask: u128,
    /// Those of them that no actor has told.
    pub(crate) unseen: u128,
    pub(crate) standing: Standing,
    /// By actor: whether it is about it.
    about: Vec<Option<bool>>,
    judged: Judged,
    /// How many states of a chain, or sides of a message, a row has.
    length: usize,
}

impl<'p> Watched<'p> {
    pub(crate) fn new(
        invariant: &'p Invariant,
        checker: Checker<'p>,
        mask: u128,
        standing: Standing,
    ) -> Self {
        let judged = match invariant.predicate.scope() {
            Scope::Actors if !invariant.predicate.is_of_groups() => Judged::Alone,
            Scope::Ever | Scope::EverPairs(..) | Scope::Messages(_) | Scope::Chain => Judged::Alone,
            Scope::Actors | Scope::Pairs(..) | Scope::Neighbours(..) => Judged::Cut,
        };
        let length = match invariant.predicate.scope() {
            Scope::Chain => invariant.predicate.chain_length(),
            _ => 2,
        };
        Watched {
            invariant,
            checker,
            mask,
            unseen: if mask == u128::MAX { 0 } else { mask },
            standing,
            about: Vec::new(),
            judged,
            length,
        }
    }

    /// Whether it is about an actor.
    pub(crate) fn is_about(&mut self, actor: usize, name: &str) -> bool {
        if self.about.len() <= actor {
            self.about.resize(actor + 1, None);
        }
        *self.about[actor].get_or_insert_with(|| self.invariant.class.has(name, 0))
    }

    /// Whether a failure counts while these actors are uncertain.
    pub(crate) fn is_certain<'n>(&self, mut uncertain: impl Iterator<Item = &'n str>) -> bool {
        self.judged == Judged::Alone || !uncertain.any(|name| self.invariant.class.has(name, 0))
    }

    /// Takes the next state of an actor; whether it was looked at.
    pub(crate) fn tell(&mut self, actor: &str, incarnation: u32, state: &Arc<State>, look: bool) -> bool {
        if self.invariant.predicate.scope().is_of_messages() || self.standing.broken.is_some() {
            return false;
        }
        let look = look || self.invariant.predicate.scope().is_history();
        let result = match look {
            true => self.checker.tell(actor, incarnation, state).map(|_| ()),
            false => self.checker.pass_over(actor, incarnation, state),
        };
        self.standing.checks += u64::from(look);
        self.standing.broken = result.err();
        look && self.standing.broken.is_none()
    }

    /// Takes the next message; whether it was looked at.
    pub(crate) fn deliver(&mut self, delivered: &Delivered) -> bool {
        let scope = self.invariant.predicate.scope();
        let neighbours = matches!(scope, Scope::Neighbours(..));
        if !(scope.is_of_messages() || neighbours) || self.standing.broken.is_some() {
            return false;
        }
        let Some(links) = delivered.links.get(..self.length) else { return false };
        // The first place is that of the last link.
        let about = |(place, (name, _)): (usize, &(Arc<str>, Arc<State>))| {
            self.invariant.class.has(name, if neighbours { 0 } else { place })
        };
        if !links.iter().rev().enumerate().all(about) {
            return false;
        }
        self.standing.checks += 1;
        self.standing.broken = self.checker.deliver(delivered).err();
        self.standing.broken.is_none()
    }

    /// Whether a state is looked at, of which only a share is; a restart decides alike.
    pub(crate) fn is_sampled(&self, sample: f64, actor: &str, seq: u64) -> bool {
        let seed = xxh3_64_with_seed(actor.as_bytes(), seq);
        let drawn = xxh3_64_with_seed(self.invariant.id.as_bytes(), seed);
        sample >= 1.0 || (drawn >> 11) as f64 / (1_u64 << 53) as f64 <= sample
    }

    /// What is to be told after a look: the group that fails, if it failed `confirm` times in a row, was not told before and not in the
    /// last `quiet` milliseconds.
    pub(crate) fn judge(&mut self, event: &str, now: u64, confirm: u64, quiet: u64) -> Option<String> {
        let standing = &mut self.standing;
        let Some(of) = self.checker.failure() else {
            (standing.failing, standing.in_a_row, standing.told) = (None, 0, false);
            return None;
        };
        // Messages that stand for themselves are failures of their own.
        let each =
            self.invariant.predicate.scope().is_of_messages() && !self.invariant.predicate.is_of_groups();
        if each || standing.failing.as_deref() != Some(of) {
            let in_a_row = if each { standing.in_a_row } else { 0 };
            (standing.failing, standing.in_a_row, standing.told) = (Some(of.to_owned()), in_a_row, false);
        }
        standing.in_a_row += 1;
        if standing.told || standing.in_a_row < confirm {
            return None;
        }
        standing.told = true;
        standing.failures += 1;
        standing.last = Some(event.to_owned());
        standing.alerted.retain(|_, at| now < at.saturating_add(quiet));
        if standing.muted || standing.alerted.contains_key(of) {
            return None;
        }
        standing.alerted.insert(of.to_owned(), now);
        Some(of.to_owned())
    }
}
