//! What a schedule came to: the history of its clients, and the lines that each node read, as a script that feeds them to the program.

use std::fmt::Write;
use std::sync::Arc;

use demi_common::text::shell_words;
use demi_replay::replay::{ReplayOptions, watched};
use demi_replay::{Model, Names, Simulator};
use demi_schemas::{Scenario, Schedule};
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::book::Book;
use crate::model::{FinalRead, ProgramModel, State};
use crate::nodes::{Input, Local, Nodes};
use crate::registry::{launches, model};

/// How long the script waits for a node to answer a line.
const PAUSE: &str = "0.3";

/// One step of a node: what it took, and what its clock showed before and after.
struct Taken {
    node: String,
    input: Input,
    passed: u64,
    began: bool,
}

/// What a replay of a schedule shows.
pub struct Told {
    command: Vec<String>,
    taken: Vec<Taken>,
    nodes: Vec<String>,
    book: Arc<Book>,
    finals: Vec<FinalRead>,
}

impl Told {
    /// Replays a schedule.
    ///
    /// # Errors
    /// When the scenario runs no program, or the schedule cannot be followed.
    pub fn of(scenario: &Scenario, schedule: &Schedule) -> Result<Told, String> {
        let spec = scenario.model.child().filter(|spec| spec.nodes.is_some());
        let spec = spec.ok_or("the scenario's model is no program that runs as it is")?;
        let mut names = Names::default();
        let launches = launches(spec, scenario)?;
        let command = launches.first().map(|(_, launch)| launch.command.clone()).unwrap_or_default();
        let nodes: Vec<String> = launches.iter().map(|(name, _)| name.clone()).collect();
        let processes = Arc::new(Nodes::new(launches));
        let model = model(spec, scenario, &processes, &mut names)?;
        let mut simulator = Simulator::new(model, names, scenario).map_err(|error| error.to_string())?;
        let actors: Vec<_> = nodes.iter().filter_map(|name| simulator.names().find(name)).collect();
        let clients = simulator.model().actors().get(nodes.len()).copied();
        let mut seen: FxHashMap<usize, u128> = FxHashMap::default();
        let mut told = Told {
            command,
            taken: Vec::new(),
            nodes: nodes.clone(),
            book: Arc::default(),
            finals: Vec::new(),
        };
        let mut last = simulator.empty_world();
        let options = ReplayOptions { rule: scenario.network, strict: true, interval: 1 };
        let mut take = |sim: &Simulator<ProgramModel>, world: &demi_replay::World<ProgramModel>| {
            let view = sim.view(world);
            for (place, &actor) in actors.iter().enumerate() {
                let Some(State::Node(local) | State::Doomed(local, _)) = view.state(actor) else { continue };
                let last = seen.insert(place, local.digest());
                if last != Some(local.digest()) {
                    told.taken.extend(new_of(&nodes[place], local, last));
                }
            }
            if let Some(State::Clients(book)) = clients.and_then(|client| view.state(client)) {
                told.book = Arc::clone(book);
            }
            last = world.clone();
        };
        let before = simulator.empty_world();
        take(&simulator, &before);
        watched(&mut simulator, schedule, &options, &mut |_, _, sim, world| take(sim, world))
            .map_err(|error| error.to_string())?;
        told.finals = simulator.model().final_reads(&told.book, &simulator.view(&last));
        match processes.fault() {
            Some(fault) => Err(fault.to_string()),
            None => Ok(told),
        }
    }

    /// The history of its clients, a line of JSON for each event, and what every node reads in the end, if that is looked at.
    #[must_use]
    pub fn history(&self) -> String {
        let mut lines = self.book.to_lines();
        for FinalRead { process, node, f, value } in &self.finals {
            let node = &self.nodes[*node];
            lines.push(json!({ "process": process, "type": "invoke", "f": f, "value": null, "final": true, "node": node }));
            lines.push(json!({ "process": process, "type": "ok", "f": f, "value": value, "final": true, "node": node }));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// A script for a shell that starts every node and feeds it its lines, in the order of the schedule.
    #[must_use]
    pub fn script(&self) -> String {
        let mut text = String::from(
            "#!/bin/bash\n# Starts each node of a program and feeds it the lines of a schedule, in its order. Clocks and random numbers are the machine's own here, so a \
             program\n# that depends on them may answer otherwise.\nset -u\nfolder=$(mktemp -d)\ntrap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf \"$folder\"' EXIT\n\n",
        );
        let _ = write!(
            text,
            "start() {{\n    mkdir -p \"$folder/$1.files\"\n    mkfifo \"$folder/$1.in\"\n    (cd \"$folder/$1.files\" && exec {}) <\"$folder/$1.in\" > >(sed -u \"s/^/$1 writes /\") \
             2>\"$folder/$1.errors\" &\n    declare -g \"pid_$1=$!\"\n    exec {{input}}>\"$folder/$1.in\"\n    declare -g \"input_$1=$input\"\n}}\n\n\
             tell() {{\n    local input=\"input_$1\"\n    echo \"$1 reads  $2\"\n    printf '%s\\n' \"$2\" >&\"${{!input}}\"\n    sleep {PAUSE}\n}}\n\n\
             restart() {{\n    local pid=\"pid_$1\"\n    kill -9 \"${{!pid}}\"\n    rm \"$folder/$1.in\"\n    start \"$1\"\n}}\n\n",
            shell_words(&self.command)
        );
        for node in &self.nodes {
            let _ = writeln!(text, "start {node}");
        }
        for taken in &self.taken {
            if taken.began {
                let _ = writeln!(text, "restart {}", taken.node);
            }
            // Nobody kills a process at one of its writes from outside.
            let whole = match &taken.input {
                Input::Cut(input, _) => &**input,
                input => input,
            };
            let _ = match whole {
                Input::Begin => Ok(()),
                Input::Line(line) => {
                    writeln!(text, "tell {} {}", taken.node, shell_words(&[line.to_string()]))
                }
                Input::Clock | Input::Until(_) | Input::Cut(..) => {
                    writeln!(text, "sleep {:.3} # the clock of {}", taken.passed as f64 / 1e9, taken.node)
                }
            };
        }
        text.push_str("sleep 1\n");
        text
    }
}

/// What a node took since a history.
fn new_of(node: &str, local: &Arc<Local>, last: Option<u128>) -> Vec<Taken> {
    let all = local.whole();
    let from = last.and_then(|last| all.iter().position(|one| one.digest() == last)).map_or(0, |at| at + 1);
    let clock = |at: usize| all.get(at).map_or(0, |one| one.answer().clock);
    (from..all.len())
        .map(|at| Taken {
            node: node.to_owned(),
            input: all[at].input().clone(),
            passed: clock(at).saturating_sub(if at == 0 { 0 } else { clock(at - 1) }),
            // The first line of another process.
            began: at > 0 && all[at].depth() == 1,
        })
        .collect()
}
