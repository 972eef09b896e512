//! Text from outside, shown to people.

use std::borrow::Cow;
use std::ops::Range;

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

/// Words as a shell would read them again, in one line that a terminal shows as it is.
#[must_use]
pub fn shell_words<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<Cow<'_, str>> = words.iter().map(|word| shell_word(word.as_ref())).collect();
    quoted.join(" ")
}

/// A word as a shell would read it again, in one line that a terminal shows as it is.
#[must_use]
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    if !word.contains(steers) {
        return Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")));
    }
    // `$'..'` has escapes, by bytes: those of characters are not known to every shell.
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if steers(c) => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    Cow::Owned(out)
}

/// A text as content of HTML or XML, or as the value of a quoted attribute. Characters that XML cannot hold become U+FFFD.
#[must_use]
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
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

/// Where the numbers of a JSON text stand.
fn numbers(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let (mut at, mut in_text) = (0, false);
    std::iter::from_fn(move || {
        while let Some(&byte) = text.get(at) {
            match byte {
                b'\\' if in_text => at += 1,
                b'"' => in_text = !in_text,
                b'-' | b'0'..=b'9' if !in_text => {
                    let of_number =
                        |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let begin = at;
                    at += text[begin..].iter().take_while(|byte| of_number(byte)).count();
                    return Some(begin..at);
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// The first whole number in a JSON text that no 64 bits hold: read as a number it would be another one.
#[must_use]
pub fn beyond_64_bits(text: &[u8]) -> Option<String> {
    // Fewer digits fit always.
    numbers(text).filter(|range| range.len() > 18).map(|range| &text[range]).find_map(|number| {
        let whole = number.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        let number = String::from_utf8_lossy(number);
        let fits = number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok();
        (whole && !fits).then(|| number.into_owned())
    })
}

/// A JSON text in which each number that would be read as another one is a text of its digits: whole numbers that neither 64 bits nor a floating
/// point number hold, and others with more than 17 digits that count, as many as such a number tells apart.
#[must_use]
pub fn exact_numbers(text: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    // Fewer digits are always kept.
    for range in numbers(text.as_bytes()).filter(|range| range.len() > 15) {
        if is_changed(&text[range.clone()]) {
            out.push_str(&text[copied..range.start]);
            out.push('"');
            out.push_str(&text[range.clone()]);
            out.push('"');
            copied = range.end;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether a number becomes another one where it is read. What is no number stays, for whoever reads it to say so.
fn is_changed(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.trim_start_matches('-');
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !is_digits(digits) || !is_digits(fraction) {
        return false;
    }
    let (Ok(read), Ok(exponent)) = (number.parse::<f64>(), exponent.parse::<i32>()) else { return false };
    if !number.contains(['.', 'e', 'E']) {
        return number.parse::<i64>().is_err() && number.parse::<u64>().is_err();
    }
    let all = format!("{digits}{fraction}");
    let all = all.trim_start_matches('0');
    let significant = all.trim_end_matches('0');
    let zeros = i32::try_from(all.len() - significant.len()).unwrap_or(i32::MAX);
    let scale = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let is_whole = exponent.saturating_sub(scale).saturating_add(zeros) >= 0;
    let shortest = format!("{read:e}");
    let told: String =
        shortest.split('e').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    let told = told.trim_start_matches('0').trim_end_matches('0');
    !read.is_finite() || told != significant && (is_whole || significant.len() > 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_be_others_are_texts() {
        for kept in [
            "{}",
            "0",
            "18446744073709551615",
            "-9223372036854775808",
            "[0.1,1e300,-2.5E-7]",
            "0.30000000000000004",
            "1714564800.123456",
            "9007199254740992.0",
            "100000000000000000000.0",
            "1.0000000000000000000000",
            r#"{"a":"210306068529402873165736369884012333109 \" 1"}"#,
            "12345678901234567-x",
        ] {
            assert_eq!(exact_numbers(kept), kept);
        }
        for (given, read) in [
            ("18446744073709551616", r#""18446744073709551616""#),
            ("[1,-9223372036854775809]", r#"[1,"-9223372036854775809"]"#),
            (
                r#"{"id":210306068529402873165736369884012333109}"#,
                r#"{"id":"210306068529402873165736369884012333109"}"#,
            ),
            ("9007199254740993.0", r#""9007199254740993.0""#),
            ("1714564800.123456789", r#""1714564800.123456789""#),
            ("[1e400000000,100000000000000001e0]", r#"[1e400000000,"100000000000000001e0"]"#),
        ] {
            assert_eq!(exact_numbers(given), read);
        }
    }

    #[test]
    fn a_shell_reads_what_was_written() {
        let words = [
            "plain",
            "",
            "it's",
            "a b",
            "$(x)`y`",
            "\n\u{202e}'\\",
            "wörker",
            "~",
            "*",
            "a;b",
            "-x=1",
            "\u{1b}[2J0",
        ];
        let line = shell_words(&words);
        assert!(line.chars().all(|c| !steers(c)), "{line}");
        let output =
            std::process::Command::new("bash").args(["-c", &format!("printf '%s\\0' {line}")]).output();
        let Ok(output) = output else { return };
        let read = String::from_utf8(output.stdout).unwrap();
        assert_eq!(read, words.map(|word| format!("{word}\0")).concat());
    }

    #[test]
    fn markup_says_nothing_of_its_own() {
        assert_eq!(markup("<a b=\"1\" c='2'>&amp;"), "&lt;a b=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
        assert_eq!(markup("a\u{1}b\n\tc\r\u{ffff}"), "a\u{fffd}b\n\tc&#13;\u{fffd}");
    }

    #[test]
    fn what_steers_a_terminal_is_shown_as_text() {
        assert_eq!(printable("wörker \u{5d0}"), "wörker \u{5d0}");
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(printable_lines("a\u{9b}b\n\tc"), "a\\u{9b}b\n\tc");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
