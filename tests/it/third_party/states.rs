//! States that logs carry, and what is known of them.

use serde_json::Value;

use super::order::Order;
use super::truth::Truth;

/// States by event: the host with its position, and the variables.
pub fn of(order: &Order) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (host, events) in &order.hosts {
        for (n, &e) in events.iter().enumerate() {
            if let Some(state) = &order.state[e] {
                out.push((format!("{host}#{}", n + 1), serde_json::from_str(state).unwrap()));
            }
        }
    }
    out
}

/// Dumps of variables by program point, and what is known to hold of them.
pub fn check_dumps(truth: &Truth, states: &[(String, Value)], points: &serde_json::Map<String, Value>) {
    for (point, known) in points {
        let at: Vec<&Value> = states.iter().filter_map(|(_, s)| s.get(point)).collect();
        assert_eq!(known["dumps"], at.len(), "{point}");
        let mut names: Vec<&String> = at[0].as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(known["variables"], serde_json::to_value(names).unwrap(), "{point}");
    }
    let invariants = truth.value["state"]["local_invariants"].as_object().unwrap();
    for (point, known) in invariants {
        for (text, known) in known.as_object().unwrap() {
            let holds = |state: &Value| {
                let n = |name: &str| state[name].as_i64().unwrap();
                match text.as_str() {
                    "sum == term1 + term2" => n("sum") == n("term1") + n("term2"),
                    "sum >= term1" => n("sum") >= n("term1"),
                    "sum >= term2" => n("sum") >= n("term2"),
                    "sum > term1" => n("sum") > n("term1"),
                    "sum > term2" => n("sum") > n("term2"),
                    "term1 < 100" => n("term1") < 100,
                    "sum <= 198" => n("sum") <= 198,
                    "sum == 0" => n("sum") == 0,
                    other => panic!("unknown invariant {other}"),
                }
            };
            let at: Vec<(&String, &Value)> =
                states.iter().filter_map(|(e, s)| s.get(point).map(|s| (e, s))).collect();
            let failures: Vec<&String> = at.iter().filter(|(_, s)| !holds(s)).map(|(e, _)| *e).collect();
            assert_eq!(known["fails"], failures.len(), "{point}: {text}");
            for first in known["first_failures"].as_array().into_iter().flatten() {
                assert!(failures.iter().any(|f| first == f.as_str()), "{point}: {text}: {first}");
            }
        }
    }
}
