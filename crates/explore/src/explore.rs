//! An exploration: the packed space of a model, searched the cheapest first.

use demi_replay::{Model, Simulator};
use demi_space::cheapest::{self, Options, Outcome};

use crate::cost::Bounds;
use crate::explored::{Deviation, ExploreOptions, Explored, Finding, Told};
use crate::moment::Moment;
use crate::packed::Packed;
use crate::saved::Saved;
use crate::scene::{Scene, SceneError};
use crate::step::Step;

/// Explores from a beginning. `tell` is asked now and then whether to go on.
///
/// # Errors
/// When the model does not know a condition, or what an earlier exploration left does not fit it.
pub fn explore<M: Model>(
    sim: &mut Simulator<M>,
    (scene, first): (&Scene, Moment<M>),
    bounds: Bounds,
    options: ExploreOptions<'_>,
    tell: &mut dyn FnMut(Told) -> bool,
) -> Result<Explored, SceneError> {
    let ExploreOptions { all, cache, jobs, kept, from } = options;
    if let Some(saved) = from {
        saved.fits(&scene.before, bounds.most).map_err(SceneError::Unfinished)?;
    }
    let mut packed = Packed::new(sim.clone(), (scene, &first), bounds.cost, jobs);
    let options = Options { most: bounds.most, all, cache, kept, from: from.map(|saved| &saved.stand) };
    let outcome = cheapest::search(&mut packed, options, tell)?;
    let explored = explored(&mut packed, scene, outcome);
    // Actors that came up on the way have names now.
    *sim = packed.into_sim();
    explored
}

fn explored<M: Model>(
    packed: &mut Packed<'_, M>,
    scene: &Scene,
    outcome: Outcome<Step>,
) -> Result<Explored, SceneError> {
    let Outcome { findings, levels, met, digest, ended, stand } = outcome;
    let mut all = Vec::with_capacity(findings.len());
    for found in findings {
        let choices = scene.before.iter().copied().chain(found.path.iter().flat_map(Step::choices)).collect();
        // They are told by their places among the choices.
        let place = |step: usize| {
            scene.before.len() + found.path[..step].iter().map(|step| step.choices().count()).sum::<usize>()
        };
        let deviations = found.deviations.iter().cloned();
        let deviations = deviations.map(|d| Deviation { choice: place(d.choice), ..d }).collect();
        let round = packed.round(&found.path)?;
        let (violations, spent) = (found.violations, found.spent);
        all.push(Finding { violations, spent, choices, deviations, round });
    }
    let saved = Saved { before: scene.before.clone(), stand };
    Ok(Explored { findings: all, levels, met, digest, ended, saved })
}
