//! From the text of a predicate to terms.

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, SetExpr, Spanned, Statement, UnaryOperator, Value as Literal,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use crate::error::{ParseError, Wrong};
use crate::function;
use crate::print::column_name;
use crate::scope::{Scope, TYPE, TYPE_NAME, is_clause};
use crate::term::{Column, Compare, Parsed, Term};
use crate::value::Value;

/// Takes a predicate apart.
///
/// # Errors
/// What is not understood, and where.
pub(crate) fn parse(text: &str) -> Result<Parsed, ParseError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError::whole("nothing is to hold: give a predicate"));
    }
    let (scope, words) = Scope::take(text);
    if let Some((a, b)) = scope.pair()
        && a == b
    {
        return Err(ParseError::whole(format!("both of the pair are called '{a}': give them two names")));
    }
    // The words of the scope become spaces, so that places in the statement are places in the text.
    let blank: String = text[..words].chars().map(|_| ' ').collect();
    let rest = &text[words..];
    let first = rest.split(|c: char| !c.is_alphanumeric()).find(|w| !w.is_empty()).unwrap_or_default();
    let clauses = is_clause(&first.to_lowercase());
    let prefix = format!("SELECT 1 FROM states {}", if clauses || words > 0 { "" } else { "HAVING " });
    let parsed = Parser::parse_sql(&GenericDialect, &format!("{prefix}{blank}{rest}"))
        .map_err(|e| ParseError::syntax(text, prefix.len(), &e.to_string()))?;
    Reader { scope }.read(&parsed).map_err(|wrong| ParseError::new(text, prefix.len(), wrong))
}

/// Reads the terms of a predicate of a scope.
struct Reader {
    scope: Scope,
}

impl Reader {
    fn read(self, statements: &[Statement]) -> Result<Parsed, Wrong> {
        let [Statement::Query(query)] = statements else {
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
        let filter = select.selection.as_ref().map(|e| self.term(e)).transpose()?;
        if filter.as_ref().is_some_and(Term::has_aggregate) {
            return Err("WHERE is about single rows: an aggregate belongs after HAVING".into());
        }
        let GroupByExpr::Expressions(groups, _) = &select.group_by else {
            return Err("GROUP BY ALL is not understood: name what rows of one group have in common".into());
        };
        let groups = groups.iter().map(|e| self.term(e)).collect::<Result<Vec<_>, _>>()?;
        let holds = self.term(having)?;
        let grouped = !groups.is_empty() || holds.has_aggregate();
        if let Some(groups) = grouped.then_some(&groups)
            && let Some(column) = holds.loose(groups)
        {
            let name = column_name(&self.scope, column);
            return Err(format!(
                "'{name}' differs from row to row: put it in an aggregate, or after GROUP BY"
            )
            .into());
        }
        let scope = self.scope.clone();
        let parsed = Parsed { scope, filter, groups: grouped.then_some(groups), holds };
        self.fits(&parsed)?;
        Ok(parsed)
    }

    /// Whether a predicate says something in its scope.
    fn fits(&self, parsed: &Parsed) -> Result<(), Wrong> {
        if let Some((a, b)) = self.scope.pair()
            && let Some(absent) =
                [a, b].iter().enumerate().find(|(side, _)| parsed.columns().iter().all(|c| c.side != *side))
        {
            return Err(
                format!("nothing is said of '{}': a predicate over pairs speaks of both", absent.1).into()
            );
        }
        if matches!(self.scope, Scope::EverPairs(..)) && parsed.groups.is_some() {
            return Err("EVER PAIRS is about single pairs: it takes no GROUP BY and no aggregate".into());
        }
        Ok(())
    }

    /// The variable that is meant by names with dots between them.
    fn column(&self, names: &[Ident]) -> Result<Term, Wrong> {
        let wrong = |reason: String| Wrong { reason, at: names.first().map(|n| n.span.start) };
        let path: Vec<String> = names.iter().map(|n| n.value.clone()).collect();
        let (Some(first), bare) = (path.first(), names.first().is_some_and(|n| n.quote_style.is_none()))
        else {
            return Err(wrong("a name is missing".into()));
        };
        if self.scope.is_history()
            && bare
            && path.len() > 1
            && first == "prev"
            && self.scope.side(first).is_none()
        {
            return Err(wrong(
                "'prev' is of a moment, and EVER is of all: write EVER PAIRS with two names".into(),
            ));
        }
        if matches!(self.scope, Scope::Messages(_)) && path == [TYPE_NAME] {
            return Ok(Term::Column(Column::new(TYPE, path)));
        }
        let side = if bare && path.len() > 1 { self.scope.side(first) } else { None };
        match (side, self.scope.sides()) {
            (Some(side), _) => Ok(Term::Column(Column::new(side, path[1..].to_vec()))),
            (None, Some(sides)) => {
                let name = path.join(".");
                let ways: Vec<String> = sides.iter().map(|side| format!("{side}.{name}")).collect();
                Err(wrong(format!("whose '{name}' is meant? write {}", ways.join(" or "))))
            }
            (None, None) => Ok(Term::Column(Column::new(0, path))),
        }
    }

    fn two(&self, a: &Expr, b: &Expr) -> Result<Box<(Term, Term)>, Wrong> {
        Ok(Box::new((self.term(a)?, self.term(b)?)))
    }

    fn term(&self, expr: &Expr) -> Result<Term, Wrong> {
        Ok(match expr {
            Expr::Nested(inner) => self.term(inner)?,
            Expr::Value(value) => Term::Literal(literal(&value.value)?),
            Expr::Identifier(name) => self.column(std::slice::from_ref(name))?,
            Expr::CompoundIdentifier(names) => self.column(names)?,
            Expr::BinaryOp { left, op, right } => {
                let operands = self.two(left, right)?;
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
                    other => {
                        let reason = format!("the operator {other} is not understood");
                        return Err(Wrong { reason, at: Some(right.span().start) });
                    }
                }
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Term::Not(Box::new(self.term(expr)?)),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.term(expr)? {
                Term::Literal(Value::Int(n)) if n > 0 => Term::Literal(Value::Int(-n)),
                Term::Literal(Value::Float(n)) if n > 0.0 => Term::Literal(Value::Float(-n)),
                other => Term::Calculate('-', Box::new((Term::Literal(Value::Int(0)), other))),
            },
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.term(expr)?,
            Expr::IsNull(inner) => Term::IsNull(Box::new(self.term(inner)?)),
            Expr::IsNotNull(inner) => Term::Not(Box::new(Term::IsNull(Box::new(self.term(inner)?)))),
            Expr::InList { expr, list, negated: not } => {
                let list = list.iter().map(|e| self.term(e)).collect::<Result<_, _>>()?;
                negated(*not, Term::OneOf(Box::new(self.term(expr)?), list))
            }
            Expr::Between { expr, negated: not, low, high } => {
                let least = Term::Compare(Compare::AtLeast, self.two(expr, low)?);
                let most = Term::Compare(Compare::AtMost, self.two(expr, high)?);
                negated(*not, Term::And(Box::new((least, most))))
            }
            Expr::Function(function) => function::call(function, |e| self.term(e))?,
            other => {
                let reason = format!("'{other}' is not understood in a predicate");
                return Err(Wrong { reason, at: Some(other.span().start) });
            }
        })
    }
}

fn negated(yes: bool, term: Term) -> Term {
    if yes { Term::Not(Box::new(term)) } else { term }
}

fn literal(value: &Literal) -> Result<Value<'static>, Wrong> {
    Ok(match value {
        Literal::Number(text, _) => match (text.parse(), text.parse()) {
            (Ok(whole), _) => Value::Int(whole),
            (_, Ok(other)) => Value::Float(other),
            _ => return Err(format!("'{text}' is no number").into()),
        },
        Literal::SingleQuotedString(text) => Value::Text(text.clone().into()),
        Literal::Boolean(yes) => Value::Bool(*yes),
        Literal::Null => Value::Null,
        other => return Err(format!("the value {other} is not understood").into()),
    })
}
