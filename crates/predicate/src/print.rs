//! Predicates as text, which reads back to the same predicate.

use std::fmt::{self, Display};

use crate::function::{CALLS, SUMS};
use crate::scope::Scope;
use crate::strength::{ADD, AND, ATOM, COMPARE, IS, MULTIPLY, NOT, OR};
use crate::term::{Aggregate, Column, Compare, Parsed, Term};
use crate::token::is_reserved;
use crate::value::Value;

impl Display for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |term: &Term| Printed(&self.scope, term, OR).to_string();
        self.scope.fmt(f)?;
        if let Some(filter) = &self.filter {
            write!(f, "WHERE {} ", text(filter))?;
        }
        let groups = self.groups.as_deref().unwrap_or_default();
        if !groups.is_empty() {
            write!(f, "GROUP BY {} ", groups.iter().map(text).collect::<Vec<_>>().join(", "))?;
        }
        let alone = self.scope == Scope::Actors && self.filter.is_none() && groups.is_empty();
        write!(f, "{}{}", if alone { "" } else { "HAVING " }, text(&self.holds))
    }
}

/// A term that stands where only what binds at least so strongly needs no brackets.
struct Printed<'a>(&'a Scope, &'a Term, u8);

impl Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Printed(scope, term, least) = *self;
        let strength = strength(term);
        if strength < least {
            return write!(f, "({})", Printed(scope, term, OR));
        }
        let inner = |term, least| Printed(scope, term, least);
        let list = |terms: &[Term]| {
            let each = terms.iter().map(|t| Printed(scope, t, OR).to_string());
            each.collect::<Vec<_>>().join(", ")
        };
        match term {
            Term::Literal(value) => value.fmt(f),
            Term::Column(column) => f.write_str(&column_name(scope, column)),
            Term::Compare(how, two) => {
                let sign = match how {
                    Compare::Equal => "=",
                    Compare::Unequal => "<>",
                    Compare::Less => "<",
                    Compare::AtMost => "<=",
                    Compare::More => ">",
                    Compare::AtLeast => ">=",
                };
                write!(f, "{} {sign} {}", inner(&two.0, ADD), inner(&two.1, ADD))
            }
            Term::Calculate(sign, two) => {
                write!(f, "{} {sign} {}", inner(&two.0, strength), inner(&two.1, strength + 1))
            }
            Term::And(two) => write!(f, "{} AND {}", inner(&two.0, AND), inner(&two.1, NOT)),
            Term::Or(two) => write!(f, "{} OR {}", inner(&two.0, OR), inner(&two.1, AND)),
            Term::Not(one) => match &**one {
                Term::IsNull(of) => write!(f, "{} IS NOT NULL", inner(of, ADD)),
                Term::OneOf(one, others) => write!(f, "{} NOT IN ({})", inner(one, ADD), list(others)),
                _ => write!(f, "NOT {}", inner(one, NOT)),
            },
            Term::IsNull(one) => write!(f, "{} IS NULL", inner(one, ADD)),
            Term::OneOf(one, others) => write!(f, "{} IN ({})", inner(one, ADD), list(others)),
            Term::Call(call, arguments) => {
                let name = CALLS.iter().find(|c| c.1 == *call).map_or("", |c| c.0);
                write!(f, "{name}({})", list(arguments))
            }
            Term::Aggregate(aggregate) => {
                let Aggregate { sum, distinct, of, filter } = &**aggregate;
                let name = SUMS.iter().find(|s| s.1 == *sum).map_or("", |s| s.0);
                let distinct = if *distinct { "DISTINCT " } else { "" };
                let of = of.as_ref().map_or_else(|| "*".to_owned(), |of| inner(of, OR).to_string());
                write!(f, "{name}({distinct}{of})")?;
                match filter {
                    Some(filter) => write!(f, " FILTER (WHERE {})", inner(filter, OR)),
                    None => Ok(()),
                }
            }
        }
    }
}

fn strength(term: &Term) -> u8 {
    match term {
        Term::Or(_) => OR,
        Term::And(_) => AND,
        Term::Not(one) if matches!(**one, Term::IsNull(_) | Term::OneOf(..)) => strength(one),
        Term::Not(_) => NOT,
        Term::IsNull(_) => IS,
        Term::Compare(..) | Term::OneOf(..) => COMPARE,
        Term::Calculate('+' | '-', _) => ADD,
        Term::Calculate(..) => MULTIPLY,
        // A sign in front of a number binds less than what stands around it.
        Term::Literal(Value::Int(n)) if *n < 0 => ADD,
        Term::Literal(Value::Float(n)) if *n < 0.0 => ADD,
        Term::Literal(_) | Term::Column(_) | Term::Call(..) | Term::Aggregate(_) => ATOM,
    }
}

/// How a column is written in a predicate of a scope.
pub(crate) fn column_name(scope: &Scope, column: &Column) -> String {
    let mut parts: Vec<String> = scope.name(column.side).map(str::to_owned).into_iter().collect();
    for name in &column.path {
        let declared = parts.is_empty() && column.path.len() > 1 && scope.side(name).is_some();
        parts.push(if declared || !is_bare(name) { quoted(name) } else { name.clone() });
    }
    parts.join(".")
}

/// A variable, and what is inside it, as a predicate has to write them: in quotes where the language needs it.
#[must_use]
pub fn name_of(path: &[&str]) -> String {
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    column_name(&Scope::Actors, &Column::new(0, path))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a name is read as one without quotes, wherever a value may stand.
fn is_bare(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Predicate;
    use crate::scope::Scope;
    use crate::term::{Aggregate, Call, Column, Compare, Parsed, Sum, Term};
    use crate::value::Value;

    fn literal() -> impl Strategy<Value = Value<'static>> {
        prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            (-9..=9_i64).prop_map(Value::Int),
            any::<i32>().prop_map(|n| Value::Int(i64::from(n))),
            (1..99_u8).prop_map(|n| Value::Float(f64::from(n) / 8.0 + 0.01)),
            "[a-z' \\\\é]{0,5}".prop_map(|text| Value::Text(text.into())),
            Just(Value::Null),
        ]
    }

    fn column(sides: usize) -> impl Strategy<Value = Term> {
        let name = prop_oneof![
            "[a-z]{1,3}",
            "[A-Z][a-z_0-9]{0,3}",
            Just("select".to_owned()),
            Just("interval".to_owned()),
            Just("prev".to_owned()),
            Just("a".to_owned()),
            Just("of it".to_owned()),
            Just("q\"".to_owned()),
            Just("actor".to_owned()),
            Just("ever".to_owned()),
            Just("type".to_owned()),
            Just("sender".to_owned()),
            Just("messages".to_owned()),
        ];
        (0..sides, proptest::collection::vec(name, 1..3))
            .prop_map(|(side, path)| Term::Column(Column::new(side, path)))
    }

    fn term(sides: usize) -> impl Strategy<Value = Term> {
        let leaf = prop_oneof![literal().prop_map(Term::Literal), column(sides)];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let two = || (inner.clone(), inner.clone()).prop_map(Box::new);
            let compare = prop_oneof![
                Just(Compare::Equal),
                Just(Compare::Unequal),
                Just(Compare::Less),
                Just(Compare::AtMost),
                Just(Compare::More),
                Just(Compare::AtLeast),
            ];
            let sign = prop_oneof![Just('+'), Just('-'), Just('*'), Just('/'), Just('%')];
            let one = prop_oneof![Just(Call::Length), Just(Call::Last)];
            let of_two =
                prop_oneof![Just(Call::Head), Just(Call::Item), Just(Call::StartsWith), Just(Call::Contains)];
            prop_oneof![
                (compare, two()).prop_map(|(how, two)| Term::Compare(how, two)),
                (sign, two()).prop_map(|(sign, two)| Term::Calculate(sign, two)),
                two().prop_map(Term::And),
                two().prop_map(Term::Or),
                inner.clone().prop_map(|t| Term::Not(Box::new(t))),
                inner.clone().prop_map(|t| Term::IsNull(Box::new(t))),
                (inner.clone(), proptest::collection::vec(inner.clone(), 1..3))
                    .prop_map(|(one, others)| Term::OneOf(Box::new(one), others)),
                (one, inner.clone()).prop_map(|(call, t)| Term::Call(call, vec![t])),
                (of_two, inner.clone(), inner.clone()).prop_map(|(call, a, b)| Term::Call(call, vec![a, b])),
            ]
        })
    }

    fn parsed() -> impl Strategy<Value = Parsed> {
        let scope = prop_oneof![
            Just((Scope::Actors, 2_usize)),
            Just((Scope::Ever, 1)),
            Just((Scope::Pairs("a".into(), "b".into()), 2)),
            Just((Scope::EverPairs("old".into(), "new".into()), 2)),
            Just((Scope::Neighbours("a".into(), "b".into()), 2)),
            "[a-z' ]{0,4}".prop_map(|kind| (Scope::Messages(Some(kind)), 4)),
            Just((Scope::Messages(None), 4)),
            Just((Scope::Chain, 5)),
        ];
        scope.prop_flat_map(|(scope, sides)| {
            let filter = proptest::option::of(term(sides));
            let sum = prop_oneof![
                Just(Sum::Count),
                Just(Sum::Total),
                Just(Sum::Most),
                Just(Sum::Every),
                Just(Sum::Prefixes)
            ];
            let aggregate = (sum, any::<bool>(), term(sides), proptest::option::of(term(sides))).prop_map(
                |(sum, distinct, of, filter)| {
                    Term::Aggregate(Box::new(Aggregate { sum, distinct, of: Some(of), filter }))
                },
            );
            let groups = proptest::option::of(proptest::collection::vec(column(sides), 0..2));
            (Just(scope), filter, groups, aggregate, 0..5_i64, term(sides)).prop_map(
                |(scope, filter, groups, aggregate, most, row)| {
                    let most = Term::Literal(Value::Int(most));
                    let holds = match &groups {
                        None => row,
                        Some(_) => Term::Compare(Compare::AtMost, Box::new((aggregate, most))),
                    };
                    Parsed { scope, filter, groups, holds }
                },
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// What is printed reads back to the same. What no text can mean, such as a pair of which one side is absent, is refused.
        #[test]
        fn what_is_printed_is_read(parsed in parsed()) {
            let text = parsed.to_string();
            match Predicate::parse(&text) {
                Ok(read) => {
                    prop_assert_eq!(&read.parsed, &parsed, "{}", text);
                    prop_assert_eq!(read.to_string(), text);
                }
                Err(error) => {
                    let error = error.to_string();
                    let meant = ["nothing is said of", "EVER PAIRS is about", "differs from row to row", "is of a moment"];
                    prop_assert!(meant.iter().any(|m| error.contains(m)), "{text}: {error}");
                }
            }
        }
    }
}
