//! The registry in which every scenario that runs a program as it is finds its model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use demi_common::nearest;
use demi_replay::{Names, Registry, Simulator, Visitor};
use demi_schemas::{ChildModel, Scenario, ScenarioError};

use crate::model::{ProgramModel, Shared};
use crate::nodes::{Nodes, Work};
use crate::process::Launch;
use crate::resolve::resolve;
use crate::workloads::{WORKLOADS, Workload};

/// Another registry, and programs as they are.
pub struct WithPrograms<R> {
    rest: R,
    nodes: Mutex<Vec<Arc<Nodes>>>,
}

impl<R> WithPrograms<R> {
    /// Around another registry.
    pub fn new(rest: R) -> Self {
        WithPrograms { rest, nodes: Mutex::default() }
    }

    /// How much work programs did.
    pub fn work(&self) -> Work {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.iter().map(|nodes| nodes.work()).fold(Work::default(), |sum, one| Work {
            asked: sum.asked + one.asked,
            executed: sum.executed + one.executed,
            starts: sum.starts + one.starts,
        })
    }
}

/// How the nodes of a scenario are started, by name.
///
/// # Errors
/// When there is no such program, or it cannot be scheduled.
pub fn launches(spec: &ChildModel, scenario: &Scenario) -> Result<Vec<(String, Launch)>, String> {
    let settings = scenario.process.clone().unwrap_or_default();
    let nodes = spec.nodes.unwrap_or(1).max(1);
    (0..nodes)
        .map(|node| {
            // Programs make identifiers of random numbers: two nodes must not make the same.
            let seed = settings.seed.unwrap_or(1).wrapping_mul(1_000_003).wrapping_add(u64::from(node));
            let launch = Launch {
                command: resolve(&spec.command, seed)?,
                seed,
                memory: u64::from(settings.memory_mib.unwrap_or(1024)) << 20,
                step: Duration::from_secs(settings.step_seconds.unwrap_or(5).max(1).into()),
                outputs: settings.outputs.unwrap_or(256) as usize,
                limit: u64::from(settings.clock_limit_seconds.unwrap_or(60)).saturating_mul(1_000_000_000),
                quantum: u64::from(settings.clock_quantum_ms.unwrap_or(10).max(1)).saturating_mul(1_000_000),
            };
            Ok((format!("n{}", node + 1), launch))
        })
        .collect()
}

/// What the clients of a scenario do.
///
/// # Errors
/// When it does not say, or there is no such workload.
pub fn workload(scenario: &Scenario) -> Result<Workload, String> {
    let wanted =
        scenario.workload.clone().ok_or("a scenario with 'nodes' needs a [workload] with its name")?;
    Workload::named(&wanted.name, wanted.keys.unwrap_or(1).into()).ok_or_else(|| {
        let near = nearest(&wanted.name, WORKLOADS.iter().copied());
        let near = near.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
        format!("there is no workload '{}'; there are {}{near}", wanted.name, WORKLOADS.join(", "))
    })
}

/// The model of a scenario that runs a program.
///
/// # Errors
/// When the scenario does not say what is run and what clients do.
pub fn model(
    spec: &ChildModel,
    scenario: &Scenario,
    names: &mut Names,
) -> Result<(ProgramModel, Arc<Nodes>), String> {
    let workload = workload(scenario)?;
    let launches = launches(spec, scenario)?;
    let count = launches.len();
    let processes = scenario.workload.as_ref().and_then(|workload| workload.processes);
    let clients = processes.unwrap_or(count as u32).clamp(1, 1000);
    let all: Vec<String> = launches
        .iter()
        .map(|(name, _)| name.clone())
        .chain((1..=clients).map(|client| format!("c{client}")))
        .collect();
    let nodes = Arc::new(Nodes::new(launches));
    let actors = all.iter().map(|name| names.id(name)).collect();
    let shared = Shared { nodes: Arc::clone(&nodes), workload, actors, names: all, count };
    Ok((ProgramModel::new(shared), nodes))
}

impl<R: Registry> Registry for WithPrograms<R> {
    fn names(&self) -> Vec<&str> {
        self.rest.names()
    }

    fn offer<V: Visitor>(
        &self,
        scenario: &Scenario,
        visitor: V,
    ) -> Result<Result<V::Output, V>, ScenarioError> {
        let Some(spec) = scenario.model.child().filter(|spec| spec.nodes.is_some()) else {
            return self.rest.offer(scenario, visitor);
        };
        let mut names = Names::default();
        let (model, nodes) = model(spec, scenario, &mut names).map_err(ScenarioError::Value)?;
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&nodes));
        let simulator = Simulator::new(model, names, scenario)?;
        Ok(Ok(visitor.visit(simulator)))
    }

    fn fault(&self) -> Option<String> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let own = nodes.iter().find_map(|nodes| nodes.fault().map(ToString::to_string));
        own.or_else(|| self.rest.fault())
    }

    fn tolerate(&self) {
        self.rest.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        self.rest.strays()
    }
}
