//! From the text of a predicate to terms.

use std::collections::BTreeSet;

use sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, SetExpr, Statement, UnaryOperator, Value as Literal,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use super::value::Value;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// What an aggregate makes of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Count,
    Total,
    Mean,
    Least,
    Most,
    Every,
    Some,
}

/// A term.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Literal(Value),
    /// A variable, and what is inside it.
    Variable(Vec<String>),
    Compare(Compare, Box<(Term, Term)>),
    Calculate(char, Box<(Term, Term)>),
    And(Box<(Term, Term)>),
    Or(Box<(Term, Term)>),
    Not(Box<Term>),
    IsNull(Box<Term>),
    OneOf(Box<Term>, Vec<Term>),
    Length(Box<Term>),
    Aggregate(Box<Aggregate>),
}

/// An aggregate: of what, and of which rows. Without a value it is of the rows themselves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aggregate {
    pub(super) sum: Sum,
    pub(super) distinct: bool,
    pub(super) of: Option<Term>,
    pub(super) filter: Option<Term>,
}

/// A predicate taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parsed {
    /// Which rows count.
    pub(super) filter: Option<Term>,
    /// What rows of one group have in common; absent where each row is for itself.
    pub(super) groups: Option<Vec<Term>>,
    /// What is to hold.
    pub(super) holds: Term,
}

impl Parsed {
    /// The names of variables.
    pub(super) fn variables(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        let terms = self.filter.iter().chain(self.groups.iter().flatten()).chain([&self.holds]);
        terms.for_each(|t| {
            t.visit(&mut |term| {
                if let Term::Variable(path) = term
                    && path[0] != ACTOR
                {
                    names.insert(path[0].as_str());
                }
            })
        });
        names
    }
}

/// The column with the actor's name.
pub(super) const ACTOR: &str = "actor";

impl Term {
    /// Calls `f` with the term and all in it.
    fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Term)) {
        f(self);
        match self {
            Term::Literal(_) | Term::Variable(_) => {}
            Term::Compare(_, two) | Term::Calculate(_, two) | Term::And(two) | Term::Or(two) => {
                two.0.visit(f);
                two.1.visit(f);
            }
            Term::Not(one) | Term::IsNull(one) | Term::Length(one) => one.visit(f),
            Term::OneOf(one, others) => {
                one.visit(f);
                others.iter().for_each(|t| t.visit(f));
            }
            Term::Aggregate(a) => a.of.iter().chain(&a.filter).for_each(|t| t.visit(f)),
        }
    }

    fn has_aggregate(&self) -> bool {
        let mut found = false;
        self.visit(&mut |t| found |= matches!(t, Term::Aggregate(_)));
        found
    }

    /// A variable outside all aggregates that is none of `groups`.
    fn loose<'a>(&'a self, groups: &[Term]) -> Option<&'a Term> {
        if groups.contains(self) {
            return None;
        }
        match self {
            Term::Variable(_) => Some(self),
            Term::Literal(_) | Term::Aggregate(_) => None,
            Term::Compare(_, two) | Term::Calculate(_, two) | Term::And(two) | Term::Or(two) => {
                two.0.loose(groups).or_else(|| two.1.loose(groups))
            }
            Term::Not(one) | Term::IsNull(one) | Term::Length(one) => one.loose(groups),
            Term::OneOf(one, others) => {
                one.loose(groups).or_else(|| others.iter().find_map(|t| t.loose(groups)))
            }
        }
    }
}

/// Takes a predicate apart.
///
/// # Errors
/// What is not understood.
pub(super) fn parse(text: &str) -> Result<Parsed, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("nothing is to hold: give a predicate".into());
    }
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    let clauses = matches!(first.as_str(), "where" | "group" | "having");
    let statement = format!("SELECT 1 FROM states {}{text}", if clauses { "" } else { "HAVING " });
    let parsed = Parser::parse_sql(&GenericDialect, &statement)
        .map_err(|e| e.to_string().replacen("sql parser error: ", "no predicate: ", 1))?;
    let [Statement::Query(query)] = parsed.as_slice() else {
        return Err("no predicate: more than one statement".into());
    };
    let plain = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = &*query.body else {
        return Err("a predicate is no SELECT: it is what stands after WHERE, GROUP BY and HAVING".into());
    };
    let one_table = select.from.len() == 1 && select.from.iter().all(|t| t.joins.is_empty());
    if !plain || !one_table || select.qualify.is_some() || !select.named_window.is_empty() {
        return Err("a predicate has WHERE, GROUP BY and HAVING, and no LIMIT, ORDER BY or JOIN".into());
    }
    let Some(having) = &select.having else {
        return Err("nothing is to hold: add HAVING and what is to hold of the rows left".into());
    };
    let filter = select.selection.as_ref().map(term).transpose()?;
    if filter.as_ref().is_some_and(Term::has_aggregate) {
        return Err("WHERE is about single rows: an aggregate belongs after HAVING".into());
    }
    let GroupByExpr::Expressions(groups, _) = &select.group_by else {
        return Err("GROUP BY ALL is not understood: name what rows of one group have in common".into());
    };
    let groups = groups.iter().map(term).collect::<Result<Vec<_>, _>>()?;
    let holds = term(having)?;
    let grouped = !groups.is_empty() || holds.has_aggregate();
    if grouped && let Some(Term::Variable(path)) = holds.loose(&groups) {
        return Err(format!(
            "'{}' differs from row to row: put it in an aggregate, or after GROUP BY",
            path.join(".")
        ));
    }
    Ok(Parsed { filter, groups: grouped.then_some(groups), holds })
}

fn two(a: &Expr, b: &Expr) -> Result<Box<(Term, Term)>, String> {
    Ok(Box::new((term(a)?, term(b)?)))
}

fn negated(yes: bool, term: Term) -> Term {
    if yes { Term::Not(Box::new(term)) } else { term }
}

fn term(expr: &Expr) -> Result<Term, String> {
    Ok(match expr {
        Expr::Nested(inner) => term(inner)?,
        Expr::Value(value) => Term::Literal(literal(&value.value)?),
        Expr::Identifier(name) => Term::Variable(vec![name.value.clone()]),
        Expr::CompoundIdentifier(names) => {
            Term::Variable(names.iter().map(|name| name.value.clone()).collect())
        }
        Expr::BinaryOp { left, op, right } => {
            let operands = two(left, right)?;
            match op {
                BinaryOperator::Eq => Term::Compare(Compare::Equal, operands),
                BinaryOperator::NotEq => Term::Compare(Compare::Unequal, operands),
                BinaryOperator::Lt => Term::Compare(Compare::Less, operands),
                BinaryOperator::LtEq => Term::Compare(Compare::AtMost, operands),
                BinaryOperator::Gt => Term::Compare(Compare::More, operands),
                BinaryOperator::GtEq => Term::Compare(Compare::AtLeast, operands),
                BinaryOperator::Plus => Term::Calculate('+', operands),
                BinaryOperator::Minus => Term::Calculate('-', operands),
                BinaryOperator::Multiply => Term::Calculate('*', operands),
                BinaryOperator::Divide => Term::Calculate('/', operands),
                BinaryOperator::Modulo => Term::Calculate('%', operands),
                BinaryOperator::And => Term::And(operands),
                BinaryOperator::Or => Term::Or(operands),
                other => return Err(format!("the operator {other} is not understood")),
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Term::Not(Box::new(term(expr)?)),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            Term::Calculate('-', Box::new((Term::Literal(Value::Int(0)), term(expr)?)))
        }
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => term(expr)?,
        Expr::IsNull(inner) => Term::IsNull(Box::new(term(inner)?)),
        Expr::IsNotNull(inner) => Term::Not(Box::new(Term::IsNull(Box::new(term(inner)?)))),
        Expr::InList { expr, list, negated: not } => {
            let list = list.iter().map(term).collect::<Result<_, _>>()?;
            negated(*not, Term::OneOf(Box::new(term(expr)?), list))
        }
        Expr::Between { expr, negated: not, low, high } => {
            let least = Term::Compare(Compare::AtLeast, two(expr, low)?);
            let most = Term::Compare(Compare::AtMost, two(expr, high)?);
            negated(*not, Term::And(Box::new((least, most))))
        }
        Expr::Function(function) => call(function)?,
        other => return Err(format!("'{other}' is not understood in a predicate")),
    })
}

fn literal(value: &Literal) -> Result<Value, String> {
    Ok(match value {
        Literal::Number(text, _) => match (text.parse(), text.parse()) {
            (Ok(whole), _) => Value::Int(whole),
            (_, Ok(other)) => Value::Float(other),
            _ => return Err(format!("'{text}' is no number")),
        },
        Literal::SingleQuotedString(text) => Value::Text(text.clone()),
        Literal::Boolean(yes) => Value::Bool(*yes),
        Literal::Null => Value::Null,
        other => return Err(format!("the value {other} is not understood")),
    })
}

const SUMS: [(&str, Sum); 10] = [
    ("count", Sum::Count),
    ("sum", Sum::Total),
    ("avg", Sum::Mean),
    ("min", Sum::Least),
    ("max", Sum::Most),
    ("every", Sum::Every),
    ("bool_and", Sum::Every),
    ("some", Sum::Some),
    ("any", Sum::Some),
    ("bool_or", Sum::Some),
];

fn call(function: &Function) -> Result<Term, String> {
    let name = function.name.to_string().to_lowercase();
    let FunctionArguments::List(list) = &function.args else {
        return Err(format!("{name} takes one argument in brackets"));
    };
    let argument = match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => Some(term(expr)?),
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if name == "count" => None,
        _ => return Err(format!("{name} takes one argument")),
    };
    if function.over.is_some() || !function.within_group.is_empty() || !list.clauses.is_empty() {
        return Err(format!("{name} takes no OVER and no order"));
    }
    if let ("length" | "len" | "cardinality", Some(of)) = (name.as_str(), argument.clone()) {
        return Ok(Term::Length(Box::new(of)));
    }
    let Some(&(_, sum)) = SUMS.iter().find(|(word, _)| *word == name) else {
        let words: Vec<&str> = SUMS.iter().map(|s| s.0).collect();
        return Err(format!("there is no '{name}': there are length, {}", words.join(", ")));
    };
    let filter = function.filter.as_ref().map(|f| term(f)).transpose()?;
    if argument.iter().chain(&filter).any(Term::has_aggregate) {
        return Err(format!("an aggregate stands inside {name}"));
    }
    let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    Ok(Term::Aggregate(Box::new(Aggregate { sum, distinct, of: argument, filter })))
}
