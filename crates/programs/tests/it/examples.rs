//! The examples of the documentation: each has the violation that it is there for, and its schedule is a script for a shell.

use std::path::Path;

use demi_programs::{History, Told, WithPrograms, Workload, resolve};
use demi_replay::fuzz::{Found, FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::Scenario;

struct Run<'a>(&'a Scenario);

impl Visitor for Run<'_> {
    type Output = Found;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        let options = FuzzOptions::new(1, 100, 60);
        fuzz(&mut simulator, self.0, &options, &mut |_| true).unwrap().expect("a violation")
    }
}

/// The scenario of an example, with the program's place in it.
fn example(name: &str) -> Option<Scenario> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("examples/programs").join(name)).unwrap();
    let text = text.replace("examples/programs/", &format!("{}/examples/programs/", root.display()));
    let scenario = Scenario::parse(&text).unwrap();
    let command = scenario.model.child().unwrap().command.clone();
    if resolve(&command).is_err() {
        println!("skipped: no {}", command[0]);
        return None;
    }
    Some(scenario)
}

fn violation(name: &str) -> Option<(Scenario, Found)> {
    let scenario = example(name)?;
    let registry = WithPrograms::new(NoModels);
    let found = registry.visit(&scenario, Run(&scenario)).unwrap();
    assert_eq!(registry.fault(), None);
    Some((scenario, found))
}

#[test]
fn lines_of_another_protocol_are_understood() {
    for (name, expected) in
        [("lines_register.toml", "lin-kv/not linearizable"), ("lines_set.toml", "g-set/an element is lost")]
    {
        if let Some((_, found)) = violation(name) {
            assert_eq!(found.violation, [expected], "{name}");
        }
    }
}

/// The history that is written breaks what the run broke; and the program answers a shell as it answered us.
#[test]
fn a_schedule_is_a_history_and_a_script() {
    let Some((scenario, found)) = violation("register.toml") else { return };
    let told = Told::of(&scenario, &found.schedule).unwrap();
    let history = History::parse(&told.history()).unwrap();
    let workload = Workload::new(scenario.workload.as_ref().unwrap()).unwrap();
    assert_eq!(workload.check(&history)[0].name, "not linearizable");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sh");
    // The program does not depend on time, so that nothing has to be waited for but its last answer.
    std::fs::write(&script, told.script().replace("sleep 0.3", "sleep 0.05")).unwrap();
    let Ok(output) = std::process::Command::new("bash").arg(&script).output() else {
        println!("skipped: no bash");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("n0 reads  {\"id\":0,\"src\":\"c0\""), "{text} {errors}");
    assert!(text.contains("n2 reads  ") && text.contains("init_ok"), "{text} {errors}");
    assert!(text.contains("n0 writes ") && errors.is_empty(), "{text} {errors}");
}

/// What was read in the end stands in the history, so that it breaks alone what the run broke.
#[test]
fn what_is_read_in_the_end_is_part_of_the_history() {
    let Some((scenario, found)) = violation("lines_set.toml") else { return };
    let text = Told::of(&scenario, &found.schedule).unwrap().history();
    assert_eq!(
        text.matches("\"final\":true").count(),
        2 * scenario.model.child().unwrap().nodes.as_ref().unwrap().names().len()
    );
    let workload = Workload::new(scenario.workload.as_ref().unwrap()).unwrap();
    let broken = workload.check(&History::parse(&text).unwrap());
    assert_eq!(broken[0].name, "an element is lost", "{text}");
    let asked: String =
        text.lines().filter(|line| !line.contains("\"final\"")).map(|line| format!("{line}\n")).collect();
    assert!(workload.check(&History::parse(&asked).unwrap()).is_empty(), "only the end tells");
}

/// A violating run of a seed, with the states of all actors.
struct States<'a>(&'a Scenario, u64);

impl Visitor for States<'_> {
    type Output = Option<Found>;

    fn visit<M: Model>(self, mut simulator: Simulator<M>) -> Self::Output {
        let options = FuzzOptions { states: true, ..FuzzOptions::new(self.1, 3, 100) };
        fuzz(&mut simulator, self.0, &options, &mut |_| true).unwrap()
    }
}

/// The same schedules in other processes come to the same, what nodes wrote and what their clocks showed included.
#[test]
fn schedules_do_the_same_in_fresh_processes() {
    let seeds = std::env::var("DEMI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4);
    for name in ["register.toml", "lines_register.toml", "lines_set.toml"] {
        let Some(scenario) = example(name) else { continue };
        let run = |seed| {
            let registry = WithPrograms::new(NoModels);
            let found = registry.visit(&scenario, States(&scenario, seed)).unwrap();
            assert_eq!(registry.fault(), None);
            found
        };
        let first: Vec<Option<Found>> = (0..seeds).map(run).collect();
        assert!(first.iter().any(Option::is_some), "{name}");
        assert_eq!(first, (0..seeds).map(run).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn settings_of_lines_that_are_wrong_are_named() {
    let Some(scenario) = example("lines_register.toml") else { return };
    let refused = |change: &dyn Fn(&mut demi_schemas::scenario::LinesSettings)| {
        let mut scenario = scenario.clone();
        change(scenario.lines.as_mut().unwrap());
        let registry = WithPrograms::new(NoModels);
        registry.visit(&scenario, Run(&scenario)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let text = refused(&|lines| {
        lines.requests.remove("cas");
    });
    assert!(text.contains("no 'cas'"), "{text}");
    let text = refused(&|lines| lines.begin = Some("{\"hello\": \"$node\"}".into()));
    assert!(text.contains("lines.begin is no JSON"), "{text}");
}
