//! Handlers that run elsewhere first, where "elsewhere" is another simulator: it is told enough to make every state, and nothing changes by it.

use std::sync::Arc;

use demi_included::Included;
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::handlers::Handlers;
use demi_replay::replay::{ReplayOptions, replay};
use demi_replay::vet::{Answer, Elsewhere, Link, Question};
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};

/// Answers, and begins anew with nothing after so many questions.
struct Forgetful<M: Model> {
    fresh: Simulator<M>,
    handlers: Handlers<M>,
    asked: usize,
    keeps: usize,
}

impl<M: Model> Link for Forgetful<M> {
    fn ask(&mut self, question: &Question) -> Result<Answer, String> {
        self.asked += 1;
        if self.asked.is_multiple_of(self.keeps) {
            self.handlers = Handlers::new(self.fresh.clone());
            // Whoever begins anew is opened anew: its names are told from the first on.
            return Err("it is gone".to_owned());
        }
        let text = question.text();
        let read = Question::read(&text);
        assert_eq!(read.as_ref(), Some(question), "{text}");
        for end in (0..text.len().min(300)).filter(|end| text.is_char_boundary(*end)) {
            assert_eq!(Question::read(&text[..end]), None);
        }
        Ok(self.handlers.answer(question))
    }
}

struct Near<M: Model>(Simulator<M>, usize);

impl<M: Model> Elsewhere for Near<M> {
    fn open(&self) -> Result<Box<dyn Link>, String> {
        let handlers = Handlers::new(self.0.clone());
        Ok(Box::new(Forgetful { fresh: self.0.clone(), handlers, asked: 0, keeps: self.1 }))
    }
}

/// Runs a scenario with and without an elsewhere; how many runs broke something.
struct Twice<'a>(&'a Scenario);

impl Visitor for Twice<'_> {
    type Output = usize;

    fn visit<M: Model>(self, simulator: Simulator<M>) -> usize {
        let mut broken = 0;
        for seed in 0..2 {
            let options = FuzzOptions::new(seed, 1, 200);
            let plain = fuzz(&mut simulator.clone(), self.0, &options, &mut |_| true).unwrap();
            for keeps in [7, usize::MAX] {
                let mut vetted = simulator.clone();
                let told = vetted.vet(Arc::new(Near(simulator.clone(), keeps)));
                assert_eq!(fuzz(&mut vetted, self.0, &options, &mut |_| true).unwrap(), plain);
                assert_eq!(
                    (told.unknown(), told.fault()),
                    (0, None),
                    "{}, seed {seed}",
                    self.0.model.as_str()
                );
                let Some(found) = &plain else { continue };
                broken += 1;
                let options = ReplayOptions { rule: self.0.network, strict: true, interval: 1 };
                // A simulator that has seen nothing yet, which is told of what comes from outside by the schedule alone.
                let mut vetted = simulator.clone();
                let told = vetted.vet(Arc::new(Near(simulator.clone(), keeps)));
                let runs = [&mut vetted, &mut simulator.clone()]
                    .map(|sim| replay(sim, &found.schedule, &options).unwrap());
                assert_eq!(runs[0], runs[1]);
                assert_eq!((told.unknown(), told.fault()), (0, None));
            }
        }
        broken
    }
}

#[test]
fn every_state_of_the_included_models_can_be_made_elsewhere() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut broken = 0;
    for path in paths {
        let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        broken += Included.visit(&scenario, Twice(&scenario)).unwrap();
    }
    assert!(broken > 0, "none of the runs broke anything");
}

/// It ends whatever it is asked.
struct Deadly;

impl Elsewhere for Deadly {
    fn open(&self) -> Result<Box<dyn Link>, String> {
        Ok(Box::new(Deadly))
    }
}

impl Link for Deadly {
    fn ask(&mut self, _: &Question) -> Result<Answer, String> {
        Err("it aborted".to_owned())
    }
}

/// There is nothing to ask.
struct Nowhere;

impl Elsewhere for Nowhere {
    fn open(&self) -> Result<Box<dyn Link>, String> {
        Err("no room".to_owned())
    }
}

struct Run<E>(E);

impl<E: Elsewhere + 'static> Visitor for Run<E> {
    type Output = (Option<String>, Option<String>);

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        let scenario = Scenario::parse("model = \"two-phase\"\nnetwork = \"fifo\"").unwrap();
        let told = simulator.vet(Arc::new(self.0));
        let found = fuzz(&mut simulator, &scenario, &FuzzOptions::new(1, 1, 20), &mut |_| true).unwrap();
        (found.map(|found| found.violation[0].clone()), told.fault())
    }
}

#[test]
fn what_ends_elsewhere_is_a_crash_and_no_elsewhere_is_a_fault() {
    let scenario = Scenario::parse("model = \"two-phase\"\nmembers = 2\nnetwork = \"fifo\"").unwrap();
    assert_eq!(scenario.network, NetworkRule::Fifo);
    let (found, fault) = Included.visit(&scenario, Run(Deadly)).unwrap();
    assert!(found.is_some_and(|told| told.starts_with("crash: ") && told.ends_with(", it aborted")));
    assert_eq!(fault, None);
    let (_, fault) = Included.visit(&scenario, Run(Nowhere)).unwrap();
    assert_eq!(fault.as_deref(), Some("no room"));
}
