//! Names of files, whatever their bytes are: as text, and against patterns.
//!
//! A name of a file is any bytes but `/` and NUL. The patterns are those of the `glob` crate, which match text. So a byte that belongs to
//! no character is matched as a character of its own, one that no name has.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use glob::{Pattern, PatternError};

/// First of the characters that stand for single bytes; it lies in a private use area.
const FIRST: u32 = 0x0010_ff00;

/// A name as text for people: bytes that belong to no character as `\xNN`.
pub fn text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to memory cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A name as text for patterns.
fn matchable(name: &OsStr) -> Cow<'_, str> {
    if let Some(text) = name.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    }
    Cow::Owned(text)
}

/// Whether a pattern matches a whole path.
pub fn matches(pattern: &Pattern, path: &Path) -> bool {
    pattern.matches(&matchable(path.as_os_str()))
}

/// Files and folders that a pattern matches.
#[derive(Debug, Default)]
pub struct Found {
    /// Each once, in the order of their names.
    pub paths: Vec<PathBuf>,
    /// Folders that could not be read.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Folders that it went into, with the part of the pattern that is to be matched there.
    entered: Vec<(PathBuf, usize)>,
}

/// Looks for what a pattern matches. A name that begins with a dot is matched only by a part of the pattern that begins with one.
///
/// # Errors
/// When the pattern cannot be read.
pub fn find(pattern: &str) -> Result<Found, PatternError> {
    let walk = Walk::new(pattern)?;
    let mut found = Found::default();
    walk.step(&walk.root, 0, &mut Vec::new(), &mut found);
    found.paths.sort();
    found.paths.dedup();
    Ok(found)
}

/// Whether a pattern would match a file of that absolute path if it were there. A pattern that begins with no slash is meant below `here`.
pub fn would_find(pattern: &str, here: &Path, path: &Path) -> bool {
    let whole = match pattern.starts_with('/') {
        true => pattern.to_owned(),
        false => format!("{}/{pattern}", Pattern::escape(&matchable(here.as_os_str()))),
    };
    let Ok(Walk { parts, .. }) = Walk::new(&whole) else { return false };
    let mut straight: Vec<Part> = Vec::new();
    for part in parts {
        match part {
            Part::Name(name) if name == "." => {}
            Part::Name(name) if name == ".." => drop(straight.pop()),
            part => straight.push(part),
        }
    }
    let names: Vec<&OsStr> = path.iter().filter(|name| *name != OsStr::new("/")).collect();
    fits(&straight, &names)
}

/// The first of some real paths that a pattern would match below a folder that is there, also through links: how it would be found, and what it
/// is. The paths need not be there.
#[must_use]
pub fn would_lead_to(pattern: &str, paths: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
    let Ok(walk) = Walk::new(pattern) else { return Vec::new() };
    let mut found = Found::default();
    walk.step(&walk.root, 0, &mut Vec::new(), &mut found);
    let mut led = Vec::new();
    for (at, part) in found.entered {
        let real = real(here(&at));
        let parts = walk.parts.get(part..).unwrap_or_default();
        for path in paths {
            let Ok(below) = path.strip_prefix(&real) else { continue };
            if fits(parts, &below.iter().collect::<Vec<_>>()) {
                led.push((at.join(below), path.clone()));
            }
        }
    }
    led
}

/// Most links that are followed for one name.
const MOST_LINKS: usize = 40;

/// A path as it is, where all links are followed, also those to what is not there yet.
#[must_use]
pub fn real(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..MOST_LINKS {
        let mut at = path.as_path();
        let mut below = Vec::new();
        let (there, rest) = loop {
            if let Ok(there) = fs::canonicalize(at) {
                break (there, below);
            }
            let (Some(above), Some(name)) = (at.parent(), at.file_name()) else { return path };
            below.push(name);
            at = above;
        };
        let mut rest = rest.into_iter().rev();
        let Some(first) = rest.next() else { return there };
        let next = there.join(first);
        let led = fs::read_link(&next).map(|to| there.join(to));
        let leads = led.is_ok();
        let whole = rest.fold(led.unwrap_or(next), |path, name| path.join(name));
        if !leads {
            return whole;
        }
        path = whole;
    }
    path
}

/// Whether it is a link to something that is not there.
fn leads_nowhere(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) && fs::metadata(path).is_err()
}

/// Whether a name is like a part of a pattern, which begins with a dot or does not.
fn like(pattern: &Pattern, dot: bool, name: &OsStr) -> bool {
    (dot || !name.as_bytes().starts_with(b".")) && pattern.matches(&matchable(name))
}

fn fits(parts: &[Part], names: &[&OsStr]) -> bool {
    let Some((name, rest)) = names.split_first() else { return parts.is_empty() };
    let hidden = name.as_bytes().starts_with(b".");
    match parts.split_first() {
        None => false,
        Some((Part::Name(own), others)) => OsStr::new(own) == *name && fits(others, rest),
        Some((Part::Like(pattern, dot), others)) => like(pattern, *dot, name) && fits(others, rest),
        Some((Part::Folders, others)) => fits(others, names) || !hidden && fits(parts, rest),
    }
}

/// A part of a pattern between two slashes.
enum Part {
    /// A name as it is.
    Name(String),
    /// A pattern of names, and whether it begins with a dot.
    Like(Pattern, bool),
    /// `**`: any number of folders.
    Folders,
}

struct Walk {
    root: PathBuf,
    parts: Vec<Part>,
    /// Whether only folders are meant: the pattern ends with a slash.
    folders: bool,
}

impl Walk {
    fn new(pattern: &str) -> Result<Walk, PatternError> {
        Pattern::new(pattern)?;
        let mut parts: Vec<Part> = Vec::new();
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            match part {
                "**" if matches!(parts.last(), Some(Part::Folders)) => {}
                "**" => parts.push(Part::Folders),
                _ if part.contains(['*', '?', '[']) => {
                    parts.push(Part::Like(Pattern::new(part)?, part.starts_with('.')));
                }
                _ => parts.push(Part::Name(part.to_owned())),
            }
        }
        let root = if pattern.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() };
        Ok(Walk { root, parts, folders: pattern.ends_with('/') })
    }

    /// Goes on in the folder `at` with the given part. `above` are the folders around it that `**` went through.
    fn step(&self, at: &Path, part: usize, above: &mut Vec<(u64, u64)>, found: &mut Found) {
        let last = part + 1 == self.parts.len();
        found.entered.push((at.to_owned(), part));
        match self.parts.get(part) {
            None => {}
            Some(Part::Name(name)) => {
                let path = at.join(name);
                match last {
                    true if fs::metadata(&path).is_ok_and(|meta| !self.folders || meta.is_dir()) => {
                        found.paths.push(path);
                    }
                    true => {}
                    false => self.step(&path, part + 1, above, found),
                }
            }
            Some(Part::Like(pattern, dot)) => {
                for path in names(at, found) {
                    if !like(pattern, *dot, path.file_name().unwrap_or_default()) {
                        continue;
                    }
                    match last {
                        true if !self.folders || path.is_dir() => found.paths.push(path),
                        false if path.is_dir() => self.step(&path, part + 1, above, found),
                        false if leads_nowhere(&path) => found.entered.push((path, part + 1)),
                        _ => {}
                    }
                }
            }
            Some(Part::Folders) => {
                // A link may lead back to a folder that it is in.
                let Ok(meta) = fs::metadata(here(at)) else { return };
                let id = (meta.dev(), meta.ino());
                if !meta.is_dir() || above.contains(&id) {
                    return;
                }
                above.push(id);
                match last {
                    true if !at.as_os_str().is_empty() => found.paths.push(at.to_owned()),
                    true => {}
                    false => self.step(at, part + 1, above, found),
                }
                for path in names(at, found) {
                    let hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
                    if !hidden && path.is_dir() {
                        self.step(&path, part, above, found);
                    } else if !hidden && leads_nowhere(&path) {
                        found.entered.push((path, part));
                    }
                }
                above.pop();
            }
        }
    }
}

/// The folder itself, where its name is empty.
fn here(at: &Path) -> &Path {
    if at.as_os_str().is_empty() { Path::new(".") } else { at }
}

/// What is in a folder, in the order of the names. What is no folder holds nothing.
fn names(at: &Path, found: &mut Found) -> Vec<PathBuf> {
    let entries = match fs::read_dir(here(at)) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Vec::new();
        }
        Err(error) => {
            found.unreadable.push((at.to_owned(), error));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| at.join(entry.file_name())).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn put(dir: &Path, name: &[u8]) -> PathBuf {
        let path = dir.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "x").unwrap();
        path
    }

    fn found(dir: &Path, pattern: &str) -> Vec<String> {
        let found = find(&format!("{}/{pattern}", dir.display())).unwrap();
        assert!(found.unreadable.is_empty(), "{found:?}");
        found.paths.iter().map(|path| text(path.strip_prefix(dir).unwrap())).collect()
    }

    #[test]
    fn names_of_any_bytes_are_found_beside_others() {
        let dir = tempfile::tempdir().unwrap();
        let names: [&[u8]; 7] = [
            b"good.log",
            b"\xff\xfe.log",
            "ä.log".as_bytes(),
            b"sub\xf0/a\x80.log",
            b".hidden.log",
            b".git/x.log",
            b"[x].log",
        ];
        names.iter().for_each(|name| drop(put(dir.path(), name)));
        assert_eq!(found(dir.path(), "*.log"), ["[x].log", "good.log", "ä.log", "\\xff\\xfe.log"]);
        assert_eq!(found(dir.path(), "?.log"), ["ä.log"], "a character is one, whatever its bytes");
        assert_eq!(found(dir.path(), "??.log"), ["\\xff\\xfe.log"], "a byte that is in no character is one");
        assert_eq!(found(dir.path(), "**/a*.log"), ["sub\\xf0/a\\x80.log"]);
        assert_eq!(found(dir.path(), ".h*"), [".hidden.log"]);
        assert_eq!(found(dir.path(), "[[]x].log"), ["[x].log"]);
        assert_eq!(found(dir.path(), "[!g]*.log"), ["[x].log", "ä.log", "\\xff\\xfe.log"]);
        assert_eq!(found(dir.path(), "good.log"), ["good.log"]);
        assert_eq!(found(dir.path(), "none/*"), Vec::<String>::new());
        assert_eq!(found(dir.path(), "s*/"), ["sub\\xf0"]);
        let odd = dir.path().join(OsStr::from_bytes(b"\xff\xfe.log"));
        assert!(matches(&Pattern::new("**/*.log").unwrap(), &odd));
        assert!(!matches(&Pattern::new("**/*.txt").unwrap(), &odd));
    }

    #[test]
    fn what_a_pattern_would_find_is_told_without_a_file() {
        let would = |pattern: &str, path: &str| would_find(pattern, Path::new("/here"), Path::new(path));
        for (pattern, path) in [
            ("/d/**/*", "/d/store/x.json"),
            ("/d/*/x.*", "/d/store/x.json"),
            ("*/x.json", "/here/store/x.json"),
            ("../d/./*", "/d/x"),
            ("/d/**/**/x", "/d/x"),
            ("/[d]/x", "/d/x"),
            ("/d/.h*", "/d/.hidden"),
        ] {
            assert!(would(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/d/*", "/d/store/x.json"),
            ("/d/**/*.log", "/d/store/x.json"),
            ("*/x.json", "/d/x.json"),
            ("/d/**/*", "/d/.hidden/x"),
            ("/d/**/*", "/d/.hidden"),
            ("/d", "/d/x"),
        ] {
            assert!(!would(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn links_that_lead_back_end() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), b"a/b/x.log");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/back")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("a/b"), dir.path().join("a/other")).unwrap();
        assert_eq!(found(dir.path(), "**/*.log"), ["a/b/x.log", "a/other/x.log"]);
    }

    proptest! {
        /// Of any names: a pattern finds what it matches, and nothing else.
        #[test]
        fn what_is_found_is_what_matches(
            names in prop::collection::btree_set(
                prop::collection::vec(prop::sample::select(&b"ab.\xff\xc3\xa4"[..]), 1..4), 0..12),
            pattern in "[ab?*.]{1,4}",
        ) {
            prop_assume!(!pattern.contains("**"));
            let dir = tempfile::tempdir().unwrap();
            let real = |name: &&Vec<u8>| *name != b"." && *name != b"..";
            let names: Vec<&Vec<u8>> = names.iter().filter(real).collect();
            let all: BTreeSet<PathBuf> = names.iter().map(|name| put(dir.path(), name)).collect();
            let got = find(&format!("{}/{pattern}", dir.path().display())).unwrap().paths;
            let like = Pattern::new(&pattern).unwrap();
            let expected: Vec<PathBuf> = all.into_iter().filter(|path| {
                let name = path.file_name().unwrap();
                let hidden = name.as_bytes().starts_with(b".") && !pattern.starts_with('.');
                like.matches(&matchable(name)) && !hidden
            }).collect();
            prop_assume!(pattern != "." && pattern != "..");
            prop_assert_eq!(got, expected);
        }
    }
}
