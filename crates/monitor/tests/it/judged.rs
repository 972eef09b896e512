//! What a monitor tells, against a judge who reads the whole log anew after each record and shares nothing with it.
//!
//! Values change their types, actors end and begin again, and the monitor is stopped and read back.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use demi_monitor::{Monitor, MonitorState};
use demi_schemas::EventRecord;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{invariants, options};

const ACTORS: usize = 4;

/// What the judge can say: fails, holds, or why not.
type Says = Result<bool, ()>;

/// A state as the judge sees it.
#[derive(Clone, Debug)]
struct State {
    actor: usize,
    x: Value,
    y: Value,
    /// The state before it in the same incarnation.
    before: Option<Value>,
}

/// How the rows of a predicate are made, and what is said of them.
enum Judge {
    /// Each actor's last state.
    Row(fn(&State) -> Says),
    /// The last states of two actors.
    Pair(fn(&State, &State) -> Says),
    /// The last states with the same `y`, or all, of those that pass.
    Group { by_y: bool, passes: fn(&State) -> Says, holds: fn(&[&State]) -> Says },
    /// Each state ever told.
    Ever(fn(&State) -> Says),
    /// The states ever told with the same `y`.
    EverGroup(fn(&[&State]) -> Says),
    /// Each two states ever told.
    EverPair(fn(&State, &State) -> Says),
}

fn order(a: &Value, b: &Value) -> Result<Option<Ordering>, ()> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Ok(None),
        (Value::Number(a), Value::Number(b)) => Ok(a.as_f64().unwrap().partial_cmp(&b.as_f64().unwrap())),
        (Value::String(a), Value::String(b)) => Ok(Some(a.cmp(b))),
        (Value::Bool(a), Value::Bool(b)) => Ok(Some(a.cmp(b))),
        _ => Err(()),
    }
}

fn at_most(a: &Value, b: &Value) -> Says {
    Ok(order(a, b)? != Some(Ordering::Greater))
}

fn number(value: &Value) -> Result<Option<f64>, ()> {
    match value {
        Value::Null => Ok(None),
        Value::Number(n) => Ok(n.as_f64()),
        _ => Err(()),
    }
}

/// The numbers that are there.
fn numbers(rows: &[&State]) -> Result<Vec<f64>, ()> {
    Ok(rows.iter().map(|row| number(&row.x)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn spread(rows: &[&State]) -> Says {
    let told: Vec<&Value> = rows.iter().map(|row| &row.x).filter(|x| !x.is_null()).collect();
    // The least and the most of values that do not compare are unknown; of one value they are that.
    for (i, a) in told.iter().enumerate() {
        for b in &told[i..] {
            order(a, b)?;
        }
    }
    let Some(first) = told.first() else { return Ok(true) };
    number(first)?;
    let all = numbers(rows)?;
    let (least, most) =
        (all.iter().copied().fold(f64::MAX, f64::min), all.iter().copied().fold(f64::MIN, f64::max));
    Ok(most - least <= 10.0)
}

fn total(rows: &[&State]) -> Says {
    Ok(numbers(rows)?.iter().sum::<f64>() <= 150.0)
}

fn every(_: &State) -> Says {
    Ok(true)
}

fn above(row: &State) -> Says {
    Ok(order(&row.x, &json!(10))? == Some(Ordering::Greater))
}

fn rising(old: &State, new: &State) -> Says {
    // WHERE lets those pass whose `y` is equal and known.
    let same =
        order(&old.y, &new.y).ok().flatten() == Some(Ordering::Equal) || (old.y.is_array() && old.y == new.y);
    if same { at_most(&old.x, &new.x) } else { Ok(true) }
}

fn judges() -> Vec<(&'static str, Judge)> {
    vec![
        ("x <= 50", Judge::Row(|row| at_most(&row.x, &json!(50)))),
        (
            "x >= prev.x",
            Judge::Row(|row| row.before.as_ref().map_or(Ok(true), |before| at_most(before, &row.x))),
        ),
        (
            "GROUP BY y HAVING max(x) - min(x) <= 10",
            Judge::Group { by_y: true, passes: every, holds: spread },
        ),
        (
            "WHERE x > 10 GROUP BY y HAVING count(*) <= 1",
            Judge::Group { by_y: true, passes: above, holds: |rows| Ok(rows.len() <= 1) },
        ),
        ("sum(x) <= 150", Judge::Group { by_y: false, passes: every, holds: total }),
        ("count(*) >= 2", Judge::Group { by_y: false, passes: every, holds: |rows| Ok(rows.len() >= 2) }),
        (
            "PAIRS a, b HAVING a.x + b.x <= 100",
            Judge::Pair(|a, b| match (&a.x, &b.x) {
                (Value::Null, _) | (_, Value::Null) => Ok(true),
                (a, b) => Ok(number(a)?.unwrap_or(0.0) + number(b)?.unwrap_or(0.0) <= 100.0),
            }),
        ),
        ("EVER HAVING x <= 60", Judge::Ever(|row| at_most(&row.x, &json!(60)))),
        (
            "EVER GROUP BY y HAVING max(x) <= 70",
            Judge::EverGroup(|rows| {
                rows.iter().try_fold(true, |all, row| Ok(at_most(&row.x, &json!(70))? && all))
            }),
        ),
        ("EVER GROUP BY y HAVING count(*) <= 4", Judge::EverGroup(|rows| Ok(rows.len() <= 4))),
        ("EVER PAIRS old, new WHERE new.y = old.y HAVING new.x >= old.x", Judge::EverPair(rising)),
    ]
}

/// What was told: the invariant's number, the row or group, the event.
type Told = (usize, String, String);

/// What the judge knows after each record of a log.
struct Log {
    /// By actor: whether it is there, and since which record.
    last: BTreeMap<usize, (usize, State)>,
    all: Vec<State>,
}

fn name(actor: usize) -> String {
    format!("n-{actor}")
}

fn words(y: &Value) -> String {
    match y {
        Value::String(text) => format!("y = '{text}'"),
        other => format!("y = {other}"),
    }
}

/// Reads the first records of a log.
fn read(records: &[EventRecord]) -> Log {
    let mut log = Log { last: BTreeMap::new(), all: Vec::new() };
    let mut since: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
    for (i, record) in records.iter().enumerate() {
        let actor: usize = record.actor[2..].parse().unwrap();
        let incarnation = u64::from(record.incarnation);
        if since.get(&actor).is_none_or(|known| known.0 != incarnation) {
            since.insert(actor, (incarnation, i));
            log.last.remove(&actor);
        }
        if matches!(record.kind, demi_schemas::Kind::Crash | demi_schemas::Kind::Stop) {
            log.last.remove(&actor);
            since.insert(actor, (incarnation, i));
        }
        let Some(state) = &record.state else { continue };
        let of = |name: &str| state.get(name).cloned().unwrap_or(Value::Null);
        let before = log.last.get(&actor).map(|(_, state)| state.x.clone());
        let state = State { actor, x: of("x"), y: of("y"), before };
        log.all.push(state.clone());
        log.last.insert(actor, (since[&actor].1, state));
    }
    log
}

/// By row or group, and what makes it one that is not to be confused with one before: what is said of it.
fn verdicts(judge: &Judge, log: &Log) -> BTreeMap<(String, Vec<usize>), Says> {
    let mut found = BTreeMap::new();
    let rows: Vec<&(usize, State)> = log.last.values().collect();
    match judge {
        Judge::Row(says) => {
            for (since, row) in rows {
                found.insert((format!("actor = '{}'", name(row.actor)), vec![*since]), says(row));
            }
        }
        Judge::Pair(says) => {
            for (i, a) in &rows {
                for (j, b) in rows.iter().filter(|(_, b)| b.actor != a.actor) {
                    let of = format!("a.actor = '{}', b.actor = '{}'", name(a.actor), name(b.actor));
                    found.insert((of, vec![*i, *j]), says(a, b));
                }
            }
        }
        Judge::Group { by_y, passes, holds } => {
            let mut groups: BTreeMap<String, (bool, Vec<&State>)> = BTreeMap::new();
            for (_, row) in &rows {
                let of = if *by_y { words(&row.y) } else { String::new() };
                match passes(row) {
                    Ok(true) => groups.entry(of).or_default().1.push(row),
                    Ok(false) => {}
                    Err(()) => groups.entry(of).or_default().0 = true,
                }
            }
            for (of, (unknown, members)) in groups {
                found.insert((of, Vec::new()), if unknown { Err(()) } else { holds(&members) });
            }
        }
        Judge::Ever(says) => {
            for actor in 0..ACTORS {
                let own: Vec<Says> = log.all.iter().filter(|s| s.actor == actor).map(says).collect();
                let failed = own.contains(&Ok(false));
                let of = format!("actor = '{}'", name(actor));
                found.insert(
                    (of, Vec::new()),
                    if failed { Ok(false) } else { own.last().copied().unwrap_or(Ok(true)) },
                );
            }
        }
        Judge::EverGroup(holds) => {
            let mut groups: BTreeMap<String, (Says, Vec<&State>)> = BTreeMap::new();
            for row in &log.all {
                let of = format!("actor = '{}'", name(row.actor));
                let (says, members) = groups.entry(words(&row.y)).or_insert((Ok(true), Vec::new()));
                // What failed has failed for good, and what cannot be judged is no part of the history.
                found.insert((of.clone(), Vec::new()), Ok(true));
                if *says == Ok(false) {
                    continue;
                }
                members.push(row);
                match holds(members) {
                    Ok(holds) => *says = Ok(holds),
                    Err(()) => {
                        members.pop();
                        found.insert((of, Vec::new()), Err(()));
                    }
                }
            }
            for (of, (says, _)) in groups {
                found.insert((of, Vec::new()), says);
            }
        }
        Judge::EverPair(says) => {
            for (j, new) in log.all.iter().enumerate() {
                for old in &log.all[..j] {
                    let of = format!("old.actor = '{}', new.actor = '{}'", name(old.actor), name(new.actor));
                    if says(old, new) == Ok(false) {
                        found.insert((of, Vec::new()), Ok(false));
                    }
                }
            }
        }
    }
    found
}

/// What is to be told of a log, and what cannot be judged at its end.
fn judged(
    number: usize,
    judge: &Judge,
    records: &[EventRecord],
    logs: &[Log],
) -> (BTreeSet<Told>, BTreeSet<String>) {
    let (mut told, mut before) = (BTreeSet::new(), BTreeMap::new());
    for (record, log) in records.iter().zip(logs).filter(|(record, _)| record.state.is_some()) {
        let now = verdicts(judge, log);
        for ((of, since), says) in &now {
            if *says == Ok(false) && before.get(&(of.clone(), since.clone())) != Some(&Ok(false)) {
                told.insert((number, of.clone(), record.id().to_string()));
            }
        }
        before = now;
    }
    // A row goes with its actor; a group is judged with the next state.
    if matches!(judge, Judge::Row(_) | Judge::Pair(_)) {
        before = logs.last().map(|log| verdicts(judge, log)).unwrap_or_default();
    }
    let left = before.into_iter().filter(|(_, says)| says.is_err()).map(|((of, _), _)| of).collect();
    (told, left)
}

/// What an actor does.
#[derive(Clone, Debug)]
enum Act {
    Tell(Value, Value),
    Local,
    End(&'static str),
    Restart,
}

fn stream() -> impl Strategy<Value = Vec<EventRecord>> {
    let x = prop_oneof![
        8 => (0..90_i64).prop_map(|x| json!(x)),
        1 => Just(json!("text")),
        1 => Just(json!("45")),
        1 => Just(json!(null)),
        1 => Just(json!(true)),
        1 => Just(json!(12.5)),
    ];
    let y = prop_oneof![6 => (0..3_i64).prop_map(|y| json!(y)), 1 => Just(json!("g")), 1 => Just(json!(null)), 1 => Just(json!([1]))];
    let act = prop_oneof![
        12 => (x, y).prop_map(|(x, y)| Act::Tell(x, y)),
        1 => Just(Act::Local),
        1 => proptest::sample::select(vec!["crash", "stop"]).prop_map(Act::End),
        1 => Just(Act::Restart),
    ];
    proptest::collection::vec((0..ACTORS, act), 1..45).prop_map(|acts| {
        let mut logs = [(0_u32, 0_u64); ACTORS];
        let mut records = Vec::new();
        for (actor, act) in acts {
            let mut line = match act {
                Act::Tell(x, y) => json!({"kind": "state", "state": {"x": x, "y": y}}),
                Act::Local => json!({"kind": "local"}),
                Act::End(kind) => json!({ "kind": kind }),
                Act::Restart => {
                    logs[actor] = (logs[actor].0 + 1, 0);
                    json!({"kind": "start"})
                }
            };
            logs[actor].1 += 1;
            line["actor"] = json!(name(actor));
            (line["incarnation"], line["seq"]) = (json!(logs[actor].0), json!(logs[actor].1));
            records.push(EventRecord::parse(line.to_string().as_bytes()).unwrap());
        }
        records
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_told_is_what_the_whole_log_tells(records in stream(), stops in any::<u64>()) {
        let judges = judges();
        let predicates: Vec<&str> = judges.iter().map(|(text, _)| *text).collect();
        let invariants = invariants(&predicates);
        let mut monitor = Monitor::new(&invariants, options());
        let mut found = Vec::new();
        for (i, record) in records.iter().enumerate() {
            if (stops >> (i % 64)) & 1 == 1 {
                let text = serde_json::to_string(&monitor.save()).unwrap();
                let saved: MonitorState = serde_json::from_str(&text).unwrap();
                monitor = Monitor::resume(&invariants, options(), &saved);
            }
            let record = monitor.interest().record(record);
            monitor.take(record, i as u64 + 1, i as u64, &mut found);
        }
        prop_assert_eq!(monitor.counts().held, 0);
        let watching = monitor.watching();
        // What is there after each record, read anew.
        let logs: Vec<Log> = (1..=records.len()).map(|n| read(&records[..n])).collect();
        for (number, (text, judge)) in judges.iter().enumerate() {
            let of = |v: &&demi_monitor::Violation| v.invariant == format!("i{number}");
            let told: Vec<Told> = found.iter().filter(of).map(|v| (number, v.of.clone(), v.event.clone())).collect();
            let (expected, unjudged) = judged(number, judge, &records, &logs);
            prop_assert_eq!(told.len(), told.iter().collect::<BTreeSet<_>>().len(), "{} told twice", text);
            prop_assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), expected, "{}", text);
            // Which pairs of a history could not be judged depends on what was looked at before.
            if !matches!(judge, Judge::EverPair(_)) {
                let left: BTreeSet<String> = watching[number].unjudged.keys().cloned().collect();
                prop_assert_eq!(left, unjudged, "{} unjudged", text);
            }
        }
    }
}
