//! What a run consists of.

use demi_schemas::NetworkRule;

use super::program::Program;
use crate::guard::{self, Panic};
use crate::model::{Model, Proposal};
use crate::names::{ActorId, OUTSIDE};
use crate::sim::Simulator;
use crate::world::World;

/// All that has to be kept to make a run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// An actor starts.
    Start(ActorId),
    /// The model's bootstrap messages arrive.
    Bootstrap,
    /// The client message of that number and choice arrives.
    Client(u64, u64),
    /// An actor is made to fail.
    Crash(ActorId),
    /// A failed actor starts its next incarnation.
    Restart(ActorId),
    /// An actor is cut off from the network.
    Isolate(ActorId),
    /// An actor that was cut off is back.
    Heal(ActorId),
    /// The network makes a second copy of the pending entry of that index.
    Duplicate(u32),
    /// The program's act of that number is done.
    Program(u32),
    /// The pending entry of that index is delivered.
    Deliver(u32),
}

/// Makes one choice happen. What is not possible is left out.
pub fn apply<M: Model>(
    sim: &mut Simulator<M>,
    world: &mut World<M>,
    program: &Program,
    choice: Choice,
    rule: NetworkRule,
) {
    match choice {
        Choice::Start(actor) => sim.start(world, actor),
        Choice::Crash(actor) => sim.crash(world, actor),
        Choice::Restart(actor) => sim.restart(world, actor),
        Choice::Isolate(actor) => sim.isolate(world, actor),
        Choice::Heal(actor) => sim.heal(world, actor),
        Choice::Duplicate(index) => {
            sim.duplicate(world, index as usize);
        }
        Choice::Program(act) => {
            // What is not possible is left out; the run says nothing of it.
            let _ = program.perform(sim, world, act, rule);
        }
        Choice::Deliver(index) => {
            sim.deliver(world, index as usize, rule);
        }
        Choice::Bootstrap | Choice::Client(..) => {
            let proposed = match guard::guarded(|| proposals(sim, world, choice)) {
                Ok(proposed) => proposed,
                Err(message) => {
                    world.panic = Panic::shared(OUTSIDE, "the workload".to_owned(), message);
                    return;
                }
            };
            for proposal in proposed {
                let msg = sim.intern_outside(proposal.msg, Some(&proposal.fields));
                sim.inject(world, proposal.to, msg);
            }
        }
    }
}

/// The messages from outside that a choice brings.
pub(crate) fn proposals<M: Model>(
    sim: &Simulator<M>,
    world: &World<M>,
    choice: Choice,
) -> Vec<Proposal<M::Msg>> {
    match choice {
        Choice::Bootstrap => sim.model().workload().bootstrap(sim.names()),
        Choice::Client(n, random) => {
            let view = sim.view(world);
            sim.model().workload().client_message_now(n, random, sim.names(), &view).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
