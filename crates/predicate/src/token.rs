//! The words and signs that a predicate is written in.

use std::borrow::Cow;

use crate::error::Mistake;

/// A word, a sign, or a literal of a predicate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A name without quotes: a variable, a function, or a word of the language.
    Bare(&'a str),
    /// A name in double quotes or backticks, which is always a variable.
    Quoted(Cow<'a, str>),
    /// A text in single quotes.
    Text(Cow<'a, str>),
    /// A number without its sign.
    Number(&'a str),
    /// An operator or a bracket.
    Sign(&'a str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// How a message names the token.
    pub(crate) fn named(&self) -> String {
        match self {
            Token::Bare(word) | Token::Number(word) | Token::Sign(word) => format!("'{word}'"),
            Token::Quoted(name) => format!("\"{name}\""),
            Token::Text(text) => format!("the text '{text}'"),
            Token::End => "the end".to_owned(),
        }
    }

    /// Whether this is the word, in capital or small letters.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Bare(bare) if bare.eq_ignore_ascii_case(word))
    }
}

/// Signs of more than one letter; the longer ones first.
const LONG_SIGNS: [&str; 14] =
    ["<=>", "->>", "<>", "<=", ">=", "!=", "==", "||", "&&", "->", "::", "<<", ">>", "=>"];

/// Words without which a predicate could not be read; none of them is a variable unless it stands in quotes.
const GRAMMAR: [&str; 9] = ["AND", "OR", "NOT", "IN", "IS", "BETWEEN", "WHERE", "GROUP", "HAVING"];

/// Words of SQL that are printed in quotes where they are variables, so that a predicate stays a condition that other programs read too.
const RESERVED: [&str; 81] = [
    "ALL",
    "ANALYZE",
    "AND",
    "ANTI",
    "ARRAY",
    "ASOF",
    "BETWEEN",
    "CLUSTER",
    "CONNECT",
    "CROSS",
    "CURRENT_CATALOG",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "DISTINCT",
    "DISTRIBUTE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FETCH",
    "FOR",
    "FORMAT",
    "FROM",
    "FULL",
    "GLOBAL",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIMIT",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "MATCH_CONDITION",
    "MATCH_RECOGNIZE",
    "MINUS",
    "NATURAL",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPEN",
    "OR",
    "ORDER",
    "OUTER",
    "OUTPUT",
    "PARTITION",
    "PIVOT",
    "PREWHERE",
    "QUALIFY",
    "RETURNING",
    "RIGHT",
    "SAMPLE",
    "SELECT",
    "SEMI",
    "SESSION_USER",
    "SET",
    "SETTINGS",
    "SORT",
    "START",
    "STRUCT",
    "TABLESAMPLE",
    "TOP",
    "TRIM",
    "TRUE",
    "UNION",
    "UNPIVOT",
    "USER",
    "USING",
    "VIEW",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Whether a word is no variable unless it stands in quotes.
pub(crate) fn is_grammar(word: &str) -> bool {
    GRAMMAR.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a word is printed in quotes where it is a variable.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(word))
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '@' | '#')
}

fn continues_name(c: char) -> bool {
    begins_name(c) || c.is_ascii_digit() || c == '$'
}

/// The tokens of a text with the byte at which each begins; [`Token::End`] is the last.
///
/// # Errors
/// When a quote is not closed, or a letter begins no token.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, Mistake> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let begin = at;
        let until = |end: &dyn Fn(char) -> bool| rest.find(end).unwrap_or(rest.len());
        let token = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '-' if rest.starts_with("--") => {
                at += until(&|c| c == '\n');
                continue;
            }
            '\'' | '"' | '`' => {
                let (inner, bytes) = quoted(rest, first)
                    .ok_or_else(|| Mistake::syntax(format!("the quote {first} is not closed"), begin))?;
                at += bytes;
                match first {
                    '\'' => Token::Text(inner),
                    _ => Token::Quoted(inner),
                }
            }
            c if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) => {
                let number = number(rest);
                at += number.len();
                if text[at..].starts_with(begins_name) {
                    return Err(Mistake::syntax(
                        format!("a name cannot begin with the number '{number}'"),
                        begin,
                    ));
                }
                Token::Number(number)
            }
            c if begins_name(c) => {
                let end = until(&|c| !continues_name(c));
                at += end;
                Token::Bare(&rest[..end])
            }
            _ => {
                let sign = LONG_SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let bytes = sign.map_or(first.len_utf8(), |sign| sign.len());
                at += bytes;
                Token::Sign(&rest[..bytes])
            }
        };
        found.push((token, begin));
    }
    found.push((Token::End, text.trim_end().len()));
    Ok(found)
}

/// What stands between the quote at the beginning and its end, where two quotes stand for one; and how many bytes that is with the quotes.
fn quoted(text: &str, quote: char) -> Option<(Cow<'_, str>, usize)> {
    let inner = &text[1..];
    let mut from = 0;
    loop {
        let end = from + inner[from..].find(quote)?;
        if !inner[end + 1..].starts_with(quote) {
            let double: String = [quote, quote].iter().collect();
            let content = &inner[..end];
            let content = match content.contains(&double) {
                true => Cow::Owned(content.replace(&double, &quote.to_string())),
                false => Cow::Borrowed(content),
            };
            return Some((content, end + 2));
        }
        from = end + 2;
    }
}

/// The number at the beginning: digits, a fraction, an exponent.
fn number(text: &str) -> &str {
    let digits = |from: usize| from + text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    &text[..end]
}
