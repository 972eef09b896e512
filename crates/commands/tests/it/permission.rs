//! The scenario of a folder starts its program only where the user means it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::export::program;

/// A folder for the work, and one for what this user's commands remember.
struct User {
    folder: tempfile::TempDir,
}

const MODEL: &str = include_str!("../../../../sdk/python/examples/lock.py");

impl User {
    fn new() -> User {
        let folder = tempfile::tempdir().unwrap();
        // The model says that it ran.
        let told = folder.path().join("ran");
        let model =
            MODEL.replacen("import", &format!("open({:?}, 'w').close()\nimport", told.to_str().unwrap()), 1);
        fs::write(folder.path().join("lock.py"), model).unwrap();
        let scenario = "network = \"fifo\"\n[model]\ncommand = [\"python3\", \"lock.py\"]\n";
        fs::write(folder.path().join("lock.toml"), scenario).unwrap();
        User { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, state: &str) -> Command {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python");
        let mut command = Command::new(program());
        command
            .current_dir(self.folder.path())
            .env("PYTHONPATH", sdk)
            .env("XDG_STATE_HOME", self.path(state));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command, and gives its status, what it said, and whether the model ran.
    fn run(&self, state: &str, args: &[&str]) -> (Option<i32>, String, bool) {
        let _ = fs::remove_file(self.path("ran"));
        let Output { status, stdout, stderr } = self.command(state).args(args).output().unwrap();
        let told = [stdout, stderr].concat();
        (status.code(), String::from_utf8_lossy(&told).into_owned(), self.path("ran").exists())
    }

    /// Makes a run and a result of it, as the user of that state folder.
    fn results(&self, state: &str) {
        let args = [
            "fuzz",
            "--scenario",
            "lock.toml",
            "--seed",
            "1",
            "--out",
            "found",
            "--minimize",
            "min",
            "--budget",
            "500r",
        ];
        let (status, told, _) = self.run(state, &args);
        assert_eq!(status, Some(0), "{told}");
        let args = ["explore", "--scenario", "lock.toml", "--out", "explored", "--budget", "2000states"];
        let (status, told, _) = self.run(state, &args);
        assert!(status.is_some_and(|status| status != 2), "{told}");
    }
}

/// Every command that reads the scenario of a folder.
const COMMANDS: [&[&str]; 6] = [
    &["verify", "min"],
    &["verify", "explored", "--budget", "2000states"],
    &["report", "min", "--html", "page.html"],
    &["report", "found", "--html", "page.html"],
    &["export", "min", "--format", "dot", "--out", "min.dot"],
    &["export", "found", "--format", "shiviz", "--out", "found.log"],
];

#[test]
fn a_folder_of_ones_own_needs_no_word() {
    if !crate::python() {
        return;
    }
    let user = User::new();
    user.results("mine");
    for command in COMMANDS {
        let (status, told, ran) = user.run("mine", command);
        assert!(ran && !told.contains("--run-command"), "{command:?}: {status:?} {told}");
    }
}

#[test]
fn a_folder_of_somebody_else_runs_nothing() {
    if !crate::python() {
        return;
    }
    let user = User::new();
    user.results("theirs");
    for command in COMMANDS {
        let refused = |told: (Option<i32>, String, bool)| {
            let (status, told, ran) = told;
            assert!(!ran && status == Some(2), "{command:?}: {status:?} {told}");
            assert!(
                told.contains("python3 lock.py") && told.contains("--run-command"),
                "{command:?}: {told}"
            );
        };
        refused(user.run("mine", command));
        // Who says so has it run, this time.
        let (status, told, ran) = user.run("mine", &[command, &["--run-command"]].concat());
        assert!(ran, "{command:?}: {status:?} {told}");
        refused(user.run("mine", command));
    }
    // Whoever names the scenario means its program.
    for command in &COMMANDS[2..] {
        let (status, told, ran) = user.run("mine", &[command, &["--scenario", "lock.toml"][..]].concat());
        assert!(ran && status == Some(0), "{command:?}: {told}");
    }
    // Nothing is known of users without a place for it.
    let mut command = user.command("mine");
    command.env_remove("XDG_STATE_HOME").env_remove("HOME").args(["verify", "min"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn another_program_another_folder_and_another_place_are_not_the_same() {
    if !crate::python() {
        return;
    }
    let user = User::new();
    user.results("mine");
    let known = |args: &[&str]| user.run("mine", args).2;
    assert!(known(&["verify", "min"]));
    // The same files elsewhere.
    fs::rename(user.path("min"), user.path("moved")).unwrap();
    assert!(!known(&["verify", "moved"]));
    // Another program in the same place.
    fs::rename(user.path("moved"), user.path("min")).unwrap();
    assert!(known(&["verify", "min"]));
    let scenario = user.path("min/scenario.toml");
    let text = fs::read_to_string(&scenario).unwrap();
    for changed in [
        text.replace("lock.py", "./lock.py"),
        text.replace("\"lock.py\"", "\"lock.py\", \"\""),
        text.replace("[\"python3\", \"lock.py\"]", "[\"python3 lock.py\"]"),
        text.replace("command", "socket").replace("[\"python3\", \"lock.py\"]", "\"lock.py\""),
    ] {
        assert_ne!(changed, text);
        fs::write(&scenario, changed).unwrap();
        let (status, told, ran) = user.run("mine", &["verify", "min"]);
        assert!(!ran && status == Some(2) && told.contains("--run-command"), "{told}");
    }
    fs::write(&scenario, text).unwrap();
    // The same program, started elsewhere, is another file.
    fs::create_dir(user.path("elsewhere")).unwrap();
    fs::copy(user.path("lock.py"), user.path("elsewhere/lock.py")).unwrap();
    let _ = fs::remove_file(user.path("ran"));
    let output =
        user.command("mine").current_dir(user.path("elsewhere")).args(["verify", "../min"]).output().unwrap();
    assert!(output.status.code() == Some(2) && !user.path("ran").exists());
}

#[test]
fn on_a_terminal_it_is_asked_for() {
    if !crate::python() {
        return;
    }
    let user = User::new();
    user.results("theirs");
    // A terminal to type in.
    let terminal = "import os, pty, sys\n\
        answer, args = sys.argv[1], sys.argv[2:]\n\
        pid, fd = pty.fork()\n\
        if pid == 0: os.execv(args[0], args)\n\
        os.write(fd, (answer + '\\n').encode())\n\
        told = b''\n\
        while True:\n\
        \x20   try: part = os.read(fd, 4096)\n\
        \x20   except OSError: break\n\
        \x20   if not part: break\n\
        \x20   told += part\n\
        print(told.decode())\n\
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let ask = |answer: &str| {
        let _ = fs::remove_file(user.path("ran"));
        let own = user.command("mine");
        let mut command = Command::new("python3");
        command
            .args(["-c", terminal, answer])
            .arg(own.get_program())
            .args(["verify", "min"])
            .current_dir(user.folder.path());
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), told, user.path("ran").exists())
    };
    for no in ["n", "", "what"] {
        let (status, told, ran) = ask(no);
        assert!(
            status == Some(2) && !ran && told.contains("[y/N]") && told.contains("python3 lock.py"),
            "{told}"
        );
    }
    let (_, told, ran) = ask("y");
    assert!(ran, "{told}");
    // What was answered once is remembered.
    let (_, told, ran) = user.run("mine", &["verify", "min"]);
    assert!(ran, "{told}");
}
