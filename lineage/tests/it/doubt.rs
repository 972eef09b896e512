//! What is a guess is uncertain everywhere, and what runs against stamps is said.

use std::path::PathBuf;

use demi_lineage::generate::write_store_file;
use demi_lineage::query::{Query, Relation};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::EventRecord;
use demi_schemas::summary::BuildSummary;
use serde_json::{Value, json};
use tempfile::TempDir;

/// An execution of records.
struct Built {
    _dir: TempDir,
    exec: PathBuf,
    summary: BuildSummary,
}

fn built(records: impl IntoIterator<Item = Value>) -> Built {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    let parsed = records.into_iter().map(|r| EventRecord::parse(r.to_string().as_bytes()).unwrap());
    write_store_file(&file, parsed).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    let summary = build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Built { _dir: dir, exec, summary }
}

impl Built {
    fn order(&self, certain: bool, one: &str, other: &str) -> Relation {
        let query = Query::open(&self.exec, certain).unwrap();
        let event = |name: &str| query.index().event(name).unwrap();
        query.order(event(one), event(other)).unwrap()
    }

    /// The reason of the first edge between logs from one event to another, and whether it is certain.
    fn edge(&self, one: &str, other: &str) -> (&'static str, bool) {
        let query = Query::open(&self.exec, false).unwrap();
        let event = |name: &str| query.index().event(name).unwrap();
        let path = query.index().path(event(one), event(other), false).unwrap().unwrap();
        let hop = path.iter().find(|hop| !hop.is_log()).unwrap();
        (hop.reason.as_str(), hop.certain)
    }

    fn warned(&self, of: &str) -> bool {
        self.summary.warnings.iter().any(|warning| warning.contains(of))
    }
}

const BASE: u64 = 1_750_000_000_000_000_000;

/// The event of a span that does nothing with messages.
fn span(actor: &str, trace: &str, id: u64, parent: Option<u64>, start: u64) -> Value {
    let mut span = json!({
        "actor": actor, "seq": BASE + start, "kind": "local", "type": "work", "trace_id": trace, "span_id": format!("{id:016x}"),
        "key": format!("{trace}:{id:016x}"), "span_kind": "internal",
    });
    if let Some(parent) = parent {
        span["parent_span_id"] = json!(format!("{parent:016x}"));
    }
    span
}

fn with(mut span: Value, more: Value) -> Value {
    span.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    span
}

fn client(actor: &str, trace: &str, id: u64, parent: Option<u64>, start: u64) -> Value {
    let sends =
        json!({"kind": "send", "span_kind": "client", "to": "*", "msg_id": format!("{trace}:{id:016x}")});
    with(span(actor, trace, id, parent, start), sends)
}

/// The event of a server's span, as it is read: the parent sent it a message, or nobody did.
fn server(actor: &str, trace: &str, id: u64, parent: Option<u64>, start: u64) -> Value {
    let mut receives = json!({"kind": "receive", "span_kind": "server", "from": "*"});
    match parent {
        Some(parent) => receives["msg_id"] = json!(format!("{trace}:{parent:016x}")),
        None => receives["external"] = json!(true),
    }
    with(span(actor, trace, id, parent, start), receives)
}

fn name(actor: &str, start: u64) -> String {
    format!("{actor}/{}", BASE + start)
}

const TRACE: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn of_spans_with_one_id_the_parent_is_a_guess_in_whatever_order_they_come() {
    // Two spans have the id 1, and the child of it is stamped between them.
    let spans = [
        span("a", TRACE, 1, None, 100),
        span("b", TRACE, 1, None, 500),
        span("c", TRACE, 2, Some(1), 300),
        // Two that are the parent of each other by their ids.
        span("d", TRACE, 7, Some(7), 100),
        span("e", TRACE, 7, Some(7), 200),
    ];
    for turn in 0..spans.len() {
        let mut spans = spans.to_vec();
        spans.rotate_left(turn);
        let built = built(spans);
        assert_eq!(built.order(false, &name("a", 100), &name("c", 300)), Relation::Before);
        assert_eq!(built.order(false, &name("b", 500), &name("c", 300)), Relation::Concurrent);
        assert_eq!(built.order(false, &name("d", 100), &name("e", 200)), Relation::Before);
        for (one, other) in [(name("a", 100), name("c", 300)), (name("d", 100), name("e", 200))] {
            assert_eq!(built.order(true, &one, &other), Relation::Concurrent);
            assert_eq!(built.edge(&one, &other), ("parent", false));
        }
        assert!(
            built.warned("the parents of 3 spans have ids that several spans have"),
            "{:?}",
            built.summary.warnings
        );
        assert!(built.warned(&format!("first {}", name("c", 300))));
    }
}

#[test]
fn client_and_server_that_share_an_id_are_the_ends_of_a_request_also_where_nothing_says_so() {
    for parent in [None, Some(9)] {
        for turn in 0..2 {
            let mut spans = vec![
                client("front", TRACE, 1, parent, 100),
                server("back", TRACE, 1, parent, 50),
                span("back", TRACE, 2, Some(1), 60),
                span("front", TRACE, 3, Some(1), 120),
            ];
            spans.rotate_left(turn);
            let built = built(spans);
            assert_eq!(
                built.order(true, &name("front", 100), &name("back", 50)),
                Relation::Before,
                "{parent:?}"
            );
            assert_eq!(built.edge(&name("front", 100), &name("back", 50)), ("message_id", true));
            assert_eq!(built.order(true, &name("back", 50), &name("front", 120)), Relation::Concurrent);
            assert_eq!((built.summary.matched, built.summary.unmatched.external), (1, 0));
            assert_eq!(built.summary.warnings, [""; 0]);
        }
    }
}

#[test]
fn a_trace_id_of_64_bits_is_the_lower_half_of_one_of_128() {
    let short = &TRACE[16..];
    let request = |client_trace: &str, server_trace: &str| {
        [client("front", client_trace, 1, None, 100), server("back", server_trace, 2, Some(1), 150)]
    };
    let (sent, received) = (name("front", 100), name("back", 150));
    for (one, other) in [(TRACE, short), (short, TRACE), (&*format!("{:016x}{short}", 0), short)] {
        let built = built(request(one, other));
        assert_eq!(built.order(true, &sent, &received), Relation::Before, "{one} {other}");
        assert_eq!(built.summary.matched, 1);
    }
    // Two whole ids are never taken for one, and a half of two is that of neither.
    let other = format!("{:016x}{short}", 5);
    assert_eq!(built(request(TRACE, &other)).order(false, &sent, &received), Relation::Concurrent);
    let mut three = request(TRACE, short).to_vec();
    three.push(span("third", &other, 4, None, 10));
    assert_eq!(built(three).order(false, &sent, &received), Relation::Concurrent);
}

fn link(id: u64) -> Value {
    json!({"links": [{"trace_id": TRACE, "span_id": format!("{id:016x}")}]})
}

#[test]
fn a_link_is_an_uncertain_edge_and_one_that_gives_no_order_is_counted() {
    let built = built([
        span("job", TRACE, 1, None, 100),
        with(span("batch", TRACE, 2, None, 50), link(1)),
        // To a later one in its own log, and to nothing.
        with(span("batch", TRACE, 3, None, 60), link(4)),
        span("batch", TRACE, 4, None, 70),
        with(span("batch", TRACE, 5, None, 80), link(99)),
    ]);
    let (linked, links) = (name("job", 100), name("batch", 50));
    assert_eq!(built.order(false, &linked, &links), Relation::Before);
    assert_eq!(built.order(true, &linked, &links), Relation::Concurrent);
    assert_eq!(built.edge(&linked, &links), ("link", false));
    assert_eq!(built.order(true, &name("batch", 60), &name("batch", 70)), Relation::Before);
    assert!(built.warned("2 links give no order"), "{:?}", built.summary.warnings);
    assert_eq!((built.summary.span_edges, built.summary.matched), (1, 0));
}

#[test]
fn a_link_that_closes_a_circle_goes_first() {
    let built = built([with(span("a", TRACE, 1, None, 100), link(2)), span("b", TRACE, 2, Some(1), 200)]);
    assert_eq!(built.order(true, &name("a", 100), &name("b", 200)), Relation::Before);
    assert!(built.warned("what a link or an uncertain parent of"), "{:?}", built.summary.warnings);
}

#[test]
fn several_servers_of_one_client_all_come_after_it() {
    let built = built([
        with(client("front", TRACE, 1, None, 100), json!({"to": "back"})),
        server("back", TRACE, 2, Some(1), 150),
        server("back", TRACE, 3, Some(1), 160),
        server("other", TRACE, 4, Some(1), 170),
    ]);
    for later in [name("back", 150), name("back", 160), name("other", 170)] {
        assert_eq!(built.order(true, &name("front", 100), &later), Relation::Before, "{later}");
    }
}

fn counted(n: u64) -> String {
    format!("{}x-{n}", demi_schemas::event::COUNTED_ID)
}

fn sends(actor: &str, seq: u64, to: &str, more: Value) -> Value {
    with(json!({"actor": actor, "seq": seq, "kind": "send", "to": to}), more)
}

fn receives(actor: &str, seq: u64, from: &str, more: Value) -> Value {
    with(json!({"actor": actor, "seq": seq, "kind": "receive", "from": from}), more)
}

#[test]
fn what_was_joined_by_counting_is_certain_only_where_both_logs_have_their_beginning() {
    let log = |begins: bool| {
        let first = |actor: &str| match begins {
            true => json!({"actor": actor, "seq": 1, "kind": "start"}),
            false => json!({"actor": actor, "seq": 1, "kind": "local"}),
        };
        [
            first("a"),
            first("b"),
            sends("a", 2, "b", json!({"msg_id": counted(1)})),
            receives("b", 2, "a", json!({"msg_id": counted(1)})),
            // Something is missing before these.
            sends("a", 4, "b", json!({"msg_id": counted(2)})),
            receives("b", 3, "a", json!({"msg_id": counted(2)})),
        ]
    };
    let whole = built(log(true));
    assert_eq!(whole.edge("a/2", "b/2"), ("channel_order", true));
    assert_eq!(whole.edge("a/4", "b/3"), ("inferred", false));
    let cut = built(log(false));
    assert_eq!(cut.edge("a/2", "b/2"), ("inferred", false));
    assert_eq!(cut.order(true, "a/2", "b/2"), Relation::Concurrent);
}

#[test]
fn what_was_counted_behind_a_record_that_could_not_be_read_is_uncertain_at_either_end() {
    let log = |sent: &str, received: &str| {
        [
            json!({"actor": "a", "seq": 1, "kind": "start"}),
            json!({"actor": "b", "seq": 1, "kind": "start"}),
            sends("a", 2, "b", json!({"msg_id": format!("{sent}x-1")})),
            receives("b", 2, "a", json!({"msg_id": format!("{received}x-1")})),
        ]
    };
    let (known, lost) = (demi_schemas::event::COUNTED_ID, demi_schemas::event::COUNTED_AFTER_LOSS_ID);
    assert_eq!(built(log(known, known)).edge("a/2", "b/2"), ("channel_order", true));
    for (sent, received) in [(known, lost), (lost, known), (lost, lost)] {
        assert_eq!(built(log(sent, received)).edge("a/2", "b/2"), ("inferred", false), "{sent} {received}");
    }
}

#[test]
fn a_receive_that_names_no_sender_is_matched_by_content_that_only_one_send_has() {
    let text = |text: &str| json!({"type": "X", "payload": text});
    let built = built([
        sends("a", 1, "b", text("once")),
        sends("a", 2, "b", text("twice")),
        sends("c", 1, "b", text("twice")),
        sends("a", 3, "*", text("to all")),
        sends("a", 4, "c", text("to another")),
        sends("a", 5, "b", json!({})),
        receives("b", 1, "*", text("once")),
        receives("b", 2, "*", text("twice")),
        receives("b", 3, "a", text("to all")),
        receives("b", 4, "*", text("to another")),
        receives("b", 5, "*", json!({})),
        receives("c", 2, "*", text("to all")),
        receives("d", 1, "c", text("to all")),
    ]);
    assert_eq!(built.edge("a/1", "b/1"), ("inferred", false));
    assert_eq!(built.edge("a/3", "b/3"), ("inferred", false));
    assert_eq!(built.edge("a/3", "c/2"), ("inferred", false));
    assert_eq!(built.order(true, "a/3", "c/2"), Relation::Concurrent);
    for (one, other) in [("a/4", "b/4"), ("c/1", "b/5"), ("a/5", "d/1")] {
        assert_eq!(built.order(false, one, other), Relation::Concurrent, "{one} {other}");
    }
    assert_eq!(built.summary.matched, 3);
}

#[test]
fn what_is_sent_to_anyone_breaks_no_channel() {
    let id = |id: &str| json!({"msg_id": id});
    let sent = [sends("a", 1, "*", id("m1")), sends("a", 2, "*", id("m2"))];
    let received = [receives("b", 1, "*", id("m2")), receives("c", 1, "*", id("m1"))];
    let in_order = built(sent.iter().chain(&received).cloned());
    assert!(in_order.summary.channels_in_order);
    assert_eq!(in_order.summary.warnings, [""; 0]);
    // The first of two that one actor takes is the second that was sent.
    let received =
        [receives("b", 1, "*", id("m2")), receives("b", 2, "*", id("m1")), receives("c", 1, "*", id("m1"))];
    let built = built(sent.iter().chain(&received).cloned());
    assert!(!built.summary.channels_in_order);
    assert!(
        built.summary.warnings.iter().all(|warning| !warning.contains("to  fit")),
        "{:?}",
        built.summary.warnings
    );
}

#[test]
fn sends_and_receives_that_differ_in_type_only_give_a_hint() {
    let say = |type_: &str, text: &str| json!({"type": type_, "payload": text});
    let differ = built([
        sends("a", 1, "b", say("SendVote", "term 3")),
        receives("b", 1, "a", say("RecvVote", "term 3")),
        receives("b", 2, "a", say("RecvVote", "term 4")),
    ]);
    assert!(differ.warned("1 receives without a send differ"), "{:?}", differ.summary.warnings);
    assert!(differ.warned("first b/1 and a/1"));
    let other =
        built([sends("a", 1, "b", say("Vote", "term 3")), receives("b", 1, "a", say("Vote", "term 4"))]);
    assert!(!other.warned("'type' only"), "{:?}", other.summary.warnings);
}

fn at(second: f64) -> Value {
    json!(format!("2024-05-01T10:00:{second:06.3}Z"))
}

/// A message from one actor to the other and one back, by ids, at these seconds.
fn there_and_back(times: [f64; 4]) -> Built {
    built([
        sends("a", 1, "b", json!({"msg_id": "1", "time": at(times[0])})),
        receives("b", 1, "a", json!({"msg_id": "1", "time": at(times[1])})),
        sends("b", 2, "a", json!({"msg_id": "2", "time": at(times[2])})),
        receives("a", 2, "b", json!({"msg_id": "2", "time": at(times[3])})),
    ])
}

#[test]
fn clocks_that_differ_are_told_from_an_order_that_contradicts_the_stamps() {
    let right = there_and_back([1.0, 1.1, 1.2, 1.3]).summary.stamps.unwrap();
    assert_eq!((right.edges.compared, right.edges.against, right.contradictions.len()), (2, 0, 0));
    // The clock of b is behind by half a second.
    let differs = there_and_back([1.0, 0.6, 0.7, 1.3]).summary.stamps.unwrap();
    assert_eq!((differs.edges.against, differs.edges.most_nanos), (1, 400_000_000));
    assert_eq!(differs.edges.first, ["a/1", "b/1"]);
    assert_eq!((differs.contradictions.len(), differs.logs.against), (0, 0));
    // No difference explains both.
    let wrong = there_and_back([1.0, 0.6, 1.7, 1.3]).summary.stamps.unwrap();
    assert_eq!(wrong.edges.against, 2);
    assert_eq!(wrong.contradictions.len(), 1);
    assert_eq!(wrong.contradictions[0].there, ["a/1", "b/1"]);
    // Stamps that run backwards in a log.
    let back = there_and_back([1.0, 1.1, 1.05, 1.3]).summary.stamps.unwrap();
    assert_eq!((back.logs.against, back.logs_back, back.logs.most_nanos), (1, 1, 50_000_000));
    assert_eq!(back.logs.first, ["b/1", "b/2"]);
}

#[test]
fn an_uncertain_edge_is_not_compared_with_stamps_and_no_stamps_are_no_check() {
    let guessed = built([
        sends("a", 1, "b", json!({"payload": "x", "time": at(5.0)})),
        receives("b", 1, "*", json!({"payload": "x", "time": at(1.0)})),
    ]);
    assert_eq!((guessed.summary.matched, guessed.summary.stamps.unwrap().edges.compared), (1, 0));
    let none = built([sends("a", 1, "b", json!({"time": "soon"}))]);
    assert_eq!(none.summary.stamps.map(|check| (check.edges.compared, check.logs.compared)), Some((0, 0)));
    assert_eq!(built([sends("a", 1, "b", json!({}))]).summary.stamps, None);
}

/// A cut names the last event of each log, in whatever order a log's names are.
#[test]
fn events_are_found_in_logs_whose_names_do_not_ascend() {
    // A parent that is stamped after its children, and one of another life, with an event in between that is no span.
    let plain = json!({"actor": "a", "incarnation": 1, "seq": 1, "kind": "restart"});
    let later = |span: Value| with(span, json!({"incarnation": 1}));
    let records = [
        span("a", TRACE, 1, Some(3), 100),
        span("a", TRACE, 2, Some(3), 200),
        span("a", TRACE, 3, None, 300),
        span("a", TRACE, 4, Some(5), 400),
        plain,
        later(span("a", TRACE, 5, None, 50)),
        later(span("a", TRACE, 6, None, 60)),
    ];
    let built = built(records);
    let query = Query::open(&built.exec, false).unwrap();
    let log: Vec<String> = (0..7).map(|event| query.index().name(event).unwrap().to_string()).collect();
    for (event, name) in log.iter().enumerate() {
        assert_eq!(query.index().event(name).unwrap() as usize, event, "{name}");
    }
    let place = |name: String| log.iter().position(|n| *n == name).unwrap() as u64;
    let life = |start: u64| format!("a/1/{}", BASE + start);
    assert!(place(name("a", 300)) < place(name("a", 100)), "{log:?}");
    assert!(place(life(50)) < place(name("a", 400)), "{log:?}");
    let events_up_to = |cut: String| {
        let cut = demi_lineage::query::CutSpec::parse(&query, &cut).unwrap();
        query.cut(&cut).unwrap().events
    };
    for name in &log {
        assert_eq!(events_up_to(name.clone()), place(name.clone()) + 1, "{name} of {log:?}");
    }
    // No event has these numbers: what is in the cut is all that is numbered lower, and what stands before it.
    let parts =
        |incarnation: u64, seq: u64| events_up_to(json!({"a": format!("{incarnation}/{seq}")}).to_string());
    assert_eq!(parts(0, BASE + 99), 0);
    assert_eq!(parts(0, BASE + 150), place(name("a", 100)) + 1);
    assert_eq!(parts(0, BASE + 350), place(name("a", 200)) + 1);
    assert_eq!(parts(1, 0), place(name("a", 400)) + 1);
    assert_eq!(parts(9, 9), 7);
}

#[test]
fn an_id_whose_ends_name_others_is_a_guess() {
    // Each process counts its own messages from 1: the receive is of one of b's that is in no log.
    let ends = |from: &str, to: &str| {
        built([
            sends("a", 1, to, json!({"msg_id": "1"})),
            receives("c", 1, from, json!({"msg_id": "1"})),
            json!({"actor": "b", "seq": 2, "kind": "local"}),
        ])
    };
    assert_eq!(ends("a", "c").edge("a/1", "c/1"), ("message_id", true));
    assert_eq!(ends("b", "c").edge("a/1", "c/1"), ("message_id", false), "the receiver names another sender");
    assert_eq!(ends("a", "b").edge("a/1", "c/1"), ("message_id", false), "the sender names another receiver");
    assert_eq!(ends("b", "c").order(true, "a/1", "c/1"), Relation::Concurrent);
    // Also a sender of which there is no log.
    assert_eq!(ends("10.0.0.7:80", "*").edge("a/1", "c/1"), ("message_id", false));
    let wide = |from: &str| {
        let id = json!({"msg_id": "0192f0a4-7b1c-7d3e-9a55-5d0c1f2e3a4b"});
        built([sends("a", 1, "b", id.clone()), receives("c", 1, from, id)])
    };
    // Nobody else has this id, whatever the ends are called.
    assert_eq!(wide("10.0.0.7:80").edge("a/1", "c/1"), ("message_id", true));
    // Of two receives that which names the sender is taken.
    let two = built([
        sends("a", 1, "*", json!({"msg_id": "1"})),
        receives("c", 1, "elsewhere", json!({"msg_id": "1"})),
        receives("c", 2, "a", json!({"msg_id": "1"})),
    ]);
    assert_eq!(two.edge("a/1", "c/2"), ("message_id", true));
}

#[test]
fn a_timer_has_the_id_of_no_message_and_of_no_other_actor() {
    let of =
        |actor: &str, seq: u64, kind: &str| json!({"actor": actor, "seq": seq, "kind": kind, "msg_id": "1"});
    let built = built([
        sends("a", 1, "b", json!({"msg_id": "1"})),
        of("a", 2, "timer_set"),
        of("b", 1, "timer_fire"),
        receives("b", 2, "a", json!({"msg_id": "1"})),
    ]);
    assert_eq!(built.edge("a/1", "b/2"), ("message_id", true));
    assert_eq!(built.order(false, "a/2", "b/1"), Relation::Concurrent);
}

#[test]
fn a_log_without_its_first_incarnation_or_the_end_of_one_is_not_whole() {
    let first = |of: u64| json!({"actor": "a", "incarnation": of, "seq": 1, "kind": "start"});
    let sent = |of: u64, seq: u64| json!({"actor": "a", "incarnation": of, "seq": seq, "kind": "send", "to": "b", "payload": "p"});
    let b =
        [json!({"actor": "b", "seq": 1, "kind": "start"}), receives("b", 2, "a", json!({"payload": "p"}))];
    let with = |of: Vec<Value>| built(of.into_iter().chain(b.clone()));
    assert_eq!(with(vec![first(0), sent(0, 2)]).edge("a/2", "b/2"), ("channel_order", true));
    assert_eq!(with(vec![first(1), sent(1, 2)]).edge("a/1/2", "b/2"), ("channel_order", false));
    let again = with(vec![first(0), first(1), sent(1, 2)]);
    assert_eq!(again.edge("a/1/2", "b/2"), ("channel_order", false), "its end may be lost");
    let stop = json!({"actor": "a", "seq": 2, "kind": "stop"});
    assert_eq!(
        with(vec![first(0), stop, first(1), sent(1, 2)]).edge("a/1/2", "b/2"),
        ("channel_order", true)
    );
}

#[test]
fn content_is_a_guess_where_a_message_to_anyone_has_it_too() {
    let log = |to: &str| {
        built([
            json!({"actor": "a", "seq": 1, "kind": "start"}),
            json!({"actor": "b", "seq": 1, "kind": "start"}),
            sends("a", 2, to, json!({"payload": "p"})),
            sends("a", 3, "b", json!({"payload": "p"})),
            receives("b", 2, "a", json!({"payload": "p"})),
        ])
    };
    assert_eq!(log("c").edge("a/3", "b/2"), ("channel_order", true));
    assert!(!log("*").edge("a/3", "b/2").1);
}

#[test]
fn content_is_certain_where_it_is_there_once_and_both_logs_have_their_beginning() {
    let beat = |begun: bool, alike: bool| {
        let start = |actor: &str| json!({"actor": actor, "seq": 1, "kind": "start"});
        let starts = if begun { vec![start("a"), start("b")] } else { Vec::new() };
        let beats = (2..5).flat_map(|n| {
            let content = json!({"payload": if alike { "beat".to_owned() } else { n.to_string() }});
            [sends("b", n, "a", content.clone()), receives("a", n, "b", content)]
        });
        built(starts.into_iter().chain(beats))
    };
    assert_eq!(beat(true, false).edge("b/2", "a/2"), ("channel_order", true));
    assert_eq!(beat(false, false).edge("b/2", "a/2"), ("channel_order", false));
    // Of two that are alike one may be lost, and the other received twice.
    assert_eq!(beat(true, true).edge("b/2", "a/2"), ("channel_order", false));
}

#[test]
fn ids_that_are_used_again_for_anyone_are_told_apart() {
    let content = |text: &str| json!({"msg_id": "1", "payload": text});
    let round = |n: u64| {
        let to_all = sends("a", n, "*", content(&n.to_string()));
        [to_all].into_iter().chain(["b", "c"].map(|to| receives(to, n, "a", content(&n.to_string()))))
    };
    let all = built((1..4).flat_map(round));
    for n in 1..4 {
        for to in ["b", "c"] {
            assert_eq!(all.edge(&format!("a/{n}"), &format!("{to}/{n}")), ("message_id", false));
        }
    }
    assert_eq!(all.order(false, "a/2", "b/1"), Relation::Concurrent);
    // Received once more than it was sent.
    let again = built(round(1).chain(round(2)).chain([receives("b", 3, "a", content("2"))]));
    assert_eq!(again.summary.unmatched.duplicate, 1);
}

/// A counter that began anew, and a log that lacks what was counted before: the send that is left may be that of either receive.
#[test]
fn an_id_that_was_received_again_with_another_content_is_not_certain() {
    let log = |again: &str, id: &str| {
        built([
            receives("b", 1, "a", json!({"msg_id": id, "payload": "vote 1"})),
            sends("a", 1, "b", json!({"msg_id": id, "payload": again})),
            receives("b", 2, "a", json!({"msg_id": id, "payload": again})),
        ])
    };
    let anew = log("vote 2", "1");
    assert_eq!(anew.edge("a/1", "b/1"), ("message_id", false));
    assert!(anew.warned("received again with another content"));
    // The network repeats what it carries, and some ids are the only ones in the world.
    assert_eq!(log("vote 1", "1").edge("a/1", "b/1"), ("message_id", true));
    assert_eq!(
        log("vote 2", "0190b2c4-8e7a-7d3b-9f00-1a2b3c4d5e6f").edge("a/1", "b/1"),
        ("message_id", true)
    );
}

/// Members of groups that are named by their numbers alone.
#[test]
fn numbers_of_members_do_not_tell_groups_apart() {
    let log = |sender: &str, receiver: &str, to: &str, from: &str| {
        let id = json!({"msg_id": "5"});
        built([sends(sender, 1, to, id.clone()), receives(receiver, 1, from, id)])
            .edge(&format!("{sender}/0/1"), &format!("{receiver}/0/1"))
    };
    assert_eq!(log("g1/1", "g2/2", "2", "1"), ("message_id", false));
    assert_eq!(log("web/7", "db/9", "db", "web"), ("message_id", true));
    assert_eq!(log("g1/1", "g1/2", "2", "1"), ("message_id", true));
    assert_eq!(log("g1/1", "g1/2", "g1/2", "1"), ("message_id", true));
}

#[test]
fn what_is_left_of_a_cycle_is_a_guess() {
    let knot = built([
        receives("a", 1, "b", json!({"msg_id": "2"})),
        sends("a", 2, "b", json!({"msg_id": "1"})),
        receives("b", 1, "a", json!({"msg_id": "1"})),
        sends("b", 2, "a", json!({"msg_id": "2"})),
    ]);
    assert!(knot.warned("cycle"));
    let kept = [("a/2", "b/1"), ("b/2", "a/1")];
    let orders = kept.map(|(one, other)| knot.order(false, one, other));
    assert_eq!(orders.iter().filter(|order| **order == Relation::Before).count(), 1, "{orders:?}");
    assert!(kept.iter().all(|(one, other)| knot.order(true, one, other) == Relation::Concurrent));
}

/// A message as it is sent or received, or a local event where it has none, at a time.
fn timed(actor: &str, time: u64, message: Option<(&str, u64)>) -> Value {
    let event = json!({"actor": actor, "seq": BASE + time, "kind": "local", "type": "x"});
    match message {
        Some((kind, id)) => {
            let peer = if kind == "send" { "to" } else { "from" };
            with(event, json!({"kind": kind, "msg_id": format!("{id:016x}{id:016x}"), peer: "*"}))
        }
        None => event,
    }
}

#[test]
fn what_hangs_on_the_order_of_events_of_one_time_is_not_certain() {
    for (sent, certainly) in [(301, Relation::Concurrent), (302, Relation::Before)] {
        let built = built([
            timed("a", 100, Some(("send", 1))),
            timed("b", 300, Some(("receive", 1))),
            timed("b", sent, Some(("send", 2))),
            timed("c", 500, Some(("receive", 2))),
        ]);
        let (first, last) = (name("a", 100), name("c", 500));
        let query = Query::open(&built.exec, false).unwrap();
        let [a, c] = [&first, &last].map(|name| query.index().event(name).unwrap());
        let certain = certainly == Relation::Before;
        assert_eq!(query.order_and_doubt(a, c).unwrap(), (Relation::Before, certain));
        assert_eq!(built.order(true, &first, &last), certainly);
        assert_eq!(built.order(true, &name("b", 300), &name("b", sent)), certainly);
        assert_eq!(query.stats().unwrap().tied, if certain { 0 } else { 2 });
        let path = query.path(a, c).unwrap().unwrap();
        assert_eq!(path.iter().map(|hop| hop.certain).collect::<Vec<_>>(), [true, certain, true]);
        let only_certain = Query::open(&built.exec, true).unwrap();
        assert_eq!(only_certain.path(a, c).unwrap().is_some(), certain);
    }
}

#[test]
fn of_spans_of_one_time_a_parent_is_before_its_child() {
    let spans = [
        client("a", TRACE, 1, None, 100),
        server("b", TRACE, 2, Some(1), 300),
        client("b", TRACE, 3, Some(2), 301),
        server("c", TRACE, 4, Some(3), 500),
        // Another request, at the same time.
        client("b", TRACE, 5, None, 302),
        server("c", TRACE, 6, Some(5), 600),
    ];
    let built = built(spans);
    assert_eq!(built.order(true, &name("a", 100), &name("c", 500)), Relation::Before);
    assert_eq!(built.order(true, &name("b", 300), &name("b", 301)), Relation::Before);
    assert_eq!(built.order(false, &name("a", 100), &name("c", 600)), Relation::Before);
    assert_eq!(built.order(true, &name("b", 300), &name("b", 302)), Relation::Concurrent);
    let query = Query::open(&built.exec, true).unwrap();
    let event = |actor, start| query.index().event(&name(actor, start)).unwrap();
    assert_eq!(query.order(event("a", 100), event("b", 302)).unwrap(), Relation::Concurrent);
    // The log of c has its two receives one after the other.
    assert_eq!(query.order(event("a", 100), event("c", 600)).unwrap(), Relation::Before);
}

/// What certainly happens before what, by each pair of events: message edges, and the order of a log between events that stand in different ties.
fn closure(records: &[(usize, u64)], messages: &[(usize, usize)]) -> Vec<Vec<bool>> {
    let count = records.len();
    // Times of one log that follow each other are one tie.
    let tie = |i: usize| {
        let (log, mut time) = records[i];
        while records.contains(&(log, time - 1)) {
            time -= 1;
        }
        time
    };
    let mut before = vec![vec![false; count]; count];
    for i in 0..count {
        for j in 0..count {
            let one_log = records[i].0 == records[j].0;
            before[i][j] = one_log && tie(i) < tie(j) || messages.contains(&(i, j));
        }
    }
    for k in 0..count {
        for i in 0..count {
            for j in 0..count {
                before[i][j] |= before[i][k] && before[k][j];
            }
        }
    }
    before
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(120))]

    /// Events are made in the order of their times, so that messages agree with the order of the logs.
    #[test]
    fn with_ties_the_certain_order_is_what_no_guess_is_needed_for(
        steps in proptest::collection::vec((0..4_usize, 0..3_usize, 1..3_u64), 2..24),
    ) {
        let (mut records, mut messages, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut times = [1000_u64; 4];
        let mut open: Vec<usize> = Vec::new();
        for &(log, what, later) in &steps {
            times[log] += later;
            let i = records.len();
            records.push((log, times[log]));
            let actor = format!("p{log}");
            let taken = open.iter().position(|&send: &usize| records[send].0 != log);
            values.push(match (what, taken) {
                (1, _) => {
                    open.push(i);
                    timed(&actor, times[log], Some(("send", i as u64)))
                }
                (2, Some(place)) => {
                    let send = open.remove(place);
                    messages.push((send, i));
                    timed(&actor, times[log], Some(("receive", send as u64)))
                }
                _ => timed(&actor, times[log], None),
            });
        }
        let before = closure(&records, &messages);
        let built = built(values);
        let query = Query::open(&built.exec, true).unwrap();
        let events: Vec<u32> = records
            .iter()
            .map(|(log, time)| query.index().event(&name(&format!("p{log}"), *time)).unwrap())
            .collect();
        for i in 0..events.len() {
            let past = query.past_set(events[i]).unwrap();
            let future = query.future_set(events[i]).unwrap();
            for j in 0..events.len() {
                let expected = match (i == j, before[i][j], before[j][i]) {
                    (true, ..) => Relation::Equal,
                    (_, true, _) => Relation::Before,
                    (_, _, true) => Relation::After,
                    _ => Relation::Concurrent,
                };
                proptest::prop_assert_eq!(query.order(events[i], events[j]).unwrap(), expected);
                proptest::prop_assert_eq!(past.contains(events[j]), i == j || before[j][i]);
                proptest::prop_assert_eq!(future.contains(events[j]), i == j || before[i][j]);
            }
            let size = (0..events.len()).filter(|&j| before[j][i]).count() as u64;
            proptest::prop_assert_eq!(query.past(events[i]).unwrap().size, size);
            let size = (0..events.len()).filter(|&j| before[i][j]).count() as u64;
            proptest::prop_assert_eq!(query.future(events[i]).unwrap().size, size);
        }
    }
}

/// A message by number, to anyone.
fn to_anyone(actor: &str, seq: u64, kind: &str, id: &str, payload: &str) -> Value {
    let end = if kind == "send" { "to" } else { "from" };
    json!({"actor": actor, "seq": seq, "kind": kind, end: "*", "msg_id": id, "payload": payload})
}

#[test]
fn an_answer_with_the_id_of_its_question_is_told_apart_by_content_where_nobody_is_named() {
    let done = built([
        to_anyone("client", 1, "send", "r1", "ask"),
        to_anyone("client", 2, "receive", "r1", "answer"),
        to_anyone("server", 1, "receive", "r1", "ask"),
        to_anyone("server", 2, "send", "r1", "answer"),
    ]);
    assert_eq!(done.order(false, "client/1", "server/1"), Relation::Before);
    assert_eq!(done.order(false, "server/2", "client/2"), Relation::Before);
    assert!(!done.edge("server/2", "client/2").1);
    // Where both say the same, nobody receives what it sent itself.
    let done = built([
        to_anyone("client", 1, "send", "r1", "x"),
        to_anyone("client", 2, "receive", "r1", "x"),
        to_anyone("server", 1, "receive", "r1", "x"),
        to_anyone("server", 2, "send", "r1", "x"),
    ]);
    assert_eq!(done.order(false, "client/1", "server/1"), Relation::Before);
    assert_eq!(done.order(false, "server/2", "client/2"), Relation::Before);
}

#[test]
fn a_number_that_one_send_has_is_a_guess_where_others_have_several() {
    let log = |more: Vec<Value>| {
        let mut all = vec![
            to_anyone("p", 1, "send", "7", "b"),
            to_anyone("p", 2, "send", "8", "c"),
            to_anyone("worker", 1, "receive", "7", "b"),
        ];
        all.extend(more);
        built(all)
    };
    assert!(log(Vec::new()).edge("p/1", "worker/1").1);
    // Two count their messages from 1 on.
    let two = log(vec![to_anyone("q", 1, "send", "8", "c")]);
    assert_eq!(two.order(true, "p/1", "worker/1"), Relation::Concurrent);
    // One counts anew.
    let anew = log(vec![to_anyone("p", 3, "send", "8", "d")]);
    assert_eq!(anew.order(true, "p/1", "worker/1"), Relation::Concurrent);
    // It says the same twice.
    let again = log(vec![to_anyone("p", 3, "send", "8", "c")]);
    assert_eq!(again.order(true, "p/1", "worker/1"), Relation::Before);
    // Where the receiver is named, others may count as they like.
    let named = built([
        json!({"actor": "p", "seq": 1, "kind": "send", "to": "worker", "msg_id": "7", "payload": "b"}),
        to_anyone("p", 2, "send", "8", "c"),
        to_anyone("q", 1, "send", "8", "c"),
        to_anyone("worker", 1, "receive", "7", "b"),
    ]);
    assert!(named.edge("p/1", "worker/1").1);
}

#[test]
fn an_id_of_a_request_that_goes_through_many_hands_is_a_guess_where_its_ends_name_others() {
    let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    let send = |seq: u64, to: &str, id: &str| json!({"actor": "gate", "seq": seq, "kind": "send", "to": to, "msg_id": id});
    let receive =
        |from: &str| json!({"actor": "auth", "seq": 1, "kind": "receive", "from": from, "msg_id": id});
    // The client may be another name for who received it.
    assert!(built([send(1, "client", id), receive("gate")]).edge("gate/1", "auth/1").1);
    // Elsewhere it has a name of its own.
    let other = "1c9e6679-7425-40de-944b-e07fc1f90ae7";
    let named = built([send(1, "client", id), send(2, "auth", other), receive("gate")]);
    assert_eq!(named.order(true, "gate/1", "auth/1"), Relation::Concurrent);
    // It is the name of somebody else.
    let local = json!({"actor": "client", "seq": 1, "kind": "local"});
    let known = built([send(1, "client", id), local, receive("gate")]);
    assert_eq!(known.order(true, "gate/1", "auth/1"), Relation::Concurrent);
}

#[test]
fn behind_a_second_start_of_one_life_nothing_is_known_by_counting() {
    let start = |actor: &str, seq: u64| json!({"actor": actor, "seq": seq, "kind": "start"});
    let log = |middle: Vec<Value>| {
        let mut all = vec![start("a", 1), start("b", 1)];
        all.extend(middle);
        all.extend([
            sends("a", 4, "b", json!({"msg_id": counted(1)})),
            receives("b", 2, "a", json!({"msg_id": counted(1)})),
        ]);
        built(all)
    };
    let local = |seq: u64, kind: &str| json!({"actor": "a", "seq": seq, "kind": kind});
    assert!(log(vec![local(2, "local"), local(3, "local")]).edge("a/4", "b/2").1);
    assert!(!log(vec![local(2, "local"), start("a", 3)]).edge("a/4", "b/2").1);
    // Where the life before says that it was its end nothing is missing.
    assert!(log(vec![local(2, "stop"), start("a", 3)]).edge("a/4", "b/2").1);
}
