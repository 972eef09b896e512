//! Proofs that a ledger remembers: most of the work of many minimizations is in them.

use demi_replay::Model;
use demi_schemas::Schedule;
use demi_schemas::certificate::Shortest;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::stage::{PROOF, Stage};
use crate::starts::{Common, restore};

/// What the ledger keeps of a proof.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// What was found, if it was smaller, or as small and all actors start first.
    schedule: Option<String>,
    replays: u64,
    executed: u64,
    shortest: Option<Shortest>,
}

impl<M: Model> Common<'_, M> {
    /// As [`Stage::prove`] of the stage's witness, or what that came to in an earlier run.
    pub fn prove(&self, stage: &mut Stage<'_, M>, most: u64) -> Option<Shortest> {
        let Some(ledger) = &self.oracle.ledger else { return stage.prove(self.jobs, most) };
        if stage.ended() {
            return None;
        }
        let of = stage.engine.to_schedule(&stage.best.acts).to_text();
        // What a budget of replays or states leaves for it limits the proof.
        let left = stage.engine.meter.left().min(most.saturating_mul(2));
        let key = xxh3_128(format!("{:032x} shortest {most} {left} {of}", self.digest).as_bytes());
        let meter = &stage.engine.meter;
        let before = (meter.replays, meter.executed, stage.best.clone());
        let known = ledger.start(key).and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        if let Some(kept) = known {
            let schedule = kept.schedule.as_ref().and_then(|text| Schedule::parse(text).ok());
            let found = schedule.and_then(|schedule| restore(&mut stage.engine, &schedule));
            (stage.engine.meter.replays, stage.engine.meter.executed) = (before.0, before.1);
            // A model that is not deterministic may not do it again.
            if found.is_some() == kept.schedule.is_some() {
                stage.phase(PROOF, |s| {
                    s.engine.meter.replays += kept.replays;
                    s.engine.meter.executed += kept.executed;
                    if let Some(found) = found {
                        s.take(found);
                    }
                });
                return kept.shortest;
            }
        }
        let shortest = stage.prove(self.jobs, most);
        // A proof that the end of the budget cut short goes farther another time.
        if !stage.ended() {
            let changed = stage.best.acts != before.2.acts;
            let kept = Kept {
                schedule: changed.then(|| stage.engine.to_schedule(&stage.best.acts).to_text()),
                replays: stage.engine.meter.replays - before.0,
                executed: stage.engine.meter.executed - before.1,
                shortest: shortest.clone(),
            };
            ledger.note_start(key, &serde_json::to_string(&kept).unwrap_or_default());
        }
        shortest
    }
}
