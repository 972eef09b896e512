//! What a mapping can say: of the rest of a record, of order, of times, of values that stand elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use demi_formats::lines::Line;
use demi_formats::mapping::{Mapper, Mapping, Unit};
use demi_formats::{Events, Fate, Plan};
use demi_schemas::EventRecord;
use serde_json::{Value, json};

/// A mapping with that container and those tables.
fn mapping(container: &str, tables: &str) -> Mapping {
    let text = format!("name = 'm'\ndescription = 'd'\n[input]\ncontainer = '{container}'\n{tables}");
    Mapping::parse(&text, "m.toml").unwrap()
}

fn units(mapping: &Mapping, log: &str) -> Vec<Unit> {
    Mapper::new(mapping).unwrap().map_text("log", log.as_bytes())
}

/// The events of a log all of whose records are some, in the order in which they are told.
fn events(mapping: &Mapping, log: &str) -> Vec<EventRecord> {
    let mut all = Vec::new();
    for unit in units(mapping, log) {
        match unit.fate {
            Fate::Row(Events { records, .. }) => all.extend(records),
            Fate::LeftOut(_) => {}
            Fate::Quarantined(why) => panic!("{why:?}: {}", String::from_utf8_lossy(&unit.raw)),
        }
    }
    all
}

fn rest(mapping: &Mapping, log: &str) -> Option<Value> {
    events(mapping, log).remove(0).fields
}

fn shipped(name: &str) -> Mapping {
    Mapping::named(name).unwrap()
}

#[test]
fn services_and_processes_of_one_machine_are_several_actors() {
    let actors = |name: &str, log: &str| -> Vec<String> {
        events(&shipped(name), log).into_iter().map(|event| event.actor).collect()
    };
    let json = concat!(
        r#"{"host":"web-1","service":"shop","pid":41}"#,
        "\n",
        r#"{"host":{"name":"web-1"},"service":{"name":"cart"},"process":{"pid":1}}"#,
        "\n",
        r#"{"hostname":"web-1","pid":41,"name":"pino"}"#,
        "\n",
        r#"{"host":"web-1"}"#,
        "\n",
        r#"{"node":"n1","host":"web-1","service":"shop","pid":41}"#,
        "\n",
        r#"{"_HOSTNAME":"web-1","_SYSTEMD_UNIT":"shop.service","_PID":"7"}"#,
        "\n"
    );
    let said = ["shop/web-1/41", "cart/web-1", "web-1/41", "web-1", "n1", "shop.service/web-1/7"];
    assert_eq!(actors("json", json), said);
    assert_eq!(
        actors("logfmt", "host=a service=x pid=12\nhost=a pid=1\nhost=a app=y\n"),
        ["x/a/12", "a", "y/a"]
    );
    assert_eq!(actors("csv", "host,service,pid\na,x,12\na,,\n"), ["x/a/12", "a"]);
}

#[test]
fn the_rest_is_what_filled_no_field() {
    let logfmt = "actor=a payload=p message=m2 level=warn type=T host=h7 x=1\n";
    assert_eq!(
        rest(&shipped("logfmt"), logfmt),
        Some(json!({"message": "m2", "level": "warn", "host": "h7", "x": "1"})),
        "other alternatives could have used them, and did not"
    );
    let record = r#"{"host":{"name":"a","foo":1},"payload":"p","level":"warn","type":"T","event":{"kind":"event"},"x":null}"#;
    assert_eq!(
        rest(&shipped("json"), record),
        Some(json!({"host": {"foo": 1}, "level": "warn", "event": {"kind": "event"}, "x": null})),
        "of an object only what was used goes"
    );
    let json = |event: &str| {
        mapping("json-lines", &format!("[event]\nactor = '{{a}}'\nfields = '{{@rest}}'\n{event}"))
    };
    let record = r#"{"a":"x","msg":{"type":"T","body":"kept"},"k":"send","ext":"true","to":"y","chan":"c1","other":1}"#;
    for (event, left) in [
        (
            "type = '{msg.type}'",
            json!({"msg": {"body": "kept"}, "k": "send", "ext": "true", "to": "y", "chan": "c1", "other": 1}),
        ),
        (
            "kind = '{k}'\nexternal = '{ext}'\nto = '{to}'\nlink = { key = ['{chan}'], order = 'count' }",
            json!({"msg": {"type": "T", "body": "kept"}, "other": 1}),
        ),
        // There is no message to be linked.
        (
            "link = { key = ['{chan}'], order = 'count' }\nstate = { m = '{msg}', o = '{other}', e = '{ext}', t = '{to}' }",
            json!({"k": "send", "chan": "c1"}),
        ),
        (
            "type = '{/msg/type}'\npayload = '{/other}'",
            json!({"msg": {"body": "kept"}, "k": "send", "ext": "true", "to": "y", "chan": "c1"}),
        ),
        // Half of it fills nothing; a word of it is not all of it.
        (
            "payload = '{to} {zz}'\ntype = '{k!word}'",
            json!({"msg": {"type": "T", "body": "kept"}, "k": "send", "ext": "true", "to": "y", "chan": "c1", "other": 1}),
        ),
    ] {
        assert_eq!(rest(&json(event), record), Some(left), "{event}");
    }
    assert_eq!(rest(&json("payload = '{.}'"), record), None, "all of it was used");
    assert_eq!(rest(&json(""), r#"{"a":"x"}"#), None);
    let nested = r#"{"a":"x","tags":[{"key":"kind","value":"c"},{"key":"http","value":"GET"}],"l":["t",2]}"#;
    assert_eq!(
        rest(&json("type = '{tags.[key=kind].value}'\npayload = '{l.0}'"), nested),
        Some(json!({"tags": [{"key": "http", "value": "GET"}], "l": [null, 2]}))
    );
    let text = mapping(
        "text",
        "patterns = ['^(?<a>\\S+) (?<d>\\S+) (?<t>\\S+)( (?<x>.*))?$']\n[event]\nactor = '{a}'\ntime = '{d} {t}'\nfields = '{@rest}'\n",
    );
    assert_eq!(rest(&text, "n 2024-05-15 10:00:00 more\n"), Some(json!({"x": "more"})));
    assert_eq!(rest(&text, "n 2024-05-15 10:00:00\n"), None);
}

#[test]
fn two_events_of_a_record_have_the_same_rest() {
    let both = mapping(
        "json-lines",
        "[event]\nfields = '{@rest}'\n[[rule]]\nemit = [{ actor = '{from}', kind = 'send', to = '{to}' }, { actor = '{to}', kind = 'receive', from = '{from}', payload = '{p}' }]\n",
    );
    let events = events(&both, r#"{"from":"a","to":"b","p":"hi","q":1}"#);
    assert_eq!(
        events.iter().map(|e| e.fields.clone().unwrap()).collect::<Vec<_>>(),
        vec![json!({"q": 1}); 2]
    );
}

#[test]
fn a_part_of_a_path_is_chosen_by_a_value() {
    let json = mapping(
        "json-lines",
        "[event]\nactor = '{node}'\nstate = { term = '{cluster.{node}.term}', of = '{cluster!at(node)}' }\nfields = '{@rest}'\n[[rule]]\nwhen = { 'cluster.{node}.role' = '^leader$' }\nemit = [{ type = 'Leads' }]\n",
    );
    let log = r#"{"node":"n.2","cluster":{"n.1":{"term":1},"n.2":{"term":7,"role":"leader"}}}
{"node":"n3","cluster":{"term":{"n3":5,"n4":6},"role":{"n3":"x"},"net":[1]}}
"#;
    let events = events(&json, log);
    assert_eq!(events[0].type_.as_deref(), Some("Leads"));
    assert_eq!(events[0].state, Some(json!({"term": 7})));
    assert_eq!(events[0].fields, Some(json!({"cluster": {"n.1": {"term": 1}, "n.2": {"role": "leader"}}})));
    assert_eq!(events[1].state, Some(json!({"of": {"term": 5, "role": "x"}})));
}

#[test]
fn an_event_is_made_for_each_element_of_a_list() {
    let json = mapping(
        "json-lines",
        "[event]\nactor = '{node}'\n[[rule]]\nwhen = { entries = '.' }\nemit = [{ type = 'Batch' }, { each = 'entries', type = 'Entry', payload = '{@key}:{@each.v}', fields = '{@rest}' }]\n[[rule]]\nwhen = { nodes = '.' }\nemit = [{ each = 'nodes', actor = '{@key}', state = { term = '{@each.term}', voted = '{votes.{@key}}' } }]\n",
    );
    let log = r#"{"node":"a","entries":[{"v":1,"w":2},{"v":3}],"x":0}
{"nodes":{"n1":{"term":1},"n2":{"term":2}},"votes":{"n2":"n1"}}
{"node":"a","entries":[]}
"#;
    let made = events(&json, log);
    let shown: Vec<_> =
        made.iter().map(|e| (e.id().to_string(), e.payload.clone(), e.state.clone())).collect();
    let row = |id: &str, payload: Option<&str>, state: Option<Value>| {
        (id.to_owned(), payload.map(str::to_owned), state)
    };
    assert_eq!(
        shown,
        [
            row("a/1", None, None),
            row("a/2", Some("0:1"), None),
            row("a/3", Some("1:3"), None),
            row("n1/1", None, Some(json!({"term": 1}))),
            row("n2/1", None, Some(json!({"term": 2, "voted": "n1"}))),
            row("a/4", None, None),
        ]
    );
    assert_eq!(made[1].fields, Some(json!({"entries": [{"w": 2}], "x": 0})), "what no element used");
    let only = mapping("json-lines", "[event]\nactor = 'a'\neach = 'l'\n");
    assert!(matches!(units(&only, "{\"l\":[]}\n")[0].fate, Fate::LeftOut("the list is empty")));
}

#[test]
fn a_value_holds_until_another_is_told() {
    let tail = mapping(
        "text",
        "patterns = ['^(?<time>\\d\\S+) (?<text>.*)$']\n[[carry]]\nline = '^==> (?<node>\\S+)\\.log <==$'\n[[carry]]\nwhen = { text = '^batch m=(?<m>\\d+)' }\n[event]\nactor = '{node}'\ntype = '{m}'\npayload = '{text}'\n",
    );
    let log = "==> raft-1.log <==\n10:00 send\n10:01 batch m=3 of\n10:02 commit\n\n==> raft-2.log <==\n10:00 recv\n10:04 batch m=4\n";
    let shown: Vec<String> = events(&tail, log)
        .iter()
        .map(|e| {
            format!("{} {} {}", e.id(), e.type_.as_deref().unwrap_or("-"), e.payload.as_deref().unwrap_or(""))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "raft-1/1 - send",
            "raft-1/2 3 batch m=3 of",
            "raft-1/3 3 commit",
            "raft-2/1 3 recv",
            "raft-2/2 4 batch m=4"
        ]
    );
    let json = mapping(
        "json-lines",
        "[[carry]]\nset = { round = '{round}' }\n[event]\nactor = 'a'\ntype = '{round}'\nfields = '{@rest}'\n",
    );
    let made = events(&json, "{\"x\":1}\n{\"round\":7}\n{\"x\":2}\n{\"round\":8,\"x\":3}\n");
    let types: Vec<_> = made.iter().map(|e| e.type_.as_deref()).collect();
    assert_eq!(types, [None, Some("7"), Some("7"), Some("8")]);
    assert_eq!(made[2].fields, Some(json!({"x": 2})));
    // A source begins without the values of the one before.
    let mut mapper = Mapper::new(&tail).unwrap();
    mapper.map_text("one", log.as_bytes());
    let units = mapper.map_text("two", b"10:00 x\n");
    assert!(matches!(&units[0].fate, Fate::Quarantined(why) if why.reason().contains("actor")));
}

#[test]
fn a_log_whose_newest_record_stands_first_is_turned_round() {
    let newest = "newest_first = true\npatterns = ['^(?<time>\\S+) (?<node>\\S+) (?<text>.*)$']\n[event]\nactor = '{node}'\npayload = '{text}'\n";
    let log = "10:03 a third\n10:02 b only\n10:02 a second\nnonsense\n10:01 a first\n";
    let mapping = mapping("text", newest);
    let all = units(&mapping, log);
    assert!(matches!(all[0].fate, Fate::Quarantined(_)));
    let shown: Vec<String> = all[1..]
        .iter()
        .map(|unit| match &unit.fate {
            Fate::Row(Events { records, .. }) => format!("{} {}", records[0].id(), unit.line.number),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shown, ["a/1 5", "a/2 3", "b/1 2", "a/3 1"]);
    assert!(mapping.needs().unwrap().end.unwrap().contains("newest"));
    let json = self::mapping("json", "newest_first = true\n[event]\nactor = '{a}'\npayload = '{p}'\n");
    let made = events(&json, r#"[{"a":"x","p":"2"},{"a":"x","p":"1"}]"#);
    assert_eq!(made.iter().map(|e| e.payload.as_deref()).collect::<Vec<_>>(), [Some("1"), Some("2")]);
}

#[test]
fn texts_for_no_id_are_none() {
    let mapping = mapping("json-lines", "[event]\nactor = 'a'\nkind = 'send'\nto = 'b'\nmsg_id = '{id}'\n");
    for (id, known) in [
        ("", false),
        ("-", false),
        ("null", false),
        ("None", false),
        ("<nil>", false),
        ("00000000-0000-0000-0000-000000000000", false),
        ("00000000000000000000000000000000", false),
        ("0", true),
        ("7", true),
        ("nilson", true),
    ] {
        let found = events(&mapping, &format!("{{\"id\":\"{id}\"}}\n"));
        assert_eq!(found[0].msg_id.as_deref(), known.then_some(id), "{id}");
    }
    let native = EventRecord::parse(br#"{"actor":"a","seq":7,"kind":"send","to":"b","msg_id":""}"#).unwrap();
    assert_eq!(native.msg_id, None);
}

/// What a wrapper holds as text is looked into, and names of members may hold dots at any depth.
#[test]
fn a_list_is_no_name_of_an_end() {
    let mapping = mapping(
        "json",
        "[event]\nactor = \"a\"\nfrom = \"{from}\"\nto = \"{to}\"\n[[rule]]\nemit = [{ kind = \"send\" }]\n",
    );
    let to = |value: &str| {
        let unit = units(&mapping, &format!("{{\"to\":{value}}}\n")).remove(0);
        match unit.fate {
            Fate::Row(events) => events.records[0].to.clone(),
            Fate::Quarantined(why) => Some(why.reason().to_owned()),
            Fate::LeftOut(why) => Some(why.to_owned()),
        }
    };
    assert_eq!(to("\"b\"").as_deref(), Some("b"));
    assert_eq!(to("7").as_deref(), Some("7"));
    assert!(to("[\"b\",\"c\"]").unwrap().contains("'to' is a list: `each`"));
    assert!(to("{\"name\":\"b\"}").unwrap().contains("'to' is an object"));
}

#[test]
fn values_within_values_are_found() {
    let body =
        "[event]\nactor = '{log!json!get(host.name)}'\nkind = 'local'\ntype = '{resource.service.name}'\n";
    let mapping = mapping("json-lines", body);
    let log = r#"{"log":"{\"host\":{\"name\":\"n1\"}}\n","resource":{"service.name":"s"}}"#;
    let found = events(&mapping, &format!("{log}\n"));
    assert_eq!((found[0].actor.as_str(), found[0].type_.as_deref()), ("n1", Some("s")));
}

/// Two ids that differ in their last digit are two.
#[test]
fn numbers_keep_all_their_digits() {
    let mapping = mapping(
        "json-lines",
        "[event]\nactor = 'a'\nkind = 'send'\nto = 'b'\nmsg_id = '{id}'\ntime = '{t}'\nfields = '{@rest}'\n",
    );
    let log = r#"{"id":210306068529402873165736369884012333109,"t":1714564800.123456789,"x":340282366920938463463374607431768211456}"#;
    let found = events(&mapping, &format!("{log}\n"));
    assert_eq!(found[0].msg_id.as_deref(), Some("210306068529402873165736369884012333109"));
    assert_eq!(found[0].time, Some(json!("1714564800.123456789")));
    assert_eq!(found[0].fields, Some(json!({ "x": "340282366920938463463374607431768211456" })));
    let native = format!(r#"{{"actor":"a","seq":1,"kind":"local","fields":{log}}}"#);
    let native = EventRecord::parse(native.as_bytes()).unwrap();
    assert_eq!(native.fields.unwrap()["t"], json!("1714564800.123456789"));
}

/// A zone's name tells no offset.
#[test]
fn names_of_zones_are_not_skipped() {
    let time = |stamp: &str| {
        let body = "[event]\nactor = 'a'\nkind = 'local'\ntime = { value = '{t}', format = '%Y-%m-%d %H:%M:%S %Z' }\n";
        let found =
            events(&mapping("json-lines", body), &format!("{{\"t\":\"2024-05-01 12:00:00 {stamp}\"}}\n"));
        found[0].time.clone().unwrap()
    };
    assert_eq!(time("UTC"), "2024-05-01T12:00:00Z");
    assert_eq!(time("GMT"), "2024-05-01T12:00:00Z");
    assert_eq!(time("CEST"), "2024-05-01 12:00:00 CEST", "it is kept as it is, with a warning");
}

/// The parts of a log that was rotated are one log: days go on, values hold, and its name is the log's.
#[test]
fn parts_of_a_rotated_log_go_on_from_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("n1.log.1", "22:00:00 a\n23:59:59 b\n");
    write("n1.log", "00:00:01 c\n09:00:00 d\n");
    write("other.log", "01:00:00 e\n");
    let body = "patterns = ['(?<t>\\S+) (?<what>.*)']\n[event]\nactor = '{@stem}'\nkind = 'local'\ntype = '{what}'\n\
                time = { value = '{t}', format = '%H:%M:%S', date = '2024-05-01' }\nseq = '{t!instant}'\n";
    let mapping = mapping("text", body);
    let plan = Plan::of(&[folder.path().display().to_string()]).unwrap();
    let mut found = Vec::new();
    let mapper = Mapper::new(&mapping).unwrap();
    mapper
        .try_on(plan.sources(), |_, unit| {
            if let Fate::Row(events) = &unit.fate {
                found.extend(events.records.iter().map(|event| {
                    (
                        event.seq,
                        event.actor.clone(),
                        event.type_.clone().unwrap(),
                        event.time.clone().unwrap().as_str().unwrap().to_owned(),
                    )
                }));
            }
            true
        })
        .unwrap();
    found.sort();
    let told: Vec<String> =
        found.iter().map(|(_, actor, what, time)| format!("{actor} {what} {time}")).collect();
    assert_eq!(
        told,
        [
            "other e 2024-05-01T01:00:00Z",
            "n1 a 2024-05-01T22:00:00Z",
            "n1 b 2024-05-01T23:59:59Z",
            "n1 c 2024-05-02T00:00:01Z",
            "n1 d 2024-05-02T09:00:00Z"
        ]
    );
}

/// A mapper that is written down between two files of one log goes on as well: what the first left, the second finds.
#[test]
fn a_log_that_is_rotated_goes_on_where_it_was_written_down() {
    let body = "[event]\nactor = 'a'\nkind = 'local'\ntime = { value = '{t}', format = '%H:%M:%S', date = '2024-05-01' }\n";
    let mapping = mapping("json-lines", body);
    let times = |mapper: &mut Mapper, text: &str| -> Vec<String> {
        let mut units = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let at = Line { length: line.len() as u64, ..Line::empty(0, number) };
            mapper.line(at, line.as_bytes(), &mut units);
        }
        let of = |unit: Unit| match unit.fate {
            Fate::Row(events) => events.records[0].time.as_ref().unwrap().as_str().unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        units.into_iter().map(of).collect()
    };
    let mut first = Mapper::new(&mapping).unwrap();
    first.of_log("app.log".into());
    first.begin("app.log", b"");
    assert_eq!(times(&mut first, "{\"t\":\"23:59:00\"}"), ["2024-05-01T23:59:00Z"]);
    let (of_source, shared) = (first.checkpoint(), first.shared());
    let mut second = Mapper::new(&mapping).unwrap();
    second.resume_shared(&shared).unwrap();
    second.resume(&of_source).unwrap();
    assert_eq!(times(&mut second, "{\"t\":\"00:01:00\"}"), ["2024-05-02T00:01:00Z"]);
    second.of_log("app.log".into());
    second.begin("app.log", b"");
    assert_eq!(times(&mut second, "{\"t\":\"00:02:00\"}"), ["2024-05-02T00:02:00Z"]);
    // Another log begins at the day that is given; and a process that was started anew knows what was left.
    second.of_log("other.log".into());
    second.begin("other.log", b"");
    assert_eq!(times(&mut second, "{\"t\":\"00:02:00\"}"), ["2024-05-01T00:02:00Z"]);
    let shared = second.shared();
    let mut third = Mapper::new(&mapping).unwrap();
    third.resume_shared(&shared).unwrap();
    third.of_log("app.log".into());
    third.begin("app.log", b"");
    assert_eq!(times(&mut third, "{\"t\":\"00:03:00\"}"), ["2024-05-02T00:03:00Z"]);
}

#[test]
fn gaps_may_mean_nothing() {
    let seq = |value: &str| mapping("json-lines", &format!("[event]\nactor = 'a'\nseq = {value}\n"));
    let log = "{\"n\":306335008198125}\n{\"n\":306335004519916}\n";
    let sparse = events(&seq("{ value = '{n}', gaps = 'normal' }"), log);
    assert!(sparse[0].seq > sparse[1].seq && demi_schemas::event::is_clock_seq(sparse[1].seq));
    assert!(sparse[0].seq.to_string().ends_with("306335008198125"), "its digits are there still");
    assert_eq!(events(&seq("{ value = '{n}' }"), log)[0].seq, 306_335_008_198_125);
    // Numbers of any size keep their order.
    let large =
        "{\"n\":17}\n{\"n\":1152921504606846900}\n{\"n\":1152921504606847000}\n{\"n\":2100000000000000000}\n";
    let large: Vec<u64> =
        events(&seq("{ value = '{n}', gaps = 'normal' }"), large).iter().map(|event| event.seq).collect();
    assert!(large.is_sorted() && large[0] < large[1], "{large:?}");
    let beyond = &units(&seq("{ value = '{n}', gaps = 'normal' }"), "{\"n\":9000000000000000000}\n")[0];
    assert!(matches!(&beyond.fate, Fate::Quarantined(why) if why.reason().contains("too large")));
    assert_eq!(events(&seq("'{n}'"), log)[0].seq, 306_335_008_198_125);
    // Read again it is the same.
    let record = EventRecord::parse(br#"{"actor":"a","seq":7,"kind":"local","gaps":"normal"}"#).unwrap();
    assert_eq!(Ok(record.seq), demi_schemas::event::sparse_seq(7));
    assert_eq!(EventRecord::parse(&serde_json::to_vec(&record).unwrap()).unwrap(), record);
    let why = |log: &str| match &units(&seq("'{n}'"), log)[0].fate {
        Fate::Quarantined(why) => why.reason().to_owned(),
        other => panic!("{other:?}"),
    };
    assert!(why("{\"n\":\"99999999999999999999\"}\n").contains("too large"));
    assert!(
        why("{\"n\":9999999999999999999}\n").contains("too large")
            || why("{\"n\":9999999999999999999}\n").contains("beyond")
    );
    assert!(why("{\"n\":\"x\"}\n").contains("not a whole number"));
    let error =
        EventRecord::parse(br#"{"actor":"a","seq":99999999999999999999,"kind":"local"}"#).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}

#[test]
fn times_are_read_in_the_formats_that_the_mapping_tells() {
    let text = "patterns = ['^(?<time>\\S+ \\S+) (?<text>.*)$']\n[event]\nactor = 'a'\nseq = '{time!instant}'\npayload = '{text}'\n";
    let klog = mapping(
        "text",
        &format!("{text}time = {{ format = ['%m%d %H:%M:%S%.f', '%Y-%m-%d %H:%M:%S'], year = 2023 }}\n"),
    );
    let made = events(&klog, "1231 23:59:59.5 x\n0101 00:00:00.25 y\n2024-01-02 00:00:00 z\n");
    let times: Vec<_> = made.iter().map(|e| e.time.clone().unwrap()).collect();
    assert_eq!(times, ["2023-12-31T23:59:59.5Z", "2024-01-01T00:00:00.25Z", "2024-01-02T00:00:00Z"]);
    assert_eq!(made[0].seq, 1_704_067_199_500_000_000);
    assert!(made[0].seq < made[1].seq && made[1].seq < made[2].seq);
    // A stamp in none of the formats is kept, and named.
    let other = mapping(
        "text",
        "patterns = ['^(?<time>\\S+ \\S+) (?<text>.*)$']\n[event]\nactor = 'a'\ntime = { format = '%H:%M:%S', date = '2024-05-15' }\n",
    );
    match &units(&other, "about noon x\n")[0].fate {
        Fate::Row(Events { records, warnings }) => {
            assert_eq!(records[0].time, Some(json!("about noon")));
            assert!(warnings[0].contains("'about noon' is in none of the mapping's formats"), "{warnings:?}");
        }
        other => panic!("{other:?}"),
    }
    // What the mapping made of the time is a name too, and a day may come from elsewhere.
    let days = mapping(
        "text",
        "patterns = ['^(?<d>\\S+) (?<t>\\S+)$']\n[[carry]]\nline = '^# (?<day>\\S+)$'\n[event]\nactor = 'a'\nseq = '{@time!instant}'\ntime = { value = '{t}', format = '%H:%M:%S,%3f', date = '{day}', offset = '+02:00' }\n",
    );
    let made = events(&days, "# 2024-05-15\nx 14:14:39,898\n");
    assert_eq!(
        (made[0].time.clone(), made[0].seq),
        (Some(json!("2024-05-15T12:14:39.898Z")), 1_715_775_279_898_000_000)
    );
}

#[test]
fn constants_and_mistakes_in_shapes_are_understood() {
    let made = events(
        &mapping("json-lines", "[event]\nactor = 'a'\nstate = { term = 1195, ok = true, p = 0.5 }\n"),
        "{}\n",
    );
    assert_eq!(made[0].state, Some(json!({"term": 1195, "ok": true, "p": 0.5})));
    let why = |event: &str| {
        let text = format!(
            "name='x'\ndescription='d'\n[input]\ncontainer='json-lines'\n[event]\nactor='a'\n{event}\n"
        );
        Mapping::parse(&text, "m.toml").unwrap_err().to_string()
    };
    for (event, what) in [
        ("state = 2024-05-15", "text"),
        ("seq = 7", "a template in quotation marks"),
        ("seq = { value = '{n}', gaps = 'usual' }", "normal"),
        ("seq = { val = '{n}' }", "did you mean `value`?"),
        ("time = { format = 5 }", "a text in quotation marks"),
    ] {
        assert!(why(event).contains(what) && !why(event).contains("untagged"), "{event}: {}", why(event));
    }
}

#[test]
fn elements_of_xml_are_records() {
    let mapping = Mapping::parse(
        "name = 'x'\ndescription = 'd'\n[input]\ncontainer = 'xml'\nrecords = '/log/step'\n[event]\nactor = '{who}'\ntype = '{#name}'\n\
         payload = '{#text}'\nfields = '{@rest}'\n[[rule]]\nwhen = { to = '.' }\nemit = [{ kind = 'send', to = '{to}' }]\n",
        "x",
    )
    .unwrap();
    let text = "<log>\n<head/>\n<step who='a' to='b'>ping<sizes><n>1</n><n>2</n></sizes></step>\n<step who='b'>\n</step>\n</log>\n";
    let units = Mapper::new(&mapping).unwrap().map_text("f", text.as_bytes());
    let events: Vec<Value> = units
        .iter()
        .flat_map(|unit| match &unit.fate {
            Fate::Row(Events { records, .. }) => records.clone(),
            other => panic!("{other:?}"),
        })
        .map(|record| serde_json::to_value(record).unwrap())
        .collect();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0]["fields"]["sizes"]["n"], json!(["1", "2"]));
    let of = |event: &Value| ["actor", "kind", "type"].map(|name| event[name].as_str().unwrap().to_owned());
    assert_eq!(of(&events[0]), ["a", "send", "step"]);
    assert_eq!(of(&events[1]), ["b", "local", "step"]);
    assert_eq!((&events[0]["payload"], &events[0]["to"]), (&"ping".into(), &"b".into()));
    let wrong =
        "name = 'x'\ndescription = 'd'\n[input]\ncontainer = 'edn'\nrecords = '/a'\n[event]\nactor = 'a'\n";
    assert!(
        Mapping::parse(wrong, "x")
            .and_then(|m| Mapper::new(&m).map(drop))
            .unwrap_err()
            .to_string()
            .contains("'json' and 'xml'")
    );
}
