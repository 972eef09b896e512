//! The command line as a whole: exit statuses, the store that need not be named, what is refused with its reason, help for shells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Desk(tempfile::TempDir);

impl Desk {
    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_demi-lineage"))
            .args(line.split_whitespace())
            .env("DEMI_STORE", self.at("store"))
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Runs a line that must end with this status, and gives what it says.
    fn ends(&self, status: i32, line: &str) -> String {
        let output = self.run(line);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{line}: {text}");
        text
    }
}

#[test]
fn commands_end_with_the_statuses_of_the_table() {
    let desk = Desk(tempfile::tempdir().unwrap());
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("replay/scenarios");
    let raft = scenarios.join("raft-45.toml").display().to_string();
    let phases = scenarios.join("two-phase.toml").display().to_string();

    desk.ends(1, &format!("fuzz --scenario {raft} --seed 1 --runs 1 --deliveries 1 --out none"));
    desk.ends(0, &format!("fuzz --scenario {raft} --seed 1 --out found"));
    // No command names the store, and none but the first the system.
    desk.ends(0, "ingest load --system s found/logs");
    desk.ends(0, "ingest status");
    desk.ends(0, "ingest requeue");
    desk.ends(0, "build --out exec");
    desk.ends(0, &format!("replay exec --scenario {raft}"));
    let mismatch = desk.run(&format!("replay exec --scenario {phases}"));
    assert!(matches!(mismatch.status.code(), Some(2 | 3)), "{mismatch:?}");
    desk.ends(2, &format!("replay nowhere --scenario {raft}"));
    desk.ends(0, &format!("minimize exec --scenario {raft} --budget 300r --out min"));
    desk.ends(0, &format!("replay min/schedule.jsonl --scenario {raft} --strict"));
    desk.ends(0, "verify min");

    // A schedule without its last step ends before the violation; one without its second is not followed.
    let text = fs::read_to_string(desk.at("min/schedule.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(desk.at("short.jsonl"), lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    desk.ends(1, &format!("replay short.jsonl --scenario {raft} --strict"));
    let gap = [&lines[..1], &lines[2..]].concat();
    fs::write(desk.at("gap.jsonl"), gap.join("\n") + "\n").unwrap();
    desk.ends(3, &format!("replay gap.jsonl --scenario {raft} --strict"));

    // A claim that is not true.
    let path = desk.at("min/certificate.json");
    let text = fs::read_to_string(&path).unwrap();
    let digest = text.split("\"digest\": \"").nth(1).unwrap().split('"').next().unwrap();
    fs::write(&path, text.replace(digest, &"0".repeat(digest.len()))).unwrap();
    desk.ends(1, "verify min");
    let help = desk.ends(0, "--help");
    for status in 0..=4 {
        assert!(help.contains(&format!("\n  {status}  ")), "{help}");
    }
}

#[test]
fn budgets_that_mean_nothing_are_refused_with_the_reason() {
    let desk = Desk(tempfile::tempdir().unwrap());
    for (budget, reason) in [
        ("0s", "leaves no room"),
        ("0r", "leaves no room"),
        ("-5s", "leaves no room"),
        ("99999999999999s", "never ends"),
        ("infs", "is no budget"),
        ("soon", "is no budget"),
    ] {
        let said = desk.ends(2, &format!("verify nowhere --budget={budget}"));
        assert!(said.contains(reason), "{budget}: {said}");
    }
}

#[test]
fn the_daemon_and_its_check_take_the_configuration_alike() {
    let desk = Desk(tempfile::tempdir().unwrap());
    fs::write(desk.at("bad.toml"), "nonsense = 1\n").unwrap();
    for command in ["serve", "validate"] {
        for file in ["bad.toml", "--config bad.toml", "--config=bad.toml"] {
            let said = desk.ends(2, &format!("ingest {command} {file}"));
            assert!(said.contains("nonsense"), "{command} {file}: {said}");
        }
        assert!(desk.ends(2, &format!("ingest {command}")).contains("FILE"));
        assert!(
            desk.ends(2, &format!("ingest {command} bad.toml --config bad.toml")).contains("cannot be used")
        );
    }
}

#[test]
fn shells_and_man_know_the_commands() {
    let desk = Desk(tempfile::tempdir().unwrap());
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.ends(0, &format!("completions {shell}"));
        assert!(
            script.contains("minimize") && script.contains("--budget") || script.contains("-l budget"),
            "{shell}"
        );
    }
    desk.ends(0, "man --out pages");
    for page in ["demi-lineage.1", "demi-lineage-minimize.1", "demi-lineage-ingest-load.1"] {
        let text = fs::read_to_string(desk.at("pages").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
        assert!(text.contains(".SH \"SEE ALSO\"") || page == "demi-lineage-minimize.1", "{page}: {text}");
        assert!(text.contains(".SH EXAMPLES") || page == "demi-lineage.1", "{page}: {text}");
    }
    let page = fs::read_to_string(desk.at("pages").join("demi-lineage-query-find.1")).unwrap();
    assert!(page.contains("demi\\-lineage query exec find \\(aqtwo leaders\\(aq"), "{page}");
    assert!(page.contains("\\fBdemi\\-lineage\\-query\\fR(1)"), "{page}");
    let help = desk.ends(0, "query find --help");
    assert!(
        help.contains("Examples:\n  # events that hold a text\n  demi-lineage query exec find 'two leaders'"),
        "{help}"
    );
    // Where there is a reader of pages, it has nothing to complain of.
    if Command::new("groff").arg("--version").output().is_ok_and(|o| o.status.success()) {
        for page in fs::read_dir(desk.at("pages")).unwrap() {
            let page = page.unwrap().path();
            let read =
                Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page).output().unwrap();
            assert!(
                read.status.success() && read.stderr.is_empty(),
                "{}: {}",
                page.display(),
                String::from_utf8_lossy(&read.stderr)
            );
        }
    } else {
        println!("skipped: no groff");
    }
}

#[test]
fn what_did_nothing_is_gone() {
    let desk = Desk(tempfile::tempdir().unwrap());
    assert!(desk.ends(2, "ingest parse --dry-run x.log").contains("--dry-run"));
}
