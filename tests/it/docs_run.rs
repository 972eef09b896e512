//! The commands of the documents run as they are written.
//!
//! A page with commands says in which folder they run, in one sentence: "The commands of this page run in …". A block of commands is fenced as
//! `sh`, or as `console` where it shows what comes out, and each line of that must come out too, in this order; `…` and a line `..` stand for what is
//! left out. A command that ends with another status than 0 says so in its comment (`# status 1`), one that runs until it is stopped says
//! `# until Ctrl-C`.
//!
//! Comments of the page's source, on the line before a block, say the rest: `<!-- file: NAME -->` is written to that file, `<!-- not run: WHY -->` is not
//! run. There are few of these, and `what_is_not_run_is_known` lists them. `<!-- one command: … -->` says that all behind the first line is output.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::demo;

/// Why a command of a page is not run, and on how many blocks of all pages each reason stands. A reason is added here, or it is none.
const NOT_RUN: [(&str, usize); 7] = [
    ("compiles a project", 2),
    ("installs a release build", 1),
    ("is about a model that is not there", 1),
    ("it takes a project with tests of threads", 2),
    ("needs a cluster", 1),
    ("needs an engine", 2),
    ("waits for a person at a debugger", 2),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of which commands are run: the README and what lies in `docs/`.
fn pages() -> BTreeMap<String, String> {
    let mut found =
        BTreeMap::from([("README.md".into(), fs::read_to_string(root().join("README.md")).unwrap())]);
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "md") {
            let name = format!("docs/{}", path.file_name().unwrap().to_string_lossy());
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    found
}

/// A block of code of a page.
#[derive(Debug)]
struct Block {
    /// The line on which it begins, counted from 1.
    line: usize,
    /// The word behind the fence; `None` for a block that is only indented.
    language: Option<String>,
    /// The comment on the line before: its key and its value.
    note: Option<(String, String)>,
    text: String,
}

impl Block {
    fn has_commands(&self) -> bool {
        matches!(self.language.as_deref(), Some("sh" | "console"))
    }

    fn note(&self, key: &str) -> Option<&str> {
        self.note.as_ref().filter(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let begin = at;
        let depth = indent(lines[at]);
        let note = at.checked_sub(1).and_then(|before| {
            let inner = lines[before].trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
            let (key, value) = inner.split_once(": ")?;
            Some((key.to_owned(), value.to_owned()))
        });
        if let Some(language) = lines[at].trim_start().strip_prefix("```") {
            at += 1;
            let mut text = String::new();
            while at < lines.len() && lines[at].trim() != "```" {
                text.push_str(lines[at].get(depth..).unwrap_or_default());
                text.push('\n');
                at += 1;
            }
            found.push(Block { line: begin + 1, language: Some(language.trim().into()), note, text });
        } else if depth >= 4 && (begin == 0 || lines[begin - 1].trim().is_empty()) {
            let mut text = String::new();
            while at < lines.len() && (indent(lines[at]) >= 4 || lines[at].trim().is_empty()) {
                text.push_str(lines[at].trim_start());
                text.push('\n');
                at += 1;
            }
            found.push(Block { line: begin + 1, language: None, note, text });
            continue;
        }
        at += 1;
    }
    found
}

/// One command of a block: its text, and what the page says comes out.
#[derive(Debug)]
struct Written {
    line: usize,
    text: String,
    output: Vec<String>,
}

impl Written {
    /// The status that the comment behind the command names.
    fn status(&self) -> i32 {
        let comment = self.text.rsplit_once(" # ").map_or("", |(_, comment)| comment);
        let digits = comment.split_once("status ").map_or("", |(_, rest)| rest);
        digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    }

    fn goes_on(&self) -> bool {
        self.text.lines().any(|line| line.contains("# until Ctrl-C"))
    }
}

/// Whether a shell takes the text for whole commands.
fn is_whole(text: &str) -> bool {
    !text.trim_end().ends_with('\\')
        && Command::new("bash").args(["-n", "-c", text]).stderr(Stdio::null()).status().unwrap().success()
}

fn commands(block: &Block) -> Vec<Written> {
    let console = block.language.as_deref() == Some("console");
    let mut found: Vec<Written> = Vec::new();
    let mut open: Option<Written> = None;
    for (nr, line) in block.text.lines().enumerate() {
        let line_nr = block.line + 1 + nr;
        if let Some(mut written) = open.take() {
            written.text.push('\n');
            written.text.push_str(line);
            if is_whole(&written.text) {
                found.push(written)
            } else {
                open = Some(written)
            }
            continue;
        }
        let single = block.note("one command").is_some() && !found.is_empty();
        let command = if single {
            None
        } else if console {
            line.strip_prefix("$ ")
        } else {
            Some(line)
        };
        match command {
            Some(text) if text.trim().is_empty() || text.starts_with('#') => {}
            Some(text) => {
                let written = Written { line: line_nr, text: text.to_owned(), output: Vec::new() };
                if is_whole(text) { found.push(written) } else { open = Some(written) }
            }
            None => found
                .last_mut()
                .unwrap_or_else(|| panic!("line {line_nr}: output before a command"))
                .output
                .push(line.to_owned()),
        }
    }
    assert!(open.is_none(), "the command does not end: {open:?}");
    found
}

/// Whether a line that came out is what the page shows, where `…` stands for anything.
fn shows(page: &str, out: &str) -> bool {
    let (page, mut rest) = (page.trim_end(), out.trim_end());
    let mut parts = page.split('…');
    let Some(after) = rest.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    rest = after;
    let parts: Vec<&str> = parts.collect();
    for (nr, part) in parts.iter().enumerate() {
        if nr + 1 == parts.len() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

/// The lines of the page that did not come out, in their order.
fn missing<'a>(page: &'a [String], out: &str) -> Vec<&'a str> {
    let mut lines = out.lines();
    page.iter()
        .map(String::as_str)
        .filter(|line| !matches!(line.trim(), "" | ".." | "…"))
        .filter(|line| !lines.by_ref().any(|out| shows(line, out)))
        .collect()
}

/// Copies the checkout, without what was built.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.');
        if hidden
            || ["target", "node_modules", "__pycache__", "fuzz", "minimize"].iter().any(|left| name == *left)
        {
            continue;
        }
        let (from, to) = (entry.path(), to.join(&name));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else if fs::copy(&from, &to).is_err() {
            // Sockets and what was removed meanwhile.
        }
    }
}

/// Puts the programs that the pages call into a folder.
fn programs(folder: &Path, with_demo: bool) {
    let program = assert_cmd::cargo::cargo_bin!("demi-lineage");
    std::os::unix::fs::symlink(program, folder.join("demi-lineage")).unwrap();
    // What cargo would compile is compiled: examples lie beside the program under test.
    let (built, demo) = (
        program.parent().unwrap().display(),
        if with_demo { demo::made() } else { Path::new("/") }.display(),
    );
    let cargo = format!("#!/bin/bash\nbuilt={built}\ndemo={demo}\n{CARGO}");
    let path = folder.join("cargo");
    fs::write(&path, cargo).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Stands for cargo: runs what the build of the tests has compiled, the program or an example. The demo has run, for all tests once.
const CARGO: &str = r#"
[ "$1" = run ] || { echo "no cargo $1 here" >&2; exit 99; }
shift
program=demi-lineage
while [ $# -gt 0 ]; do
    case "$1" in
        -p|--features) shift ;;
        --example) program="examples/$2"; shift ;;
        --) shift; break ;;
        --release) ;;
        *) echo "no option $1 of cargo here" >&2; exit 99 ;;
    esac
    shift
done
[ -x "$built/$program" ] || { echo "skipped: $program is not compiled; cargo test --workspace compiles it"; exit 0; }
if [ "$program $*" = "demi-lineage demo" ]; then cp -r "$demo/demi-demo" . && exec cat "$demo/stdout"; fi
exec "$built/$program" "$@"
"#;

/// Makes the folder in which a page says that its commands run.
fn folder_of(name: &str, page: &str) -> TempDir {
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = text
        .split_once("The commands of this page run in ")
        .unwrap_or_else(|| panic!("{name} has commands, and does not say in which folder they run"));
    let folder = tempfile::tempdir().unwrap();
    if rest.starts_with("a checkout") {
        copy(root(), folder.path());
    } else if rest.starts_with("the folder `demi-demo`") {
        demo::copy_into(folder.path());
    } else {
        assert!(rest.starts_with("an empty folder"), "{name}: which folder is that? {}", &rest[..40]);
    }
    folder
}

/// The script of a page: its commands in their order, in one shell. Each leaves what it wrote and its status in the folder `$OUT`.
fn script(blocks: &[Block]) -> (String, Vec<Written>) {
    let mut script = String::from("set -o pipefail\nservers=()\n");
    script.push_str(
        "stop() { for s in \"${servers[@]}\"; do kill -INT -- \"-$s\" 2>/dev/null; wait \"$s\"; echo $? >\"$OUT/stopped-$s\"; done; servers=(); }\n",
    );
    let mut all = Vec::new();
    let mut go_on = false;
    for block in blocks {
        if block.note("not run").is_some() {
            continue;
        }
        if let Some(file) = block.note("file") {
            let nr = block.line;
            writeln!(
                script,
                "mkdir -p \"$(dirname '{file}')\"\ncat >'{file}' <<'END-OF-{nr}'\n{}END-OF-{nr}",
                block.text
            )
            .unwrap();
        }
        if !block.has_commands() {
            continue;
        }
        if !go_on {
            script.push_str("stop\n");
        }
        for written in commands(block) {
            let nr = all.len();
            let text = &written.text;
            if written.goes_on() {
                writeln!(
                    script,
                    "set -m\n{{ {text}\n}} >\"$OUT/{nr}.out\" 2>\"$OUT/{nr}.err\" &\nservers+=($!); set +m"
                )
                .unwrap();
                writeln!(
                    script,
                    "while [ ! -s \"$OUT/{nr}.out\" ]; do kill -0 \"${{servers[-1]}}\" || break; sleep 0.05; done\nkill -0 \"${{servers[-1]}}\" || {{ echo 1 >\"$OUT/{nr}.rc\"; exit 1; }}\necho 0 >\"$OUT/{nr}.rc\""
                )
                .unwrap();
            } else {
                writeln!(script, "SECONDS=0\n{{ {text}\n}} >\"$OUT/{nr}.out\" 2>&1 </dev/null; rc=$?; echo $rc >\"$OUT/{nr}.rc\"; echo $SECONDS >\"$OUT/{nr}.seconds\"").unwrap();
                writeln!(script, "[ $rc = {} ] || {{ stop; exit 1; }}", written.status()).unwrap();
            }
            all.push(written);
        }
        go_on = block.note("goes on").is_some();
    }
    script.push_str("stop\n");
    (script, all)
}

/// Runs the commands of a page, and says which did not do what the page says.
fn run(name: &str) {
    let page = fs::read_to_string(root().join(name)).unwrap();
    let blocks = blocks(&page);
    let (script, written) = script(&blocks);
    assert!(!written.is_empty(), "{name} has no commands");
    // Pages name the ports that programs listen on, and some the same.
    static LISTENING: Mutex<()> = Mutex::new(());
    let _alone =
        written.iter().any(Written::goes_on).then(|| LISTENING.lock().unwrap_or_else(|e| e.into_inner()));
    let folder = folder_of(name, &page);
    let out = tempfile::tempdir().unwrap();
    let bin = out.path().join("bin");
    fs::create_dir(&bin).unwrap();
    programs(&bin, page.contains("cargo run --release -- demo"));
    let mut path = vec![bin];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let mut bash = Command::new("bash");
    bash.args(["-c", &script])
        .current_dir(folder.path())
        .env("OUT", out.path())
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("COLUMNS", "200")
        .env("HOME", out.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(out.path().join("bash")).unwrap())
        .process_group(0);
    let mut shell = bash.spawn().unwrap();
    // A command that waits for ever; nothing depends on the number.
    let end = Instant::now() + Duration::from_secs(1800);
    let ended = loop {
        match shell.try_wait().unwrap() {
            Some(_) => break true,
            None if Instant::now() > end => {
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", shell.id())]).status();
                break false;
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let read = |file: String| fs::read_to_string(out.path().join(file)).unwrap_or_default();
    for (nr, command) in written.iter().enumerate() {
        let (came, rc) = (read(format!("{nr}.out")), read(format!("{nr}.rc")));
        let at = format!("{name}:{}: {}", command.line, command.text);
        println!("{:>3} s  {at}", read(format!("{nr}.seconds")).trim());
        assert!(
            !rc.is_empty(),
            "{at}\nwas not run to its end (all ended: {ended}); {}\n{came}{}",
            read("bash".into()),
            read(format!("{nr}.err"))
        );
        let wanted = if command.goes_on() { 0 } else { command.status() };
        assert_eq!(rc.trim(), wanted.to_string(), "the status of {at}\n{came}");
        let missing = missing(&command.output, &came);
        assert!(missing.is_empty(), "{at}\ndoes not print\n{}\nbut\n{came}", missing.join("\n"));
        if let Some(skipped) = came.lines().find(|line| line.starts_with("skipped: ")) {
            println!("{skipped}");
        }
    }
    for entry in fs::read_dir(out.path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with("stopped-") {
            let status = fs::read_to_string(entry.path()).unwrap();
            // 130 is what a shell says of a program that Ctrl-C ended.
            assert!(
                ["0", "130"].contains(&status.trim()),
                "{name}: what runs until Ctrl-C ended with {status}"
            );
        }
    }
}

/// One test for each page, so that they run side by side.
macro_rules! each {
    ($($test:ident $page:literal,)*) => {
        $(#[test] fn $test() { run($page); })*
        const RUN: &[&str] = &[$($page),*];
    };
}

each! {
    readme "README.md",
    examples "docs/examples.md",
    exploring "docs/exploring.md",
    failing_test "docs/failing-test.md",
    formats "docs/formats.md",
    fuzzing "docs/fuzzing.md",
    incidents "docs/incidents.md",
    ingest "docs/ingest.md",
    invariants "docs/invariants.md",
    model_protocol "docs/model-protocol.md",
    plans "docs/plans.md",
    programs_as_they_are "docs/programs.md",
    python "docs/python.md",
    query "docs/query.md",
    report "docs/report.md",
    scale "docs/scale.md",
    store "docs/store.md",
    upgrading "docs/upgrading.md",
    writing_a_model "docs/writing-a-model.md",
}

#[test]
fn every_page_with_commands_is_run() {
    for (name, page) in pages() {
        let any = blocks(&page).iter().any(|b| b.has_commands() && b.note("not run").is_none());
        assert_eq!(
            any,
            RUN.contains(&name.as_str()),
            "{name}: is it in the list of pages that are run, and has it commands?"
        );
    }
}

#[test]
fn what_is_not_run_is_known() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut run = 0;
    for (name, page) in pages() {
        for block in blocks(&page) {
            match block.note("not run") {
                Some(why) if block.has_commands() => *seen.entry(why.to_owned()).or_default() += 1,
                Some(_) => panic!("{name}:{}: not a block of commands", block.line),
                None => run += usize::from(block.has_commands()),
            }
        }
    }
    let known: BTreeMap<String, usize> = NOT_RUN.iter().map(|&(why, n)| (why.to_owned(), n)).collect();
    assert_eq!(seen, known);
    let left: usize = known.values().sum();
    println!("{run} blocks of commands are run, {left} are not");
    assert!(run > 5 * left, "{run} {left}");
}

/// What begins a line of a shell.
const CALLS: [&str; 20] = [
    "$ ",
    "demi-lineage ",
    "cargo ",
    "pip ",
    "pip3 ",
    "docker ",
    "kubectl ",
    "pytest ",
    "node ",
    "npm ",
    "python3 ",
    "curl ",
    "cd ",
    "promtool ",
    "printf ",
    "helm ",
    "systemctl ",
    "mdbook ",
    "my-models ",
    "otelcol",
];

#[test]
fn commands_stand_in_blocks_of_commands() {
    let mut stray = Vec::new();
    for (name, page) in pages() {
        for block in blocks(&page).iter().filter(|b| !b.has_commands()) {
            for (nr, line) in block.text.lines().enumerate() {
                let line = line.trim_start();
                let variable = line.split_once('=').is_some_and(|(name, rest)| {
                    name.len() > 3
                        && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                        && rest.contains(' ')
                });
                if variable || CALLS.iter().any(|call| line.starts_with(call)) {
                    stray.push(format!("{name}:{}: {line}", block.line + nr));
                }
            }
        }
    }
    assert!(stray.is_empty(), "{}", stray.join("\n"));
}

#[test]
fn a_line_is_compared_but_for_what_is_left_out() {
    assert!(
        shows("wrote … KiB)", "wrote a.html (186 KiB)")
            && shows("a", "a ")
            && shows("a…", "abc")
            && shows("…c", "abc")
    );
    assert!(!shows("a", "ab") && !shows("wrote … MiB", "wrote 1 KiB") && !shows("b…", "abc"));
    assert_eq!(missing(&["b".into(), "..".into(), "a".into()], "a\nb\nc\n"), ["a"]);
    let block =
        |text: &str| Block { line: 1, language: Some("console".into()), note: None, text: text.into() };
    let read = commands(&block("$ a 'x\ny' \\\n  z   # status 4\nout\n$ b\n"));
    assert_eq!(
        (read.len(), read[0].text.as_str(), read[0].status()),
        (2, "a 'x\ny' \\\n  z   # status 4", 4)
    );
    assert_eq!((read[0].output.join("|"), read[1].status()), ("out".into(), 0));
}
