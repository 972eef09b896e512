//! Which of two versions of a system is older.

use std::cmp::Ordering;

/// Compares two versions: as numbers with dots where both are (semantic versioning: what stands behind `-` makes it older than without, and what
/// stands behind `+` does not count), else by which came first among `seen`. Nothing where neither is known.
#[must_use]
pub fn compare(a: &str, b: &str, seen: &[String]) -> Option<Ordering> {
    if a == b {
        return Some(Ordering::Equal);
    }
    if let (Some(a), Some(b)) = (Semantic::read(a), Semantic::read(b)) {
        return Some(a.cmp(&b));
    }
    let place = |version: &str| seen.iter().position(|known| known == version);
    Some(place(a)?.cmp(&place(b)?))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Semantic {
    numbers: Vec<u64>,
    /// A release comes after all that leads to it.
    release: bool,
    before: Vec<Part>,
}

/// A part of what leads to a release: numbers come before words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Semantic {
    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('+').next().unwrap_or_default();
        let (numbers, before) = text.split_once('-').unwrap_or((text, ""));
        let mut numbers = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        let part = |part: &str| part.parse().map_or_else(|_| Part::Word(part.to_owned()), Part::Number);
        let release = before.is_empty();
        let before = if release { Vec::new() } else { before.split('.').map(part).collect() };
        Some(Semantic { numbers, release, before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_else_by_when_they_came() {
        let seen = ["4f2a".to_owned(), "09bc".to_owned()];
        let older = |a, b| compare(a, b, &seen) == Some(Ordering::Less);
        for (a, b) in [
            ("1.4.1", "1.4.2"),
            ("1.4.9", "1.4.10"),
            ("1.4", "1.4.1"),
            ("1.4.2-rc.1", "1.4.2"),
            ("1.4.2-rc.2", "1.4.2-rc.10"),
            ("1.4.2-1", "1.4.2-alpha"),
            ("v1.9", "2.0.0"),
            ("4f2a", "09bc"),
        ] {
            assert!(older(a, b) && !older(b, a), "{a} {b}");
        }
        assert_eq!(compare("1.4", "1.4.0", &seen), Some(Ordering::Equal));
        assert_eq!(compare("1.4.0+a", "1.4.0+b", &seen), Some(Ordering::Equal));
        assert_eq!(compare("4f2a", "ffff", &seen), None);
        assert_eq!(compare("1.4.0", "ffff", &seen), None);
    }
}
