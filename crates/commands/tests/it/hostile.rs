//! A model that misbehaves: whatever it does, `minimize` ends with what it found, and says what happened.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The program `examples/hostile.rs`, which is built with these tests.
pub(crate) fn program() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    folder.join("examples").join(format!("hostile{}", std::env::consts::EXE_SUFFIX))
}

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    /// A scenario with these switches, and a recorded schedule in which counters take these numbers.
    fn new(switches: &[&str], more: &str, members: usize, numbers: &[u64]) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let on: String = switches
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| format!("\"{name}\" = true\n"))
            .collect();
        let scenario =
            format!("model = \"hostile\"\nnetwork = \"fifo\"\nmembers = {members}\n{more}\n[switches]\n{on}");
        std::fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        let mut lines =
            vec![r#"{"schema":"demi-schedule/1","network":"fifo","violation":["Nine"]}"#.to_owned()];
        lines.extend(
            (1..=members).map(|n| format!(r#"{{"kind":"start","to":"counter-{n}","external":true}}"#)),
        );
        lines.extend(numbers.iter().enumerate().map(|(at, n)| {
            let to = format!("counter-{}", if [5, 9].contains(n) { 1 } else { at % members + 1 });
            format!(
                r#"{{"kind":"deliver","from":"deadLetters","to":"{to}","type":"Add","payload":"Add({n})","external":true}}"#
            )
        }));
        std::fs::write(folder.path().join("input.jsonl"), lines.join("\n") + "\n").unwrap();
        Case { folder }
    }

    fn minimize(&self, more: &[&str]) -> Output {
        let at = |name: &str| self.folder.path().join(name);
        Command::new(program())
            .arg("minimize")
            .arg(at("input.jsonl"))
            .arg("--scenario")
            .arg(at("scenario.toml"))
            .arg("--out")
            .arg(at("out"))
            .args(more)
            .env("HOSTILE_STEPS", at("steps"))
            .output()
            .unwrap()
    }

    /// How many steps the result has.
    fn steps(&self) -> usize {
        let schedule = std::fs::read_to_string(self.folder.path().join("out/schedule.jsonl")).unwrap();
        schedule.lines().count() - 1
    }
}

const NUMBERS: [u64; 8] = [1, 2, 5, 3, 4, 6, 7, 9];

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_step_in_which_the_handler_panics_cannot_be_taken() {
    for switch in ["panics", "blind"] {
        let case = Case::new(&[switch], "", 1, &NUMBERS);
        let output = case.minimize(&["--budget", "2000r"]);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert_eq!(case.steps(), 3, "the start, 5 and 9");
        assert!(!told(&output).contains("panicked"), "{}", told(&output));
    }
}

#[test]
fn a_handler_that_does_not_return_ends_the_run_and_is_named() {
    let case = Case::new(&["hangs"], "handler_limit_seconds = 1", 1, &NUMBERS);
    let output = case.minimize(&["--budget", "60s"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    let expected = "the handler of counter-1 did not return from Add Add(9) within 1 s";
    assert!(told(&output).contains(expected), "{}", told(&output));
    let best = case.folder.path().join("out.best.jsonl");
    if told(&output).contains("the best schedule so far") {
        assert!(std::fs::read_to_string(best).unwrap().contains("Add(9)"));
    } else {
        assert!(told(&output).contains("nothing shorter"), "{}", told(&output));
        assert!(!best.exists());
    }
}

#[test]
fn a_model_that_is_not_deterministic_is_named_before_anything_else() {
    let case = Case::new(&["rolls dice"], "", 1, &NUMBERS);
    let output = case.minimize(&["--budget", "2000r"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("not deterministic at step 2: counter-1, Add(1)"), "{}", told(&output));
}

#[test]
fn growing_states_storms_and_wide_clusters_end_within_the_budget() {
    for (switches, members) in [(&["grows"][..], 1), (&["storms"], 1), (&["storms"], 10), (&["panics"], 50)] {
        let case = Case::new(switches, "", members, &NUMBERS);
        let output = case.minimize(&["--budget", "3s"]);
        assert_eq!(output.status.code(), Some(0), "{switches:?}, {members}: {}", told(&output));
        let least = if switches == ["panics"] { 3 } else { 2 };
        assert_eq!(case.steps(), least, "{switches:?}, {members}");
        assert!(!case.folder.path().join("out.best.jsonl").exists(), "the result has taken its place");
    }
}

/// Steps are counted, not seconds: on a machine that is slow or busy there are fewer of them, never more.
#[test]
fn a_budget_holds_whatever_a_step_costs() {
    let numbers: Vec<u64> = (10..40).chain([5, 9]).collect();
    for milliseconds in [5, 25, 100] {
        let case = Case::new(&["panics", "storms", &format!("slow {milliseconds}")], "", 4, &numbers);
        let output = case.minimize(&["--budget", "4s", "--jobs", "1"]);
        let made = std::fs::metadata(case.folder.path().join("steps")).unwrap().len();
        // The budget and two seconds, of which nothing but steps takes any.
        assert!(made * milliseconds <= 6_000, "{made} steps of {milliseconds} ms: {}", told(&output));
        match output.status.code() {
            Some(0) => assert!(case.steps() <= numbers.len() + 4, "{milliseconds}"),
            // To run so many slow steps once takes nearly the budget.
            Some(4) => {
                assert!(
                    milliseconds == 100 && told(&output).contains("the budget ended before"),
                    "{}",
                    told(&output)
                );
            }
            other => panic!("{milliseconds} ms: status {other:?}, {}", told(&output)),
        }
    }
}

/// What has nothing but its time to end it ends: a search that ignored the budget would not.
#[test]
fn a_search_that_never_comes_to_an_end_is_ended_by_the_budget() {
    let numbers: Vec<u64> = (10..40).chain([5, 9]).collect();
    for more in ["", "big"] {
        let case = Case::new(&["panics", "storms", more], "", 4, &numbers);
        let began = std::time::Instant::now();
        let output = case.minimize(&["--budget", "4s"]);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        let seconds = began.elapsed().as_secs_f64();
        assert!(seconds < 60.0, "{more}: {seconds} s");
    }
}

/// What `minimize` is given names the violation that a panic is.
#[test]
fn a_crash_is_minimized_and_with_no_crash_there_is_none() {
    let case = Case::new(&["panics"], "", 1, &[1, 2, 3, 4, 9]);
    let input = case.folder.path().join("input.jsonl");
    let text = std::fs::read_to_string(&input).unwrap();
    // What it violates is found by running it.
    std::fs::write(&input, text.replace(r#","violation":["Nine"]"#, "")).unwrap();
    let output = case.minimize(&["--budget", "2000r"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(
        shown.contains("violation: crash: counter-1, nine before five (") && shown.contains("hostile.rs:"),
        "{shown}"
    );
    assert_eq!(case.steps(), 2, "the start, and 9");
    std::fs::remove_dir_all(case.folder.path().join("out")).unwrap();
    let output = case.minimize(&["--budget", "2000r", "--no-crash"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("does not end in the violation"), "{}", told(&output));
}

/// A handler that panics when its actor starts: every command says it as a violation, with a schedule of one step.
#[test]
fn a_crash_at_the_start_is_found_and_replayed() {
    let case = Case::new(&["stillborn"], "", 2, &[]);
    let at = |name: &str| case.folder.path().join(name).display().to_string();
    let run = |line: &[&str]| {
        let output = Command::new(program()).args(line).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), told(&output));
        (output.status.code(), said)
    };
    let scenario = at("scenario.toml");
    for (command, status) in [("fuzz", 0), ("explore", 1)] {
        let out = at(command);
        let mut line = vec![command, "--scenario", &scenario, "--out", &out];
        line.extend(if command == "fuzz" { &["--seed", "1"][..] } else { &[] });
        let (code, said) = run(&line);
        assert_eq!(code, Some(status), "{command}: {said}");
        assert!(said.contains("crash: counter-1, cannot start (") && said.contains("hostile.rs:"), "{said}");
        let schedule =
            std::fs::read_to_string(case.folder.path().join(command).join("schedule.jsonl")).unwrap();
        assert_eq!(schedule.lines().count(), 2, "the header, and one start: {schedule}");
        let input = format!("{out}/schedule.jsonl");
        let (code, said) = run(&["replay", &input, "--scenario", &scenario, "--strict"]);
        assert_eq!(code, Some(0), "{command}: {said}");
        let least = at(&format!("{command}-min"));
        let line = ["minimize", &input, "--scenario", &scenario, "--budget", "100r", "--out", &least];
        let (code, said) = run(&line);
        assert_eq!(code, Some(0), "{command}: {said}");
        let (code, said) = run(&["verify", &least]);
        assert_eq!(code, Some(0), "{command}: {said}");
        let (code, said) =
            run(&["export", &least, "--format", "shiviz", "--output", &at(&format!("{command}.log"))]);
        assert_eq!(code, Some(0), "{command}: {said}");
    }
    let (code, _) = run(&[
        "fuzz",
        "--no-crash",
        "--seed",
        "1",
        "--runs",
        "3",
        "--scenario",
        &scenario,
        "--out",
        &at("none"),
    ]);
    assert_eq!(code, Some(1), "no crash counts, and nothing else is broken");
}

#[test]
fn memory_ends_the_search_with_the_best_so_far() {
    let case = Case::new(&["grows"], "", 1, &NUMBERS);
    let output = case.minimize(&["--budget", "60s", "--memory", "1MiB"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(told(&output).contains("memory"), "{}", told(&output));
    assert!(case.folder.path().join("out/schedule.jsonl").is_file());
    let refused = case.minimize(&["--memory", "lots"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(told(&refused).contains("is no amount of memory"), "{}", told(&refused));
}

/// What a model does that ends its process, and how that is told.
const ENDS: [(&str, &str); 4] = [
    ("overflows", "its stack overflowed"),
    ("aborts", "it aborted"),
    ("exits", "it ended its process with status 7"),
    ("devours", "its memory ran out"),
];

fn run(folder: &std::path::Path, words: &[&str]) -> Output {
    Command::new(program()).args(words).current_dir(folder).output().unwrap()
}

/// The crash is found, shortened, replayed, verified and shown by the same switch.
#[test]
fn what_ends_the_process_is_a_finding_where_handlers_run_in_a_process_of_their_own() {
    for (switch, told_as) in ENDS {
        let case = Case::new(&[switch], "", 2, &[]);
        let folder = case.folder.path();
        let in_child = "--in-child=256MiB";
        let fuzzed =
            run(folder, &["fuzz", "--scenario", "scenario.toml", "--seed", "1", "--out", "found", in_child]);
        assert_eq!(fuzzed.status.code(), Some(0), "{switch}: {}", told(&fuzzed));
        let text = String::from_utf8_lossy(&fuzzed.stdout).into_owned() + &told(&fuzzed);
        assert!(text.contains("crash: counter-") && text.contains(told_as), "{switch}: {text}");
        let minimize = [
            "minimize",
            "found/schedule.jsonl",
            "--scenario",
            "found/scenario.toml",
            "--budget",
            "2000r",
            "--out",
            "out",
            in_child,
        ];
        let minimized = run(folder, &minimize);
        assert_eq!(minimized.status.code(), Some(0), "{switch}: {}", told(&minimized));
        assert_eq!(case.steps(), 2, "{switch}: the start and 9");
        let scenario = "out/scenario.toml";
        for words in [
            &["replay", "out/schedule.jsonl", "--scenario", scenario, "--strict"][..],
            &["verify", "out"],
            &["report", "out", "--html", "page.html"],
            &["export", "out", "--format", "json", "--out", "out.json"],
        ] {
            let output = run(folder, &[words, &[in_child]].concat());
            assert_eq!(output.status.code(), Some(0), "{switch}, {}: {}", words[0], told(&output));
        }
        let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
        assert!(page.contains(told_as), "{switch}");
        // Without the switch it ends the program.
        let replay = &["replay", "out/schedule.jsonl", "--scenario", scenario];
        if switch != "devours" {
            assert!(![Some(0), Some(2)].contains(&run(folder, replay).status.code()), "{switch}");
        }
    }
}

#[test]
fn an_exploration_goes_on_behind_what_ends_the_process() {
    let case = Case::new(&["overflows"], "", 1, &[]);
    let words = ["explore", "--scenario", "scenario.toml", "--bound", "2", "--out", "explored", "--in-child"];
    let explored = run(case.folder.path(), &words);
    let text = String::from_utf8_lossy(&explored.stdout).into_owned() + &told(&explored);
    assert_eq!(explored.status.code(), Some(1), "{text}");
    assert!(text.contains("its stack overflowed"), "{text}");
}

/// Whatever runs elsewhere first: what comes of it is the same, to the byte.
#[test]
fn a_model_that_returns_is_run_alike_with_and_without_a_process_of_its_own() {
    let case = Case::new(&[], "", 2, &NUMBERS);
    let mut all = Vec::new();
    for more in [&["--budget", "500r"][..], &["--budget", "500r", "--in-child"]] {
        let output = case.minimize(more);
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        all.push(std::fs::read(case.folder.path().join("out/schedule.jsonl")).unwrap());
        std::fs::remove_dir_all(case.folder.path().join("out")).unwrap();
    }
    assert_eq!(all[0], all[1]);
}
