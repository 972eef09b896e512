//! Variables that bear the name of an instance: `eating_3` of the third philosopher.
//!
//! A name with a star stands for the one variable of a state that fits it. The star is a run of letters and digits, at least one: `"eating_*"` is
//! `eating_3` in the state of one actor and `eating_4` in that of another. Where two variables of a state fit, neither is meant.

/// Whether a name in a predicate may stand for a variable: it is its name, or fits it by its stars.
#[must_use]
pub fn stands_for(name: &str, variable: &str) -> bool {
    name == variable || (name.contains('*') && fits(name, variable))
}

/// The variable that a name in a predicate stands for, of all that a state has.
#[must_use]
pub fn meant<'v>(name: &str, variables: impl Iterator<Item = &'v str> + Clone) -> Option<&'v str> {
    if let Some(same) = variables.clone().find(|variable| *variable == name) {
        return Some(same);
    }
    if !name.contains('*') {
        return None;
    }
    let mut fit = variables.filter(|variable| fits(name, variable));
    fit.next().filter(|_| fit.next().is_none())
}

/// Whether a text is a pattern with each star replaced by letters and digits.
fn fits(pattern: &str, text: &str) -> bool {
    // Which beginnings of the text the pattern so far may be.
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let chars: Vec<char> = text.chars().collect();
    let mut reached = vec![false; ends.len()];
    reached[0] = true;
    for wanted in pattern.chars() {
        let mut next = vec![false; ends.len()];
        for at in 0..chars.len() {
            let goes_on = match wanted {
                '*' => chars[at].is_alphanumeric() && (reached[at] || next[at]),
                _ => chars[at] == wanted && reached[at],
            };
            next[at + 1] |= goes_on;
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_a_run_of_letters_and_digits() {
        for (pattern, text, does) in [
            ("eating_*", "eating_3", true),
            ("eating_*", "eating_", false),
            ("eating_*", "eating_3_4", false),
            ("eating_*_*", "eating_3_4", true),
            ("*.state", "alice.state", true),
            ("*State", "aliceState", true),
            ("*State", "State", false),
            ("a*a*a", "aXaYa", true),
            ("a*a*a", "aaa", false),
            ("*", "\u{e9}t\u{e9}", true),
            ("eating_*", "eating_*", true),
            ("eating_3", "eating_3", true),
            ("eating_3", "eating_4", false),
        ] {
            assert_eq!(stands_for(pattern, text), does, "{pattern} {text}");
        }
    }

    #[test]
    fn of_two_that_fit_neither_is_meant() {
        let of = |all: &'static [&'static str]| meant("fork_*", all.iter().copied());
        assert_eq!(of(&["eating_1", "fork_1"]), Some("fork_1"));
        assert_eq!(of(&["fork_1", "fork_2"]), None);
        assert_eq!(of(&["fork_*", "fork_2"]), Some("fork_*"));
        assert_eq!(of(&["eating_1"]), None);
    }

    proptest::proptest! {
        /// What is filled into the stars is found again, and no text panics.
        #[test]
        fn what_fills_the_stars_fits(parts in proptest::collection::vec(("[a-z_.]{0,4}", "[a-zA-Z0-9]{1,4}"), 1..5), other in ".{0,12}") {
            let name = |star: bool| -> String {
                parts.iter().map(|(text, filled)| format!("{text}{}", if star { "*" } else { filled })).collect()
            };
            proptest::prop_assert!(fits(&name(true), &name(false)));
            let _ = (fits(&name(true), &other), fits(&other, &name(false)));
        }
    }
}
