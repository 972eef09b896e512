//! How long a text from outside may be.
//!
//! Whoever may report an incident can send any text. Each has a bound before it comes into the journal, which every process reads whole.

/// Longest name: of a system, an actor, an event, a version, a worker.
pub const NAME: usize = 256;
/// Longest line: an invariant, a title, a link.
pub const LINE: usize = 1024;
/// Longest note, and the longest end of a child's standard error.
pub const NOTE: usize = 4096;
/// Most entries of a list: actors, events, links.
pub const MANY: usize = 64;

/// A text of at most `most` bytes: what is longer is cut between two characters, and ends in `…`. Characters that a terminal would obey are
/// replaced.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    let mut out = String::with_capacity(text.len().min(most));
    let mark = '…'.len_utf8();
    // Where the text would end if more comes than there is room for.
    let mut end = 0;
    for c in text.chars().map(clean) {
        if out.len() + c.len_utf8() > most {
            out.truncate(end);
            if out.len() + mark <= most {
                out.push('…');
            }
            return out;
        }
        out.push(c);
        if out.len() + mark <= most {
            end = out.len();
        }
    }
    out
}

/// The first [`MANY`] of these texts, each at most `most` bytes long.
#[must_use]
pub fn cut_all<S: AsRef<str>>(texts: impl IntoIterator<Item = S>, most: usize) -> Vec<String> {
    texts.into_iter().take(MANY).map(|text| cut(text.as_ref(), most)).collect()
}

/// The last bytes of a text, from the beginning of a line on where there is one.
#[must_use]
pub fn end_of(text: &str, most: usize) -> String {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let tail = &text[from..];
    let tail = if from > 0 { tail.split_once('\n').map_or(tail, |(_, rest)| rest) } else { tail };
    cut(tail, most)
}

/// Whether a line of a `trace.md` begins a step, as `3. **node-1** starts` does.
pub(crate) fn is_step(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, rest)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with("**")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_is_longer_than_its_bound(text in any::<String>(), most in 0_usize..40) {
            let short = cut(&text, most);
            prop_assert!(short.len() <= most);
            prop_assert!(short.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            prop_assert_eq!(cut(&short, most), short.clone());
            prop_assert!(end_of(&text, most).len() <= most);
        }
    }

    #[test]
    fn what_fits_stays() {
        assert_eq!(cut("OneLeader", 9), "OneLeader");
        assert_eq!(cut("OneLeaders", 9), "OneLea…");
        assert_eq!(end_of("a\nbc\nd", 4), "d");
    }
}
