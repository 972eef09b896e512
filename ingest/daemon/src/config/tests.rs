use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"
    [store]
    dir = "s"
    [spool]
    dir = "p"
    [sources.app-1]
    type = "tcp"
    system = "prod"
    listen = "127.0.0.1:0"
    [sources.logs]
    type = "files"
    system = "prod"
    paths = ["/var/log/*.log"]
"#;

fn error(text: &str) -> String {
    Config::parse(text, |_| None).unwrap_err().to_string()
}

#[test]
fn a_small_file_is_enough() {
    let config = Config::parse(GOOD, |_| None).unwrap();
    assert_eq!(config.store.seal_rows, 1_000_000);
    assert_eq!(config.limits, Limits::default());
    assert!(config.admin.is_none() && config.sources.len() == 2);
}

/// The keys of a table, which serde lists where it knows one of them not.
fn told<T: DeserializeOwned + std::fmt::Debug>(with: &[(&str, &str)]) -> Vec<String> {
    let keys =
        with.iter().copied().chain([("", "")]).map(|(key, value)| (key.to_owned(), Value::from(value)));
    let error = Value::Table(keys.collect()).try_into::<T>().unwrap_err();
    let listed = error.message().split_once("unknown field ``").unwrap().1;
    in_quotes(listed).into_iter().map(str::to_owned).collect()
}

/// The configuration that is shipped, with the tables and keys in force that are commented out in it.
#[cfg(all(feature = "otlp", feature = "nats"))]
fn shipped() -> String {
    let text = include_str!("../../dist/demi.toml");
    let shown = |rest: &&str| rest.contains(" = ") || rest.starts_with('[');
    let lines = text.lines().map(|line| line.strip_prefix("# ").filter(shown).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(all(feature = "otlp", feature = "nats"))]
#[test]
fn what_is_shipped_has_every_key_with_its_default() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("redact.key"), "0123456789abcdef").unwrap();
    let text = shipped().replace("/etc/demi-lineage", folder.path().to_str().unwrap());
    let config = Config::parse(&text, |_| None).unwrap();
    let plain = Config::parse(include_str!("../../dist/demi.toml"), |_| None).unwrap();
    // How long events are kept has no default but for ever.
    assert!(config.store.keep.is_some() && plain.store.keep.is_none());
    assert_eq!(StoreConfig { keep: None, ..config.store }, plain.store);
    assert_eq!(config.spool, plain.spool);
    assert_eq!((config.limits, Limits::default()), (plain.limits, plain.limits));
    assert_eq!((config.daemon, DaemonConfig::default()), (plain.daemon.clone(), plain.daemon));
    assert!(config.redact.is_some() && plain.redact.is_none());
    let root: Table = text.parse().unwrap();
    let keys = |value: &Value| value.as_table().unwrap().keys().cloned().collect::<Vec<String>>();
    assert_eq!(root["store"].as_table().unwrap().len(), 10);
    assert_eq!(root["spool"].as_table().unwrap().len(), 4);
    assert_eq!(keys(&root["limits"]).len(), told::<Limits>(&[]).len());
    assert_eq!(keys(&root["daemon"]).len(), 3);
    let sources: Vec<&Value> = root["sources"].as_table().unwrap().values().collect();
    // The keys of every listener are told once.
    let common = keys(&root["sources"]["tcp"]);
    for kind in kinds() {
        let of_kind = |source: &&Value| source["type"].as_str() == Some(&kind);
        let source = sources.iter().copied().find(of_kind).unwrap();
        let listens = source.get("listen").is_some();
        let (own, shared) = (keys(source), if listens { &common[..] } else { &[] });
        for key in told::<SourceKind>(&[("type", &kind)]) {
            let told = own.iter().chain(shared).any(|told| *told == key);
            assert!(told, "ingest/daemon/dist/demi.toml does not tell '{key}' of {kind}");
        }
    }
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let cases = [
        ("[store]", "[stroe]", "[the file] unknown key 'stroe': did you mean 'store'?"),
        ("dir = \"s\"", "dri = \"s\"", "[store] unknown key 'dri': did you mean 'dir'?"),
        ("listen =", "lisen =", "[sources.app-1] unknown key 'lisen': did you mean 'listen'?"),
        ("paths =", "pahts =", "[sources.logs] unknown key 'pahts': did you mean 'paths'?"),
        (
            "\"tcp\"",
            "\"tpc\"",
            "unknown type 'tpc' (known: files, tcp, http, otlp, nats); did you mean 'tcp'?",
        ),
        ("[spool]", "[limits]\nlinebytes = 5\n[spool]", "did you mean 'line_bytes'?"),
    ];
    for (from, to, expected) in cases {
        let text = error(&GOOD.replacen(from, to, 1));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn values_that_cannot_work_are_refused() {
    let cases = [
        ("dir = \"s\"", "dir = \"s\"\nseal_rows = 0", "seal_rows must be at least 1"),
        ("dir = \"p\"", "dir = \"p\"\nmax_bytes = 1000", "max_bytes must be at least"),
        ("dir = \"p\"", "dir = 3", "[spool] invalid type"),
        ("\"prod\"", "\"\"", "system name"),
        ("[\"/var/log/*.log\"]", "[\"***\"]", "paths: '***'"),
        ("127.0.0.1:0", "localhost", "[sources.app-1]"),
        ("system = \"prod\"", "", "system is missing"),
        ("[store]", "[store", "line 2"),
    ];
    for (from, to, expected) in cases {
        let text = error(&GOOD.replacen(from, to, 1));
        assert!(text.contains(expected), "{text}");
    }
    assert!(error("").contains("missing field `dir`"));
}

#[test]
fn the_environment_overrides_paths_of_secrets() {
    let env = |name: &str| (name == "DEMI_APP_1_TOKEN_FILE").then(|| "/run/token".to_owned());
    let config = Config::parse(GOOD, env).unwrap();
    let source = format!("{:?}", config.sources["app-1"].kind);
    assert!(source.contains("token_file: Some(\"/run/token\")"), "{source}");
}

proptest! {
    #[test]
    fn no_text_panics(text in "[\\[\\]a-z.=\"\\n{} 0-9]{0,200}") {
        let _ = Config::parse(&text, |_| None);
    }
}

#[test]
fn where_there_are_incidents_monitors_leave_the_work_to_them() {
    let monitor = "[store]\ndir = \"s\"\n[spool]\ndir = \"p\"\n[sources.a]\ntype = \"files\"\nsystem = \"prod\"\npaths = [\"/var/log/*\"]\n\
                   [monitors.m]\nsystem = \"prod\"\ninvariants = \"i.toml\"\nbuild = true\n\
                   minimize = { scenario = \"/s.toml\", budget = \"7s\" }\n";
    let parse = |more: &str| Config::parse(&format!("{monitor}{more}"), |_| None).unwrap();
    let alone = parse("");
    assert!(alone.monitors["m"].build && alone.monitors["m"].minimize.is_some());
    assert!(alone.models.models.is_empty());
    let served = parse("[incidents]\n");
    assert!(!served.monitors["m"].build && served.monitors["m"].minimize.is_none());
    let model = &served.models.models["monitors.m"];
    assert_eq!(
        (model.takes.systems.as_slice(), model.limits.budget.as_str()),
        (&["prod".to_owned()][..], "7s")
    );
    assert_eq!(model.scenario, Path::new("/s.toml"));
    // What somebody wrote down for the system counts.
    let own = parse("[incidents]\n[models.raft]\nscenario = \"/r.toml\"\ntakes = { systems = [\"pr*\"] }\n");
    assert_eq!(own.models.models.keys().collect::<Vec<_>>(), ["raft"]);
    assert!(!own.monitors["m"].build);
    let other =
        parse("[incidents]\n[models.raft]\nscenario = \"/r.toml\"\ntakes = { systems = [\"staging\"] }\n");
    assert_eq!(other.models.models.len(), 2);
}
