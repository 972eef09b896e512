//! What is missing: waits end, and nothing is said of what is not known.

use demi_monitor::{Monitor, Options};

use super::{invariants, options, record};

const TELLS: &str = r#""kind":"state","state""#;

fn feed(monitor: &mut Monitor<'_>, line: &str, now: u64) -> Vec<String> {
    let mut found = Vec::new();
    let record = monitor.interest().record(&record(line));
    monitor.take(record, 1, now, &mut found);
    monitor.tick(now, &mut found);
    found.into_iter().map(|v| format!("{} at {}: {:?}", v.invariant, v.event, v.affected)).collect()
}

#[test]
fn a_receive_waits_for_its_send() {
    let invariants = invariants(&["max(x) - min(x) <= 1"]);
    let mut monitor = Monitor::new(&invariants, options());
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":1,{TELLS}:{{"x":0}}}}"#), 0).is_empty());
    // b heard of 5 from a; what a told before it sent that has not come yet.
    let receive = r#"{"actor":"b","seq":1,"kind":"receive","from":"a","msg_id":"1"}"#;
    assert!(feed(&mut monitor, receive, 0).is_empty());
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"b","seq":2,{TELLS}:{{"x":5}}}}"#), 0).is_empty());
    assert_eq!(monitor.counts().held, 2);
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":2,{TELLS}:{{"x":5}}}}"#), 1).is_empty());
    let send = r#"{"actor":"a","seq":3,"kind":"send","to":"b","msg_id":"1"}"#;
    assert!(feed(&mut monitor, send, 1).is_empty());
    // Its handler may still tell what it left; then it is quiet.
    assert_eq!(monitor.counts().held, 2);
    monitor.tick(300, &mut Vec::new());
    assert_eq!(monitor.counts().held, 0);
    // Both told 5; the next is a failure.
    let found = feed(&mut monitor, &format!(r#"{{"actor":"b","seq":3,{TELLS}:{{"x":7}}}}"#), 1);
    assert_eq!(found, [r#"i0 at b/3: ["a", "b"]"#]);
}

#[test]
fn an_actor_that_something_is_missing_of_is_uncertain_for_two_states() {
    let invariants = invariants(&["max(x) - min(x) <= 1", "x < 9"]);
    let mut monitor = Monitor::new(&invariants, options());
    feed(&mut monitor, &format!(r#"{{"actor":"a","seq":1,{TELLS}:{{"x":0}}}}"#), 0);
    feed(&mut monitor, r#"{"actor":"b","seq":1,"kind":"receive","from":"a","msg_id":"lost"}"#, 0);
    feed(&mut monitor, &format!(r#"{{"actor":"b","seq":2,{TELLS}:{{"x":5}}}}"#), 0);
    let mut found = Vec::new();
    monitor.tick(1999, &mut found);
    assert_eq!(monitor.counts().held, 2);
    monitor.tick(2001, &mut found);
    assert_eq!((monitor.counts().held, monitor.counts().uncertain, found.len()), (0, 1, 0));
    // A row of one actor is told at once, a cut when its actors are certain.
    let found = feed(&mut monitor, &format!(r#"{{"actor":"b","seq":3,{TELLS}:{{"x":9}}}}"#), 2001);
    assert_eq!(found, [r#"i0 at b/3: ["a", "b"]"#, r#"i1 at b/3: ["b"]"#]);
}

#[test]
fn a_gap_is_passed_over_in_the_end() {
    let invariants = invariants(&["x >= prev.x"]);
    let mut monitor = Monitor::new(&invariants, options());
    feed(&mut monitor, &format!(r#"{{"actor":"a","seq":1,{TELLS}:{{"x":3}}}}"#), 0);
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":3,{TELLS}:{{"x":1}}}}"#), 0).is_empty());
    // What comes late, but in time, goes first.
    let found = feed(&mut monitor, &format!(r#"{{"actor":"a","seq":2,{TELLS}:{{"x":2}}}}"#), 10);
    assert_eq!(found, [r#"i0 at a/2: ["a"]"#]);
    // Twice is once.
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":2,{TELLS}:{{"x":2}}}}"#), 11).is_empty());
    feed(&mut monitor, &format!(r#"{{"actor":"a","seq":5,{TELLS}:{{"x":0}}}}"#), 20);
    assert_eq!(monitor.counts().held, 1);
    let (mut found, checks) = (Vec::new(), monitor.watching()[0].checks);
    monitor.tick(5000, &mut found);
    // It fails as before.
    assert_eq!((monitor.counts().held, found.len()), (0, 0));
    assert_eq!(monitor.watching()[0].checks, checks + 1);
}

#[test]
fn too_much_is_not_held() {
    let invariants = invariants(&["x >= prev.x"]);
    let mut monitor = Monitor::new(&invariants, Options { wait_records: 10, ..options() });
    for seq in 2..100 {
        feed(&mut monitor, &format!(r#"{{"actor":"a","seq":{seq},{TELLS}:{{"x":3}}}}"#), 0);
        assert!(monitor.counts().held <= 10);
    }
}

#[test]
fn an_alert_waits_for_confirmation_and_is_then_quiet() {
    let invariants = invariants(&["x < 5"]);
    let options = Options { confirm: 2, quiet_millis: 1000, ..Options::default() };
    let mut monitor = Monitor::new(&invariants, options);
    let tell = |seq: u64, x: i64| format!(r#"{{"actor":"a","seq":{seq},{TELLS}:{{"x":{x}}}}}"#);
    assert!(feed(&mut monitor, &tell(1, 5), 0).is_empty());
    assert_eq!(feed(&mut monitor, &tell(2, 6), 0).len(), 1);
    assert!(feed(&mut monitor, &tell(3, 7), 0).is_empty());
    feed(&mut monitor, &tell(4, 0), 0);
    feed(&mut monitor, &tell(5, 5), 10);
    assert!(feed(&mut monitor, &tell(6, 6), 10).is_empty());
    feed(&mut monitor, &tell(7, 0), 2000);
    feed(&mut monitor, &tell(8, 5), 2000);
    assert_eq!(feed(&mut monitor, &tell(9, 6), 2000).len(), 1);
    assert_eq!(monitor.watching()[0].failures, 3);
    // Muted, nothing is told of it.
    assert!(monitor.mute("i0", true) && !monitor.mute("i1", true));
    feed(&mut monitor, &tell(10, 0), 9000);
    feed(&mut monitor, &tell(11, 5), 9000);
    assert!(feed(&mut monitor, &tell(12, 6), 9000).is_empty());
}

/// A text where a number is due leaves its own actor without a verdict, until the actor tells a number again.
#[test]
fn values_that_do_not_compare_silence_nobody_else() {
    let invariants = invariants(&["x <= 50", "max(x) - min(x) <= 50"]);
    let mut monitor = Monitor::new(&invariants, options());
    let tell =
        |actor: &str, seq: u64, x: &str| format!(r#"{{"actor":"{actor}","seq":{seq},{TELLS}:{{"x":{x}}}}}"#);
    assert!(feed(&mut monitor, &tell("good", 1, "10"), 0).is_empty());
    assert!(feed(&mut monitor, &tell("evil", 1, r#""text""#), 0).is_empty());
    let unjudged = monitor.watching().into_iter().map(|w| w.unjudged.into_keys().collect::<Vec<_>>());
    assert_eq!(unjudged.collect::<Vec<_>>(), [vec!["actor = 'evil'"], vec![""]]);
    // Each is told once.
    let told = monitor.take_unjudged();
    assert_eq!(told.iter().map(|t| t.groups).collect::<Vec<_>>(), [1, 1]);
    assert!(told[0].reason.contains("text"), "{}", told[0].reason);
    assert!(monitor.take_unjudged().is_empty());
    assert_eq!(feed(&mut monitor, &tell("good", 2, "60"), 0), [r#"i0 at good/2: ["good"]"#]);
    // It is over with the next number, and what a text hid is told.
    assert_eq!(feed(&mut monitor, &tell("evil", 2, "5"), 0), [r#"i1 at evil/2: ["evil", "good"]"#],);
    assert!(monitor.watching().iter().all(|w| w.unjudged.is_empty()));
    assert!(feed(&mut monitor, &tell("evil", 3, r#""text""#), 0).is_empty());
    assert_eq!(monitor.take_unjudged().len(), 2);
}

/// One that fails hides no other.
#[test]
fn each_that_fails_is_told() {
    let invariants = invariants(&["x <= 50"]);
    let mut monitor = Monitor::new(&invariants, options());
    for actor in ["a", "b", "c"] {
        let line = format!(r#"{{"actor":"{actor}","seq":1,{TELLS}:{{"x":100}}}}"#);
        assert_eq!(feed(&mut monitor, &line, 0), [format!(r#"i0 at {actor}/1: ["{actor}"]"#)]);
    }
    assert_eq!(monitor.watching()[0].failing, ["actor = 'a'", "actor = 'b'", "actor = 'c'"]);
}

#[test]
fn after_a_loss_states_are_unknown_until_they_are_told() {
    let invariants = invariants(&["max(x) - min(x) <= 1"]);
    let mut monitor = Monitor::new(&invariants, options());
    feed(&mut monitor, &format!(r#"{{"actor":"a","seq":1,{TELLS}:{{"x":0}}}}"#), 0);
    monitor.lose();
    assert!(feed(&mut monitor, &format!(r#"{{"actor":"b","seq":7,{TELLS}:{{"x":5}}}}"#), 0).is_empty());
    assert_eq!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":9,{TELLS}:{{"x":2}}}}"#), 0).len(), 0);
    let mut found = Vec::new();
    monitor.tick(3000, &mut found);
    assert!(found.is_empty());
    assert_eq!(feed(&mut monitor, &format!(r#"{{"actor":"a","seq":10,{TELLS}:{{"x":3}}}}"#), 3000).len(), 0);
}

/// A lock that is handed over: the state behind the send is told after it, and both never hold it together.
#[test]
fn a_handler_is_one_step() {
    let invariants = invariants(&["count(*) FILTER (WHERE holds) <= 1"]);
    let mut monitor = Monitor::new(&invariants, options());
    for line in [
        r#"{"actor":"a","seq":1,"kind":"state","state":{"holds":true}}"#,
        r#"{"actor":"a","seq":2,"kind":"timer_fire"}"#,
        r#"{"actor":"a","seq":3,"kind":"send","to":"b","msg_id":"1"}"#,
        // b is handed over before a says that it let go.
        r#"{"actor":"b","seq":1,"kind":"receive","from":"a","msg_id":"1"}"#,
        r#"{"actor":"b","seq":2,"kind":"state","state":{"holds":true}}"#,
        r#"{"actor":"a","seq":4,"kind":"state","state":{"holds":false}}"#,
    ] {
        assert!(feed(&mut monitor, line, 0).is_empty(), "{line}");
    }
    assert_eq!(monitor.counts().held, 0);
    // Who takes it back without having been given it is found.
    assert_eq!(
        feed(&mut monitor, r#"{"actor":"a","seq":5,"kind":"state","state":{"holds":true}}"#, 1).len(),
        1
    );
}
