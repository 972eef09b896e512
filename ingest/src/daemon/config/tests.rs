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
