//! A recorded execution, whose order is the default one of an exploration around it.

use demi_replay::fuzz::{Choice, Program};
use demi_replay::script::Act;
use demi_replay::{ActorId, Model, Simulator, Status, World};
use demi_schemas::NetworkRule;

/// What was recorded, in an order that the model can follow.
#[derive(Debug, Default)]
pub struct Log {
    /// The position of each step in the recorded schedule, and what it does.
    acts: Vec<(usize, Act)>,
}

/// The next recorded step that is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Where it stands in the log.
    pub at: usize,
    /// What happens.
    pub choice: Choice,
    /// What happens right after it: a message from outside is sent, and then taken.
    pub then: Option<Choice>,
    /// Who takes something.
    pub who: Option<ActorId>,
}

impl Next {
    /// All that happens.
    pub fn choices(self) -> impl Iterator<Item = Choice> {
        std::iter::once(self.choice).chain(self.then)
    }
}

impl Log {
    /// The log of recorded steps.
    #[must_use]
    pub fn new(acts: Vec<(usize, Act)>) -> Self {
        Log { acts }
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.acts.is_empty()
    }

    /// The first step from a place on that is possible in a world, where the test driver's steps are those of a program. What is not
    /// possible is passed over for good once a later step is taken.
    #[must_use]
    pub fn next<M: Model>(
        &self,
        sim: &mut Simulator<M>,
        world: &World<M>,
        from: usize,
        (program, rule): (&Program, NetworkRule),
    ) -> Option<Next> {
        let rest = self.acts.iter().enumerate().skip(from);
        for (at, (step, act)) in rest {
            let does = Choice::Program(*step as u32);
            let next = match act {
                Act::Noted(_) | Act::Sent => None,
                Act::Deliver(want) => {
                    let pending = want.find(sim, world).filter(|&at| sim.deliverable(world, at, rule));
                    let who = Some(want.to);
                    match pending {
                        Some(index) => {
                            Some(Next { at, choice: Choice::Deliver(index as u32), then: None, who })
                        }
                        None if want.external.is_some() && world.status(want.to) == Status::Running => {
                            let then = Some(Choice::Deliver(world.pending().len() as u32));
                            Some(Next { at, choice: does, then, who })
                        }
                        None => None,
                    }
                }
                // Only what is done to an actor that is not so already is a step.
                Act::Crash(actor) => matches!(world.status(*actor), Status::Running | Status::Isolated)
                    .then_some(Next { at, choice: does, then: None, who: None }),
                _ => {
                    let mut after = world.clone();
                    let possible = program.perform(sim, &mut after, *step as u32, rule).is_ok();
                    possible.then_some(Next { at, choice: does, then: None, who: None })
                }
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// The first step between two places that does something, by its position in the recorded schedule.
    #[must_use]
    pub fn passed_over(&self, from: usize, to: usize) -> Option<usize> {
        let does = |(_, act): &&(usize, Act)| !matches!(act, Act::Noted(_) | Act::Sent | Act::Crash(_));
        self.acts[from..to].iter().find(does).map(|(step, _)| *step)
    }
}
