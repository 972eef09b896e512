//! `infer` and `check`: what held of healthy runs is flagged where it breaks, and is an oracle.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const OWNER: &str = "EVER WHERE role = 'Leader' GROUP BY term HAVING count(DISTINCT actor) <= 1";
const ONE_LEADER: &str = "WHERE role = 'Leader' GROUP BY term HAVING count(*) <= 1";

fn run(folder: &Path, line: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_demi-lineage")).args(line).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn words(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    run(folder, &line.split(' ').collect::<Vec<_>>())
}

/// A folder with scenarios: a right program, and one in which a voter is counted twice.
fn scenarios() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let head = "model = \"akka-raft\"\nmembers = 4\nnetwork = \"unordered\"\n";
    let fuzz = "[fuzz]\ntimer_putback = 0.7\nstrategy = \"mixed\"\n";
    let bug = "[switches]\nraft45_duplicate_votes = true\n";
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("right.toml", format!("{head}{fuzz}client_messages = 20\nwait_for = \"leader\"\n"));
    write("bug.toml", format!("{head}{bug}{fuzz}client_messages = 0\n"));
    let own =
        |same: &str, holds: &str| format!("[[invariant]]\nname = \"OneLeader\"\nholds = \"{holds}\"\n{same}");
    write("oracle.toml", format!("{head}{}{bug}{fuzz}client_messages = 0\n", own("", ONE_LEADER)));
    let same = "same_as = \"ElectionSafety\"\n";
    write("same.toml", format!("{head}{}{bug}{fuzz}client_messages = 0\n", own(same, ONE_LEADER)));
    write("other.toml", format!("{head}{}{bug}{fuzz}client_messages = 0\n", own(same, "term >= 0")));
    folder
}

/// Runs to infer from are healthy ones: their states become invariants, and the violating run breaks the one it is about.
#[test]
fn what_held_is_flagged_where_it_breaks() {
    let folder = scenarios();
    let at = folder.path();
    let (status, told, error) =
        words(at, "fuzz --scenario right.toml --seed 11 --healthy 12 --deliveries 600 --state --out runs -q");
    assert_eq!(status, Some(0), "{told}{error}");
    let (status, told, error) = words(at, "infer runs --out i.toml --json -q");
    assert_eq!(status, Some(0), "{error}");
    let answer: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&answer["executions"], &answer["held_out"]), (&12.into(), &3.into()));
    let held: Vec<&str> =
        answer["invariants"].as_array().unwrap().iter().map(|i| i["holds"].as_str().unwrap()).collect();
    for expected in
        [OWNER, "term >= prev.term", "committed >= prev.committed", "prefixes(head(log, committed))"]
    {
        assert!(held.contains(&expected), "{expected} in {held:#?}");
    }
    assert_eq!(answer["classes"][0]["class"], "raft-member-*");
    // The same input gives the same file; what people said in it stays.
    let first = std::fs::read_to_string(at.join("i.toml")).unwrap();
    let reviewed = first.replacen("status = \"inferred\"", "status = \"confirmed\"\nname = \"seen\"", 1);
    std::fs::write(at.join("i.toml"), &reviewed).unwrap();
    assert_eq!(words(at, "infer runs --out i.toml -q").0, Some(0));
    let again = std::fs::read_to_string(at.join("i.toml")).unwrap();
    assert!(again.contains("status = \"confirmed\"") && again.contains("name = \"seen\""));
    assert_eq!(again.lines().count(), first.lines().count() + 1);

    let (status, told, _) = words(at, "check runs --invariants i.toml -q");
    assert!(status == Some(0) && told.contains("hold in 12 executions"), "{told}");
    let (status, ..) = words(at, "fuzz --scenario bug.toml --seed 7 --deliveries 600 --state --out bad -q");
    assert_eq!(status, Some(0));
    let (status, told, _) = words(at, "check bad --invariants i.toml --json -q");
    assert_eq!(status, Some(1));
    let answers: Value = serde_json::from_str(&told).unwrap();
    let failing: Vec<&str> = answers
        .as_array()
        .unwrap()
        .iter()
        .filter(|a| a["holds"] == false)
        .map(|a| a["predicate"].as_str().unwrap())
        .collect();
    assert!(failing.contains(&OWNER), "{failing:?}");
    // The bug is about leaders, and nothing else is flagged.
    assert!(failing.iter().all(|p| p.contains("'Leader'")), "{failing:?}");
    let (status, _, error) = words(at, "infer runs bad -q");
    assert!(status == Some(2) && error.contains("an invariant was broken"), "{error}");
    let lost = "infer runs bad --anyway --holdout 0 --against i.toml -q";
    let (status, told, _) = words(at, lost);
    assert!(status == Some(1) && told.contains(&format!("- {OWNER}")), "{told}");
}

#[test]
fn a_predicate_is_an_oracle() {
    let folder = scenarios();
    let at = folder.path();
    for (scenario, name) in
        [("oracle.toml", "OneLeader:raft-member-"), ("same.toml", "ElectionSafety:raft-member-")]
    {
        let line = format!("fuzz --scenario {scenario} --seed 7 --deliveries 600 --out found --json -q");
        let (status, told, error) = words(at, &line);
        assert_eq!(status, Some(0), "{told}{error}");
        let summary: Value = serde_json::from_str(&told).unwrap();
        assert!(summary["violation"][0].as_str().unwrap().starts_with(name), "{told}");
        let line = format!("replay found/schedule.jsonl --scenario {scenario} --strict -q");
        assert_eq!(words(at, &line).0, Some(0));
    }
    // What an execution breaks that says another name for it is what the predicate says.
    let line = "minimize found/schedule.jsonl --scenario oracle.toml --budget 400r --out m --json -q";
    let (status, told, error) = words(at, line);
    assert_eq!(status, Some(0), "{error}");
    let summary: Value = serde_json::from_str(&told).unwrap();
    assert!(summary["violation"][0].as_str().unwrap().starts_with("OneLeader:"), "{told}");
    assert_eq!(words(at, "verify m -q").0, Some(0));
    // A predicate that says something else than the model's is no stand-in for it.
    let (status, told, error) = words(at, "replay found/schedule.jsonl --scenario other.toml -q");
    let text = format!("{told}{error}");
    assert!(status != Some(0) && text.contains("'ElectionSafety'"), "{status:?} {text}");
}

/// What a log of another program holds: every predicate with its bits, of what is reported from so many bits on.
fn inferred(set: &str, files: &[&str], mapping: &str, bits: &str) -> Option<BTreeMap<String, f64>> {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/third-party").join(set).join("data");
    if !data.is_dir() {
        println!("skipped: {} is not at hand", data.display());
        return None;
    }
    let mapping = Path::new(env!("CARGO_MANIFEST_DIR")).join(mapping).display().to_string();
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let (log, system) = (data.join(file).display().to_string(), file.split('.').next().unwrap());
        let line = ["ingest", "load", "--store", "s", "--system", system, "--mapping", &mapping, "-q"];
        assert_eq!(run(folder.path(), &[&line[..], &[log.as_str()]].concat()).0, Some(0));
    }
    let line = ["infer", "s", "--holdout", "0", "--min-bits", bits, "--json", "-q"];
    let (status, told, error) = run(folder.path(), &line);
    assert_eq!(status, Some(0), "{error}");
    let answer: Value = serde_json::from_str(&told).unwrap();
    let one = |i: &Value| (i["holds"].as_str().unwrap().to_owned(), i["bits"].as_f64().unwrap());
    Some(answer["invariants"].as_array().unwrap().iter().map(one).collect())
}

/// Dinv's example: a client sends two terms, and a server answers with their sum. What holds across its messages is found, and no more.
#[test]
fn what_holds_across_messages_is_found() {
    let Some(held) = inferred("dinv-sum", &["sum-2015-08-21.log"], "examples/mappings/dinv.toml", "6.64")
    else {
        return;
    };
    let of = |from: &str, to: &str| {
        format!(
            "MESSAGES 'Sending' WHERE sender.logging_point = '{from}' AND receiver.logging_point = '{to}' HAVING "
        )
    };
    let answer = of("Banana_server_server_56", "Apple_client_client_54");
    let bits = |holds: &str| held.get(&format!("{answer}{holds}")).copied();
    // Each combination of values counts once: there are about a hundred terms, and one and a half times as many sums.
    for variable in ["sum", "term1", "term2"] {
        let equal = bits(&format!("sender.{variable} = receiver.{variable}"));
        assert!(equal > Some(600.0), "{variable}: {equal:?}");
    }
    assert!(bits("sender.sum = sender.term1 + sender.term2") > Some(1_000.0));
    for term in ["term1", "term2"] {
        let order = bits(&format!("sender.{term} <= sender.sum"));
        assert!(order > Some(110.0), "{term}: {order:?}");
        assert_eq!(bits(&format!("sender.{term} < sender.sum")), None);
    }
    let groups: std::collections::BTreeSet<&str> = held
        .keys()
        .filter(|holds| holds.starts_with("MESSAGES"))
        .filter_map(|holds| holds.split(" HAVING ").next())
        .collect();
    assert!(groups.len() > 1 && groups.len() <= 12, "{groups:#?}");
    // What never changes is in no relation.
    for constant in ["ADDITION_ARGS", "RUNS", "LARGEST_TERM", "SIZEOFINT"] {
        assert!(held.keys().all(|holds| !holds.contains(constant)), "{constant}");
    }
}

/// One election in 386 states of etcd's Raft is little evidence, and the bits say so.
#[test]
fn little_evidence_is_told_as_such() {
    let Some(held) =
        inferred("tla-etcd-raft", &["etcd-raft-2024-07.ndjson"], "examples/mappings/etcd-raft.toml", "3")
    else {
        return;
    };
    for (text, bits) in
        [("term >= prev.term", 22.0), ("commit >= prev.commit", 12.0), ("log >= prev.log", 12.0)]
    {
        assert_eq!(held.get(text), Some(&bits), "{text} in {held:#?}");
    }
    // What the paper reports of this system holds, below the limit of one in a hundred.
    for text in [
        "applied <= commit",
        "commit <= log",
        "max(log) FILTER (WHERE role = 'StateLeader') >= max(log) FILTER (WHERE role <> 'StateLeader')",
        "max(commit) FILTER (WHERE role = 'StateLeader') >= max(commit) FILTER (WHERE role <> 'StateLeader')",
    ] {
        assert!(held.get(text).is_some_and(|bits| (3.0..6.64).contains(bits)), "{text} in {held:#?}");
    }
    // True of many records and of few episodes.
    assert!(!held.contains_key("vote <> '2' OR commit = 6"), "{held:#?}");
}

/// One leader at once in three executions of CCF.
#[test]
fn several_executions_of_another_system_agree() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/third-party/tla-ccf-raft/data");
    let files: Vec<String> = std::fs::read_dir(&data)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("check_quorum") || name.starts_with("election"))
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let Some(held) = inferred("tla-ccf-raft", &files, "examples/mappings/ccf-raft.toml", "1.5") else {
        return;
    };
    assert!(held.contains_key("WHERE leadership_state = 'Leader' HAVING count(*) <= 1"), "{held:#?}");
    for text in ["commit_idx >= prev.commit_idx", "last_idx >= prev.last_idx", "commit_idx <= last_idx"] {
        assert!(held.contains_key(text), "{text} in {held:#?}");
    }
}

#[test]
fn what_cannot_be_meant_is_told() {
    let folder = scenarios();
    let at = folder.path();
    let write = |name: &str, text: &str| std::fs::write(at.join(name), text).unwrap();
    write("foreign.toml", "[package]\nname = \"x\"\n");
    write("typo.toml", "schema = \"demi-invariants/1\"\n[[invariant]]\nholds = \"lenght(log) > 1\"\n");
    std::fs::create_dir(at.join("empty")).unwrap();
    std::fs::create_dir(at.join("logs")).unwrap();
    write("logs/a.jsonl", "{\"actor\":\"a\",\"seq\":1,\"kind\":\"local\"}\n");
    for (line, why) in [
        ("infer runs", "runs"),
        ("infer empty", "no store, no execution and no logs"),
        ("infer logs", "no record tells a state"),
        ("infer logs --out foreign.toml", "foreign.toml"),
        ("infer logs --holdout 2", "between 0 and 0.9"),
        ("check logs --invariants absent.toml", "absent.toml"),
        ("check logs --invariants typo.toml", "did you mean 'length'"),
    ] {
        let (status, _, error) = words(at, &format!("{line} -q"));
        assert!(status == Some(2) && error.contains(why), "{line}: {status:?} {error}");
    }
    assert_eq!(std::fs::read_to_string(at.join("foreign.toml")).unwrap(), "[package]\nname = \"x\"\n");
    // What cannot be tried does not hold: a variable that no state has, a class that no actor is of.
    write("logs/a.jsonl", "{\"actor\":\"a\",\"seq\":1,\"kind\":\"state\",\"state\":{\"x\":1}}\n");
    for (entry, status, why) in [
        ("holds = \"x > 0\"", 0, "the invariant holds in 1 execution"),
        ("holds = \"xx > 0\"", 2, "no state has a variable 'xx'"),
        ("holds = \"x > 0\"\nclass = \"b*\"", 2, "no state of b* has a variable 'x'"),
        ("holds = \"x > 0\"\nclass = \"[\"", 2, "class"),
        ("holds = \"MESSAGES 'm' HAVING receiver.x > 0\"", 2, "no message is one of 'MESSAGES 'm''"),
        (
            "holds = \"MESSAGES 'm' HAVING receiver.x > 0\"\n[[invariant]]\nholds = \"x > 0\"",
            0,
            "the invariant holds in 1 execution; 1 other says nothing about it",
        ),
    ] {
        write("i.toml", &format!("schema = \"demi-invariants/1\"\n[[invariant]]\n{entry}\n"));
        let (found, told, error) = words(at, "check logs --invariants i.toml -q");
        assert!(found == Some(status) && format!("{told}{error}").contains(why), "{entry}: {told}{error}");
    }
    let scenario = std::fs::read_to_string(at.join("oracle.toml")).unwrap();
    for (from, to, why) in [
        ("GROUP BY term", "GROUP BY trem", "did you mean 'term'"),
        ("WHERE role", "EVER WHERE role", "speaks of the past"),
        ("HAVING count(*) <= 1", "HAVNG count(*) <= 1", "did you mean 'HAVING'"),
    ] {
        write("bad.toml", &scenario.replace(from, to));
        let (status, _, error) = words(at, "fuzz --scenario bad.toml --seed 1 --out o -q");
        assert!(status == Some(2) && error.contains(why) && error.contains("bad.toml"), "{to}: {error}");
    }
}

#[test]
fn a_replay_tells_the_states_that_a_run_had() {
    let folder = scenarios();
    let at = folder.path();
    let (status, told, err) = words(at, "fuzz --scenario bug.toml --seed 3 --state --out run -q");
    assert_eq!(status, Some(0), "{told}{err}");
    let (status, told, err) = words(at, "replay run --scenario bug.toml --state told -q");
    assert_eq!(status, Some(0), "{told}{err}");
    let logs = |name: &str| {
        let files = std::fs::read_dir(at.join(name).join("logs")).unwrap().map(|entry| entry.unwrap());
        let texts = files.map(|file| {
            let text = std::fs::read_to_string(file.path()).unwrap();
            let states: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .filter(|record| record["kind"] == "state")
                .map(|record| record["state"].clone())
                .collect();
            (file.file_name(), states)
        });
        texts.collect::<BTreeMap<_, _>>()
    };
    let (run, told) = (logs("run"), logs("told"));
    assert_eq!(run, told);
    assert!(run.values().map(Vec::len).sum::<usize>() > 20);
}

/// Five philosophers whose variables bear their numbers. A waiter lets one eat at a time; of the `greedy` one takes two forks unasked at the end.
fn philosophers(turns: u64, greedy: bool) -> String {
    let (mut log, mut seqs) = (String::new(), BTreeMap::<String, u64>::new());
    let mut tell = |actor: &str, what: &str| {
        let seq = seqs.entry(actor.to_owned()).or_default();
        *seq += 1;
        log.push_str(&format!("{{\"actor\":\"{actor}\",\"seq\":{seq},{what}}}\n"));
    };
    let state = |who: u64, eats: bool, meals: u64| {
        format!("\"kind\":\"state\",\"state\":{{\"eating_{who}\":{eats},\"meals_of_{who}\":{meals}}}")
    };
    let message = |kind: &str, id: u64, from: &str, to: &str| {
        format!("\"kind\":\"{kind}\",\"msg_id\":\"{id}\",\"from\":\"{from}\",\"to\":\"{to}\"")
    };
    let name = |who: u64| format!("p-{who}");
    let mut meals = [0; 5];
    for who in 0..5 {
        tell(&name(who), "\"kind\":\"start\"");
        tell(&name(who), &state(who, false, 0));
    }
    for turn in 0..turns {
        let who = turn * 7 % 5;
        meals[who as usize] += 1;
        let (own, meals) = (name(who), meals[who as usize]);
        tell("waiter", &message("send", 2 * turn, "waiter", &own));
        tell(&own, &message("receive", 2 * turn, "waiter", &own));
        tell(&own, &state(who, true, meals));
        if greedy && turn + 1 == turns {
            let other = (who + 1) % 5;
            tell(&name(other), "\"kind\":\"timer_fire\"");
            tell(&name(other), &state(other, true, meals));
        }
        tell(&own, "\"kind\":\"timer_fire\"");
        tell(&own, &state(who, false, meals));
        tell(&own, &message("send", 2 * turn + 1, &own, "waiter"));
        tell("waiter", &message("receive", 2 * turn + 1, &own, "waiter"));
    }
    log
}

/// Actors that tell different variables are a class where the user says so.
#[test]
fn a_class_that_is_given_joins_actors_that_have_nothing_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let line = |actor: &str, more: &str, seq: u64| {
        format!(
            "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"state\",\"state\":{{\"x\":{seq}{more}}}}}\n"
        )
    };
    let log: String = (1..60).map(|seq| line("alpha", "", seq) + &line("beta", ",\"y\":1", seq)).collect();
    std::fs::create_dir(at.join("logs")).unwrap();
    std::fs::write(at.join("logs/log.jsonl"), log).unwrap();
    let classes = |more: &str| {
        let (status, told, error) = words(at, &format!("infer logs --out i.toml --json -q{more}"));
        assert_eq!(status, Some(0), "{error}");
        let answer: Value = serde_json::from_str(&told).unwrap();
        let of =
            |class: &Value| (class["class"].as_str().unwrap().to_owned(), class["actors"].as_u64().unwrap());
        answer["classes"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(classes("").len(), 2);
    let joined = classes(" --class both=*a");
    assert_eq!(joined.iter().map(|(_, actors)| *actors).collect::<Vec<_>>(), [2], "{joined:?}");
}

#[test]
fn actors_whose_variables_bear_their_names_are_one_class() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, greedy) in [("right", false), ("greedy", true)] {
        std::fs::create_dir(at.join(name)).unwrap();
        std::fs::write(at.join(name).join("log.jsonl"), philosophers(60, greedy)).unwrap();
    }
    let (status, told, error) = words(at, "infer right --out i.toml --json -q");
    assert_eq!(status, Some(0), "{error}");
    let answer: Value = serde_json::from_str(&told).unwrap();
    let classes = answer["classes"].as_array().unwrap();
    assert_eq!(
        (classes.len(), &classes[0]["class"], &classes[0]["actors"]),
        (1, &"p-*".into(), &5.into()),
        "{told}"
    );
    let all = answer["invariants"].as_array().unwrap();
    let held: Vec<&str> = all.iter().map(|i| i["holds"].as_str().unwrap()).collect();
    insta::assert_snapshot!("philosophers", held.join("\n"));
    let never_two =
        held.iter().find(|holds| holds.contains("\"eating_*\"") && holds.contains("count(*) <= 1"));
    let never_two = *never_two.unwrap_or_else(|| panic!("{held:#?}"));
    // The file and the predicate are asked of the records as they are.
    let (status, told, error) = words(at, "check right --invariants i.toml -q");
    assert_eq!(status, Some(0), "{told}{error}");
    let (status, told, error) = words(at, "check greedy --invariants i.toml --states pairs -q");
    assert!(status == Some(1) && told.contains(never_two), "{told}{error}");
    assert_eq!(run(at, &["ingest", "load", "--store", "store", "--system", "s", "greedy", "-q"]).0, Some(0));
    let (status, told, error) = run(at, &["query", "store", "check", never_two, "-q"]);
    assert!(status == Some(1), "{told}{error}");
    // A slip of the pen is told as ever.
    let (status, told, error) = run(at, &["query", "store", "check", "\"eatin_*\" = false", "-q"]);
    assert!(status == Some(2) && error.contains("no state has a variable 'eatin_*'"), "{told}{error}");
}
