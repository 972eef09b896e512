//! The registry in which every scenario with a command or a socket finds its model.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::vet::{Elsewhere, Told};
use demi_replay::{Names, Registry, Simulator, Visitor};
use demi_schemas::summary::ProgramWork;
use demi_schemas::{Scenario, ScenarioError};

use crate::asked::Asked;
use crate::error::Problem;
use crate::in_child::{Again, Vetting};
use crate::model::Child;
use crate::pool::Pool;

/// Another registry, and models in processes of their own.
pub struct WithChildren<R> {
    rest: R,
    asked: Mutex<Vec<Arc<Asked>>>,
    tolerates: Arc<AtomicBool>,
    /// How much memory handlers of models in this program may take, where they run in a process of their own first; 0 where they do not.
    memory: AtomicU64,
    told: Mutex<Vec<Told>>,
}

impl<R> WithChildren<R> {
    /// Around another registry.
    pub fn new(rest: R) -> Self {
        WithChildren {
            rest,
            asked: Mutex::default(),
            tolerates: Arc::default(),
            memory: AtomicU64::new(0),
            told: Mutex::default(),
        }
    }

    /// How many requests were sent to children.
    pub fn requests(&self) -> u64 {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|asked| asked.requests()).sum()
    }
}

impl<R> WithChildren<R> {
    /// How many calls of handlers did not run in a process of their own first, though they should have.
    #[must_use]
    pub fn unvetted(&self) -> u64 {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Told::unknown).sum()
    }
}

impl<R: Registry> Registry for WithChildren<R> {
    fn names(&self) -> Vec<&str> {
        self.rest.names()
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        // A program as it is speaks no model protocol.
        let Some(spec) = scenario.model.child().filter(|spec| spec.nodes.is_none()) else {
            let memory = self.memory.load(Ordering::Relaxed);
            let in_child = memory > 0 && scenario.model.child().is_none();
            let elsewhere = in_child.then(|| Arc::new(Again::new(scenario, memory)) as Arc<dyn Elsewhere>);
            let told = |told: Told| self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
            let offered = self.rest.offer(scenario, Vetting { visitor, elsewhere, told: &told })?;
            return Ok(offered.map_err(|vetting| vetting.visitor));
        };
        let failed = |e: &dyn std::fmt::Display| ScenarioError::Value(e.to_string());
        let (pool, hello) =
            Pool::open(spec, scenario, Arc::clone(&self.tolerates)).map_err(|e| failed(&e))?;
        if let Some(name) = hello.unclear_name() {
            return Err(failed(&format!("the model names the actor '{name}' twice, or not at all")));
        }
        let mut names = Names::default();
        let asked = Arc::new(Asked::new(pool, hello, &mut names));
        for one in &asked.hello.bootstrap {
            asked.proposal(one.clone()).map_err(|e| failed(&format!("the model's bootstrap: {e}")))?;
        }
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&asked));
        Ok(Ok(visitor.visit(Simulator::new(Child::new(asked), names, scenario)?)))
    }

    fn fault(&self) -> Option<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let own = asked.iter().find_map(|asked| asked.fault().map(ToString::to_string));
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        own.or_else(|| told.iter().find_map(Told::fault)).or_else(|| self.rest.fault())
    }

    fn tolerate(&self) {
        self.tolerates.store(true, Ordering::Relaxed);
        self.rest.tolerate();
    }

    fn differs(&self) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut faults = asked.iter().filter_map(|asked| asked.fault());
        faults.any(|fault| matches!(fault.problem, Problem::Differs(..))) || self.rest.differs()
    }

    fn programs(&self) -> Option<ProgramWork> {
        self.rest.programs()
    }

    fn stop_with(&self, stop: &Arc<AtomicBool>) {
        self.rest.stop_with(stop);
    }

    fn in_child(&self, memory: u64) {
        self.memory.store(memory, Ordering::Relaxed);
    }

    fn strays(&self) -> (u64, u64) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked
            .iter()
            .map(|asked| asked.strays())
            .fold(self.rest.strays(), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
