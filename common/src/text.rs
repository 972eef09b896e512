//! Text from outside, shown to people.

use std::borrow::Cow;

/// Whether a character could move the cursor, colour the screen, or turn the direction of what follows it.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text with everything escaped that a terminal would obey instead of showing it, line ends too.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// As [`printable`], but line ends and tabs stay.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| steers(c) && c != '\n' && c != '\t')
}

fn escaped(text: &str, escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&escape) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match escape(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_as_text() {
        assert_eq!(printable("wörker \u{5d0}"), "wörker \u{5d0}");
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable_lines("a\u{9b}b\n\tc"), "a\\u{9b}b\n\tc");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
