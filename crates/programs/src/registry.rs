//! The registry in which every scenario that runs a program as it is finds its model.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use demi_replay::{Names, Registry, Simulator, Visitor};
use demi_schemas::summary::ProgramWork;
use demi_schemas::{ChildModel, NetworkRule, ProgramNodes, Scenario, ScenarioError};

use crate::error::ProgramError;
use crate::lines::Lines;
use crate::model::{ProgramModel, Shared};
use crate::nodes::Nodes;
use crate::process::Launch;
use crate::resolve::resolve;
use crate::services::SERVICES;
use crate::workloads::Workload;

/// Seconds that clocks go on before what is there in the end is read, where the scenario does not say: as long as Maelstrom waits.
const SETTLE: u32 = 10;

/// Another registry, and programs as they are.
pub struct WithPrograms<R> {
    rest: R,
    /// By how they are started: one program has one memory, however often a command looks at it.
    nodes: Mutex<Vec<(String, Arc<Nodes>)>>,
    /// Set once nobody waits for long work any more.
    stop: Mutex<Arc<AtomicBool>>,
}

impl<R> WithPrograms<R> {
    /// Around another registry.
    pub fn new(rest: R) -> Self {
        WithPrograms { rest, nodes: Mutex::default(), stop: Mutex::default() }
    }

    /// The nodes that are started like this, with everything that they answered before.
    fn nodes_of(&self, launches: Vec<(String, Launch)>) -> Arc<Nodes> {
        let key = format!("{launches:?}");
        let mut all = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, nodes)) = all.iter().find(|(known, _)| *known == key) {
            return Arc::clone(nodes);
        }
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let nodes = Arc::new(Nodes::new(launches).until(stop));
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
    let synced = disk(scenario)? == DiskLeft::Synced;
    node_names(spec)?
        .into_iter()
        .zip(0_u64..)
        .map(|(name, node)| {
            // Programs make identifiers of random numbers: two nodes must not make the same.
            let seed = settings.seed.unwrap_or(1).wrapping_mul(1_000_003).wrapping_add(node);
            let launch = Launch {
                command: resolve(&spec.command)?,
                seed,
                memory: u64::from(settings.memory_mib.unwrap_or(1024)) << 20,
                step: Duration::from_secs(settings.step_seconds.unwrap_or(5).max(1).into()),
                outputs: settings.outputs.unwrap_or(256) as usize,
                limit: u64::from(settings.clock_limit_seconds.unwrap_or(60)).saturating_mul(1_000_000_000),
                quantum: u64::from(settings.clock_quantum_ms.unwrap_or(10).max(1)).saturating_mul(1_000_000),
                place: u32::try_from(node).unwrap_or(u32::MAX),
                synced,
            };
            Ok((name, launch))
        })
        .collect()
}

/// What a node that is killed leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiskLeft {
    Everything,
    Nothing,
    /// What was synced.
    Synced,
}

fn disk(scenario: &Scenario) -> Result<DiskLeft, String> {
    match scenario.process.as_ref().and_then(|process| process.disk.as_deref()).unwrap_or("kept") {
        "kept" => Ok(DiskLeft::Everything),
        "none" => Ok(DiskLeft::Nothing),
        "synced" => Ok(DiskLeft::Synced),
        other => Err(format!("a 'disk' is kept, synced or none, not '{other}'")),
    }
}

/// The names of the nodes.
fn node_names(spec: &ChildModel) -> Result<Vec<String>, String> {
    let names = spec.nodes.as_ref().unwrap_or(&ProgramNodes::Count(1)).names();
    distinct(&names)?;
    Ok(names)
}

/// Two participants with one name could not be told apart.
fn distinct(names: &[String]) -> Result<(), String> {
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice.map(|(_, name)| name).or_else(|| names.iter().find(|name| name.is_empty())) {
        Some(name) => Err(format!("two nodes, clients or services have the name '{name}', or it is empty")),
        None => Ok(()),
    }
}

/// What the clients of a scenario do.
///
/// # Errors
/// When it does not say, or there is no such workload.
pub fn workload(scenario: &Scenario) -> Result<Workload, String> {
    let wanted =
        scenario.workload.as_ref().ok_or("a scenario with 'nodes' needs a [workload] with its name")?;
    Workload::new(wanted)
}

/// The services that nodes may use: those that the scenario names, or else those whose names stand in the program's own files.
fn services(spec: &ChildModel, scenario: &Scenario) -> Result<Vec<&'static str>, String> {
    if let Some(named) = scenario.workload.as_ref().and_then(|workload| workload.services.as_ref()) {
        let known = |name: &String| {
            let found = SERVICES.iter().find(|known| *known == name).copied();
            found.ok_or_else(|| format!("there is no service '{name}'; there are {}", SERVICES.join(", ")))
        };
        return named.iter().map(known).collect();
    }
    let mut texts = Vec::new();
    for word in
        resolve(&spec.command)?.iter().map(Path::new).filter(|path| path.is_absolute() && !is_of_system(path))
    {
        texts.extend(std::fs::read(word));
        // A program in several files has them side by side.
        let beside =
            word.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let same = beside.map(|entry| entry.path()).filter(|path| {
            word.extension().is_some() && path.extension() == word.extension() && path.as_path() != word
        });
        texts.extend(same.take(100).filter_map(|path| std::fs::read(path).ok()));
    }
    let named =
        |name: &str| texts.iter().any(|text| text.windows(name.len()).any(|part| part == name.as_bytes()));
    Ok(SERVICES.into_iter().filter(|name| named(name)).collect())
}

/// Whether a file is none of the user's, such as an interpreter.
fn is_of_system(path: &Path) -> bool {
    ["/usr", "/bin", "/lib", "/opt", "/nix"].iter().any(|folder| path.starts_with(folder))
        || path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            ["python", "node", "ruby", "java", "beam"].iter().any(|known| name.starts_with(known))
                && path
                    .extension()
                    .is_none_or(|ext| ext.len() < 3 && ext != "py" && ext != "rb" && ext != "js")
        })
}

/// Whether an answer may never come, though the program is right.
fn gives_up(scenario: &Scenario) -> bool {
    let faults = scenario.fuzz.as_ref();
    scenario.network == NetworkRule::FifoLoss
        || faults.is_some_and(|fuzz| {
            fuzz.weight_crash > 0.0 || fuzz.weight_isolate > 0.0 || fuzz.weight_partition > 0.0
        })
}

/// The names of the clients: those of the scenario, or as many as it says, or as many as nodes.
fn client_names(scenario: &Scenario, nodes: usize) -> Vec<String> {
    let workload = scenario.workload.as_ref();
    match workload.and_then(|workload| workload.clients.as_ref()).filter(|named| !named.is_empty()) {
        Some(named) => named.clone(),
        None => {
            let count =
                workload.and_then(|workload| workload.processes).map_or(nodes, |count| count as usize);
            (1..=count.clamp(1, 1000)).map(|client| format!("c{client}")).collect()
        }
    }
}

/// The model of a scenario that runs a program on these nodes.
pub(crate) fn model(
    spec: &ChildModel,
    scenario: &Scenario,
    nodes: &Arc<Nodes>,
    names: &mut Names,
) -> Result<ProgramModel, String> {
    let workload = workload(scenario)?;
    let node_names = node_names(spec)?;
    let count = node_names.len();
    let clients = client_names(scenario, count);
    let lines = Lines::new(scenario.lines.as_ref())?;
    if let Some(name) = lines.lacks(workload.operations()) {
        return Err(format!(
            "[lines.requests] has no '{name}', which the workload '{}' asks for",
            workload.name()
        ));
    }
    let parts = Shared::parts_of(&services(spec, scenario)?, &node_names);
    let all: Vec<String> =
        node_names.iter().chain(&clients).chain(parts.iter().map(|(name, _)| name)).cloned().collect();
    distinct(&all)?;
    let actors = all.iter().map(|name| names.id(name)).collect();
    let seconds = scenario.workload.as_ref().and_then(|workload| workload.settle_seconds).unwrap_or(SETTLE);
    let keeps = disk(scenario)? != DiskLeft::Nothing;
    let shared = Shared {
        nodes: Arc::clone(nodes),
        workload,
        actors,
        names: all,
        count,
        clients: clients.len(),
        lines,
        parts: parts.into_iter().map(|(_, part)| part).collect(),
        loses: scenario.network == NetworkRule::FifoLoss,
        settle: u64::from(seconds).saturating_mul(1_000_000_000),
        keeps,
        gives_up: gives_up(scenario),
        dooms: scenario
            .fuzz
            .as_ref()
            .is_some_and(|fuzz| fuzz.weight_crash > 0.0 && fuzz.weight_restart > 0.0),
        settled: Mutex::default(),
    };
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

    fn differs(&self) -> bool {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut faults = nodes.iter().filter_map(|(_, nodes)| nodes.fault());
        faults.any(|fault| matches!(fault, ProgramError::Differs { .. })) || self.rest.differs()
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
            operations: done.operations,
            answered: done.answered,
            refused: done.refused,
        })
    }

    fn stop_with(&self, stop: &Arc<AtomicBool>) {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone_from(stop);
        self.rest.stop_with(stop);
    }

    fn tolerate(&self) {
        self.rest.tolerate();
    }

    fn strays(&self) -> (u64, u64) {
        self.rest.strays()
    }
}
