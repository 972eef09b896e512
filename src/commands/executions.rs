//! Executions to infer from and to check: stores, executions, folders of logs.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use demi_formats::Sources;
use demi_infer::{Execution, Record};
use demi_lineage::query::{Ground, INDEX_FOLDER, Query, StateHistory};
use demi_store::{Gathered, LoadOptions};
use tempfile::TempDir;

use super::built;
use demi_commands::ui::Ui;

/// How records come to tell states.
pub const HOW_TO_TELL: &str = "give records the actor's variables, as in \"state\": {\"role\": \"Leader\", \"term\": 3}, or let a mapping set \
     `state` (docs/formats.md)";

/// Most pairs of states of two actors that are looked at.
const PAIRS: usize = 100_000;

/// An execution with its order.
pub struct Ordered {
    /// What people call it: the system of a store, the folder otherwise.
    pub name: String,
    pub query: Query,
    pub told: StateHistory,
    /// Its ground states, where these are what is looked at.
    pub ground: Option<Ground>,
    /// Its pairs of states that can exist at the same time, where these are what is looked at.
    pub pairs: Vec<[usize; 2]>,
    /// The folder of an execution that is not kept, for as long as it is asked.
    _temporary: Option<Arc<TempDir>>,
}

impl Ordered {
    /// Its states, and its messages where they are asked for.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn execution(&self, messages: bool) -> Result<Execution, Box<dyn Error>> {
        let mut records = Vec::new();
        let mut names: std::collections::BTreeMap<String, Arc<str>> = std::collections::BTreeMap::new();
        self.query.each_recorded_state(&self.told, &mut |actor, incarnation, state| {
            let name = match names.get(actor) {
                Some(name) => name.clone(),
                None => names.entry(actor.to_owned()).or_insert_with(|| Arc::from(actor)).clone(),
            };
            records.push(Record { actor: name, incarnation, state: state.clone() });
        });
        let messages = match messages {
            true => self.told.deliveries(&self.query)?.iter().map(|d| d.delivered.clone()).collect(),
            false => Vec::new(),
        };
        let mut execution = Execution {
            name: self.name.clone(),
            records,
            messages,
            moments: Vec::new(),
            pairs: self.pairs.clone(),
        };
        if let Some(ground) = &self.ground {
            execution.records = ground.order.iter().map(|at| execution.records[*at].clone()).collect();
            execution.moments.clone_from(&ground.moments);
        }
        Ok(execution)
    }

    /// From here on ground states are what is looked at.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn take_ground(&mut self) -> Result<(), Box<dyn Error>> {
        self.ground = Some(self.query.ground(&self.told)?);
        Ok(())
    }

    /// From here on pairs of states that can exist at the same time are looked at as well.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn take_pairs(&mut self) -> Result<(), Box<dyn Error>> {
        self.pairs = self.query.state_pairs(&self.told, PAIRS)?;
        Ok(())
    }

    /// The name of the event that told a state, or received a message, by its number in the execution.
    ///
    /// # Errors
    /// When a file of the execution cannot be read.
    pub fn event(&self, at: usize, is_message: bool) -> Result<String, Box<dyn Error>> {
        let event = match is_message {
            true => self.told.deliveries(&self.query)?.get(at).map(demi_lineage::query::Delivery::receive),
            false => {
                let at = self.ground.as_ref().and_then(|ground| ground.order.get(at)).copied().unwrap_or(at);
                self.told.event(at)
            }
        };
        Ok(event.map_or(Ok(String::new()), |e| self.query.index().name(e).map(|name| name.to_string()))?)
    }
}

/// The executions of these places: each system of a store is one, each folder with logs, each folder that `build` wrote.
///
/// # Errors
/// When a place holds none of these, or an execution tells no state.
pub fn open(places: &[PathBuf], system: Option<&str>, ui: &Ui) -> Result<Vec<Ordered>, Box<dyn Error>> {
    let mut all = Vec::new();
    for place in places {
        if built::is_store(place) {
            let systems = match system {
                Some(named) => vec![named.to_owned()],
                None => built::systems(place)?,
            };
            for system in systems {
                let order = built::order(place, Some(&system), ui)?;
                all.push(ordered(system, &order.folder, order.temporary.map(Arc::new))?);
            }
        } else if place.join(INDEX_FOLDER).is_dir() {
            all.push(ordered(place.display().to_string(), place, None)?);
        } else {
            from_logs(place, ui, &mut all)?;
        }
    }
    Ok(all)
}

fn ordered(name: String, folder: &Path, temporary: Option<Arc<TempDir>>) -> Result<Ordered, Box<dyn Error>> {
    let query = Query::open(folder, false)?;
    let told = query.state_history().map_err(|e| format!("{name}: {e}; {HOW_TO_TELL}"))?;
    Ok(Ordered { name, query, told, ground: None, pairs: Vec::new(), _temporary: temporary })
}

/// Builds an order of each folder with logs, which lives as long as the execution.
fn from_logs(place: &Path, ui: &Ui, all: &mut Vec<Ordered>) -> Result<(), Box<dyn Error>> {
    let mut folders = Vec::new();
    folders_of_logs(place, &mut folders).map_err(|e| format!("{}: {e}", place.display()))?;
    if folders.is_empty() {
        let reason = "holds no store, no execution and no logs of event records (*.jsonl)";
        return Err(format!("{}: {reason}", place.display()).into());
    }
    let bar = ui.progress();
    for (i, folder) in folders.iter().enumerate() {
        bar.set_message(format!("reading {} of {} folders", i + 1, folders.len()));
        let path = folder.to_str().ok_or_else(|| format!("{}: the name is not UTF-8", folder.display()))?;
        let temporary = TempDir::new()?;
        let system = i.to_string();
        let sources = Sources::plan(&[path.to_owned()])?;
        let options = LoadOptions::new(&*system);
        let (gathered, report) = Gathered::read(temporary.path(), sources, &options, None, |_| {})?;
        if report.summary.quarantined > 0 {
            let n = report.summary.quarantined;
            ui.note(&format!("warning: {path}: {n} lines are not event records and are skipped"));
        }
        let order = temporary.path().join("order");
        demi_lineage::query::refresh(gathered.event_files(&system), &system, &order, &mut |_| {})?;
        let shown = if folder.ends_with("logs") { folder.parent().unwrap_or(folder) } else { folder };
        all.push(ordered(shown.display().to_string(), &order, Some(Arc::new(temporary)))?);
    }
    bar.finish_and_clear();
    Ok(())
}

/// The folders that hold logs, in the order of their names. A schedule is no log.
fn folders_of_logs(place: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut inner: Vec<PathBuf> = Vec::new();
    let mut logs = false;
    for entry in std::fs::read_dir(place)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        if path.is_dir() {
            inner.push(path);
        } else if plain.ends_with(".jsonl") && plain != "schedule.jsonl" {
            logs = true;
        }
    }
    if logs {
        found.push(place.to_owned());
        return Ok(());
    }
    inner.sort();
    inner.iter().try_for_each(|folder| folders_of_logs(folder, found))
}
