//! What other tools do, to compare with: delta debugging and nothing else.

use demi_replay::Model;

use super::passes::{chunks, probdd};
use super::reducer::Reducer;
use crate::oracle::matcher::Policy;

impl<M: Model> Reducer<'_, M> {
    /// DEMi's baseline: external ddmin and one sweep of single internal deliveries, each test one exact replay
    /// (timer generations included). The policy's blocker tells what a missing message does.
    pub fn baseline(&mut self, policy: Policy) {
        self.phase("external ddmin", |s| chunks::sweep(s, policy, chunks::external, 1));
        self.phase("internal", |s| chunks::singles(s, policy, chunks::internal));
    }

    /// Delta debugging of all steps and nothing else, with one policy, by halves or by probabilities; then single steps
    /// until none can be left out.
    pub fn debugged(&mut self, policy: Policy, by_probability: bool) -> Option<u64> {
        match by_probability {
            true => self.phase("probdd", |s| probdd::sweep(s, policy, chunks::any)),
            false => self.phase("ddmin", |s| chunks::sweep(s, policy, chunks::any, 1)),
        };
        self.close(&[policy])
    }
}
