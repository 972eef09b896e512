//! Histories from files, and the checkers of sets, counters and logs.

use demi_programs::{History, Sums, WORKLOADS, Workload, sums};
use demi_schemas::scenario::WorkloadSettings;
use proptest::prelude::*;

fn workload(name: &str) -> Workload {
    Workload::new(&WorkloadSettings { name: name.into(), ..WorkloadSettings::default() }).unwrap()
}

/// What a history breaks, by name.
fn broken(name: &str, text: &str) -> Vec<&'static str> {
    let history = History::parse(text).unwrap();
    let mut names: Vec<&str> = workload(name).check(&history).iter().map(|anomaly| anomaly.name).collect();
    names.dedup();
    names
}

#[test]
fn jepsens_histories_and_our_own_are_read_alike() {
    let edn = "{:type :invoke, :f :write, :value [0 1], :process 0, :time 12, :index 0}\n; a comment\n{:type :info, :f :start, :process :nemesis}\n\
               #jepsen.history.Op{:index 1, :type :ok, :f :write, :value [0 1], :process 0}\n{:type :invoke :f :read :value [0 nil] :process 1}\n\
               {:type :ok :f :read :value [0 nil] :process 1}";
    let json = "{\"process\":0,\"type\":\"invoke\",\"f\":\"write\",\"value\":[0,1]}\n{\"process\":0,\"type\":\"ok\",\"f\":\"write\",\"value\":[0,1]}\n\n\
                {\"process\":1,\"type\":\"invoke\",\"f\":\"read\",\"value\":[0,null]}\n{\"process\":1,\"type\":\"ok\",\"f\":\"read\",\"value\":[0,null]}";
    let ops = |text| -> Vec<String> {
        History::parse(text).unwrap().operations().iter().map(|one| one.told()).collect()
    };
    assert_eq!(ops(edn), ops(json));
    assert_eq!(broken("lin-kv", edn), ["not linearizable"]);
    assert_eq!(broken("lin-kv", json), ["not linearizable"]);
    assert_eq!(ops(&format!("[{edn}]")), ops(json), "a whole history in one vector");
}

#[test]
fn what_is_no_history_is_named_with_its_line() {
    for (text, line, what) in [
        ("{:type :ok :f :read :process 1}", 1, "ends what it did not begin"),
        (
            "{:type :invoke :f :read :process 1}\n{:type :invoke :f :read :process 1}",
            2,
            "before its last one ended",
        ),
        (
            "{:type :invoke :f :read :process 1}\n\n{:type :done :f :read :process 1}",
            3,
            "no type of an event",
        ),
        ("{:type :invoke", 1, "ends in the middle"),
        ("{:a}", 1, "a key without a value"),
        ("\"x", 1, "a text without its end"),
        ("]", 1, "was not opened"),
        ("{\"process\":1}", 1, "without 'type'"),
        ("{\"process\":1,\"type\":\"invoke\",\"f\":\"read\"}\n{", 2, "EOF"),
        (&"[".repeat(100_000), 1, "too deep"),
        ("\\", 1, "without 'process'"),
        ("#_", 1, "ends in the middle"),
        (&"#_".repeat(100_000), 1, "too deep"),
        (&"#a ".repeat(100_000), 1, "too deep"),
    ] {
        let error = History::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text:.40}: {error}");
        assert!(error.what.contains(what), "{text:.40}: {error}");
    }
}

#[test]
fn sets() {
    let add =
        "{:type :invoke :f :broadcast :value 1 :process 0}\n{:type :ok :f :broadcast :value 1 :process 0}\n";
    let read = |value: &str, more: &str| {
        format!(
            "{add}{{:type :invoke :f :read :process 1 {more}}}\n{{:type :ok :f :read :value {value} :process 1 {more}}}"
        )
    };
    assert!(broken("broadcast", &read("[]", "")).is_empty(), "it may come later");
    assert!(broken("broadcast", &read("#{1}", ":final? true")).is_empty());
    assert_eq!(broken("broadcast", &read("[]", ":final? true")), ["an element is lost"]);
    assert_eq!(broken("broadcast", &read("[1 2]", "")), ["an element that nobody added"]);
    assert_eq!(broken("broadcast", &read("[1 1]", "")), ["an element twice"]);
    assert_eq!(broken("broadcast", &read("7", "")), ["a read that is no list"]);
    let early = "{:type :invoke :f :read :process 1}\n{:type :ok :f :read :value [1] :process 1}\n";
    assert_eq!(broken("broadcast", &format!("{early}{add}")), ["an element that nobody added"]);
}

#[test]
fn counters() {
    let text = |last: &str, sum: i64| {
        format!(
            "{{:type :invoke :f :add :value 3 :process 0}}\n{{:type :ok :f :add :value 3 :process 0}}\n{{:type :invoke :f :add :value 10 :process 0}}\n\
             {{:type {last} :f :add :value 10 :process 0}}\n{{:type :invoke :f :read :process 1 :final? true}}\n{{:type :ok :f :read :value {sum} :process 1}}"
        )
    };
    assert!(broken("g-counter", &text(":ok", 13)).is_empty());
    assert_eq!(broken("g-counter", &text(":ok", 3)), ["a sum of nothing that was added"]);
    assert!(
        broken("pn-counter", &text(":info", 3)).is_empty()
            && broken("pn-counter", &text(":info", 13)).is_empty()
    );
    assert!(!broken("pn-counter", &text(":info", 10)).is_empty());
    assert!(
        broken("pn-counter", &text(":fail", 3)).is_empty()
            && !broken("pn-counter", &text(":fail", 13)).is_empty()
    );
    // Before the end a read may lack anything, and has nothing that was not added.
    let early = |sum: i64| {
        format!(
            "{{:type :invoke :f :add :value 3 :process 0}}\n{{:type :ok :f :add :value 3 :process 0}}\n{{:type :invoke :f :add :value 10 :process 0}}\n\
             {{:type :invoke :f :read :process 1}}\n{{:type :ok :f :read :value {sum} :process 1}}"
        )
    };
    for sum in [0, 3, 10, 13] {
        assert!(broken("pn-counter", &early(sum)).is_empty(), "{sum}");
    }
    for sum in [6, -3, 20] {
        assert_eq!(broken("pn-counter", &early(sum)), ["a sum of nothing that was added"], "{sum}");
    }
}

/// Every part of what is not certain, added up.
#[test]
fn sums_are_those_of_all_parts() {
    let mut seed = 7_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        i128::from((seed >> 33) % 21) - 10
    };
    for count in 0..10 {
        let maybe: Vec<i128> = (0..count).map(|_| next()).collect();
        let certain = [next(), next()];
        let possible: Sums = sums(&certain, &maybe);
        let all: std::collections::BTreeSet<i128> = (0..1_u32 << count)
            .map(|part| {
                let some = maybe.iter().enumerate().filter(|(at, _)| part & 1 << at != 0).map(|(_, one)| one);
                certain.iter().chain(some).sum()
            })
            .collect();
        for sum in -150..150 {
            assert_eq!(possible.has(sum), all.contains(&sum), "{certain:?} {maybe:?} {sum}");
        }
    }
}

/// The examples of the workload's documentation, and what each rule says.
#[test]
fn logs() {
    let sent: String = (0..4)
        .map(|n| {
            format!(
                "{{:type :invoke :f :send :value [[:send \"k\" {n}]] :process 0}}\n{{:type :ok :f :send :value [[:send \"k\" [{} {n}]]] :process 0}}\n",
                n * 2
            )
        })
        .collect();
    let poll = |process: u32, asked: &str, got: &str| {
        format!(
            "{{:type :invoke :f :poll :value [[:poll{asked}]] :process {process}}}\n{{:type :ok :f :poll :value [[:poll {{\"k\" {got}}}]] :process {process}}}\n"
        )
    };
    for (polls, expected) in [
        (poll(1, "", "[[0 0] [2 1]]"), &[][..]),
        (poll(1, "", "[[0 0] [4 2]]"), &["a poll skips a message"]),
        (poll(1, "", "[[2 1] [0 0]]"), &["a poll goes back"]),
        (poll(1, "", "[[0 0] [0 0]]"), &["a poll goes back"]),
        (poll(1, "", "[[0 0]]") + &poll(1, "", "[[4 2]]"), &["a poll skips a message"]),
        (poll(1, "", "[[2 1]]") + &poll(1, "", "[[2 1]]"), &["a poll goes back behind the one before"]),
        (poll(1, "", "[[2 1]]") + &poll(2, "", "[[2 1]]"), &[]),
        (
            poll(1, "", "[[4 2]]")
                + "{:type :invoke :f :assign :value [\"k\"] :process 1}\n{:type :ok :f :assign :value [\"k\"] :process 1}\n"
                + &poll(1, "", "[[0 0]]"),
            &[],
        ),
        (poll(1, " {\"k\" 2}", "[[2 1]]"), &[]),
        (poll(1, " {\"k\" 1}", "[[2 1]]"), &[]),
        (poll(1, " {\"k\" 1}", "[[4 2]]"), &["a poll skips a message"]),
        (poll(1, " {\"k\" 2}", "[[0 0] [2 1]]"), &["a poll begins before what was asked"]),
        (poll(1, "", "[[0 9]]"), &["two messages at one offset", "a message that nobody sent"]),
        (poll(1, "", "[[6 3] [8 3]]"), &["one message at two offsets"]),
        (
            "{:type :invoke :f :commit_offsets :value {\"k\" 2} :process 1}\n{:type :ok :f :commit_offsets :value {\"k\" 2} :process 1}\n\
             {:type :invoke :f :list_committed_offsets :value [\"k\"] :process 1}\n{:type :ok :f :list_committed_offsets :value {\"k\" 3} :process 1}"
                .to_owned(),
            &["a committed offset that nobody committed"],
        ),
    ] {
        assert_eq!(broken("kafka", &format!("{sent}{polls}")), expected, "{polls}");
    }
}

#[test]
fn transactions_of_jepsen() {
    let text = "{:type :invoke :f :txn :value [[:r 1 nil] [:append 1 1]] :process 0}\n{:type :invoke :f :txn :value [[:r 1 nil] [:append 1 2]] :process 1}\n\
                {:type :ok :f :txn :value [[:r 1 nil] [:append 1 1]] :process 0}\n{:type :ok :f :txn :value [[:r 1 nil] [:append 1 2]] :process 1}\n\
                {:type :invoke :f :txn :value [[:r 1 nil]] :process 0}\n{:type :ok :f :txn :value [[:r 1 [1 2]]] :process 0}";
    assert_eq!(broken("txn-list-append", text), ["G-single"]);
}

/// Requests and operations fit each other, and what is left of a transaction is one.
#[test]
fn operations_of_every_workload_have_requests() {
    for name in WORKLOADS {
        let workload = workload(name);
        for id in 1..300_u64 {
            let operation = workload.operation(id, id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let body = workload.request(&operation).unwrap();
            assert_eq!(body["msg_id"], id, "{name}");
            for (_, smaller) in workload.smaller(&operation) {
                assert!(workload.request(&smaller).is_ok(), "{name} {smaller:?}");
            }
        }
    }
}

/// Values come again, and 0 is one of them, so that what a program takes for nothing shows.
#[test]
fn registers_are_written_the_same_values_and_sets_have_a_zero() {
    let registers = workload("lin-kv");
    let mut seen = std::collections::BTreeMap::new();
    let (mut to_same, mut from_few) = (0, 0);
    for id in 1..2_000_u64 {
        let operation = registers.operation(id, id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let value = &operation.value[1];
        match operation.f.as_str() {
            "write" => *seen.entry(value.to_string()).or_insert(0) += 1,
            "cas" => {
                to_same += u32::from(value[0] == value[1]);
                from_few += u32::from(value[0].as_u64().is_some_and(|from| from < 4));
            }
            _ => {}
        }
    }
    assert!(["0", "1", "2", "3"].iter().all(|value| seen[*value] > 20), "{seen:?}");
    assert!(seen.len() > 500, "most are written once: {}", seen.len());
    assert!(to_same > 0 && from_few > 20, "{to_same} {from_few}");
    for (name, f) in [("g-set", "add"), ("broadcast", "broadcast")] {
        let first = (0..64).map(|choice| workload(name).operation(1, choice)).find(|one| one.f == f).unwrap();
        assert_eq!(first.value, 0, "{name}");
    }
}

#[test]
fn a_history_that_is_not_understood_is_not_called_right() {
    let history = |lines: &[(&str, &str, &str)]| {
        let one = |(kind, f, value): &(&str, &str, &str)| {
            format!("{{\"process\":0,\"type\":\"{kind}\",\"f\":\"{f}\",\"value\":{value}}}\n")
        };
        lines.iter().map(one).collect::<String>()
    };
    // A register without a key, as Jepsen's simplest tests have it.
    let plain = |read: &str| {
        history(&[
            ("invoke", "write", "1"),
            ("ok", "write", "1"),
            ("invoke", "cas", "[1,5]"),
            ("ok", "cas", "[1,5]"),
            ("invoke", "read", "null"),
            ("ok", "read", read),
        ])
    };
    assert_eq!(broken("lin-kv", &plain("5")), [""; 0]);
    assert_eq!(broken("lin-kv", &plain("77")), ["not linearizable"]);
    let of = |name: &str, text: &str| {
        let history = History::parse(text).unwrap();
        workload(name).foreign(&history).map(|(count, names)| (count, names.join(" ")))
    };
    assert_eq!(of("lin-kv", &plain("5")), Ok((0, String::new())));
    let sets = history(&[("invoke", "add", "1"), ("ok", "add", "1")]);
    assert!(of("unique-ids", &sets).unwrap_err().contains("'f' is add"));
    assert!(of("lin-kv", "").unwrap_err().contains("no operations"));
    let both = sets + &history(&[("invoke", "write", "[0,1]"), ("ok", "write", "[0,1]")]);
    assert_eq!(of("lin-kv", &both), Ok((1, "add".to_owned())));
    let beyond = history(&[("invoke", "write", "[0,18446744073709551616]")]);
    let error = History::parse(&beyond).unwrap_err();
    assert!(error.line == 1 && error.what.contains("18446744073709551616"), "{error}");
}

proptest! {
    /// Any text is a history or is refused, and any history is judged.
    #[test]
    fn no_text_ends_the_program(parts in prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..30)) {
        if let Ok(history) = History::parse(&parts.concat()) {
            for name in WORKLOADS {
                let found = workload(name).check(&history);
                assert!(!history.operations().is_empty() || found.is_empty());
            }
        }
    }
}

/// Pieces of histories.
const PARTS: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    "#{",
    "#_",
    "#a ",
    "\"",
    "\\u00e9",
    "\\",
    ";",
    ":type :invoke ",
    ":type :ok ",
    ":type :info ",
    ":f :read ",
    ":f :txn ",
    ":f :poll ",
    ":process 1 ",
    ":value ",
    "[[:r 1 [1 2]]] ",
    "[[:append 1 2] [:w 1 2]] ",
    "[[:poll {\"k\" [[0 1] [2]]}] [:send 1 [3 4]]] ",
    "{:type :invoke :f :txn :process 0 :value [[:r 1 nil]]}\n",
    "{:type :ok :f :txn :process 0 :value [[:r 1 [1]] [:append 1 1]]}\n",
    "é9.5e3N ",
];
