//! Which violation searches look for, where others count than the recorded one: bounds, symmetry and proofs are about certain
//! fingerprints.

use std::hash::Hash;
use std::sync::Arc;

use demi_replay::Model;
use xxhash_rust::xxh3::Xxh3;

use crate::engine::{EXACT, Shared};
use crate::oracle::Match;
use crate::search;
use crate::stage::Stage;
use crate::start::Start;
use crate::starts::{Common, restore};

impl<M: Model> Common<'_, M> {
    /// Aims at the violation that a result ends in, where others count than the recorded one. Says whether it is another one
    /// than before.
    pub fn aim_at(&mut self, stage: &mut Stage<'_, M>, result: Option<&Start>) -> bool {
        if self.oracle.matching == Match::Fingerprint {
            return false;
        }
        let witness = result.and_then(|start| restore(&mut stage.engine, &start.schedule));
        witness.is_some_and(|witness| self.aim(stage, &witness))
    }

    /// As [`Common::aim_at`], of a witness.
    pub fn aim(&mut self, stage: &mut Stage<'_, M>, witness: &Shared<M>) -> bool {
        if self.oracle.matching == Match::Fingerprint {
            return false;
        }
        let target = stage.engine.ends_in(witness);
        if target.is_empty() || target == self.target {
            return false;
        }
        self.target.clone_from(&target);
        stage.engine.target = target;
        stage.engine.partition = None;
        if stage.engine.own_bound().is_none() {
            stage.engine.partition = search::partition(&mut stage.engine, &self.raw).map(Arc::new);
        }
        self.partition.clone_from(&stage.engine.partition);
        self.renew(stage);
        true
    }

    /// From now on only the violation counts that the stage's witness ends in, so that what is proven is proven of it.
    pub fn settle(&mut self, stage: &mut Stage<'_, M>) {
        if self.asked.0 == Match::Fingerprint {
            return;
        }
        self.count(stage, self.asked.clone());
        let best = stage.best.clone();
        self.aim(stage, &best);
        self.count(stage, (Match::Fingerprint, self.target.clone()));
    }

    /// A witness that was found after [`Common::settle`] may meet another violation that counts before its end. Cuts it there
    /// and settles for that. Says whether it did.
    pub fn cut(&mut self, stage: &mut Stage<'_, M>) -> bool {
        if self.asked.0 == Match::Fingerprint {
            return false;
        }
        self.count(stage, self.asked.clone());
        let acts = stage.best.acts.clone();
        let found = stage.engine.first_witness(&acts, EXACT);
        let shorter = stage.keep(found);
        self.settle(stage);
        shorter
    }

    fn count(&mut self, stage: &mut Stage<'_, M>, (matching, accepted): (Match, Vec<String>)) {
        (self.oracle.matching, stage.engine.oracle.matching) = (matching, matching);
        stage.engine.accepted.clone_from(&accepted);
        self.accepted = accepted;
        stage.engine.forget();
        self.renew(stage);
    }

    /// Makes the digest anew of what results of starts depend on besides their own numbers.
    pub fn renew(&mut self, stage: &mut Stage<'_, M>) {
        let acts = (stage.engine.digest(&self.prepared), stage.engine.digest(&self.raw));
        // How many systems must not break, not which: the identity of the ledger tells.
        let oracle = &self.oracle;
        let asked = (oracle.matching.as_str(), oracle.repeat.least, oracle.repeat.runs, oracle.also.len());
        let mut hasher = Xxh3::new();
        (acts, asked, self.rule, self.objective, &self.target, &self.accepted).hash(&mut hasher);
        self.digest = hasher.digest128();
    }
}
