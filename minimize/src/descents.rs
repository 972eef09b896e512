//! The beginning of the pipeline: lines of work that begin with the recording, and the proofs that may end the search.

use demi_replay::Model;
use demi_replay::script::Act;
use demi_schemas::certificate::Shortest;

use crate::engine::Shared;
use crate::full::All;
use crate::longer::gone_on;
use crate::stage::Stage;
use crate::start::Start;
use crate::starts::{Common, Purse, recorded, restore};
use crate::witness::Objective;

/// Configurations that a proof may visit before more is looked for.
const SOON: u64 = 6_000_000;
/// External events over all of which the shortest execution is looked for at the beginning: fewer hardly replace it then.
const ALL: usize = 12;
/// The same of the external events of the best recorded start.
pub const FEW: usize = 8;
/// A bound that is so near is worth more of them.
const NEAR: usize = 2;

impl All<'_> {
    /// What lines of work that begin with the recording come to, as far as one of them is proven to be the shortest over
    /// its external events; and that proof.
    pub(crate) fn descents<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &mut Common<'_, M>,
        (purse, whole): (Purse, Option<&(Start, Shortest)>),
    ) -> (Vec<Start>, Option<(Start, Shortest)>) {
        let mut results = recorded(common, purse, true);
        let mut known = self.best(&results);
        common.aim_at(stage, known.as_ref());
        let mut proven = match whole {
            Some(whole) => Some(whole.clone()),
            None => known.as_ref().and_then(|best| self.proven(stage, common, best)),
        };
        for second in [true, false] {
            if proven.is_some() {
                break;
            }
            let purse = self.purse(stage).after(&results);
            results.extend(match second {
                true => recorded(common, purse, false),
                false => gone_on(common, &results, purse),
            });
            let best = self.best(&results);
            let better = best.clone().filter(|b| known.as_ref().is_none_or(|k| k.size != b.size));
            common.aim_at(stage, better.as_ref());
            proven = better.and_then(|best| self.proven(stage, common, &best));
            known = best;
        }
        (results, proven)
    }

    /// The shortest execution over the external events of a start, with its proof, where little work gives one. Then
    /// only fewer external events are left to look for.
    fn proven<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &Common<'_, M>,
        best: &Start,
    ) -> Option<(Start, Shortest)> {
        if self.options.objective != Objective::Externals {
            return None;
        }
        let witness = restore(&mut stage.engine, &best.schedule)?;
        self.shortest(stage, common, witness, SOON)
    }

    /// The shortest execution over all recorded external events, with its proof, where these are few and little work
    /// gives one. It is the result then, and what has fewer external events but more deliveries stands
    /// beside it: without this the order in which things were recorded would decide between the two.
    pub(crate) fn whole<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &Common<'_, M>,
        recording: Shared<M>,
    ) -> Option<(Start, Shortest)> {
        let bounded = stage.engine.own_bound().is_some();
        let few = recording.size.externals <= ALL && self.options.objective == Objective::Externals;
        if !bounded || !few || recording.acts.iter().any(Act::is_fault) {
            return None;
        }
        self.shortest(stage, common, recording, 4 * SOON)
    }

    /// The shortest execution over the external events of a witness, with its proof, where little work gives one.
    fn shortest<M: Model>(
        &self,
        stage: &mut Stage<'_, M>,
        common: &Common<'_, M>,
        witness: Shared<M>,
        most: u64,
    ) -> Option<(Start, Shortest)> {
        let before = std::mem::replace(&mut stage.best, witness);
        let mut shortest = common.prove(stage, most);
        let near = |s: &Shortest| !s.optimal && s.at_least as usize + NEAR >= stage.best.size.deliveries;
        if most < 4 * SOON && shortest.as_ref().is_some_and(near) {
            shortest = common.prove(stage, 4 * SOON);
        }
        let found = std::mem::replace(&mut stage.best, before);
        let schedule = stage.engine.to_schedule(&found.acts);
        shortest.filter(|s| s.optimal).map(|s| (Start { schedule, size: found.size, ..Start::default() }, s))
    }
}
