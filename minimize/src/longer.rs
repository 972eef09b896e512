//! Going on with starts of long recordings that their shares of the budget cut short.
//!
//! A step of a long recording costs as much as a whole run of a short one, so that a share that is enough for twelve
//! starts of a short one ends before any of them has got far. Which policy gets farthest is known by then: the rest of
//! the descent is left to the two best, until what is left is short or the next searches must begin.

use demi_replay::Model;
use xxhash_rust::xxh3::xxh3_128;

use crate::stage::Stage;
use crate::start::Start;
use crate::starts::{Common, Purse, restore, side_by_side};

/// Deliveries up to which a result is short enough for the searches that begin with one.
const SHORT: usize = 400;
/// Starts of a round, half of them from each of the two best.
const ROUND: usize = 4;
/// Most rounds.
const ROUNDS: usize = 6;
/// Part of what is left of the budget for each.
const PART: f64 = 0.3;

/// Reduces the best of `results` further while they are long and were cut short. Gives what that came to.
pub fn gone_on<M: Model>(common: &Common<'_, M>, results: &[Start], mut purse: Purse) -> Vec<Start> {
    let mut all: Vec<Start> = Vec::new();
    for round in 0..ROUNDS {
        let mut known: Vec<&Start> = results.iter().chain(&all).collect();
        known.sort_by_key(|start| common.objective.settled(start.size));
        known.dedup_by_key(|start| start.size);
        let Some(best) = known.first().filter(|best| best.cut && best.size.deliveries > SHORT) else { break };
        let (leads, size) = (&known[..known.len().min(2)], best.size);
        let share = purse.share(PART, ROUND, common.jobs);
        let found = side_by_side(common, ROUND, |index| {
            let lead = &leads[index % leads.len()].schedule;
            let turn = round * ROUND + index;
            let what = format!("longer {turn} {:032x}", xxh3_128(lead.to_text().as_bytes()));
            common.remembered(&what, share, || {
                let mut order = common.policies.to_vec();
                order.rotate_left(turn % common.policies.len());
                let mut engine = common.engine(share, common.objective);
                let witness = restore(&mut engine, lead)?;
                let mut stage = Stage::new(engine, witness, common.tell);
                stage.reduce(&order);
                Some(common.done(stage))
            })
        });
        purse = purse.after(&found);
        let gained = found.iter().any(|start| common.objective.smaller(start.size, size));
        all.extend(found);
        if !gained {
            break;
        }
    }
    all
}
