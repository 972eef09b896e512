//! Everything that shows the order of an execution shows one relation: the closure of what its records tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use demi_lineage::export::{Format, Selection, Trace, Window, WriteOptions, write};
use demi_lineage::generate::write_store_file;
use demi_lineage::query::{Query, Relation as Stands, refresh};
use demi_lineage::{BuildOptions, ViolationSpec, build};
use demi_replay::registry::NoModels;
use demi_report::{LoadOptions, Served, html, load};
use demi_sql::Around;
use proptest::prelude::*;
use serde_json::json;

use crate::parsed::{self, Columns, Json, Told};
use crate::systems::{Kinds, Relation, systems};

/// How an execution comes to be.
#[derive(Clone, Copy, Debug)]
enum Way {
    Copied,
    Refers,
    Grown,
}

fn execution(dir: &Path, system: &crate::systems::System, way: Way, cut: usize) -> PathBuf {
    let exec = dir.join("exec");
    let (first, rest) = system.records.split_at(cut.min(system.records.len()));
    let mut files = Vec::new();
    for (number, records) in [first, rest].into_iter().enumerate().filter(|(_, r)| !r.is_empty()) {
        let file = dir.join(format!("store-{number}.parquet"));
        write_store_file(&file, records.to_vec()).unwrap();
        files.push(file.into());
    }
    let violation = ViolationSpec::None;
    match way {
        Way::Grown => {
            for known in 1..=files.len() {
                refresh(&files[..known], "system", &exec, &mut |_| {}).unwrap();
            }
        }
        Way::Copied | Way::Refers => {
            let options =
                BuildOptions { violation, copy: matches!(way, Way::Copied), ..BuildOptions::default() };
            build(&files, &options, &exec, &mut |_| {}).unwrap();
        }
    }
    exec
}

/// Says where two relations differ.
fn same(what: &str, found: &Relation, truth: &Relation) -> Result<(), TestCaseError> {
    let (all, of): (BTreeSet<_>, BTreeSet<_>) = (truth.names.iter().collect(), found.names.iter().collect());
    prop_assert_eq!(&of, &all, "events of {}", what);
    let truth = truth.of(&found.names);
    for (b, name) in found.names.iter().enumerate() {
        let differs = |a: &usize| found.before(*a, b) != truth.before(*a, b);
        if let Some(a) = (0..found.names.len()).find(differs) {
            let says = if found.before(a, b) { "before" } else { "not before" };
            return Err(TestCaseError::fail(format!("{what} says {} is {says} {name}", found.names[a])));
        }
    }
    Ok(())
}

/// What is asked of the order index, and of SQL for some events.
fn questions(exec: &Path, truth: &Relation, some: &[usize]) -> Result<Relation, TestCaseError> {
    let (query, sure) = (Query::open(exec, false).unwrap(), Query::open(exec, true).unwrap());
    let n = truth.names.len();
    let numbers: Vec<u32> = truth.names.iter().map(|name| query.index().event(name).unwrap()).collect();
    prop_assert_eq!(query.index().header().events as usize, n);
    let mut certain = vec![0_u128; n];
    for b in 0..n {
        let set = |wanted: &dyn Fn(usize) -> bool| -> BTreeSet<u32> {
            (0..n).filter(|&a| wanted(a)).map(|a| numbers[a]).collect()
        };
        let members = |set: demi_lineage::query::EventSet| -> BTreeSet<u32> {
            set.ranges().iter().flat_map(Clone::clone).collect()
        };
        let event = numbers[b];
        let past = set(&|a| a == b || truth.before(a, b));
        let future = set(&|a| a == b || truth.before(b, a));
        prop_assert_eq!(members(query.past_set(event).unwrap()), past, "past of {}", &truth.names[b]);
        prop_assert_eq!(members(query.future_set(event).unwrap()), future, "future of {}", &truth.names[b]);
        for (a, &other) in numbers.iter().enumerate() {
            let expected = match (truth.before(a, b), truth.before(b, a)) {
                _ if a == b => Stands::Equal,
                (true, _) => Stands::Before,
                (_, true) => Stands::After,
                _ => Stands::Concurrent,
            };
            let found = query.order(other, event).unwrap();
            prop_assert_eq!(found, expected, "order of {} and {}", &truth.names[a], &truth.names[b]);
            if sure.order(other, event).unwrap() == Stands::Before {
                certain[b] |= 1 << a;
            }
        }
    }
    for &b in some {
        let name = &truth.names[b];
        for (function, wanted) in [
            ("past", &(|a| a == b || truth.before(a, b)) as &dyn Fn(usize) -> bool),
            ("future", &|a| a == b || truth.before(b, a)),
            ("concurrent", &|a| a != b && !truth.before(a, b) && !truth.before(b, a)),
        ] {
            let sql = format!("SELECT event FROM {function}('{name}')");
            let frame = demi_sql::select(&query, &sql, &Around::default()).unwrap().frame;
            let column = frame.column("event").unwrap();
            let found: BTreeSet<String> = (0..frame.height())
                .map(|row| column.get(row).unwrap().get_str().unwrap().to_owned())
                .collect();
            let expected = (0..n).filter(|&a| wanted(a)).map(|a| truth.names[a].clone()).collect();
            prop_assert_eq!(found, expected, "{}('{}') in SQL", function, name);
        }
    }
    Ok(Relation { names: truth.names.clone(), past: certain })
}

fn text(trace: &Trace, format: Format, split_loose: bool) -> String {
    let mut out = Vec::new();
    write(trace, format, WriteOptions { split_loose }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn between_logs(edges: &[Told]) -> BTreeSet<&Told> {
    edges.iter().filter(|edge| edge.2 != "log").collect()
}

/// All exports of a slice, and the page of it.
fn pictures(exec: &Path, truth: &Relation, selection: &Selection) -> Result<Json, TestCaseError> {
    let trace = Trace::load(exec, selection).unwrap();
    let json = parsed::json(&text(&trace, Format::Json, false));
    let truth = truth.of(&json.names);
    same("JSON", &json.relation(false), &truth)?;
    same("ShiViz", &parsed::shiviz(&text(&trace, Format::Shiviz, true), &json.names), &truth)?;
    let shared = parsed::shiviz(&text(&trace, Format::Shiviz, false), &json.names);
    for (found, past) in shared.past.iter().zip(&truth.past) {
        prop_assert_eq!(found & past, *past, "shared hosts may add order, never lose it");
    }
    same("Graphviz", &parsed::dot(&text(&trace, Format::Dot, false)), &truth)?;
    let graphml = parsed::graphml(&text(&trace, Format::Graphml, false));
    same("GraphML", &graphml.relation(false), &truth)?;
    prop_assert_eq!(between_logs(&graphml.edges), between_logs(&json.edges), "edges of GraphML");
    same("Perfetto", &parsed::perfetto(&text(&trace, Format::Perfetto, false)), &truth)?;
    let numbers: BTreeMap<u32, String> =
        trace.events.iter().map(|e| e + 1).zip(json.names.iter().cloned()).collect();
    same("Mermaid", &parsed::mermaid(&text(&trace, Format::Mermaid, false), &numbers), &truth)?;

    let options = LoadOptions { selection: selection.clone(), ..LoadOptions::default() };
    let page = parsed::page(&html(&load(&NoModels, exec, &options).unwrap()).unwrap());
    let columns = Columns::new(&page, &page["traces"][0]["columns"]);
    prop_assert_eq!(&columns.names, &json.names, "events of the page");
    same("the page", &columns.relation(false), &truth)?;
    let (shown, told) = (between_logs(&columns.edges), between_logs(&json.edges));
    prop_assert!(shown.is_subset(&told), "edges of the page: {:?}, not {:?}", shown, told);
    // What is left out is the order of a log.
    prop_assert!(told.difference(&shown).all(|edge| edge.2 == "indirect"), "{:?}, not {:?}", shown, told);
    Ok(json)
}

/// The page of a server, asked as the page asks.
fn served(exec: &Path, truth: &Relation) -> Result<(), TestCaseError> {
    let served = Served::open(&NoModels, exec, None, None).unwrap();
    let ask = |question: serde_json::Value| -> serde_json::Value {
        serde_json::from_str(&served.ask(&question.to_string()).unwrap()).unwrap()
    };
    let page = parsed::page(served.html());
    let n = truth.names.len();
    let answer = ask(json!({"ask": "events", "from": 0, "to": n}));
    let columns = Columns::new(&page, &answer["columns"]);
    same("the served page", &columns.relation(false), truth)?;
    let truth = truth.of(&columns.names);
    let (low, high) = (n / 3, n / 3 + n.div_ceil(4));
    for (i, name) in columns.names.iter().enumerate() {
        prop_assert_eq!(&ask(json!({"ask": "named", "name": name}))["event"], &json!(i));
        let of_actor = |j: &usize| columns.actor[*j] == columns.actor[i];
        let (next, before) = ((i + 1..n).find(of_actor), (0..i).rev().find(of_actor));
        prop_assert_eq!(&ask(json!({"ask": "actor", "of": i, "forward": true}))["event"], &json!(next));
        prop_assert_eq!(&ask(json!({"ask": "actor", "of": i, "forward": false}))["event"], &json!(before));
        for (question, forward) in [("past", false), ("future", true)] {
            let answer = ask(json!({"ask": question, "of": i}));
            let inside =
                |j: &usize| *j == i || if forward { truth.before(i, *j) } else { truth.before(*j, i) };
            let expected: BTreeSet<String> = (0..n).filter(inside).map(|j| truth.names[j].clone()).collect();
            prop_assert_eq!(&answer["size"], &json!(expected.len()));
            prop_assert_eq!(columns.reached(&answer, forward), expected, "{} of {}", question, name);
        }
    }
    // A window has the edges that begin or end in it, and is told what passes over it.
    let answer = ask(json!({"ask": "events", "from": low, "to": high.min(n)}));
    let ends = |of: &serde_json::Value| -> BTreeSet<(u64, u64)> {
        let list = |name: &str| of[name].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let (causes, effects): (Vec<u64>, Vec<u64>) = (list("cause"), list("effect"));
        causes.into_iter().zip(effects).collect()
    };
    let all = ends(&ask(json!({"ask": "events", "from": 0, "to": n}))["columns"]["edges"]);
    let (low, high) = (low as u64, high.min(n) as u64);
    let inside = |end: u64| (low..high).contains(&end);
    let touching = all.iter().copied().filter(|(a, b)| inside(*a) || inside(*b)).collect();
    prop_assert_eq!(ends(&answer["columns"]["edges"]), touching, "edges of a window");
    let over: BTreeSet<(u64, u64)> = all.iter().copied().filter(|(a, b)| *a < low && *b >= high).collect();
    let crossing = answer["crossing"].as_array().unwrap().iter();
    let crossing = crossing.map(|edge| (edge[0].as_u64().unwrap(), edge[2].as_u64().unwrap())).collect();
    prop_assert_eq!(over, crossing, "edges over a window");
    Ok(())
}

/// How many systems are tried; `DEMI_CASES=10000` for the whole.
fn cases() -> u32 {
    std::env::var("DEMI_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(48)
}

fn check(kinds: &Kinds, way: Way, cut: usize, pick: usize, slice: u8) -> Result<(), TestCaseError> {
    let system = kinds.system();
    let truth = system.truth();
    let n = truth.names.len();
    prop_assume!(n > 0);
    let dir = tempfile::tempdir().unwrap();
    let exec = execution(dir.path(), &system, way, cut);
    let certain = questions(&exec, &truth, &[pick % n])?;
    let known = system.known();
    for (b, name) in certain.names.iter().enumerate() {
        let guess = (0..n).find(|&a| certain.before(a, b) && !known.before(a, b));
        prop_assert_eq!(guess.map(|a| &truth.names[a]), None, "it is a guess that this is before {}", name);
    }
    let whole = pictures(&exec, &truth, &Selection::default())?;
    prop_assert_eq!(whole.names.len(), n);
    // A picture has a log as one line: that the order of events of one time is a guess, only questions tell.
    if Query::open(&exec, true).unwrap().stats().unwrap().tied == 0 {
        same("certain edges of JSON", &whole.relation(true), &certain)?;
    }
    served(&exec, &truth)?;
    let (event, actor) = (truth.names[pick % n].clone(), system.records[pick % n].actor.clone());
    let other = system.records[(pick / 7) % n].actor.clone();
    let selection = match slice % 6 {
        0 => Selection { past: Some(event), ..Selection::default() },
        1 => Selection { from: Some(event), ..Selection::default() },
        2 => Selection { actors: vec![actor], ..Selection::default() },
        3 => Selection { actors: vec![actor, other], ..Selection::default() },
        4 => Selection { window: Some(Window::Last(1 + n / 2)), ..Selection::default() },
        _ => Selection { window: Some(Window::Around { event, events: 1 + n / 3 }), ..Selection::default() },
    };
    pictures(&exec, &truth, &selection)?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_shows_the_order_shows_one_relation(
        kinds in systems(), way in prop_oneof![Just(Way::Copied), Just(Way::Refers), Just(Way::Grown)], cut in 0..64_usize,
        pick in any::<usize>(), slice in any::<u8>(),
    ) {
        check(&kinds, way, cut, pick, slice)?;
    }
}

/// A case for the page's script: the data of the page, and the events before each, by their places in the order.
fn case(exec: &Path, truth: &Relation, served: Option<&str>) -> (serde_json::Value, Vec<String>) {
    let page = parsed::page(&html(&load(&NoModels, exec, &LoadOptions::default()).unwrap()).unwrap());
    let names = Columns::new(&page, &page["traces"][0]["columns"]).names;
    let past = truth.of(&names).past;
    let past: Vec<Vec<usize>> =
        past.iter().map(|past| (0..names.len()).filter(|a| past >> a & 1 == 1).collect()).collect();
    (json!({"data": page, "past": past, "served": served}), names)
}

/// What the page's script says of these cases: the names of their events.
fn script(folder: &Path, cases: &[serde_json::Value]) -> Option<Vec<Vec<String>>> {
    let mut node = crate::script::node()?;
    let file = folder.join("cases.json");
    std::fs::write(&file, serde_json::to_vec(cases).unwrap()).unwrap();
    let output = node.args([crate::script::folder().join("relation.js"), file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_script_of_the_page_shows_that_relation() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let dir = tempfile::tempdir().unwrap();
    let (mut cases, mut names) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let system = systems().new_tree(&mut runner).unwrap().current().system();
        let folder = dir.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let exec = execution(&folder, &system, Way::Refers, 0);
        let (case, own) = case(&exec, &system.truth(), None);
        cases.push(case);
        names.push(own);
    }
    let Some(said) = script(dir.path(), &cases) else { return };
    assert_eq!(said, names, "names are as the execution has them, large numbers too");
}

/// Several blocks of events: what a server tells of them one by one, against a page that has them all.
#[test]
fn the_script_shows_what_passes_over_the_rows_of_a_served_page() {
    use demi_lineage::generate::{Generator, Mix};
    let mix = Mix {
        seed: 3,
        actors: 6,
        events: 2600,
        environment: 0.02,
        thread: 0.02,
        multicast: 0.1,
        in_order: false,
        ..Mix::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.parquet");
    write_store_file(&file, Generator::new(&mix).map(|g| g.record)).unwrap();
    let exec = dir.path().join("exec");
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    let page = parsed::page(&html(&load(&NoModels, &exec, &LoadOptions::default()).unwrap()).unwrap());
    let columns = Columns::new(&page, &page["traces"][0]["columns"]);
    // The order index says what is before each event.
    let query = Query::open(&exec, false).unwrap();
    let number: BTreeMap<u32, usize> =
        columns.names.iter().zip(0..).map(|(name, i)| (query.index().event(name).unwrap(), i)).collect();
    let mut past = vec![Vec::new(); columns.names.len()];
    for (&event, &i) in &number {
        let set = query.past_set(event).unwrap();
        past[i] =
            set.ranges().iter().flat_map(Clone::clone).filter(|&e| e != event).map(|e| number[&e]).collect();
    }
    let served = Served::open(&NoModels, &exec, None, None).unwrap();
    let (told, address) = std::sync::mpsc::channel();
    // It ends with the process.
    std::thread::spawn(move || demi_report::serve(served, 0, &mut |address| told.send(address).unwrap()));
    let url = format!("http://{}", address.recv().unwrap());
    let said = script(dir.path(), &[json!({"data": page, "past": past, "served": url})]);
    assert!(said.is_none_or(|said| said == [columns.names]));
}
