//! Digests of acts that mean the same in another process: of texts, where acts hold numbers of one simulator.

use std::hash::Hash;

use demi_replay::names::TextId;
use demi_replay::script::Act;
use demi_replay::{ActorId, Model, Simulator};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Digests of the texts and names of one simulator, each made once.
#[derive(Debug, Default)]
pub struct Digests {
    texts: Vec<Option<u64>>,
    actors: Vec<Option<u64>>,
}

/// The digest in a table, made if it is not there.
fn made(table: &mut Vec<Option<u64>>, at: usize, text: impl FnOnce() -> u64) -> u64 {
    if table.len() <= at {
        table.resize(at + 1, None);
    }
    *table[at].get_or_insert_with(text)
}

impl Digests {
    fn text<M: Model>(&mut self, sim: &Simulator<M>, id: TextId) -> u64 {
        made(&mut self.texts, id.0 as usize, || xxh3_64(sim.text(id).as_bytes()))
    }

    fn actor<M: Model>(&mut self, sim: &Simulator<M>, id: ActorId) -> u64 {
        made(&mut self.actors, id.index(), || xxh3_64(sim.names().get(id).as_bytes()))
    }

    /// Adds acts to a digest.
    pub fn add<'a, M: Model>(
        &mut self,
        sim: &Simulator<M>,
        actions: &[(String, Option<serde_json::Value>)],
        acts: impl Iterator<Item = &'a Act>,
        hasher: &mut Xxh3,
    ) {
        for act in acts {
            std::mem::discriminant(act).hash(hasher);
            match act {
                Act::Start(a)
                | Act::Crash(a)
                | Act::Restart(a)
                | Act::Isolate(a)
                | Act::Heal(a)
                | Act::Stop(a)
                | Act::Noted(a) => self.actor(sim, *a).hash(hasher),
                Act::Inject(to, msg) => {
                    self.actor(sim, *to).hash(hasher);
                    sim.info(*msg).msg.hash(hasher);
                }
                Act::Sent => {}
                Act::Action(index) => match actions.get(*index as usize) {
                    Some((name, fields)) => {
                        (name, fields.as_ref().map(ToString::to_string)).hash(hasher);
                    }
                    None => index.hash(hasher),
                },
                Act::Deliver(want) | Act::Duplicate(want) => {
                    let places = [self.actor(sim, want.from), self.actor(sim, want.to)];
                    let texts = [want.type_, want.payload, want.fingerprint].map(|t| self.text(sim, t));
                    let which = want.which.map(|name| self.text(sim, name));
                    (places, texts, want.timer, which, want.copy, want.clock).hash(hasher);
                    want.external.map(|msg| &sim.info(msg).msg).hash(hasher);
                }
            }
        }
    }
}
