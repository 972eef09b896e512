//! Predicates over the states of all actors, in the words of SQL.
//!
//! A predicate is what would stand after `HAVING` over a table with one row for each actor that has told its state, whose columns are
//! the variables of the state, and `actor`. Without an aggregate it must hold for each row; with one, for the table; after
//! `WHERE` and `GROUP BY`, for each group of the rows left. As with a CHECK constraint, unknown is no failure. A [`Scope`] in front
//! makes the rows something else: pairs of actors, messages or causal chains of them, or all states told so far.

mod checker;
mod class;
mod error;
mod eval;
mod function;
mod gather;
mod instance;
mod list;
mod near;
mod parse;
mod print;
mod row;
mod scope;
mod state;
mod strength;
mod term;
mod token;
mod value;
mod verdicts;

use std::collections::BTreeSet;
use std::fmt;

pub use self::checker::Checker;
pub use self::class::{Class, ClassError};
pub use self::error::ParseError;
pub use self::eval::Failing;
pub use self::gather::Gather;
pub use self::instance::{meant, stands_for};
pub use self::near::NearMiss;
pub use self::print::name_of;
pub use self::row::{Delivered, Link, ReportedState, Row};
use self::scope::Visibility;
pub use self::scope::{LONGEST, Scope};
use self::scope::{SHORTEST, TELLS, TYPE};
pub use self::state::{Shape, State, Values};
use self::term::{Parsed, Term};
use self::value::Value;
pub use self::verdicts::{Finding, SavedVerdicts, Verdicts};

/// A condition on the states of all actors.
///
/// It prints as a text that reads back to an equal predicate.
#[derive(Clone, Debug)]
pub struct Predicate {
    text: String,
    parsed: Parsed,
}

/// Two predicates are equal when they say the same in the same way, however they were written.
impl PartialEq for Predicate {
    fn eq(&self, other: &Predicate) -> bool {
        self.parsed == other.parsed
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parsed.fmt(f)
    }
}

impl Predicate {
    /// Reads a predicate.
    ///
    /// # Errors
    /// When the text is no predicate; the message says what is not understood, and points to it where that is one place.
    pub fn parse(text: &str) -> Result<Predicate, ParseError> {
        Ok(Predicate { text: text.trim().to_owned(), parsed: parse::parse(text)? })
    }

    /// The text as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What its rows are.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.parsed.scope
    }

    /// Whether it reads the state before an actor's last.
    #[must_use]
    pub fn reads_before(&self) -> bool {
        self.parsed.scope == Scope::Actors && self.parsed.columns().iter().any(|c| c.side == 1)
    }

    /// What it can see of an actor's states.
    pub(crate) fn visibility(&self) -> Visibility {
        match self.scope() {
            Scope::EverPairs(..) => Visibility::Each,
            scope if scope.is_history() && self.parsed.counts_rows() => Visibility::Each,
            _ if self.reads_before() => Visibility::Step,
            _ => Visibility::Now,
        }
    }

    /// The variables it speaks of, without what is inside them; not what messages tell of themselves.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<&str> {
        let of_messages = matches!(self.scope(), Scope::Messages(_));
        self.parsed.variables(&|c| !of_messages || !matches!(c.side, TELLS | TYPE))
    }

    /// What it reads of what messages tell of themselves.
    #[must_use]
    pub fn message_variables(&self) -> BTreeSet<&str> {
        match self.scope() {
            Scope::Messages(_) => self.parsed.variables(&|c| c.side == TELLS),
            _ => BTreeSet::new(),
        }
    }

    /// Whether rows count together, in groups or all of them, and not each for itself.
    #[must_use]
    pub fn is_of_groups(&self) -> bool {
        self.parsed.groups.is_some()
    }

    /// Whether it speaks of the states of several actors at a moment, so that pairs of states tell where it fails.
    #[must_use]
    pub fn is_of_cuts(&self) -> bool {
        match self.scope() {
            Scope::Actors => self.is_of_groups(),
            Scope::Pairs(..) => !self.is_of_groups(),
            _ => false,
        }
    }

    /// How many states a chain has that it is about: up to the last that it names, and at least three.
    #[must_use]
    pub fn chain_length(&self) -> usize {
        let last = self.parsed.columns().iter().map(|c| c.side + 1).max().unwrap_or(0);
        last.clamp(SHORTEST, LONGEST)
    }

    /// The group of these rows, which are those of its scope, that it does not hold of, or nothing where it holds.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn failure(&self, rows: &[Row<'_>]) -> Result<Option<String>, String> {
        Ok(eval::failing(&self.parsed, rows, true)?.pop().map(|failing| failing.of))
    }

    /// All groups of these rows, which are those of its scope, that it does not hold of.
    ///
    /// # Errors
    /// When values cannot be compared or counted with.
    pub fn failing(&self, rows: &[Row<'_>]) -> Result<Vec<Failing>, String> {
        eval::failing(&self.parsed, rows, false)
    }

    /// Whether it is about actors as such: it reads no actor's name and has none of these as a literal, so that what it says stays when
    /// actors take each other's places.
    #[must_use]
    pub fn names_nobody(&self, is_actor: &dyn Fn(&str) -> bool) -> bool {
        let mut nobody = true;
        self.parsed.visit(&mut |term| match term {
            Term::Column(column) => nobody &= !column.is_actor(),
            Term::Literal(Value::Text(text)) => nobody &= !is_actor(text),
            _ => {}
        });
        nobody
    }

    /// The group that a row of a history belongs to; nothing where `WHERE` leaves it out.
    fn key(&self, row: Row<'_>) -> Result<Option<String>, String> {
        match self.scope() {
            // Which pairs a state is in depends on the other.
            Scope::EverPairs(..) => Ok(Some(String::new())),
            _ => eval::key(&self.parsed, row),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(predicate: &str, states: &[(&str, &str)]) -> Result<Option<String>, String> {
        let predicate = Predicate::parse(predicate).map_err(|e| e.to_string())?;
        let states: Vec<(&str, State)> = states.iter().map(|(a, text)| (*a, State::parse(text))).collect();
        let rows: Vec<Row<'_>> =
            states.iter().map(|(actor, state)| Row::one(ReportedState { actor, state })).collect();
        predicate.failure(&rows)
    }

    const CLUSTER: [(&str, &str); 3] = [
        ("a", r#"{"role":"Leader","term":3,"log":[1,2],"voted":{"for":"a"}}"#),
        ("b", r#"{"role":"Leader","term":2,"log":[1],"voted":{"for":null}}"#),
        ("c", r#"{"role":"Follower","term":3,"log":[],"balance":2.5}"#),
    ];

    #[test]
    fn what_holds_and_what_does_not() {
        for (predicate, failure) in [
            ("count(*) FILTER (WHERE role = 'Leader') <= 1", Some("")),
            ("count(*) FILTER (WHERE role = 'Leader') <= 2", None),
            ("WHERE role = 'Leader' GROUP BY term HAVING count(*) <= 1", None),
            ("where role is not null group by role having count(*) < 2", Some("role = 'Leader'")),
            ("term >= 2", None),
            ("term > 2", Some("actor = 'b'")),
            ("term + 1 = 4 OR actor = 'b'", None),
            ("length(log) <= 1", Some("actor = 'a'")),
            ("max(term) - min(term) <= 1 AND sum(term) = 8 AND avg(term) < 2.7", None),
            ("count(DISTINCT term) = 2", None),
            ("voted.for IS NULL OR voted.for = actor", None),
            ("voted.for IS NOT NULL", Some("actor = 'b'")),
            // Unknown is no failure: only c has a balance.
            ("balance > 2", None),
            ("balance > 3", Some("actor = 'c'")),
            ("NOT (role IN ('Leader', 'Candidate')) OR term BETWEEN 2 AND 3", None),
            ("every(term > 1) AND NOT some(term > 3)", None),
            ("sum(balance) = 2.5", None),
            ("-term < 0 AND term * 2 <> 5 AND term / 2 >= 1 AND term % 2 < 2", None),
            ("count(*) = 3", None),
            ("count(role) = 4", Some("")),
        ] {
            assert_eq!(check(predicate, &CLUSTER).unwrap().as_deref(), failure, "{predicate}");
        }
        assert_eq!(check("count(*) = 0", &[]).unwrap(), None);
        assert_eq!(check("GROUP BY role HAVING count(*) = 0", &[]).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (predicate, why) in [
            ("", "nothing"),
            ("term >", "no predicate"),
            ("WHERE term > 1", "HAVING"),
            ("term > 1 LIMIT 3", "LIMIT"),
            ("term > 1 UNION SELECT 1", "SELECT"),
            ("median(term) > 1", "median"),
            ("count(count(*)) > 1", "inside"),
            ("sum(count(term)) > 1", "inside"),
            ("sum(*) > 1", "sum"),
            ("WHERE count(*) > 1 HAVING count(*) > 1", "WHERE"),
            ("term LIKE 'x'", "LIKE"),
            ("count(*) > 1 AND term > 1", "GROUP BY"),
        ] {
            let error = Predicate::parse(predicate).unwrap_err().to_string();
            assert!(error.contains(why), "{predicate}: {error}");
        }
        assert!(check("role > 3", &CLUSTER).unwrap_err().contains("'Leader'"));
        assert!(check("role", &CLUSTER).unwrap_err().contains("true or false"));
        assert!(check("sum(role) > 3", &CLUSTER).unwrap_err().contains("no number"));
    }

    #[test]
    fn the_variables_are_known() {
        let predicate =
            Predicate::parse("WHERE a > 1 GROUP BY b.c HAVING sum(d) FILTER (WHERE e) > length(b.f)");
        // `b.f` is of the group, and so must be one of its expressions.
        assert!(predicate.is_err());
        let predicate =
            Predicate::parse("WHERE a > 1 GROUP BY b.c HAVING sum(d) FILTER (WHERE e = actor) > b.c");
        let predicate = predicate.unwrap();
        assert_eq!(predicate.variables().into_iter().collect::<Vec<_>>(), ["a", "b", "d", "e"]);
    }

    proptest! {
        /// Counting by group, against a plain loop.
        #[test]
        fn groups_are_groups(rows in proptest::collection::vec((0..3_i64, 0..4_i64, 0..5_i64), 0..8), most in 0..9_i64) {
            let states: Vec<(String, State)> = rows
                .iter()
                .enumerate()
                .map(|(i, (x, y, z))| (format!("n{i}"), State::parse(&format!(r#"{{"x":{x},"y":{y},"z":{z}}}"#))))
                .collect();
            let table: Vec<Row<'_>> = states.iter().map(|(actor, state)| Row::one(ReportedState { actor, state })).collect();
            let predicate = Predicate::parse(&format!("WHERE z > 1 GROUP BY x HAVING sum(y) <= {most}")).unwrap();
            let fails = (0..3).any(|x| {
                let sum: i64 = rows.iter().filter(|r| r.0 == x && r.2 > 1).map(|r| r.1).sum();
                sum > most
            });
            prop_assert_eq!(predicate.failure(&table).unwrap().is_some(), fails);
        }

        /// No text makes the parser or the evaluation panic.
        #[test]
        fn any_text_is_read_or_refused(text in "[ a-z0-9'()*<>=+/%,.-]{0,40}") {
            if let Ok(predicate) = Predicate::parse(&text) {
                let state = State::parse(r#"{"a":1,"b":"x","c":[true,null],"d":{"e":9223372036854775807}}"#);
                let _ = predicate.failure(&[Row::one(ReportedState { actor: "n", state: &state })]);
            }
        }
    }
}
