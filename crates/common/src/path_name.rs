//! Names from outside as path components.
//!
//! A system or an actor may be called `../../x`, `/etc`, an empty text or `CON`, and two of them may differ in case
//! only. [`path_name`] gives each name one component that cannot leave its folder, and no two names the same one, also
//! where the file system takes `a` and `A` for one.
//!
//! ASCII letters, digits, `_`, `-`, `$` and inner dots stand for themselves; every other byte of the name's UTF-8 is
//! `%` and two digits. Where the name has capital letters, `~` and a number in base 16 follow, whose bits say which of
//! its letters are capitals. The empty name is `%`. A name that would become too long is cut; `%~` and its SHA-256
//! follow.

use std::fmt::Write as _;
use std::path::{Component, Path};

use sha2::{Digest, Sha256};

/// Longest component that is made, in bytes. File systems end at 255; the rest is left for suffixes such as `.jsonl`.
pub const LONGEST: usize = 200;
/// How much of a name that is too long stays readable, in bytes.
const READABLE: usize = 120;

/// The path component that stands for `name`: never empty, `.` or `..`, without separators, at most [`LONGEST`] bytes
/// of ASCII, and different from that of any other name, even if case is ignored.
#[must_use]
pub fn path_name(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut escaped = String::with_capacity(name.len());
    let last = name.len() - 1;
    // How much of `escaped` may be kept where it is too long: never half an escape.
    let mut readable = 0;
    for (at, byte) in name.bytes().enumerate() {
        if stands_for_itself(byte, at == 0, at == last) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(escaped, "%{byte:02x}");
        }
        if escaped.len() <= READABLE {
            readable = escaped.len();
        }
    }
    let whole = escaped.clone() + &capitals(name);
    if whole.len() <= LONGEST {
        return whole;
    }
    escaped.truncate(readable);
    escaped.push_str("%~");
    for byte in Sha256::digest(name.as_bytes()) {
        let _ = write!(escaped, "{byte:02x}");
    }
    escaped
}

/// Whether a path from outside, joined to a folder, leads to something in it: it is not empty, begins at no root, and does not go up.
#[must_use]
pub fn stays_inside(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The name that a component stands for, if [`path_name`] makes it of one that was not cut.
#[must_use]
pub fn name_of(component: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(component.len());
    let escaped = component.split('~').next().unwrap_or_default();
    let mut rest = if escaped == "%" { &[][..] } else { escaped.as_bytes() };
    while let [byte, after @ ..] = rest {
        match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
                bytes.push(digit(*high)? * 16 + digit(*low)?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|name| path_name(name) == component)
}

/// A dot in front would hide the file or lead upward, one at the end is lost on some systems, and a dash in front
/// looks like an option.
fn stands_for_itself(byte: u8, first: bool, last: bool) -> bool {
    match byte {
        b'.' => !first && !last,
        b'-' => !first,
        _ => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$',
    }
}

/// `~` and the bits that say which ASCII letters are capitals; nothing where none is.
fn capitals(name: &str) -> String {
    if !name.bytes().any(|b| b.is_ascii_uppercase()) {
        return String::new();
    }
    let mut text = "~".to_owned();
    let letters: Vec<bool> =
        name.bytes().filter(u8::is_ascii_alphabetic).map(|b| b.is_ascii_uppercase()).collect();
    for four in letters.chunks(4) {
        let digit = four.iter().rev().fold(0, |number, &bit| number * 2 + u32::from(bit));
        text.push(char::from_digit(digit, 16).unwrap_or('0'));
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    use super::*;

    fn is_one_component(text: &str) -> bool {
        let mut parts = Path::new(text).components();
        matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
    }

    #[test]
    fn a_path_from_outside_stays_in_its_folder() {
        for inside in ["a", "a/b.jsonl", "a//b", "..a/b"] {
            assert!(stays_inside(Path::new(inside)), "{inside}");
        }
        for outside in ["", "/", "/a", "..", "../a", "a/../../b", "a/..", "./a"] {
            assert!(!stays_inside(Path::new(outside)), "{outside}");
        }
    }

    #[test]
    fn names_stay_readable() {
        for (name, component) in [
            ("raft-member-1", "raft-member-1"),
            ("", "%"),
            (".", "%2e"),
            ("..", "%2e%2e"),
            ("../../etc/x", "%2e.%2f..%2fetc%2fx"),
            ("a b$1.é", "a%20b$1.%c3%a9"),
            ("a\0b", "a%00b"),
            ("Master", "Master~10"),
            ("-rf", "%2drf"),
        ] {
            assert_eq!(path_name(name), component);
            assert_eq!(name_of(component).as_deref(), Some(name));
        }
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let (a, b) = ("x".repeat(300), "x".repeat(301));
        assert_ne!(path_name(&a), path_name(&b));
        assert!(path_name(&a).starts_with("xxx") && path_name(&a).len() <= LONGEST);
        let rtl = "\u{5d0}".repeat(90);
        assert!(path_name(&rtl).is_ascii() && path_name(&rtl).len() <= LONGEST);
        assert_eq!(name_of(&path_name(&a)), None);
    }

    /// Texts of what goes wrong most often.
    fn odd() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            Just(".".to_owned()),
            Just("..".to_owned()),
            Just("/".to_owned()),
            Just("\\".to_owned()),
            Just("%".to_owned()),
            Just("~".to_owned()),
            Just("\0".to_owned()),
            Just("\u{202e}".to_owned()),
            Just("\u{5d0}".to_owned()),
            "[aAbB019~%.-]{0,4}",
            "[aA]{60,220}",
            any::<String>(),
        ];
        prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn every_name_is_one_short_component(name in odd()) {
            let component = path_name(&name);
            prop_assert!(is_one_component(&component), "{component}");
            prop_assert!(component.len() <= LONGEST && component.is_ascii());
            prop_assert!(!component.contains('\\') && !component.contains('\0') && !component.contains(':'));
        }

        #[test]
        fn names_come_back_unless_they_were_cut(name in odd()) {
            let component = path_name(&name);
            let expected = (!component.contains("%~")).then_some(name);
            prop_assert_eq!(name_of(&component), expected);
        }

        #[test]
        fn no_two_names_meet_even_without_case(names in prop::collection::vec(odd(), 2..20)) {
            let mut seen = BTreeMap::new();
            for name in names {
                // Its neighbours too: parts of each other, and another case.
                for name in [format!("{name}/b"), format!("{name}."), name.to_lowercase(), name.to_uppercase(), name] {
                    let other = seen.insert(path_name(&name).to_lowercase(), name.clone());
                    prop_assert!(other.is_none_or(|other| other == name));
                }
            }
        }

        #[test]
        fn components_that_are_not_ours_are_refused(text in "[a-c~%0-9.]{0,8}") {
            if let Some(name) = name_of(&text) {
                prop_assert_eq!(path_name(&name), text);
            }
        }
    }
}
