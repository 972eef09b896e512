//! Step by step against anew each time.

use proptest::prelude::*;

use super::*;
use crate::gather::Gather;
use crate::row::Link;

const PREDICATES: [&str; 33] = [
    "x >= prev.x",
    "x >= prev.x OR y = 0",
    "x <= y + 1",
    "WHERE x > 0 HAVING y < 2",
    "count(*) FILTER (WHERE x = 2) <= 1",
    "WHERE x = 2 GROUP BY y HAVING count(*) <= 1",
    "max(x) - min(x) <= 1",
    "prefixes(l)",
    "PAIRS a, b HAVING a.x + b.x < 4",
    "PAIRS a, b WHERE a.x > b.x HAVING a.y >= b.y",
    "PAIRS a, b GROUP BY a.x HAVING count(DISTINCT b.y) <= 2",
    "EVER HAVING x + y < 4",
    "EVER HAVING count(*) <= 4",
    "EVER WHERE x = 2 HAVING count(*) >= 1",
    "EVER WHERE x = 2 GROUP BY y HAVING count(DISTINCT actor) <= 1",
    "EVER GROUP BY x HAVING count(DISTINCT y) <= 2",
    "EVER HAVING max(x) + max(y) < 4",
    "EVER PAIRS old, new WHERE new.x > old.x HAVING new.y >= old.y",
    "NEIGHBOURS a, b HAVING a.x + b.x < 4",
    "NEIGHBOURS a, b WHERE a.x > b.x HAVING a.y >= b.y",
    "NEIGHBOURS a, b GROUP BY a.x HAVING count(DISTINCT b.y) <= 1",
    "MESSAGES HAVING sender.x <= receiver.x",
    "MESSAGES 'up' HAVING sender.x <= receiver.x",
    "MESSAGES WHERE type <> 'up' HAVING receiver.y >= before.y",
    "MESSAGES HAVING message.n = sender.x OR receiver.actor = sender.actor",
    "MESSAGES 'up' GROUP BY message.n HAVING count(DISTINCT sender.actor) <= 1",
    "MESSAGES HAVING sum(message.n) <= 3",
    "MESSAGES GROUP BY type HAVING count(*) <= 2",
    "MESSAGES 'up' WHERE sender.x = 2 HAVING count(*) >= 1",
    "CHAIN HAVING s1.x <= s3.x",
    "CHAIN HAVING s1.x <= s4.x",
    "CHAIN WHERE s1.actor <> s3.actor HAVING s2.y = s3.y",
    "CHAIN GROUP BY s1.x HAVING count(DISTINCT s3.x) <= 1",
];

/// What happens to a checker.
#[derive(Clone, Debug)]
enum Step {
    Tell(String, u32, Arc<State>),
    Deliver(Delivered),
}

fn told(told: &(String, u32, Arc<State>)) -> ReportedState<'_> {
    ReportedState { actor: &told.0, state: &told.2 }
}

/// All rows of the scope after the last of these steps, and whether the predicate fails of them: nothing is kept from before.
fn naive(predicate: &Predicate, steps: &[Step]) -> bool {
    let mut states: Vec<(String, u32, Arc<State>)> = Vec::new();
    let mut delivered: Vec<&Delivered> = Vec::new();
    let mut last: BTreeMap<&str, (usize, Option<usize>)> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Deliver(message) => delivered.push(message),
            Step::Tell(actor, incarnation, state) => {
                let before = last.get(actor.as_str()).map(|l| l.0).filter(|l| states[*l].1 == *incarnation);
                last.insert(actor, (states.len(), before));
                states.push((actor.clone(), *incarnation, state.clone()));
            }
        }
    }
    let at = |i: usize| told(&states[i]);
    let fails = |rows: &[Row<'_>]| predicate.failure(rows).unwrap().is_some();
    let of_messages = |row: &dyn Fn(&'_ Delivered) -> Option<Row<'_>>| match &predicate.parsed.groups {
        // A row for itself is looked at when it comes.
        None => {
            matches!((steps.last(), delivered.last()), (Some(Step::Deliver(_)), Some(d)) if row(d).is_some_and(|r| fails(&[r])))
        }
        Some(_) => (1..=delivered.len()).any(|n| {
            let rows: Vec<Row<'_>> = delivered[..n].iter().filter_map(|d| row(d)).collect();
            fails(&rows)
        }),
    };
    match predicate.scope() {
        Scope::Actors => fails(&last.values().map(|(i, b)| Row::last(at(*i), b.map(at))).collect::<Vec<_>>()),
        Scope::Pairs(..) | Scope::Neighbours(..) => {
            let met = |a: &str, b: &str| {
                let both = |d: &&Delivered| {
                    let [to, from] = [&*d.links[0].0, &*d.links[1].0];
                    (from, to) == (a, b) || (from, to) == (b, a)
                };
                matches!(predicate.scope(), Scope::Pairs(..)) || delivered.iter().any(both)
            };
            let all: Vec<usize> = last.values().map(|l| l.0).collect();
            let pairs = all.iter().flat_map(|i| all.iter().filter(move |j| *j != i).map(move |j| (*i, *j)));
            let pairs = pairs.filter(|(i, j)| met(&states[*i].0, &states[*j].0));
            fails(&pairs.map(|(i, j)| Row::pair(at(i), at(j))).collect::<Vec<_>>())
        }
        Scope::Messages(kind) => {
            of_messages(&|d| Row::message(d).filter(|_| kind.as_deref().is_none_or(|kind| kind == &*d.kind)))
        }
        Scope::Chain => of_messages(&|d| Row::chain(d, predicate.chain_length())),
        Scope::Ever => (1..=states.len())
            .any(|n| fails(&states[..n].iter().map(|s| Row::one(told(s))).collect::<Vec<_>>())),
        Scope::EverPairs(..) => (0..states.len()).any(|j| (0..j).any(|i| fails(&[Row::pair(at(i), at(j))]))),
    }
}

/// A state, as numbers: variables, and a list.
type Numbers = (i64, i64, Vec<u8>);

fn numbers() -> impl Strategy<Value = Numbers> {
    (0..3_i64, 0..3_i64, proptest::collection::vec(0..2_u8, 0..3))
}

fn state((x, y, l): &Numbers) -> Arc<State> {
    Arc::new(State::parse(&format!(r#"{{"x":{x},"y":{y},"l":{l:?}}}"#)))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tell = (0..3_u8, 0..5_u8, numbers()).prop_map(|(actor, restarts, numbers)| {
        Step::Tell(format!("n{actor}"), u32::from(restarts == 0), state(&numbers))
    });
    let link = || {
        (0..4_u8, numbers())
            .prop_map(|(actor, numbers)| -> Link { (Arc::from(format!("n{actor}")), state(&numbers)) })
    };
    let deliver =
        (0..2_usize, 0..3_i64, proptest::option::of(numbers()), proptest::collection::vec(link(), 2..5));
    let deliver = deliver.prop_map(|(kind, n, before, links)| {
        Step::Deliver(Delivered {
            kind: Arc::from(["up", "it's"][kind]),
            message: Arc::new(State::new(serde_json::json!({ "n": n }))),
            before: before.as_ref().map(state),
            links,
        })
    });
    proptest::collection::vec(prop_oneof![tell, deliver], 1..14).prop_map(|mut steps| {
        // Incarnations count up.
        let mut now: BTreeMap<String, u32> = BTreeMap::new();
        for step in &mut steps {
            if let Step::Tell(actor, incarnation, _) = step {
                let known = now.entry(actor.clone()).or_default();
                *known += *incarnation;
                *incarnation = *known;
            }
        }
        steps
    })
}

/// The same steps, whose states share their values.
fn share(mut steps: Vec<Step>) -> Vec<Step> {
    let mut gather = Gather::default();
    let numbers: Vec<usize> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Tell(_, _, state) => Some(gather.add(&state.value().to_string())),
            Step::Deliver(_) => None,
        })
        .collect();
    let states = gather.finish();
    let mut numbers = numbers.into_iter();
    for step in &mut steps {
        if let Step::Tell(_, _, state) = step {
            *state = states[numbers.next().unwrap()].clone();
        }
    }
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// What is evaluated step by step is what is evaluated anew each time.
    #[test]
    fn step_by_step_is_anew(
        which in 0..PREDICATES.len(), shared in any::<bool>(), stops in any::<u16>(), steps in steps(),
    ) {
        let steps = if shared { share(steps) } else { steps };
        let predicate = Predicate::parse(PREDICATES[which]).unwrap();
        let (mut checker, mut verdicts) = (predicate.checker(), predicate.verdicts(1000));
        for (i, step) in steps.iter().enumerate() {
            // What was saved and read back is as it was.
            if (stops >> i) & 1 == 1 {
                let text = serde_json::to_string(&verdicts.save()).unwrap();
                verdicts = predicate.resume(&serde_json::from_str(&text).unwrap(), 1000);
            }
            match step {
                Step::Tell(actor, incarnation, state) => verdicts.tell(actor, *incarnation, state),
                Step::Deliver(delivered) => verdicts.deliver(delivered),
            }
            let found = match step {
                Step::Tell(actor, incarnation, state) => checker.tell(actor, *incarnation, state),
                Step::Deliver(delivered) => checker.deliver(delivered),
            };
            let found = found.unwrap().is_some();
            // Between messages nothing is said of them that stand for themselves.
            let silent = predicate.scope().is_of_messages()
                && predicate.parsed.groups.is_none()
                && matches!(step, Step::Tell(..));
            prop_assert!(silent || found == naive(&predicate, &steps[..=i]), "{} after {}", PREDICATES[which], i);
            // Each for itself, something fails where the predicate does.
            let one = verdicts.findings().any(|finding| finding.unjudged.is_none());
            let last = predicate.scope().is_of_messages() && predicate.parsed.groups.is_none();
            prop_assert!(last || one == found, "{} after {}: {:?}", PREDICATES[which], i, verdicts);
        }
    }

    /// Where only some states are looked at, these are judged as if all had been.
    #[test]
    fn a_state_that_was_passed_over_counts(which in 0..PREDICATES.len(), looks in any::<u16>(), steps in steps()) {
        let judged = |p: &Predicate| !p.scope().is_of_messages() && !p.reads_before();
        let predicates: Vec<Predicate> =
            PREDICATES.iter().map(|text| Predicate::parse(text).unwrap()).filter(judged).collect();
        let predicate = &predicates[which % predicates.len()];
        let mut checker = predicate.checker();
        for (i, step) in steps.iter().enumerate() {
            match step {
                Step::Tell(actor, incarnation, state) if (looks >> i) & 1 == 0 => {
                    checker.pass_over(actor, *incarnation, state).unwrap();
                }
                Step::Tell(actor, incarnation, state) => {
                    let found = checker.tell(actor, *incarnation, state).unwrap().is_some();
                    prop_assert_eq!(found, naive(predicate, &steps[..=i]), "{} after {}", predicate, i);
                }
                Step::Deliver(delivered) => {
                    checker.deliver(delivered).unwrap();
                }
            }
        }
    }
}

#[test]
fn the_words_of_messages_are_read() {
    for (text, why) in [
        ("MESSAGES HAVING x = 1", "sender.x or receiver.x or before.x or message.x"),
        ("CHAIN HAVING s6.x = s1.x", "s1.s6.x"),
        ("NEIGHBOURS a, b HAVING a.x = 1", "nothing is said of 'b'"),
        ("NEIGHBORS a, b HAVING a.x = b.x", "NEIGHBOURS"),
        ("MESSAGES 'up HAVING sender.x = 1", "no predicate"),
    ] {
        let error = Predicate::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    // They are words only with what follows them.
    for text in ["messages <= 3", "chain = 'x'", "neighbours > messages"] {
        assert_eq!(*Predicate::parse(text).unwrap().scope(), Scope::Actors, "{text}");
    }
    let predicate =
        Predicate::parse("messages 'it''s' having message.n = sender.type and type = 'it''s'").unwrap();
    assert_eq!(predicate.to_string(), "MESSAGES 'it''s' HAVING message.n = sender.type AND type = 'it''s'");
    assert_eq!(Vec::from_iter(predicate.variables()), ["type"]);
    assert_eq!(Vec::from_iter(predicate.message_variables()), ["n"]);
}
