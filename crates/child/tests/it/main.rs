//! Children that do what they should not, and one that does. Each is a few lines of Python; without `python3` the tests
//! say so and are skipped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod lines;
mod raft;
mod raised;
mod tried;
mod waits;

use std::process::Command;

use demi_child::WithChildren;
use demi_minimize::{Budget, Criteria, Objective, Options, Phases, StopFlag, minimize_with};
use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::registry::NoModels;
use demi_replay::{Model, Registry, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario, Schedule};

/// A model that answers as it should: two actors count what they get, and nobody may get three. A test changes a part.
const GOOD: &str = r#"
import json, os, sys, time
calls = 0
def answer(q):
    global calls
    calls += 1
    if q["do"] == "start":
        return {"state": 0, "effects": [{"set": {"timer": "tick", "message": {"type": "Tick"}}}]}
    if q["do"] == "deliver":
        EACH
        if q["message"]["type"] == "Tick":
            other = "b" if q["actor"] == "a" else "a"
            return {"state": q["state"], "effects": [
                {"send": {"to": other, "message": {"type": "Hit", "data": q["random"] % 1}}},
                {"set": {"timer": "tick", "message": {"type": "Tick"}}}]}
        return {"state": min(q["state"] + 1, 3)}
    return {"violations": [{"fingerprint": "Three", "affected": [a]} for a, n in q["seen"].items() if n >= 3]}
for line in sys.stdin:
    r = json.loads(line)
    if "hello" in r:
        out = {"id": r["id"], "hello": {"protocol": "demi-model/1", "actors": ["a", "b"]}}
    else:
        out = {"id": r["id"], "answers": [answer(q) for q in r["requests"]]}
    OUT
    print(json.dumps(out), flush=True)
"#;

fn scenario(each: &str, out: &str, children: u32) -> Option<Scenario> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return None;
    }
    let program = GOOD
        .replace("EACH", if each.is_empty() { "pass" } else { each })
        .replace("OUT", if out.is_empty() { "pass" } else { out });
    let text = format!(
        "model = {{ command = ['python3', '-c', {}], children = {children}, timeout_seconds = 2 }}\nnetwork = 'fifo'",
        serde_json::Value::from(program)
    );
    Some(Scenario::parse(&text).unwrap())
}

struct Search<'a>(&'a Scenario);

impl Visitor for Search<'_> {
    type Output = Option<Schedule>;

    fn visit<M: Model>(self, mut sim: Simulator<M>) -> Self::Output {
        let options = FuzzOptions { externals: Some(0), ..FuzzOptions::new(1, 20, 60) };
        fuzz(&mut sim, self.0, &options, &mut |_| true).unwrap().map(|found| found.schedule)
    }
}

struct Minimize<'a>(&'a Schedule, usize);

impl Visitor for Minimize<'_> {
    type Output = String;

    fn visit<M: Model>(self, sim: Simulator<M>) -> Self::Output {
        let options = Options {
            rule: NetworkRule::Fifo,
            budget: Budget::Replays(2_000),
            jobs: self.1,
            phases: Phases::All,
            objective: Objective::Steps,
            stop: StopFlag::default(),
        };
        let done = minimize_with(&sim, self.0, None, &options, &Criteria::default(), &|_| {}).unwrap();
        assert!(done.summary.one_minimal);
        done.schedule.to_text()
    }
}

/// What ended the work with such a child, if anything did.
fn fault(each: &str, out: &str) -> Option<String> {
    let scenario = scenario(each, out, 1)?;
    let models = WithChildren::new(NoModels);
    match models.visit(&scenario, Search(&scenario)) {
        Ok(found) => {
            assert_eq!(found, None, "no violation is found after a problem");
            Some(models.fault().unwrap_or_else(|| "nothing".into()))
        }
        Err(e) => Some(e.to_string()),
    }
}

fn says(each: &str, out: &str, words: &[&str]) {
    let Some(text) = fault(each, out) else { return };
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
}

#[test]
fn a_child_is_fuzzed_and_minimized_and_their_number_changes_nothing() {
    let mut results = Vec::new();
    for children in [1, 3] {
        let Some(scenario) = scenario("", "", children) else { return };
        let models = WithChildren::new(NoModels);
        let found = models.visit(&scenario, Search(&scenario)).unwrap().expect("a violation");
        let asked = models.requests();
        results.push(models.visit(&scenario, Minimize(&found, children as usize)).unwrap());
        assert_eq!(models.fault(), None);
        // States are few, so that a search of thousands of replays asks little.
        assert!(models.requests() < asked + 300, "{} requests", models.requests());
    }
    assert_eq!(results[0], results[1]);
    // Two starts at most, three ticks and three hits.
    let steps = results[0].lines().count() - 1;
    assert!((7..=8).contains(&steps), "{steps} steps:\n{}", results[0]);
}

#[test]
fn a_child_that_ends_is_named_with_the_request_and_its_last_words() {
    let each = "if calls > 6: sys.stderr.write('out of luck'); sys.stderr.flush(); os._exit(7)";
    says(each, "", &["ended before it answered", "exit status: 7", "request: {\"id\":", "out of luck"]);
}

#[test]
fn a_child_that_hangs_is_late() {
    says("if calls > 6: time.sleep(60)", "", &["did not answer within 2 s", "\"do\":\"deliver\""]);
}

#[test]
fn garbage_wrong_numbers_and_other_versions_are_told() {
    says("", "print('starting up')", &["no JSON: starting up", "\"hello\""]);
    says("", "out['id'] += 5", &["answered request 6, but was asked request 1"]);
    says("", "out.get('hello', {})['protocol'] = 'demi-model/9'", &["'demi-model/9'", "'demi-model/1'"]);
    says("", "out.pop('answers', 0)", &["one answer for each request"]);
}

#[test]
fn answers_of_another_form_are_told() {
    says("return {'effects': []}", "", &["a pure model answers with 'state'", "\"do\":\"deliver\""]);
    says("return {'state': 1, 'effects': [{'explode': 1}]}", "", &["unknown variant `explode`"]);
    let stranger = "return {'state': 1, 'effects': [{'send': {'to': 'c', 'message': {'type': 'X'}}}]}";
    says(stranger, "", &["'c' is none of the actors"]);
    says("", "out = {'id': r['id'], 'error': 'no idea'} if 'answers' in out else out", &["reports: no idea"]);
}

#[test]
fn a_child_that_answers_differently_is_not_deterministic() {
    says("return {'state': calls}", "", &["not deterministic", "\"do\":\"deliver\""]);
}

#[test]
fn stray_answers_are_tolerated_where_that_is_asked_for() {
    // Every fifth answer to a delivery is a wrong one, so the other two of three agree.
    let Some(scenario) = scenario("if calls % 5 == 0: return {'state': 1000 + calls}", "", 1) else { return };
    let models = WithChildren::new(NoModels);
    models.tolerate();
    models.visit(&scenario, Search(&scenario)).unwrap();
    assert_eq!(models.fault(), None);
    let (strays, twice) = models.strays();
    assert!(strays > 0 && twice > strays, "{strays} of {twice}");
}

#[test]
fn a_line_without_an_end_is_cut_off() {
    let endless = "if 'answers' in out:\n        for _ in range(1024): sys.stdout.write('x' * (1 << 20))";
    says("", endless, &["a line of more than 67108864 bytes"]);
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let text = "model = { command = ['/nowhere/model'] }\nnetwork = 'fifo'";
    let scenario = Scenario::parse(text).unwrap();
    let error = WithChildren::new(NoModels).visit(&scenario, Search(&scenario)).unwrap_err().to_string();
    assert!(error.contains("it cannot be reached: /nowhere/model"), "{error}");
}
