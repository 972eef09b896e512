//! Stores of generated systems, and the engines that this machine has.

use std::path::{Path, PathBuf};

use demi_formats::{Source, Sources};
use demi_lineage::generate::{Generator, Mix};
use demi_lineage::query::Query;
use demi_plans::{Engine, EngineKind, PlanError, Process, Refreshed};
use demi_schemas::EventRecord;
use demi_store::{LoadOptions, Store};
use tempfile::TempDir;

use crate::cluster::{self, Cluster};

/// A store, and where its orders are.
pub struct Made {
    pub folder: TempDir,
    pub store: Store,
}

impl Made {
    /// An empty store.
    pub fn new() -> Made {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("store")).unwrap();
        Made { folder, store }
    }

    /// A store of one system, `s`, with its tables of lineage.
    pub fn of(records: &[EventRecord]) -> Made {
        let mut made = Made::new();
        made.load("s", records);
        made.refresh("s", false);
        made
    }

    /// Loads records into a system.
    pub fn load(&mut self, system: &str, records: &[EventRecord]) {
        let mut text = Vec::new();
        for record in records {
            serde_json::to_writer(&mut text, record).unwrap();
            text.push(b'\n');
        }
        let source = Source::stream("log", Box::new(std::io::Cursor::new(text)));
        demi_store::load(&mut self.store, Sources(vec![source]), &LoadOptions::new(system), |_| {}).unwrap();
    }

    /// The order of a system's events.
    pub fn query(&self, system: &str) -> Query {
        self.ordered(system, false)
    }

    /// The order, or what of it is certain.
    pub fn ordered(&self, system: &str, certain: bool) -> Query {
        let order = self.folder.path().join("orders").join(system);
        let files = self.store.event_files(system).unwrap();
        demi_lineage::query::refresh(&files, system, &order, &mut |_| {}).unwrap();
        Query::open(&order, certain).unwrap()
    }

    /// Brings the tables of lineage up to date.
    pub fn refresh(&self, system: &str, rebuild: bool) -> Refreshed {
        let query = self.query(system);
        demi_plans::refresh(&self.store, system, &query, self.store.version(), rebuild).unwrap()
    }

    pub fn scratch(&self) -> TempDir {
        tempfile::tempdir_in(self.folder.path()).unwrap()
    }
}

/// The records of a generated system.
pub fn generated(mix: &Mix) -> Vec<EventRecord> {
    Generator::new(mix).map(|event| event.record).collect()
}

/// The Python that has the engines.
pub fn python() -> PathBuf {
    std::env::var_os("DEMI_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from)
}

/// Whether this machine has an engine, or its Python has the package of it. Says so where it has not.
pub fn has(kind: EngineKind) -> bool {
    if kind == EngineKind::Ballista {
        return cluster::is_there();
    }
    let package = if kind == EngineKind::Spark { "pyspark" } else { kind.name() };
    let import = format!("import {package}");
    let tried = std::process::Command::new(python()).args(["-c", &import]).output();
    let there = tried.is_ok_and(|tried| tried.status.success())
        && (kind != EngineKind::Spark || std::env::var_os("DEMI_SPARK").is_some());
    if !there {
        println!("skipped: no {package} in this Python (set DEMI_PYTHON, and DEMI_SPARK=1 for Spark)");
    }
    there
}

/// An engine that this machine has.
pub fn engine(kind: EngineKind) -> Result<Box<dyn Engine>, PlanError> {
    if kind == EngineKind::Ballista {
        return Ok(Box::new(Cluster::start().engine()?));
    }
    Ok(Box::new(Process::start(kind, None, Path::new(&python()))?))
}

/// The engines that this machine has, by their dialects.
pub fn engines() -> Vec<Box<dyn Engine>> {
    let there = EngineKind::ALL.into_iter().filter(|kind| has(*kind));
    there.map(|kind| engine(kind).unwrap()).collect()
}

/// The recorded executions, where they are.
pub fn corpus() -> Vec<PathBuf> {
    let near = [
        std::env::var_os("DEMI_CORPUS").map(PathBuf::from),
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")),
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus")),
    ];
    let Some(found) = near.into_iter().flatten().map(|path| path.join("demi")).find(|path| path.is_dir())
    else {
        println!("skipped: no recordings (set DEMI_CORPUS)");
        return Vec::new();
    };
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(found).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// The records of a recorded execution.
pub fn recorded(case: &Path) -> Vec<EventRecord> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(case.join("logs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    texts
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| EventRecord::parse(line.as_bytes()).unwrap())
        .collect()
}
