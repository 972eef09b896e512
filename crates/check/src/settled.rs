//! Checking from scratch that nothing smaller exists with any subset of the recorded external events.

use demi_replay::script::Act;
use demi_replay::{ActorId, Model, OUTSIDE, Pending, PendingKind, Simulator, Status, World};
use demi_schemas::certificate::Settled;
use demi_schemas::{Certificate, NetworkRule, Schedule};

use crate::Quota;
use crate::certificate::{CertificateError, Checked};

/// Starts for which the sets of them are counted out, at most.
const MOST_STARTS: usize = 16;

/// Checks what a certificate says of everything recorded, and gives a line about it; nothing where it says nothing.
///
/// # Errors
/// When it is not true, or the budget ends before that is known.
pub fn verify_settled<M: Model>(
    sim: &Simulator<M>,
    recorded: &Schedule,
    certificate: &Certificate,
    quota: &mut dyn Quota,
) -> Result<Option<String>, CertificateError> {
    let Some(settled) = certificate.settled else { return Ok(None) };
    let target = &certificate.violation;
    let mut checked = Checked::new(sim, recorded, certificate.network, target)?;
    // Whoever starts late may as well start first and not get what was sent before, if messages come in any order.
    checked.rule = NetworkRule::Unordered;
    let starts = starts(&checked.script.acts)?;
    let mut states = 0;
    for set in 0..1_u32 << starts.len() {
        let chosen: Vec<ActorId> =
            (0..starts.len()).filter(|at| set >> at & 1 == 1).map(|at| starts[at]).collect();
        let deliveries = settled.steps.saturating_sub(chosen.len() as u64);
        states += checked.none_with(&chosen, deliveries, settled, quota)?;
    }
    Ok(Some(format!(
        "no violating execution with any subset of the recorded external events has fewer than {} steps ({states} configurations searched)",
        settled.steps
    )))
}

/// The actors that the recording starts.
fn starts(acts: &[Act]) -> Result<Vec<ActorId>, CertificateError> {
    let wrong = |why: &str| Err(CertificateError::False(why.to_owned()));
    let mut starts = Vec::new();
    for act in acts {
        match act {
            Act::Start(actor) if !starts.contains(actor) => starts.push(*actor),
            Act::Deliver(_) | Act::Inject(..) | Act::Noted(_) => {}
            _ => {
                return wrong(
                    "the recording has faults, actions or second starts: nothing is known of all executions",
                );
            }
        }
    }
    if starts.len() > MOST_STARTS {
        return wrong("the recording has too many starts to look at every set of them");
    }
    Ok(starts)
}

impl<M: Model> Checked<'_, M> {
    /// Looks at every execution with fewer than so many deliveries in which these actors are started. Gives how many configurations
    /// there were.
    fn none_with(
        &mut self,
        starts: &[ActorId],
        deliveries: u64,
        settled: Settled,
        quota: &mut dyn Quota,
    ) -> Result<u64, CertificateError> {
        // Nothing has fewer than none.
        if deliveries == 0 {
            return Ok(0);
        }
        let mut world = self.sim.empty_world();
        for &actor in starts {
            self.sim.start(&mut world, actor);
        }
        if self.violates(&world) {
            return Err(CertificateError::False("starts alone violate".into()));
        }
        let first = self.with_recorded(&world);
        let deliveries = usize::try_from(deliveries).unwrap_or(usize::MAX);
        match self.none_from(first, Vec::new(), deliveries, settled.bounded, quota) {
            Ok(states) => states.ok_or(CertificateError::Budget),
            Err(CertificateError::Shorter(made, _)) => {
                let steps = made + starts.len();
                let why = format!("messages in any order, there is a violating execution of {steps} steps");
                Err(CertificateError::False(why))
            }
            Err(other) => Err(other),
        }
    }

    /// A world in which all recorded messages from outside are pending, whether their receivers are there or not.
    fn with_recorded(&self, world: &World<M>) -> World<M> {
        let mut pending = world.pending().to_vec();
        let mut actors = world.actors();
        for act in &self.script.acts {
            if let Act::Deliver(want) = act
                && let Some(msg) = want.external
            {
                let (from, to, channel, kind) = (OUTSIDE, want.to, OUTSIDE, PendingKind::External);
                pending.push(Pending { from, to, channel, msg, kind, timer: 0, survives: false, via: None });
                actors = actors.max(to.index() + 1).max(self.sim.cell_of(to).index() + 1);
            }
        }
        let mut cells = world.cells().to_vec();
        cells.resize_with(actors.max(cells.len()), || None);
        let status = |at| if at < world.actors() { world.status(ActorId(at as u16)) } else { Status::Absent };
        World::assemble(cells, (0..actors).map(status).collect(), pending)
    }
}
