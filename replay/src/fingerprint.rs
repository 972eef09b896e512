//! Masks: rewritings of payloads that decide which messages are the same logical message.

use std::borrow::Cow;

use demi_schemas::ScenarioError;
use demi_schemas::scenario::Mask;
use regex::Regex;

/// Compiled masks, applied in order.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    rules: Vec<(Option<String>, Regex, String)>,
}

impl Masks {
    /// Compiles masks.
    ///
    /// # Errors
    /// When a pattern is no regular expression.
    pub fn new<'a>(masks: impl IntoIterator<Item = &'a Mask>) -> Result<Self, ScenarioError> {
        let rules = masks
            .into_iter()
            .map(|mask| {
                let regex = Regex::new(&mask.pattern)
                    .map_err(|e| ScenarioError::Value(format!("mask pattern '{}': {e}", mask.pattern)))?;
                Ok((mask.type_.clone(), regex, mask.replace.clone()))
            })
            .collect::<Result<_, ScenarioError>>()?;
        Ok(Masks { rules })
    }

    /// The payload of a message of that type under the masks.
    #[must_use]
    pub fn apply<'a>(&self, type_: &str, payload: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(payload);
        for (only, regex, replace) in &self.rules {
            if only.as_deref().is_none_or(|t| t == type_) && regex.is_match(&text) {
                text = Cow::Owned(regex.replace_all(&text, replace.as_str()).into_owned());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_apply_to_their_type_only() {
        let mask = Mask { type_: Some("T".into()), pattern: r",\d+\)$".into(), replace: ",_)".into() };
        let masks = Masks::new([&mask]).unwrap();
        assert_eq!(masks.apply("T", "F(a,12)"), "F(a,_)");
        assert_eq!(masks.apply("U", "F(a,12)"), "F(a,12)");
        assert!(Masks::new([&Mask { type_: None, pattern: "(".into(), replace: String::new() }]).is_err());
    }
}
