//! What is inferred from made-up executions.

use std::sync::Arc;

use demi_predicate::{Predicate, State};
use proptest::prelude::*;

use crate::{Execution, Inferred, Options, Record, infer};

/// An execution of one incarnation.
pub(crate) fn execution(told: &[(&str, &str)]) -> Execution {
    let record = |(actor, state): &(&str, &str)| Record {
        actor: Arc::from(*actor),
        incarnation: 0,
        state: Arc::new(State::parse(state)),
    };
    Execution { name: "e".into(), records: told.iter().map(record).collect(), ..Execution::default() }
}

fn says(inferred: &Inferred, text: &str) -> bool {
    inferred.invariants.iter().any(|i| i.holds == text)
}

/// Three members take turns as the leader of a new term each; a leader adds to the log, and the others follow.
fn rotating(turns: u64, seed: u64, two_leaders: bool) -> Execution {
    let mut told: Vec<(String, String)> = Vec::new();
    let mut logs = vec![Vec::<u64>::new(); 3];
    let mut terms = [0; 3];
    let state = |role: &str, term: u64, log: &[u64]| {
        format!(r#"{{"role":"{role}","term":{term},"log":{log:?},"kept":{},"port":80}}"#, log.len() / 2 * 2)
    };
    for actor in 0..3 {
        told.push((format!("n-{actor}"), state("Follower", 0, &[])));
    }
    for turn in 1..=turns {
        let leader = ((turn * 7 + seed) % 3) as usize;
        let longest = logs.iter().max_by_key(|l| l.len()).cloned().unwrap_or_default();
        logs[leader] = longest;
        logs[leader].push(turn * 10 + seed);
        terms[leader] = turn;
        told.push((format!("n-{leader}"), state("Leader", turn, &logs[leader])));
        if two_leaders && turn == turns {
            let other = (leader + 1) % 3;
            told.push((format!("n-{other}"), state("Leader", turn, &logs[other])));
        }
        for other in (0..3).filter(|o| *o != leader && !(turn + *o as u64).is_multiple_of(4)) {
            logs[other] = logs[leader].clone();
            terms[other] = turn;
            told.push((format!("n-{other}"), state("Follower", turn, &logs[other])));
        }
        told.push((format!("n-{leader}"), state("Follower", turn, &logs[leader])));
    }
    execution(&told.iter().map(|(a, s)| (a.as_str(), s.as_str())).collect::<Vec<_>>())
}

#[test]
fn a_leader_a_term_is_found_and_flagged() {
    let healthy: Vec<Execution> = (0..6).map(|seed| rotating(12, seed, false)).collect();
    let inferred = infer(&healthy, &Options::default(), &mut |_, _| {});
    let owner = "EVER WHERE role = 'Leader' GROUP BY term HAVING count(DISTINCT actor) <= 1";
    let texts: Vec<&str> = inferred.invariants.iter().map(|i| i.holds.as_str()).collect();
    for expected in [
        owner,
        "term >= prev.term",
        "prefixes(log)",
        "starts_with(log, prev.log)",
        "kept <= term",
        "term = length(log)",
    ] {
        assert!(says(&inferred, expected), "{expected} in {texts:#?}");
    }
    assert_eq!(inferred.classes[0].class, "n-*");
    assert_eq!(inferred.classes[0].constants, [("port".to_owned(), "80".to_owned())]);
    let predicate = Predicate::parse(owner).unwrap();
    let bad = rotating(12, 9, true);
    assert!(!bad.fits(&predicate) && rotating(12, 9, false).fits(&predicate));
}

#[test]
fn what_held_out_executions_contradict_is_refuted() {
    let rise = |most: u64| {
        let told: Vec<(String, String)> = (0..most)
            .map(|i| (format!("a{}", i % 2), format!(r#"{{"x":{i},"y":{}}}"#, i.min(60) * 2)))
            .collect();
        execution(&told.iter().map(|(a, s)| (a.as_str(), s.as_str())).collect::<Vec<_>>())
    };
    let inferred = infer(
        &[rise(40), rise(50), rise(90)],
        &Options { holdout: 0.4, ..Options::default() },
        &mut |_, _| {},
    );
    assert!(inferred.refuted.iter().any(|i| i.holds == "y = 2 * x"), "{:#?}", inferred.refuted);
    assert!(!says(&inferred, "y = 2 * x") && says(&inferred, "x >= prev.x"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever is reported holds of every execution that was given, judged by the predicate's own text.
    #[test]
    fn what_is_reported_holds(
        told in proptest::collection::vec(
            proptest::collection::vec((0..3_u8, 0..4_i64, 0..4_i64, 0..3_usize, proptest::collection::vec(0..3_u8, 0..3)), 3..24),
            1..4,
        ),
    ) {
        let executions: Vec<Execution> = told
            .iter()
            .map(|records| {
                let text = |(_, x, y, mode, l): &(u8, i64, i64, usize, Vec<u8>)| {
                    let mode = ["up", "down", "it's"][*mode];
                    format!(r#"{{"x":{x},"y":{y},"mode":"{mode}","l":{l:?},"in":{{"select":{}}}}}"#, x + y)
                };
                let told: Vec<(String, String)> = records.iter().map(|r| (format!("n{}", r.0), text(r))).collect();
                execution(&told.iter().map(|(a, s)| (a.as_str(), s.as_str())).collect::<Vec<_>>())
            })
            .collect();
        let inferred = infer(&executions, &Options { min_bits: 0.1, holdout: 0.0, ..Options::default() }, &mut |_, _| {});
        for invariant in &inferred.invariants {
            let predicate = Predicate::parse(&invariant.holds).unwrap();
            for execution in &executions {
                let class = glob::Pattern::new(&invariant.class).unwrap();
                prop_assert!(execution.among(&class).fits(&predicate), "{}", invariant.holds);
            }
        }
        // Relations within a row are judged by code of their own: each must agree with its text.
        prop_assert_eq!(super::disagreements(&executions), Vec::<String>::new());
    }
}

/// Two workers take a lock in turns; the order in which their states were told never shows both, but all states of one can be there with
/// all of the other, except that both never hold it.
fn locked(stays: usize, both_hold: bool) -> Execution {
    let state = |holds: bool| format!(r#"{{"holds":{holds}}}"#);
    let mut told: Vec<(&str, String)> = vec![("w-1", state(false)), ("w-2", state(false))];
    for turn in 0..stays {
        let worker = if turn % 2 == 0 { "w-1" } else { "w-2" };
        told.extend([(worker, state(true)), (worker, state(false))]);
    }
    let told: Vec<(&str, &str)> = told.iter().map(|(actor, state)| (*actor, state.as_str())).collect();
    let mut execution = execution(&told);
    for (i, one) in told.iter().enumerate() {
        for (j, other) in told.iter().enumerate().filter(|(_, other)| one.0 < other.0) {
            if both_hold || !(one.1.contains("true") && other.1.contains("true")) {
                execution.pairs.push([i, j]);
            }
        }
    }
    execution
}

#[test]
fn mutual_exclusion_is_found_in_pairs() {
    let exclusion = "WHERE holds = true HAVING count(*) <= 1";
    let inferred = |all: &[Execution]| infer(all, &Options::default(), &mut |_, _| {});
    let healthy: Vec<Execution> = (8..14).map(|stays| locked(stays, false)).collect();
    let found = inferred(&healthy);
    assert!(says(&found, exclusion), "{:?}", found.invariants);
    // Each time somebody takes the lock counts, in the executions that are not held out.
    let episodes = found.invariants.iter().find(|i| i.holds == exclusion).map(|i| i.episodes);
    assert_eq!(episodes, Some((8..13).sum()));
    let one_order: Vec<Execution> =
        healthy.iter().cloned().map(|e| Execution { pairs: Vec::new(), ..e }).collect();
    assert!(!says(&inferred(&one_order), exclusion), "one order passes few different moments");
    let mut broken = healthy;
    broken[0] = locked(8, true);
    assert!(!says(&inferred(&broken), exclusion), "two can hold it at once, though no order told so");
}

/// A number that is kept in a byte: all rows but those beyond say that both are equal.
#[test]
fn of_a_remainder_the_rows_are_shown_that_break_the_equality() {
    for (divisor, beyond) in [(256, vec![300, 511]), (65_536, vec![65_536, 70_000]), (1_000, vec![1_234])] {
        let numbers: Vec<i64> = (0..90).map(|n| n * 7 % 251).chain(beyond.clone()).chain(3..20).collect();
        let told: Vec<(String, String)> = numbers
            .iter()
            .enumerate()
            .map(|(i, n)| (format!("a{}", i % 2), format!(r#"{{"sent":{n},"kept":{}}}"#, n % divisor)))
            .collect();
        let told: Vec<(&str, &str)> = told.iter().map(|(a, s)| (a.as_str(), s.as_str())).collect();
        let inferred = infer(&[execution(&told)], &Options::default(), &mut |_, _| {});
        let text = format!("kept = sent % {divisor}");
        let found = inferred.invariants.iter().find(|i| i.holds == text).expect("it is found");
        assert_eq!(found.without_remainder(), Some("kept = sent"));
        assert!(found.shadowed_by.is_empty(), "{:?}", found.shadowed_by);
        let broken: Vec<i64> = found
            .nearest
            .iter()
            .filter(|close| close.near.slack == 0.0)
            .map(|close| close.near.values.iter().find(|v| v.0 == "sent").unwrap().1.parse().unwrap())
            .collect();
        assert_eq!(broken, beyond);
        // What is no remainder is no equality that something breaks.
        assert!(
            inferred
                .invariants
                .iter()
                .filter(|i| !i.holds.contains(" % "))
                .all(|i| i.without_remainder().is_none())
        );
    }
}
