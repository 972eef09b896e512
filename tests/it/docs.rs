//! What the documents promise about the tree is so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use demi_daemon::incidents::{BugLabel, DeliveryLabel, FailureLabel, WorkLabel};
use demi_daemon::metrics::{ActorLabels, Metrics, ReasonLabel, SourceLabel, SystemLabel, TaskLabel};
use demi_daemon::monitors::{InvariantLabels, MonitorLabel};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All files below a folder with one of these endings, without hidden folders and what was built.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, endings));
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence && !line.starts_with("    ")
    })
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// The anchors of a page's headings, as web pages of repositories make them.
fn anchors(text: &str) -> BTreeSet<String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in files(root(), &["md"]) {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(p, a)| (p, Some(a)));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let there = target.exists()
                && anchor.is_none_or(|a| anchors(&fs::read_to_string(&target).unwrap()).contains(a));
            if !there {
                broken.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(seen > 30, "only {seen} links were found");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn a_decision_has_four_parts_in_a_hundred_words() {
    let pages = files(&root().join("docs/decisions"), &["md"]);
    let index = read("docs/decisions/README.md");
    for page in pages.iter().filter(|p| !p.ends_with("README.md")) {
        let text = fs::read_to_string(page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy();
        for part in ["**Context.**", "**Decision.**", "**Evidence.**", "**Consequence.**"] {
            assert!(text.contains(part), "{name} has no {part}");
        }
        let words = text.split_whitespace().count();
        assert!(words <= 100, "{name} has {words} words");
        assert!(index.contains(&*name), "docs/decisions/README.md does not list {name}");
    }
}

#[test]
fn every_example_and_scenario_is_in_the_index() {
    let index = read("docs/examples.md");
    let mut folders: Vec<PathBuf> = vec![root().join("replay/scenarios"), root().join("notebooks")];
    folders.extend(
        ["lineage", "replay", "minimize", "ingest", "ingest/log", "report", "schemas"]
            .iter()
            .map(|c| root().join(c).join("examples"))
            .filter(|f| f.is_dir()),
    );
    let mut missing = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let shown =
                path.is_dir() || path.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "ipynb");
            if shown && !index.contains(&stem) {
                missing.push(path.strip_prefix(root()).unwrap().display().to_string());
            }
        }
    }
    assert!(missing.is_empty(), "docs/examples.md does not name {missing:?}");
}

/// The names of all series that the daemon exports.
fn exported() -> BTreeSet<String> {
    let m = Metrics::default();
    let source = SourceLabel { source: "s".into() };
    let system = SystemLabel { system: "s".into() };
    m.events_received.get_or_create(&source).inc();
    m.received_bytes.get_or_create(&source).inc();
    m.connections.get_or_create(&source).inc();
    m.files.get_or_create(&source).inc();
    m.count_refused("s", "full");
    m.task_failures.get_or_create(&TaskLabel { task: "t".into() }).inc();
    m.events_written.get_or_create(&system).inc();
    m.events_duplicate.get_or_create(&system).inc();
    m.unmatched_sends.get_or_create(&system).inc();
    m.orphan_receives.get_or_create(&system).inc();
    m.events_rejected.get_or_create(&ReasonLabel { reason: "rule".into() }).inc();
    m.sequence_gaps.get_or_create(&ActorLabels { system: "s".into(), actor: "a".into() }).inc();
    let monitor = MonitorLabel { monitor: "m".into() };
    let invariant = InvariantLabels { monitor: "m".into(), invariant: "i".into() };
    let of = &m.monitors;
    for gauge in [&of.checks, &of.last_failure, &of.failing, &of.unjudged] {
        gauge.get_or_create(&invariant).inc();
    }
    m.monitors.failures.get_or_create(&invariant).inc();
    m.monitors.sample.get_or_create(&monitor).set(1.0);
    for gauge in [&of.held, &of.kept, &of.uncertain, &of.untold, &of.stuck, &of.began_anew] {
        gauge.get_or_create(&monitor).inc();
    }
    for counter in [&of.dropped, &of.posts_failed, &of.builds_failed, &of.builds_given_up] {
        counter.get_or_create(&monitor).inc();
    }
    m.incidents.work.get_or_create(&WorkLabel { state: "done" }).inc();
    m.incidents.failures.get_or_create(&FailureLabel { reason: "refused" }).inc();
    m.incidents.bugs.get_or_create(&BugLabel { status: "new" }).inc();
    m.incidents.deliveries.get_or_create(&DeliveryLabel { receiver: "r".into(), result: "sent" }).inc();
    m.commit_seconds.observe(1.0);
    m.sync_seconds.observe(1.0);
    m.text()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(['{', ' ']).next().unwrap().to_owned())
        .collect()
}

/// The series that an expression of PromQL reads.
fn series(expression: &str) -> BTreeSet<String> {
    const WORDS: [&str; 13] = [
        "and",
        "or",
        "unless",
        "by",
        "without",
        "on",
        "ignoring",
        "bool",
        "offset",
        "group_left",
        "group_right",
        "sum",
        "max",
    ];
    let mut found = BTreeSet::new();
    // What stands in braces and brackets are labels and ranges, what stands behind `by` are labels.
    let mut plain = String::new();
    let mut depth = 0_usize;
    for c in expression.chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let labels: BTreeSet<&str> = plain
        .split("by (")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .collect();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = plain.as_str();
    while let Some(begin) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let tail = &rest[begin..];
        let end = tail.find(|c| !word(c)).unwrap_or(tail.len());
        let (name, after) = tail.split_at(end);
        let call = after.trim_start().starts_with('(');
        // The unit of a duration.
        let unit = rest[..begin].ends_with(|c: char| c.is_ascii_digit());
        if !call && !unit && !labels.contains(name) && !WORDS.contains(&name) {
            found.insert(name.to_owned());
        }
        rest = after;
    }
    found
}

/// All expressions of the dashboard and of the alert rules.
fn expressions() -> Vec<String> {
    fn walk(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    match value {
                        serde_json::Value::String(text) if key == "expr" => found.push(text.clone()),
                        other => walk(other, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(&serde_json::from_str(&read("docs/monitoring/grafana.json")).unwrap(), &mut found);
    let dashboard = found.len();
    let rules = read("docs/monitoring/alerts.yml");
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(text) = line.trim().strip_prefix("expr:") else { continue };
        let mut expression = text.trim().trim_start_matches(">-").to_owned();
        if expression.is_empty() {
            while let Some(more) = lines.next_if(|l| l.starts_with("          ")) {
                expression.push_str(more);
            }
        }
        found.push(expression);
    }
    assert!(dashboard > 15 && found.len() - dashboard == rules.matches("- alert:").count());
    found
}

#[test]
fn dashboard_and_alerts_read_only_what_the_daemon_exports() {
    let exported = exported();
    let read: BTreeSet<String> = expressions().iter().flat_map(|e| series(e)).collect();
    // `up` is Prometheus's own.
    let unknown: Vec<&String> = read.iter().filter(|s| *s != "up" && !exported.contains(*s)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {exported:?}");
    assert!(read.len() > 18, "{read:?}");
}

#[test]
fn the_monitoring_page_tells_of_every_alert_and_every_metric() {
    let page = read("docs/monitoring.md");
    for line in read("docs/monitoring/alerts.yml").lines() {
        if let Some(name) = line.trim().strip_prefix("- alert:") {
            assert!(page.contains(name.trim()), "docs/monitoring.md does not explain {name}");
        }
    }
    for name in exported() {
        let family = ["_bucket", "_count", "_sum"].iter().find_map(|e| name.strip_suffix(e)).unwrap_or(&name);
        assert!(page.contains(family), "docs/monitoring.md does not explain {family}");
    }
}

/// The rules fire on first failures, after restarts and where a series is new, and are quiet otherwise. Skipped without `promtool`.
#[test]
fn alert_rules_fire_when_they_should() {
    let mut promtool = std::process::Command::new("promtool");
    promtool.args(["test", "rules", "alerts.test.yml"]).current_dir(root().join("docs/monitoring"));
    match promtool.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => println!("skipped: no promtool (Debian package prometheus)"),
    }
}

/// The tree's Rust source, strings that go on in the next line put together.
fn source() -> String {
    let mut all = String::new();
    for path in files(root(), &["rs"]) {
        let text = fs::read_to_string(path).unwrap();
        let mut parts = text.split("\\\n");
        all.push_str(parts.next().unwrap());
        parts.for_each(|part| all.push_str(part.trim_start()));
        all.push('\n');
    }
    all
}

#[test]
fn messages_that_are_explained_are_messages_of_the_program() {
    let source = source();
    let page = read("docs/troubleshooting.md");
    let mut seen = 0;
    for line in page.lines().filter(|l| l.starts_with("**`")) {
        for message in line.split(" · ") {
            let message = message.trim_start_matches("**`").trim_end_matches("`**");
            for part in
                message.split('…').map(|p| p.trim().trim_matches(['\'', ':', ';', ',', '(', ')', '`']))
            {
                if part.len() > 12 && !message.contains("Retry-After") {
                    seen += 1;
                    assert!(source.contains(part.trim()), "no message has '{part}'");
                }
            }
        }
    }
    assert!(seen > 25, "{seen}");
}

#[test]
fn tests_that_decisions_name_exist() {
    let source = source();
    for page in files(&root().join("docs/decisions"), &["md"]) {
        let text = fs::read_to_string(&page).unwrap();
        let Some((_, evidence)) = text.split_once("**Evidence.**") else { continue };
        let evidence = evidence.split("**Consequence.**").next().unwrap();
        for name in evidence.split('`').skip(1).step_by(2).filter(|n| n.matches('_').count() > 1) {
            assert!(source.contains(&format!("fn {name}(")), "{}: no test {name}", page.display());
        }
    }
}

/// The pages of the tree, hidden folders left out.
fn pages() -> Vec<PathBuf> {
    files(root(), &["md"])
}

#[test]
fn paths_that_pages_name_exist() {
    const ROOMS: [&str; 13] = [
        "common",
        "demo",
        "docs",
        "fuzz",
        "ingest",
        "lineage",
        "minimize",
        "notebooks",
        "replay",
        "report",
        "schemas",
        "src",
        "tests",
    ];
    let (mut gone, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for token in prose(&text).flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let plain = token.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            let inside = token.split_once('/').is_some_and(|(room, _)| ROOMS.contains(&room));
            if plain && inside {
                seen += 1;
                let beside = page.parent().is_some_and(|folder| folder.join(token).exists());
                if !root().join(token).exists() && !beside {
                    gone.push(format!("{}: {token}", page.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} paths were found");
    assert!(gone.is_empty(), "paths that are not there:\n{}", gone.join("\n"));
}

/// Packages of others that the documents tell people to install.
const THIRD_PARTY: [&str; 13] = [
    "ballista-cli",
    "ballista-executor",
    "ballista-scheduler",
    "datafusion",
    "deltalake",
    "duckdb",
    "pandas",
    "pyarrow",
    "pyspark",
    "networkx",
    "maturin",
    "polars",
    "matplotlib",
];

/// The words behind an order to install something, up to the end of the order.
fn installed<'a>(text: &'a str, order: &str) -> Vec<&'a str> {
    let rest = text.split(order).skip(1);
    rest.flat_map(|rest| {
        let end = rest.find(['`', '\n', '#', '&', ';']).unwrap_or(rest.len());
        rest[..end].split_whitespace()
    })
    .map(|word| word.trim_matches(['"', '\'', ',']))
    .collect()
}

#[test]
fn nobody_is_told_to_install_a_package_that_nobody_owns() {
    let mut seen = 0;
    for path in files(root(), &["md", "toml", "in", "json", "py", "js", "rs"]) {
        if path.starts_with(root().join("tests")) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for order in
            ["pip install ", "npm install ", "npm i ", "cargo install ", "cargo add ", "cargo binstall "]
        {
            for word in installed(&text, order) {
                seen += 1;
                let is_place = word == "full"
                    || word.contains('/')
                    || word.starts_with(['-', '.', '{'])
                    || word == "."
                    || word.starts_with("git+");
                let third =
                    word.split(['>', '=', '<', '[']).next().is_some_and(|name| THIRD_PARTY.contains(&name));
                assert!(is_place || third, "{}: '{order}{word}'", path.display());
            }
        }
        // A dependency by its version alone is one of a registry.
        for (at, _) in text.match_indices("\"demi-model\":") {
            assert!(text[at..].contains("\"file:"), "{}", path.display());
        }
    }
    assert!(seen > 8, "{seen}");
}

/// The configuration in the manifest for Kubernetes is one, where its folders are there.
#[test]
fn the_manifest_holds_a_valid_configuration() {
    let manifest = read("docs/kubernetes/demi-lineage.yaml");
    let (_, rest) = manifest.split_once("  demi.toml: |\n").unwrap();
    let config: String = rest
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    fs::write(folder.path().join("tokens"), "d5a1f0c2b7e94c3388a6\n").unwrap();
    let config = config.replace("/etc/demi-lineage/tokens", &at).replace("/data/", &format!("{at}/"));
    assert!(config.matches(&at).count() >= 5, "{config}");
    let path = folder.path().join("demi.toml");
    fs::write(&path, config).unwrap();
    let output = assert_cmd::Command::cargo_bin("demi-lineage")
        .unwrap()
        .args(["ingest", "validate"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // What the probes ask is what the daemon answers, on a port that the pod has.
    let monitoring = read("docs/monitoring.md");
    for path in manifest
        .lines()
        .filter_map(|line| line.split_once("path: ")?.1.split(',').next())
        .filter(|p| p.starts_with('/'))
    {
        assert!(monitoring.contains(&format!("| `{path}` |")), "{path}");
    }
    for port in ["4317", "9464", "9465"] {
        assert!(
            manifest.contains(&format!("containerPort: {port}"))
                && manifest.contains(&format!("0.0.0.0:{port}"))
        );
    }
}

/// What the page has beside its peers is tried in a browser, line by line.
#[test]
fn every_line_beside_the_peers_has_a_check_in_the_browser() {
    let (page, driver) = (read("docs/peers.md"), read("tests/report_page/drive.py"));
    let mut lines = 0;
    for line in page.lines().filter(|line| line.starts_with("| ")).skip(2) {
        let last = line.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let checks: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        assert!(!checks.is_empty(), "{line}");
        for check in checks {
            let known = driver.contains(&format!("\"{check}\""))
                || driver.contains(&format!("\"{check}, {{"))
                || driver.contains(&format!("\"{check}: {{"));
            assert!(known, "tests/report_page/drive.py has no check '{check}'");
            lines += 1;
        }
    }
    assert!(lines > 20, "{lines}");
}
