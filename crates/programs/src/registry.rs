//! The registry in which every scenario that runs a program as it is finds its model.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use demi_common::nearest;
use demi_replay::{Names, Registry, Simulator, Visitor};
use demi_schemas::summary::ProgramWork;
use demi_schemas::{ChildModel, Scenario, ScenarioError};

use crate::model::{ProgramModel, Shared};
use crate::nodes::Nodes;
use crate::process::Launch;
use crate::resolve::resolve;
use crate::workloads::{WORKLOADS, Workload};

/// Another registry, and programs as they are.
pub struct WithPrograms<R> {
    rest: R,
    /// By how they are started: one program has one memory, however often a command looks at it.
    nodes: Mutex<Vec<(String, Arc<Nodes>)>>,
}

impl<R> WithPrograms<R> {
    /// Around another registry.
    pub fn new(rest: R) -> Self {
        WithPrograms { rest, nodes: Mutex::default() }
    }

    /// The nodes that are started like this, with everything that they answered before.
    fn nodes_of(&self, launches: Vec<(String, Launch)>) -> Arc<Nodes> {
        let key = format!("{launches:?}");
        let mut all = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, nodes)) = all.iter().find(|(known, _)| *known == key) {
            return Arc::clone(nodes);
        }
        let nodes = Arc::new(Nodes::new(launches));
        all.push((key, Arc::clone(&nodes)));
        nodes
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

/// The model of a scenario that runs a program on these nodes.
fn model(
    spec: &ChildModel,
    scenario: &Scenario,
    nodes: &Arc<Nodes>,
    names: &mut Names,
) -> Result<ProgramModel, String> {
    let workload = workload(scenario)?;
    let count = spec.nodes.unwrap_or(1).max(1) as usize;
    let processes = scenario.workload.as_ref().and_then(|workload| workload.processes);
    let clients = processes.unwrap_or(count as u32).clamp(1, 1000);
    let all: Vec<String> = (1..=count)
        .map(|node| format!("n{node}"))
        .chain((1..=clients).map(|client| format!("c{client}")))
        .collect();
    let actors = all.iter().map(|name| names.id(name)).collect();
    let shared = Shared { nodes: Arc::clone(nodes), workload, actors, names: all, count };
    Ok(ProgramModel::new(shared))
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
        let launches = launches(spec, scenario).map_err(ScenarioError::Value)?;
        let nodes = self.nodes_of(launches);
        let model = model(spec, scenario, &nodes, &mut names).map_err(ScenarioError::Value)?;
        let simulator = Simulator::new(model, names, scenario)?;
        Ok(Ok(visitor.visit(simulator)))
    }

    fn fault(&self) -> Option<String> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let own = nodes.iter().find_map(|(_, nodes)| nodes.fault().map(ToString::to_string));
        own.or_else(|| self.rest.fault())
    }

    fn programs(&self) -> Option<ProgramWork> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let done = nodes.iter().map(|(_, nodes)| nodes.work()).reduce(|sum, one| sum + one)?;
        Some(ProgramWork {
            steps: done.asked,
            from_memory: 1.0 - done.new as f64 / done.asked.max(1) as f64,
            executed: done.executed,
            starts: done.starts,
            copies: done.copies,
        })
    }

    fn tolerate(&self) {
        self.rest.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        self.rest.strays()
    }
}
