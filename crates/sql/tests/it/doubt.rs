//! What the table of messages says of guesses and of edges that are no messages, and the names of events.

use std::path::Path;

use demi_lineage::generate::write_store_file;
use demi_lineage::query::Query;
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_schemas::EventRecord;
use serde_json::{Value, json};

use crate::check::rows;

fn built(dir: &Path, records: impl IntoIterator<Item = Value>) -> Query {
    let (file, exec) = (dir.join("store.parquet"), dir.join("exec"));
    let parsed = records.into_iter().map(|r| EventRecord::parse(r.to_string().as_bytes()).unwrap());
    write_store_file(&file, parsed).unwrap();
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    Query::open(&exec, false).unwrap()
}

#[test]
fn edges_that_are_no_messages_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let span = |actor: &str, id: u64, parent: Value| {
        json!({"actor": actor, "seq": 1_750_000_000_000_000_000 + id, "kind": "local", "type": "work", "to": "somewhere",
               "trace_id": "t", "span_id": format!("{id}"), "key": format!("t:{id}"), "parent_span_id": parent})
    };
    let query = built(dir.path(), [span("a", 1, Value::Null), span("b", 2, json!("1"))]);
    let all = rows(&query, "SELECT status, reason, certain, \"to\", type FROM messages");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (&all[0]["status"], &all[0]["reason"], &all[0]["certain"]),
        (&json!("order"), &json!("parent"), &json!(true))
    );
    assert!(all[0]["to"].is_null() && all[0]["type"].is_null(), "{all:?}");
    assert!(rows(&query, "SELECT * FROM channel('a', 'b')").is_empty());
}

#[test]
fn a_counted_message_is_uncertain() {
    let dir = tempfile::tempdir().unwrap();
    let id = format!("{}x-1", demi_schemas::event::COUNTED_ID);
    let query = built(
        dir.path(),
        [
            json!({"actor": "a", "seq": 1, "kind": "send", "to": "b", "msg_id": id}),
            json!({"actor": "b", "seq": 1, "kind": "receive", "from": "a", "msg_id": id}),
        ],
    );
    let all = rows(&query, "SELECT reason, certain FROM messages");
    assert_eq!(all, [json!({"reason": "inferred", "certain": false})]);
}

#[test]
fn an_actor_with_a_number_in_its_name_and_an_incarnation_have_events_of_different_names() {
    let dir = tempfile::tempdir().unwrap();
    let query = built(
        dir.path(),
        [
            json!({"actor": "g/2", "seq": 1, "kind": "local", "type": "of the actor"}),
            json!({"actor": "g", "incarnation": 2, "seq": 1, "kind": "local", "type": "of the incarnation"}),
        ],
    );
    let all = rows(&query, "SELECT event, type FROM events ORDER BY type");
    assert_eq!(
        all,
        [
            json!({"event": "g/2/0/1", "type": "of the actor"}),
            json!({"event": "g/2/1", "type": "of the incarnation"})
        ]
    );
    for row in all {
        let name = row["event"].as_str().unwrap();
        assert_eq!(rows(&query, &format!("SELECT event FROM past('{name}')")), [json!({"event": name})]);
    }
}
