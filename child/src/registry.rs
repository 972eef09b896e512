//! The registry in which every scenario with a command or a socket finds its model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use demi_replay::{Names, Registry, Simulator, Visitor};
use demi_schemas::{Scenario, ScenarioError};

use crate::asked::Asked;
use crate::error::Problem;
use crate::model::Child;
use crate::pool::Pool;

/// Another registry, and models in processes of their own.
pub struct WithChildren<R> {
    rest: R,
    asked: Mutex<Vec<Arc<Asked>>>,
    tolerates: Arc<AtomicBool>,
}

impl<R> WithChildren<R> {
    /// Around another registry.
    pub fn new(rest: R) -> Self {
        WithChildren { rest, asked: Mutex::default(), tolerates: Arc::default() }
    }

    /// How many requests were sent to children.
    pub fn requests(&self) -> u64 {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|asked| asked.requests()).sum()
    }
}

impl<R> WithChildren<R> {
    /// Whether a model answered the same question in two ways: it is not deterministic.
    #[must_use]
    pub fn differs(&self) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut faults = asked.iter().filter_map(|asked| asked.fault());
        faults.any(|fault| matches!(fault.problem, Problem::Differs(..)))
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
            return self.rest.offer(scenario, visitor);
        };
        let failed = |e: &dyn std::fmt::Display| ScenarioError::Value(e.to_string());
        let (pool, hello) =
            Pool::open(spec, scenario, Arc::clone(&self.tolerates)).map_err(|e| failed(&e))?;
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
        own.or_else(|| self.rest.fault())
    }

    fn tolerate(&self) {
        self.tolerates.store(true, Ordering::Relaxed);
        self.rest.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked
            .iter()
            .map(|asked| asked.strays())
            .fold(self.rest.strays(), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
