//! From the text of a predicate to terms.
//!
//! Operators bind as in SQL, the weakest first: `OR`, `AND`, `NOT`, `IS NULL`, comparisons with `IN` and `BETWEEN`, `+` and `-`, then
//! `*`, `/` and `%`. The parser climbs these strengths (Pratt, "Top down operator precedence", POPL 1973).

use crate::error::{Mistake, ParseError};
use crate::function;
use crate::print::column_name;
use crate::scope::{Scope, TYPE, TYPE_NAME, is_clause};
use crate::strength::{ADD, AND, COMPARE, IS, MULTIPLY, NOT, OR};
use crate::term::{Column, Compare, Parsed, Term};
use crate::token::{Token, is_grammar, tokens};
use crate::value::Value;

/// Most operators, brackets and calls of a predicate. Terms are read and asked by recursion, and this bounds how deep it goes.
const MOST_OPERATORS: usize = 1_000;
/// Most brackets, calls and signs inside each other.
const DEEPEST: usize = 100;

/// Takes a predicate apart.
///
/// # Errors
/// What is not understood, and where.
pub(crate) fn parse(text: &str) -> Result<Parsed, ParseError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError::whole("nothing is to hold: give a predicate"));
    }
    let (scope, begin) = Scope::take(text);
    if let Some((a, b)) = scope.pair()
        && a == b
    {
        return Err(ParseError::whole(format!("both of the pair are called '{a}': give them two names")));
    }
    let read = || {
        let tokens = tokens(&text[begin..])?;
        Reader { scope, tokens, next: 0, operators: 0, depth: 0 }.predicate(begin > 0)
    };
    read().map_err(|wrong: Mistake| ParseError::new(text, wrong.moved(begin)))
}

/// Reads the terms of a predicate of a scope.
struct Reader<'a> {
    scope: Scope,
    tokens: Vec<(Token<'a>, usize)>,
    next: usize,
    operators: usize,
    depth: usize,
}

/// An operator between or behind operands.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Is,
    In,
    Between,
    Compare(Compare),
    Calculate(char),
}

impl<'a> Reader<'a> {
    fn peek(&self) -> &Token<'a> {
        &self.tokens[self.next].0
    }

    /// The byte at which the next token begins.
    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    /// Goes on to the token after the next; the end stays the end.
    fn pass(&mut self) -> Token<'a> {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek().is_word(word);
        if found {
            self.pass();
        }
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        if found {
            self.pass();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Mistake> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(self.expected(&format!("'{sign}'"))),
        }
    }

    fn expected(&self, what: &str) -> Mistake {
        Mistake::syntax(format!("expected {what}, found {}", self.peek().named()), self.at())
    }

    /// `WHERE`, `GROUP BY` and `HAVING`, or just what is to hold where no scope stands in front.
    fn predicate(mut self, scoped: bool) -> Result<Parsed, Mistake> {
        let clauses = scoped || matches!(self.peek(), Token::Bare(word) if is_clause(&word.to_lowercase()));
        let (mut filter, mut groups) = (None, Vec::new());
        if clauses {
            if self.word("where") {
                filter = Some(self.term(0)?);
            }
            if filter.as_ref().is_some_and(Term::has_aggregate) {
                return Err("WHERE is about single rows: an aggregate belongs after HAVING".into());
            }
            if self.word("group") {
                if !self.word("by") {
                    return Err(self.expected("BY"));
                }
                groups = self.terms()?;
            }
            if !self.word("having") {
                return Err(match self.peek() {
                    Token::End => {
                        "nothing is to hold: add HAVING and what is to hold of the rows left".into()
                    }
                    _ => self.unfit("HAVING"),
                });
            }
        }
        let holds = self.term(0)?;
        while self.sign(";") {}
        if *self.peek() != Token::End {
            return Err(self.unfit("an operator or the end"));
        }
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

    /// Why the next token does not go on with a term.
    fn unfit(&self, expected: &str) -> Mistake {
        let Token::Bare(word) = self.peek() else {
            return match self.peek() {
                Token::Sign(sign) if !matches!(*sign, "(" | ")" | "," | "." | ";") => {
                    Mistake::at(format!("the operator {sign} is not understood"), self.at())
                }
                _ => self.expected(expected),
            };
        };
        let reason = match word.to_uppercase().as_str() {
            "SELECT" | "UNION" | "EXCEPT" | "INTERSECT" | "FROM" => {
                "a predicate is no SELECT: it is what stands after WHERE, GROUP BY and HAVING"
            }
            "LIMIT" | "ORDER" | "JOIN" | "OFFSET" | "FETCH" | "WINDOW" | "QUALIFY" => {
                return Mistake::at(
                    format!(
                        "'{word}' does not fit: a predicate has WHERE, GROUP BY and HAVING, and no LIMIT, ORDER BY or JOIN"
                    ),
                    self.at(),
                );
            }
            _ => return self.expected(expected),
        };
        Mistake::at(reason.to_owned(), self.at())
    }

    /// Whether a predicate says something in its scope.
    fn fits(&self, parsed: &Parsed) -> Result<(), Mistake> {
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

    /// Counts what makes a term larger.
    fn count(&mut self) -> Result<(), Mistake> {
        self.operators += 1;
        match self.operators > MOST_OPERATORS {
            true => {
                Err(Mistake::at(format!("a predicate has at most {MOST_OPERATORS} operators"), self.at()))
            }
            false => Ok(()),
        }
    }

    /// A term whose operators all bind more strongly than `above`.
    fn term(&mut self, above: u8) -> Result<Term, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Mistake::at(format!("brackets are more than {DEEPEST} deep"), self.at()));
        }
        let mut left = self.first()?;
        while let Some((operator, strength, negated)) = self.operator()
            && strength > above
        {
            self.count()?;
            if negated {
                self.pass();
            }
            self.pass();
            left = self.operation(left, operator, strength)?;
            if negated {
                left = Term::Not(Box::new(left));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The operator that comes next, how strongly it binds, and whether NOT stands before it.
    fn operator(&self) -> Option<(Operator, u8, bool)> {
        let word = |token: &Token<'_>| {
            [("or", Operator::Or, OR), ("and", Operator::And, AND), ("is", Operator::Is, IS)]
                .into_iter()
                .chain([("in", Operator::In, COMPARE), ("between", Operator::Between, COMPARE)])
                .find(|(word, ..)| token.is_word(word))
        };
        let sign = |sign: &str| {
            let compare = |how| Some((Operator::Compare(how), COMPARE, false));
            match sign {
                "=" | "==" => compare(Compare::Equal),
                "<>" | "!=" => compare(Compare::Unequal),
                "<" => compare(Compare::Less),
                "<=" => compare(Compare::AtMost),
                ">" => compare(Compare::More),
                ">=" => compare(Compare::AtLeast),
                "+" => Some((Operator::Calculate('+'), ADD, false)),
                "-" => Some((Operator::Calculate('-'), ADD, false)),
                "*" => Some((Operator::Calculate('*'), MULTIPLY, false)),
                "/" => Some((Operator::Calculate('/'), MULTIPLY, false)),
                "%" => Some((Operator::Calculate('%'), MULTIPLY, false)),
                _ => None,
            }
        };
        match self.peek() {
            Token::Sign(s) => sign(s),
            token if token.is_word("not") => {
                let (_, operator, strength) = word(&self.tokens.get(self.next + 1)?.0)?;
                matches!(operator, Operator::In | Operator::Between).then_some((operator, strength, true))
            }
            token => word(token).map(|(_, operator, strength)| (operator, strength, false)),
        }
    }

    /// What an operator makes of the term before it and what stands behind it.
    fn operation(&mut self, left: Term, operator: Operator, strength: u8) -> Result<Term, Mistake> {
        Ok(match operator {
            Operator::Or => Term::Or(Box::new((left, self.term(strength)?))),
            Operator::And => Term::And(Box::new((left, self.term(strength)?))),
            Operator::Compare(how) => Term::Compare(how, Box::new((left, self.term(strength)?))),
            Operator::Calculate(sign) => Term::Calculate(sign, Box::new((left, self.term(strength)?))),
            Operator::Is => {
                let negated = self.word("not");
                if !self.word("null") {
                    return Err(self.expected("NULL"));
                }
                let null = Term::IsNull(Box::new(left));
                if negated { Term::Not(Box::new(null)) } else { null }
            }
            Operator::In => {
                self.expect("(")?;
                let list = self.terms()?;
                self.expect(")")?;
                Term::OneOf(Box::new(left), list)
            }
            Operator::Between => {
                let low = self.term(COMPARE)?;
                if !self.word("and") {
                    return Err(self.expected("AND"));
                }
                let high = self.term(COMPARE)?;
                let least = Term::Compare(Compare::AtLeast, Box::new((left.clone(), low)));
                let most = Term::Compare(Compare::AtMost, Box::new((left, high)));
                Term::And(Box::new((least, most)))
            }
        })
    }

    /// Terms with commas between them.
    fn terms(&mut self) -> Result<Vec<Term>, Mistake> {
        let mut terms = vec![self.term(0)?];
        while self.sign(",") {
            terms.push(self.term(0)?);
        }
        Ok(terms)
    }

    /// A literal, a variable, a call, or a term behind a sign, NOT or a bracket.
    fn first(&mut self) -> Result<Term, Mistake> {
        let at = self.at();
        Ok(match self.peek().clone() {
            Token::Number(text) => {
                self.pass();
                Term::Literal(number(text, at)?)
            }
            Token::Text(text) => {
                self.pass();
                Term::Literal(Value::Text(text.into_owned().into()))
            }
            Token::Sign("(") => {
                self.pass();
                let inner = self.term(0)?;
                self.expect(")")?;
                inner
            }
            Token::Sign("+") => {
                self.pass();
                self.term(MULTIPLY)?
            }
            Token::Sign("-") => {
                self.count()?;
                self.pass();
                if let Token::Number(text) = *self.peek()
                    && let Ok(Value::Int(n)) = number(&format!("-{text}"), at)
                    && n < 0
                {
                    self.pass();
                    return Ok(Term::Literal(Value::Int(n)));
                }
                match self.term(MULTIPLY)? {
                    Term::Literal(Value::Int(n)) if n > 0 => Term::Literal(Value::Int(-n)),
                    Term::Literal(Value::Float(n)) if n > 0.0 => Term::Literal(Value::Float(-n)),
                    other => Term::Calculate('-', Box::new((Term::Literal(Value::Int(0)), other))),
                }
            }
            Token::Bare(word) => match word.to_ascii_lowercase().as_str() {
                "not" => {
                    self.count()?;
                    self.pass();
                    Term::Not(Box::new(self.term(NOT)?))
                }
                "true" | "false" => {
                    self.pass();
                    Term::Literal(Value::Bool(word.eq_ignore_ascii_case("true")))
                }
                "null" => {
                    self.pass();
                    Term::Literal(Value::Null)
                }
                _ if self.tokens[self.next + 1].0 == Token::Sign("(") && !is_grammar(word) => {
                    self.call(word)?
                }
                "select" => return Err(self.unfit("")),
                _ if is_grammar(word) => {
                    return Err(Mistake::syntax(
                        format!(
                            "'{word}' is a word of the language: a variable of this name stands in double quotes"
                        ),
                        at,
                    ));
                }
                _ => self.column()?,
            },
            Token::Quoted(_) => self.column()?,
            Token::Sign(_) | Token::End => return Err(self.expected("a value, a variable or a function")),
        })
    }

    /// A function or an aggregate with what it is called with.
    fn call(&mut self, name: &str) -> Result<Term, Mistake> {
        let at = self.at();
        self.count()?;
        self.pass();
        self.expect("(")?;
        let distinct = self.word("distinct");
        if !distinct {
            self.word("all");
        }
        let mut called = function::CallSyntax { distinct, ..function::CallSyntax::default() };
        if self.sign("*") {
            called.rows = true;
        } else if *self.peek() != Token::Sign(")") {
            called.arguments = self.terms()?;
        }
        self.expect(")")?;
        if self.peek().is_word("filter") && self.tokens[self.next + 1].0 == Token::Sign("(") {
            self.pass();
            self.pass();
            if !self.word("where") {
                return Err(self.expected("WHERE"));
            }
            called.filter = Some(self.term(0)?);
            self.expect(")")?;
        }
        if self.peek().is_word("over") || self.peek().is_word("within") {
            return Err(Mistake::at(format!("{name} takes no OVER and no order"), at));
        }
        called.term(name).map_err(|reason| Mistake::at(reason, at))
    }

    /// The variable that is meant by names with dots between them.
    fn column(&mut self) -> Result<Term, Mistake> {
        let at = self.at();
        let bare = matches!(self.peek(), Token::Bare(_));
        let mut path = Vec::new();
        loop {
            match self.peek().clone() {
                Token::Bare(name) => path.push(name.to_owned()),
                Token::Quoted(name) => path.push(name.into_owned()),
                _ => return Err(self.expected("a name")),
            }
            self.pass();
            if !self.sign(".") {
                break;
            }
        }
        let wrong = |reason: String| Mistake::at(reason, at);
        let first = &path[0];
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
}

fn number(text: &str, at: usize) -> Result<Value<'static>, Mistake> {
    match (text.parse(), text.parse()) {
        (Ok(whole), _) => Ok(Value::Int(whole)),
        (_, Ok(other)) => Ok(Value::Float(other)),
        _ => Err(Mistake::at(format!("'{text}' is no number"), at)),
    }
}
