//! One invariant at work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use demi_predicate::{Delivered, Scope, State, Verdicts};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Invariant, Options};

/// Alerts that are remembered in any case.
const FEW: usize = 1024;

/// The actors that must be certain before an invariant is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// A row is one actor's, or one message's: other actors may be uncertain.
    Alone,
    /// A row is two actors', which must be certain.
    Row,
    /// Rows are a cut: all of them must be certain.
    Cut,
}

/// The figures of a watched invariant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchRecord {
    #[serde(default)]
    pub(crate) checks: u64,
    #[serde(default)]
    pub(crate) failures: u64,
    /// The event of the last failure that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// By row or group: when an alert was made, in milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) alerted: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) muted: bool,
}

/// A new failure: the row or group in words, and its actors.
pub(crate) type NewFailure = (String, Vec<Arc<str>>);

/// An invariant with what is said of its rows and groups.
pub(crate) struct Watched<'p> {
    pub(crate) invariant: &'p Invariant,
    pub(crate) verdicts: Verdicts<'p>,
    /// Its variables, a bit for each of the interest's.
    pub(crate) mask: u128,
    /// Those of them that no actor has told.
    pub(crate) unseen: u128,
    pub(crate) standing: WatchRecord,
    /// By actor: whether it is about it.
    about: Vec<Option<bool>>,
    judged: Certainty,
    /// How many alerts may be remembered before those that are long ago are forgotten.
    alerts: usize,
    /// How many states of a chain, or sides of a message, a row has.
    length: usize,
}

impl<'p> Watched<'p> {
    pub(crate) fn new(
        invariant: &'p Invariant,
        verdicts: Verdicts<'p>,
        mask: u128,
        standing: WatchRecord,
    ) -> Self {
        let judged = match invariant.predicate.scope() {
            Scope::Actors if !invariant.predicate.is_of_groups() => Certainty::Alone,
            Scope::Ever | Scope::EverPairs(..) | Scope::Messages(_) | Scope::Chain => Certainty::Alone,
            Scope::Pairs(..) | Scope::Neighbours(..) if !invariant.predicate.is_of_groups() => Certainty::Row,
            Scope::Actors | Scope::Pairs(..) | Scope::Neighbours(..) => Certainty::Cut,
        };
        let length = match invariant.predicate.scope() {
            Scope::Chain => invariant.predicate.chain_length(),
            _ => 2,
        };
        Watched {
            invariant,
            verdicts,
            mask,
            unseen: if mask == u128::MAX { 0 } else { mask },
            standing,
            about: Vec::new(),
            judged,
            alerts: FEW,
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

    /// Forgets actors, whose numbers others will have.
    pub(crate) fn forget(&mut self, actors: &[usize], names: &BTreeSet<Arc<str>>) {
        for actor in actors {
            if let Some(about) = self.about.get_mut(*actor) {
                *about = None;
            }
        }
        self.verdicts.forget_those(names);
    }

    /// Takes the next state of an actor; whether it was looked at.
    pub(crate) fn tell(&mut self, actor: &str, incarnation: u32, state: &Arc<State>, look: bool) -> bool {
        if self.invariant.predicate.scope().is_of_messages() {
            return false;
        }
        let look = look || self.invariant.predicate.scope().is_history();
        match look {
            true => self.verdicts.tell(actor, incarnation, state),
            false => self.verdicts.pass_over(actor, incarnation, state),
        }
        self.standing.checks += u64::from(look);
        look
    }

    /// Takes the next message; whether it was looked at.
    pub(crate) fn deliver(&mut self, delivered: &Delivered) -> bool {
        let scope = self.invariant.predicate.scope();
        let neighbours = matches!(scope, Scope::Neighbours(..));
        if !(scope.is_of_messages() || neighbours) {
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
        self.verdicts.deliver(delivered);
        true
    }

    /// Whether a state is looked at, of which only a share is; a restart decides alike.
    pub(crate) fn is_sampled(&self, sample: f64, actor: &str, seq: u64) -> bool {
        let seed = xxh3_64_with_seed(actor.as_bytes(), seq);
        let drawn = xxh3_64_with_seed(self.invariant.id.as_bytes(), seed);
        sample >= 1.0 || (drawn >> 11) as f64 / (1_u64 << 53) as f64 <= sample
    }

    /// What is to be told after a look: each row or group that fails, if it failed so often in a row as the options say, was not told
    /// since it last held, and not in the last quiet time. `is_certain` says whether the failure of actors counts.
    pub(crate) fn judge(
        &mut self,
        event: &str,
        now: u64,
        options: &Options,
        is_certain: impl Fn(Certainty, &[Arc<str>]) -> bool,
    ) -> Vec<NewFailure> {
        let Watched { verdicts, standing, judged, alerts, .. } = self;
        // What has failed for good needs no confirmation.
        let confirm = if verdicts.is_for_good() { 1 } else { options.confirm };
        let mut began = Vec::new();
        verdicts.each_fresh(|finding| {
            if !is_certain(*judged, &finding.affected) {
                return false;
            }
            finding.looks += 1;
            if finding.told || finding.looks < confirm {
                return true;
            }
            finding.told = true;
            standing.failures += 1;
            standing.last = Some(event.to_owned());
            let quiet = |at: &u64| now < at.saturating_add(options.quiet_millis);
            if !standing.muted && !standing.alerted.get(&finding.of).is_some_and(quiet) {
                began.push((finding.of.clone(), finding.affected.clone()));
            }
            true
        });
        standing.alerted.extend(began.iter().map(|(of, _)| (of.clone(), now)));
        if standing.alerted.len() > *alerts {
            standing.alerted.retain(|_, at| now < at.saturating_add(options.quiet_millis));
            *alerts = 2 * standing.alerted.len() + FEW;
        }
        began
    }
}
