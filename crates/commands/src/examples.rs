//! Examples of every command, in its `--help` and in its manual page, and the groups in which commands stand.

use clap::Command;

/// How a command is used, and what that does.
pub type Example = (&'static str, &'static str);

/// The name of the program that examples begin with.
const PROGRAM: &str = "demi-lineage";

/// Commands by what they are for; every command of the program is in one.
const GROUPS: &[(&str, &[&str])] = &[
    ("From logs to their order", &["ingest", "lineage", "build", "query", "infer", "check"]),
    ("Look at it", &["report", "export"]),
    ("Find the shortest execution", &["replay", "minimize", "verify"]),
    ("Search without an incident", &["fuzz", "explore"]),
    ("Models, programs, threads", &["new-model", "model", "program", "check-history", "threads"]),
    ("Operate", &["incident"]),
    ("This program", &["demo", "completions", "man", "help"]),
];

/// By the words of a command: how it is used.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "build",
        &[
            ("build logs/ --out exec", "the violation that the logs record"),
            (
                "build --store store --system prod --violation text:'two leaders' --out exec",
                "the first event that holds a text",
            ),
            (
                "build --store store --system prod --last 5000000 --out exec",
                "the last events of a system that is too large for one build",
            ),
            (
                "build --store store --system prod --engine duckdb --out exec",
                "the causal past, found by DuckDB in the tables of lineage",
            ),
        ],
    ),
    ("check", &[("check --invariants invariants.toml exec", "which invariants fail, and where")]),
    ("check-history", &[("check-history --workload lin-kv history.edn", "a history that Jepsen wrote")]),
    ("completions", &[("completions bash > demi-lineage.bash", "then: source demi-lineage.bash")]),
    ("demo", &[("demo", "writes demi-demo/report.html and all that leads to it")]),
    ("explore", &[("explore --scenario scenario.toml --out explored", "every execution within a bound")]),
    (
        "export",
        &[
            ("export exec --format shiviz --past a/40 -o past.log", "what led to an event, for ShiViz"),
            ("export exec --format merged-log", "one log of all actors as text"),
        ],
    ),
    ("fuzz", &[("fuzz --scenario scenario.toml --seed 1 --out found", "the first run that violates")]),
    ("incident ack", &[("incident ack --store store B-1", "somebody is at it")]),
    ("incident close", &[("incident close --store store B-1", "it is mended")]),
    ("incident list", &[("incident list --store store", "bugs, the open ones first")]),
    ("incident merge", &[("incident merge --store store B-2 B-1", "both are one bug, B-1")]),
    ("incident mute", &[("incident mute --store store B-1", "no more messages about it")]),
    ("incident note", &[("incident note --store store B-1 'seen since 4.2'", "a remark that stays")]),
    ("incident open", &[("incident open --store store --system prod logs/", "an incident of these logs")]),
    ("incident priority", &[("incident priority --store store B-1 high", "how urgent it is")]),
    (
        "incident bundle",
        &[(
            "incident bundle B-17 --store store --out bug.tar.zst",
            "writes what reproduces a bug as one file",
        )],
    ),
    (
        "incident import",
        &[(
            "incident import bug.tar.zst --store store",
            "takes in what somebody else found, and runs nothing",
        )],
    ),
    ("incident purge", &[("incident purge --store store --system old", "forgets the incidents of a system")]),
    ("incident reopen", &[("incident reopen --store store B-1", "it is there again")]),
    (
        "incident replay",
        &[("incident replay --store store --scenario new.toml --all", "which bugs a new model still has")],
    ),
    ("incident retry", &[("incident retry --store store I-3", "once more, with the limits of now")]),
    ("incident serve", &[("incident serve --store store", "the pages, on this machine")]),
    ("incident show", &[("incident show --store store B-1", "a bug, or an incident")]),
    ("incident split", &[("incident split --store store B-1 I-3", "I-3 is another bug")]),
    ("incident sweep", &[("incident sweep --store store --space 20GiB", "removes the oldest files")]),
    ("incident unmute", &[("incident unmute --store store B-1", "messages again")]),
    ("incident verify", &[("incident verify --store store", "compares every file with its digest")]),
    ("incident work", &[("incident work --store store", "minimizes what is open")]),
    ("infer", &[("infer exec", "conditions that hold in all recorded states")]),
    ("ingest backup", &[("ingest backup --store store --out backup", "a copy of the store, to be repeated")]),
    (
        "ingest delete",
        &[("ingest delete --store store --system prod --before 2024-05-01", "events before a day, for good")],
    ),
    (
        "ingest load",
        &[
            ("ingest load --store store --system prod logs/", "event records of a folder"),
            ("ingest load --store store --system prod --mapping logfmt app.log", "a log of another format"),
        ],
    ),
    ("ingest mappings", &[("ingest mappings", "the formats that are known")]),
    ("ingest parse", &[("ingest parse --mapping logfmt app.log", "what a mapping makes of each line")]),
    (
        "ingest requeue",
        &[(
            "ingest requeue --store store --system prod --mapping mine.toml",
            "lines that a better mapping can read",
        )],
    ),
    ("ingest restore", &[("ingest restore backup --store store", "a store out of a backup")]),
    ("ingest serve", &[("ingest serve demi.toml", "the daemon")]),
    ("ingest status", &[("ingest status --store store", "how complete the logs are")]),
    ("ingest validate", &[("ingest validate demi.toml", "whether the daemon would start with it")]),
    (
        "ingest verify",
        &[("ingest verify --store store --spool spool", "whether a restart would lose anything")],
    ),
    (
        "lineage refresh",
        &[
            ("lineage refresh --store store", "the tables of lineage of all systems"),
            (
                "lineage refresh --store store --explain-sql=spark",
                "the statements that would make them, on Spark",
            ),
        ],
    ),
    ("man", &[("man --out man1", "then: man -l man1/demi-lineage.1")]),
    (
        "minimize",
        &[
            ("minimize exec --scenario scenario.toml --out min", "the shortest schedule that still violates"),
            (
                "minimize found --scenario scenario.toml --objective externals --out min",
                "external events count first",
            ),
        ],
    ),
    ("model check", &[("model check -- python3 model.py", "whether a model keeps to the protocol")]),
    ("new-model", &[("new-model my-raft --language python", "a project to begin with")]),
    ("program check", &[("program check --scenario scenario.toml", "whether a program can be searched")]),
    (
        "program follow",
        &[(
            "program follow store/latest --scenario scenario.toml --out followed",
            "from a run of Maelstrom to a schedule",
        )],
    ),
    (
        "query check",
        &[(
            "query exec check \"count(*) FILTER (WHERE role = 'Leader') <= 1\"",
            "where a predicate first fails",
        )],
    ),
    ("query cut", &[("query exec cut --at a/40 --state", "what everybody had done when a/40 happened")]),
    (
        "query find",
        &[
            ("query exec find 'two leaders'", "events that hold a text"),
            ("query exec find --line logs/a.log:4711", "the event that a line became"),
        ],
    ),
    ("query future", &[("query exec future a/40", "what happens after it")]),
    ("query order", &[("query exec order a/40 b/17", "which happens before the other")]),
    ("query past", &[("query exec past a/40", "what happens before it")]),
    ("query path", &[("query exec path a/3 b/17", "how one led to the other")]),
    ("query stats", &[("query exec stats", "chains, concurrency, fate of messages, latencies")]),
    (
        "replay",
        &[
            ("replay exec --scenario scenario.toml", "where the model first differs from the log"),
            ("replay min --scenario min/scenario.toml --step", "step by step"),
        ],
    ),
    (
        "report",
        &[
            ("report min --original exec --html report.html", "a result beside the execution it came from"),
            ("report exec --with other --html both.html", "what only one of two executions has"),
        ],
    ),
    (
        "threads report",
        &[("threads report failed.jsonl --html page.html", "a page of a schedule of threads")],
    ),
    (
        "threads export",
        &[(
            "threads export failed.jsonl --format shuttle",
            "the schedule as the string that shuttle replays",
        )],
    ),
    (
        "threads show",
        &[
            ("threads show failed.jsonl", "the tasks side by side"),
            ("threads show tests/", "what each test of a folder came to, with the status of explore"),
        ],
    ),
    ("threads verify", &[("threads verify tests/", "figures, words and schedules say the same")]),
    ("verify", &[("verify min", "every claim of the certificate, from scratch")]),
];

/// How a command is used, by its words without the name of the program.
#[must_use]
pub fn of(path: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(command, _)| *command == path).map_or(&[], |(_, examples)| examples)
}

/// The command line with examples in each help, and its commands in groups.
#[must_use]
pub fn explained(program: Command) -> Command {
    let grouped = groups(&program);
    let program = with_examples(program, "");
    match grouped {
        Some(text) => program.help_template(format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{text}\nOptions:\n{{options}}{{after-help}}"
        )),
        None => program,
    }
}

fn with_examples(command: Command, path: &str) -> Command {
    let examples = of(path);
    let within = |sub: Command| {
        let name = sub.get_name().to_owned();
        let path = if path.is_empty() { name } else { format!("{path} {name}") };
        with_examples(sub, &path)
    };
    let command = command.mut_subcommands(within);
    if examples.is_empty() {
        return command;
    }
    let mut text = String::from("Examples:");
    for (words, what) in examples {
        text.push_str(&format!("\n  # {what}\n  {PROGRAM} {words}"));
    }
    command.after_help(text)
}

/// The commands in their groups, as help shows them; nothing for a program that has no such commands.
fn groups(program: &Command) -> Option<String> {
    /// Where descriptions begin, and how long a line is.
    const WIDTH: usize = 15;
    const WRAP: usize = 96;
    let mut text = String::new();
    for (title, names) in GROUPS {
        let known = names.iter().filter_map(|name| program.find_subcommand(name));
        let lines: Vec<String> = known
            .map(|command| {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                let lines = wrapped(&about, WRAP - WIDTH);
                format!("  {:WIDTH$}{}\n", command.get_name(), lines.join(&format!("\n{:1$}", "", WIDTH + 2)))
            })
            .collect();
        if !lines.is_empty() {
            text.push_str(&format!("{title}:\n{}\n", lines.concat()));
        }
    }
    let all = program
        .get_subcommands()
        .all(|command| GROUPS.iter().any(|(_, names)| names.contains(&command.get_name())));
    (all && !text.is_empty()).then_some(text)
}

/// A text in lines of at most `width` characters; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}
