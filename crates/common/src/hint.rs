//! "Did you mean": the known name nearest to one that is not known.

/// The known name that `name` is most likely a slip of: a few letters exchanged, left out or added. Of names that are
/// equally near the first in alphabetical order is taken.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 1 + name.chars().count().max(known.chars().count()) / 3)
        .map(|(_, known)| known)
}

/// `; did you mean 'x'?` for the known name nearest to `name`, or nothing.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|known| format!("; did you mean '{known}'?")).unwrap_or_default()
}

/// The known name nearest to the one that serde does not know, from its message: "unknown field `x`, expected one of
/// `a`, `b`".
#[must_use]
pub fn nearest_in_message(message: &str) -> Option<&str> {
    let start = message.find("unknown ")?;
    let mut quoted = message[start..].split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    nearest(name, quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known = ["network", "invariants", "model"];
        assert_eq!(nearest("netwrok", known), Some("network"));
        assert_eq!(nearest("modell", known), Some("model"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(did_you_mean("mdoel", known), "; did you mean 'model'?");
        assert_eq!(did_you_mean("colour", known), "");
        let message = "unknown field `netwrok`, expected one of `model`, `network`";
        assert_eq!(nearest_in_message(message), Some("network"));
        assert_eq!(nearest_in_message("missing field `x`"), None);
    }
}
