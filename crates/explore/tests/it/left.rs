//! What an exploration left in a file, when the file was changed since: refused, or harmless, and never a panic.

use demi_explore::{Bounds, Cost, ExploreOptions, Explored, Saved, Scene, SceneError, Spent, explore};
use demi_included::with_model;
use demi_replay::{Model, Simulator, Visitor};
use demi_schemas::{NetworkRule, Scenario};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::machine::{simulator, table};

const BOUNDS: Bounds = Bounds { cost: Cost::Delay, most: Spent { cost: 3, faults: 1, steps: 6 } };

/// Explores on from what is saved; stops after so many answers of `tell`.
fn run<M: Model>(
    sim: &Simulator<M>,
    scenario: &Scenario,
    from: Option<&Saved>,
    mut left: u64,
) -> Result<Explored, SceneError> {
    let mut sim = sim.clone();
    let (scene, first) = Scene::of(&mut sim, scenario, Some(1), 1).unwrap();
    let options = ExploreOptions { all: true, from, ..ExploreOptions::default() };
    explore(&mut sim, (&scene, first), BOUNDS, options, &mut |_| {
        left = left.saturating_sub(1);
        left > 0
    })
}

fn lines(saved: &Saved) -> Vec<String> {
    let mut text = Vec::new();
    saved.write(&mut text).unwrap();
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

fn read(lines: &[String]) -> Option<Saved> {
    Saved::read(&mut (lines.join("\n") + "\n").as_bytes(), &mut 1).ok()
}

/// One change: a line is left out, doubled, or one of its numbers is another one.
#[derive(Clone, Debug)]
struct Change(Index, u8, Index, u32);

fn change() -> impl Strategy<Value = Change> {
    let number = prop_oneof![0..8_u32, Just(u32::MAX), any::<u32>()];
    (any::<Index>(), 0..10_u8, any::<Index>(), number)
        .prop_map(|(line, what, at, new)| Change(line, what, at, new))
}

fn changed(lines: &mut Vec<String>, Change(line, what, at, new): &Change) {
    let at_line = line.index(lines.len());
    match what {
        0 => drop(lines.remove(at_line)),
        1 => lines.insert(at_line, lines[at_line].clone()),
        _ => {
            let line = lines[at_line].clone();
            let digits: Vec<usize> =
                line.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
            if digits.is_empty() {
                return;
            }
            let at = digits[at.index(digits.len())];
            lines[at_line] = format!("{}{new}{}", &line[..at], &line[at + 1..]);
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_is_refused_or_finds_only_what_violates(
        table in table(),
        stop in 2..60_u64,
        changes in proptest::collection::vec(change(), 1..4),
    ) {
        let (scenario, sim) = simulator(&table, NetworkRule::Fifo);
        let whole = run(&sim, &scenario, None, u64::MAX).unwrap();
        let part = run(&sim, &scenario, None, stop).unwrap();
        let mut lines = lines(&part.saved);
        changes.iter().for_each(|change| changed(&mut lines, change));
        let Some(saved) = read(&lines) else { return Ok(()) };
        // A file may say that something is known which is not, so less may be found, and never more.
        if let Ok(explored) = run(&sim, &scenario, Some(&saved), 10_000) {
            for finding in &explored.findings {
                prop_assert!(whole.findings.iter().any(|real| real.violations == finding.violations));
            }
        }
    }
}

struct Impossible<'a>(&'a Scenario);

impl Visitor for Impossible<'_> {
    type Output = ();

    fn visit<M: Model>(self, sim: Simulator<M>) {
        let part = run(&sim, self.0, None, 6).unwrap();
        let lines = lines(&part.saved);
        let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
        let with = |at: usize, new: String| {
            let mut lines = lines.clone();
            lines[at] = new;
            run(&sim, self.0, Some(&read(&lines).unwrap()), u64::MAX)
        };
        assert!(with(0, lines[0].clone()).is_ok());
        let refused = |at: usize, old: &str, new: &str, why: &str| {
            let changed = lines[at].replacen(old, new, 1);
            assert_ne!(changed, lines[at]);
            let told = with(at, changed).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        };
        refused(at("{\"way\""), "e0.", "e1.", "is not possible where it says so");
        let waits = at("{\"waits\":[[0,0,");
        refused(waits, "[[0,0,", "[[0,2,", "is beyond the bounds");
        refused(waits, "[[0,0,", "[[1,0,", "another configuration");
        refused(waits, ",false]", ",true]", "does not violate");
        refused(at("{\"before\""), "\"b\"", "\"c7\"", "other steps");
        let counted = with(at("{\"level\""), "{\"level\":[1,18446744073709551615,1,1,1]}".into());
        assert!(counted.unwrap_err().to_string().contains("counted more"));
    }
}

#[test]
fn what_is_not_possible_is_named() {
    let scenario = Scenario::parse("model = \"two-phase\"\nnetwork = \"fifo\"").unwrap();
    with_model(&scenario, Impossible(&scenario)).unwrap();
}

#[test]
fn lines_that_make_no_sense_are_refused() {
    let read = |text: &str| {
        let mut line = 7;
        Saved::read(&mut text.as_bytes(), &mut line).map_err(|e| e.to_string())
    };
    assert!(read("{\"before\":[\"s0\",\"b\"]}\n{\"part\":0.5}\n").is_ok());
    let wrong = [
        ("{\"before\":[\"s0\"]}\n", "it is cut off after line 7"),
        ("{\"before\":[\"x0\"]}\n", "line 7: 'x0' is no choice"),
        ("{\"before\":[\"\"]}\n", "'' is no choice"),
        ("{\"before\":[\"é\"]}\n", "'é' is no choice"),
        ("{\"way\":[1,[\"d0\"],1,0]}\n", "there is no place 1 to begin at"),
        ("{\"way\":[0,[\"d0\"],2,0]}\n", "2 of 1 choices are chosen"),
        ("{\"waits\":[[0,0,0],3,\"a\",1.0,false]}\n", "there is no place 3"),
        ("{\"met\":[\"zz\",1]}\n", "'zz'"),
        ("{\"met\":[\"1\"]}\n", "line 7"),
        ("nonsense\n", "line 7"),
    ];
    for (text, why) in wrong {
        let told = read(text).unwrap_err();
        assert!(told.contains(why), "{text}: {told}");
    }
}
