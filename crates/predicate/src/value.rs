//! Values of variables: what JSON has, with the comparisons and sums of SQL.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A value. Texts, lists and objects are borrowed from the state or the predicate where they stand there as they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// Unknown, or not there.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list or an object.
    Json(Cow<'a, serde_json::Value>),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(n) => write!(f, "{n:?}"),
            Value::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Value::Json(json) => json.fmt(f),
        }
    }
}

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(value: &'a serde_json::Value) -> Value<'a> {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => Value::Bool(*b),
            serde_json::Value::Number(n) => match n.as_i64() {
                Some(n) => Value::Int(n),
                None => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::Text(Cow::Borrowed(text)),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => Value::Json(Cow::Borrowed(value)),
        }
    }
}

impl Value<'_> {
    /// The same value, borrowed from this one.
    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Json(json) => Value::Json(Cow::Borrowed(json)),
            Value::Null => Value::Null,
            Value::Bool(b) => Value::Bool(*b),
            Value::Int(n) => Value::Int(*n),
            Value::Float(n) => Value::Float(*n),
        }
    }

    /// The same value, borrowed from nowhere.
    pub(crate) fn owned(self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
            Value::Null => Value::Null,
            Value::Bool(b) => Value::Bool(b),
            Value::Int(n) => Value::Int(n),
            Value::Float(n) => Value::Float(n),
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            _ => None,
        }
    }

    /// Which of two values is first; nothing where one is unknown.
    ///
    /// # Errors
    /// When they are of different kinds.
    pub(crate) fn compare(&self, other: &Value<'_>) -> Result<Option<Ordering>, String> {
        Ok(match (self, other) {
            (Value::Null, _) | (_, Value::Null) => None,
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => return Err(format!("{self} and {other} cannot be put in order")),
            },
        })
    }

    /// Whether two values are equal; nothing where one is unknown. Values of different kinds are not.
    pub(crate) fn equal(&self, other: &Value<'_>) -> Option<bool> {
        match (self, other) {
            (Value::Null, _) | (_, Value::Null) => None,
            (Value::Json(a), Value::Json(b)) => Some(a == b),
            _ => Some(self.compare(other).ok().flatten() == Some(Ordering::Equal)),
        }
    }

    /// A truth value; nothing where it is unknown.
    ///
    /// # Errors
    /// When it is another value.
    pub(crate) fn truth(&self) -> Result<Option<bool>, String> {
        match self {
            Value::Null => Ok(None),
            Value::Bool(b) => Ok(Some(*b)),
            other => Err(format!("{other} is not true or false")),
        }
    }

    /// Sum, difference, product, quotient or remainder. Whole numbers that grow too large become others; division by zero is unknown.
    ///
    /// # Errors
    /// When one is no number.
    pub(crate) fn calculate(&self, sign: char, other: &Value<'_>) -> Result<Value<'static>, String> {
        if *self == Value::Null || *other == Value::Null {
            return Ok(Value::Null);
        }
        if let (Value::Int(a), Value::Int(b)) = (self, other) {
            let exact = match sign {
                '+' => a.checked_add(*b),
                '-' => a.checked_sub(*b),
                '*' => a.checked_mul(*b),
                '/' | '%' if *b == 0 => return Ok(Value::Null),
                '/' if a.checked_rem(*b) == Some(0) => a.checked_div(*b),
                '%' => a.checked_rem(*b),
                _ => None,
            };
            if let Some(n) = exact {
                return Ok(Value::Int(n));
            }
        }
        let number = |v: &Value<'_>| v.number().ok_or_else(|| format!("{v} is no number"));
        let (a, b) = (number(self)?, number(other)?);
        Ok(match sign {
            '+' => Value::Float(a + b),
            '-' => Value::Float(a - b),
            '*' => Value::Float(a * b),
            _ if b == 0.0 => Value::Null,
            '/' => Value::Float(a / b),
            _ => Value::Float(a % b),
        })
    }

    /// Members of a list or object, or letters of a text; unknown for what has none.
    pub(crate) fn length(&self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Int(text.chars().count() as i64),
            Value::Json(json) => match &**json {
                serde_json::Value::Array(all) => Value::Int(all.len() as i64),
                serde_json::Value::Object(all) => Value::Int(all.len() as i64),
                _ => Value::Null,
            },
            _ => Value::Null,
        }
    }
}
