//! The order in which files are read: numbers in their names, and logs that were rotated.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Ends of the names of packed files.
const PACKED_ENDS: [&str; 2] = [".zst", ".gz"];
/// Ends of names of logs, behind which a number stands for a rotation even if the log itself is not there.
const LOG_ENDS: [&str; 5] = [".jsonl", ".ndjson", ".json", ".log", ".txt"];
/// Ends of the names of the one file that a rotation keeps.
const KEPT_ENDS: [&str; 3] = [".old", ".prev", ".previous"];
/// Most digits of the number of a rotated file; a longer number is a date or a time.
const MOST_DIGITS: usize = 5;

/// A name that is compared piece by piece, its numbers as numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Natural(Vec<Piece>, String);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// The length of a number without its leading zeros, and its digits.
    Number(usize, String),
    Text(String),
}

impl Natural {
    pub(super) fn of(name: &str) -> Natural {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut rest = name;
        while let Some(first) = rest.chars().next() {
            let digit = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
            let (piece, behind) = rest.split_at(end);
            rest = behind;
            pieces.push(match digit {
                true => {
                    let digits = piece.trim_start_matches('0');
                    Piece::Number(digits.len(), digits.to_owned())
                }
                false => Piece::Text(piece.to_owned()),
            });
        }
        Natural(pieces, name.to_owned())
    }
}

/// Compares paths step by step.
pub(super) fn natural(a: &Path, b: &Path) -> Ordering {
    let steps = |path: &Path| -> Vec<Natural> {
        path.components().map(|c| Natural::of(&c.as_os_str().to_string_lossy())).collect()
    };
    steps(a).cmp(&steps(b))
}

/// Puts files whose names differ in numbers alone into the order of these, where they stand in the order of letters, as a shell gives them. Every other
/// order is somebody's wish.
pub(super) fn by_number(paths: &mut [PathBuf]) {
    let mut families: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, path) in paths.iter().enumerate() {
        let mut family = String::new();
        for c in path.to_string_lossy().chars() {
            match c.is_ascii_digit() {
                true if family.ends_with('0') => {}
                true => family.push('0'),
                false => family.push(c),
            }
        }
        families.entry(family).or_default().push(i);
    }
    for places in families.values().filter(|places| places.len() > 1) {
        let mut members: Vec<PathBuf> = places.iter().filter_map(|i| paths.get(*i).cloned()).collect();
        if members.is_sorted() {
            members.sort_by(|a, b| natural(a, b));
            put(paths, places, members);
        }
    }
}

/// Turns around files whose numbers count from 0 for the newest, as `java.util.logging` counts: `a.0.log`, `a.1.log`. Without the log itself they may be those of
/// processes; then it does not matter in which order they are read.
pub(super) fn newest_is_zero(paths: &mut [PathBuf], begins: impl Fn(&Path) -> Option<String>) {
    let mut families: BTreeMap<Log, Vec<(u32, usize)>> = BTreeMap::new();
    for (i, path) in paths.iter().enumerate() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((Rotation { age: Age::Ago(std::cmp::Reverse(ago)), .. }, log)) = Rotation::inside(&name)
        else {
            continue;
        };
        let usual = LOG_ENDS.iter().any(|end| log.to_ascii_lowercase().ends_with(end));
        if usual && unpacked(&name).rsplit('.').nth(1).is_some_and(|number| number == ago.to_string()) {
            families.entry((path.parent().map(Path::to_owned), log)).or_default().push((ago, i));
        }
    }
    for files in families.into_values() {
        // In the order of their numbers, from 0 on: every other one is somebody's wish.
        if files.len() < 2 || files[0].0 != 0 || !files.is_sorted() {
            continue;
        }
        let stamps: Option<Vec<String>> =
            files.iter().map(|(_, i)| paths.get(*i).and_then(|path| begins(path))).collect();
        if stamps.is_some_and(|stamps| stamps.windows(2).all(|two| two[0] > two[1])) {
            let places: Vec<usize> = files.iter().map(|(_, i)| *i).collect();
            let members = places.iter().rev().filter_map(|i| paths.get(*i).cloned()).collect();
            put(paths, &places, members);
        }
    }
}

/// A day that a name writes before its year, and what follows: both numbers, the year, the rest.
fn day_before_year(stamp: &str) -> Option<(u32, u32, &str, &str)> {
    let mut parts = stamp.splitn(3, ['-', '_', '.']);
    let (one, two, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, rest) = rest.split_at_checked(4)?;
    let number = |text: &str| text.parse().ok().filter(|_| (1..=2).contains(&text.len()));
    let ends = !rest.starts_with(|c: char| c.is_ascii_digit());
    (ends && year.bytes().all(|byte| byte.is_ascii_digit())).then_some((
        number(one)?,
        number(two)?,
        year,
        rest,
    ))
}

/// Puts the years of stamps in front, where all of them write day and month before it, and one of them tells which is which.
fn years_first(files: &mut [(Age, usize)]) {
    let read = |age: &Age| match age {
        Age::At(Natural(_, stamp)) => Some(day_before_year(stamp).map(|(one, two, ..)| (one, two))),
        _ => None,
    };
    let days: Option<Vec<(u32, u32)>> = files.iter().filter_map(|(age, _)| read(age)).collect();
    let Some(days) = days else { return };
    let month_first = match (days.iter().any(|(one, _)| *one > 12), days.iter().any(|(_, two)| *two > 12)) {
        (true, false) => false,
        (false, true) => true,
        _ => return,
    };
    for (age, _) in files {
        if let Age::At(Natural(_, stamp)) = age
            && let Some((one, two, year, rest)) = day_before_year(stamp)
        {
            let (month, day) = if month_first { (one, two) } else { (two, one) };
            *age = Age::At(Natural::of(&format!("{year}-{month}-{day}{rest}")));
        }
    }
}

/// Puts the members in the places that they had together.
fn put(paths: &mut [PathBuf], places: &[usize], members: Vec<PathBuf>) {
    for (place, member) in places.iter().zip(members) {
        if let Some(path) = paths.get_mut(*place) {
            *path = member;
        }
    }
}

/// The name without the end that says how it is packed.
pub(super) fn unpacked(name: &str) -> &str {
    PACKED_ENDS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// A file that a rotation left of a log: `a.log.1`, `a.log-20240501.gz`, `a.log.2024-05-01-17`, `a.1.log`, `a.log.old`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rotation<'a> {
    log: &'a str,
    age: Age,
}

/// How old a file of a log is; what is less is older.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// Rotated at that time.
    At(Natural),
    /// So many rotations ago; more are less.
    Ago(std::cmp::Reverse<u32>),
    /// The log itself.
    Now,
}

impl<'a> Rotation<'a> {
    /// What the name says, if it is one of a rotated file.
    pub(super) fn of(name: &'a str) -> Option<Rotation<'a>> {
        let name = unpacked(name);
        if let Some(log) = KEPT_ENDS.iter().find_map(|end| name.strip_suffix(end)) {
            return (!log.is_empty()).then_some(Rotation { log, age: Age::Ago(std::cmp::Reverse(1)) });
        }
        let is_part = |c: char| c.is_ascii_digit() || "-_.:T".contains(c);
        // The log's own name ends where only digits and what stands between them follow.
        let tail = name.trim_end_matches(is_part).len();
        if let Some(end) = name.get(tail..)?.find(|c: char| "-_.".contains(c)).map(|at| tail + at) {
            let (log, stamp) = (name.get(..end)?, name.get(end + 1..)?);
            let digits = stamp.bytes().filter(u8::is_ascii_digit).count();
            if digits > MOST_DIGITS && !log.is_empty() {
                return Some(Rotation { log, age: Age::At(Natural::of(stamp)) });
            }
        }
        let (log, number) = name.rsplit_once('.')?;
        Rotation::counted(log, number)
    }

    fn counted(log: &'a str, number: &str) -> Option<Rotation<'a>> {
        let counts = !number.is_empty()
            && number.len() <= MOST_DIGITS
            && number.bytes().all(|byte| byte.is_ascii_digit())
            // Whoever counts with leading zeros splits, and does not rotate.
            && (number.len() == 1 || !number.starts_with('0'));
        let age = Age::Ago(std::cmp::Reverse(number.parse().ok()?));
        (counts && !log.is_empty()).then_some(Rotation { log, age })
    }

    /// The same where it stands before the end of the name, and the name of the log: `a.1.log`, `a-2.log.gz`, `a_2024-05-01.log`. It may be
    /// anything else than a rotation, unless the log is there too.
    fn inside(name: &'a str) -> Option<(Rotation<'a>, String)> {
        let (front, end) = unpacked(name).rsplit_once('.')?;
        let counted = || {
            let (log, number) = front.rsplit_once(['.', '-', '_'])?;
            Rotation::counted(log, number)
        };
        let rotation = Rotation::of(front).or_else(counted).filter(|_| !end.is_empty())?;
        let log = format!("{}.{end}", rotation.log);
        Some((rotation, log))
    }

    /// Name of the log.
    pub(super) fn log(&self) -> &str {
        self.log
    }
}

/// The log of which a rotation left a file of this name, where its ending says that it is one.
#[must_use]
pub fn rotated_log(name: &str) -> Option<&str> {
    let rotation = Rotation::of(name)?;
    let lower = rotation.log.to_ascii_lowercase();
    LOG_ENDS.iter().any(|end| lower.ends_with(end)).then_some(rotation.log)
}

/// A log: its folder, and its name.
type Log = (Option<PathBuf>, String);

/// Puts the files of each log that was rotated into their order, oldest first, and tells them. `begins` gives the first stamp of a file, if one
/// is found.
///
/// Files are of one log where the log itself is among them; numbers behind the usual endings of logs (`a.log.1`) say it too. Where all files
/// of a log have stamps, these say which is older; else their names do. Numbers count up with some programs that rotate and down with others: the
/// stamps of the files that have them say which, and without any a greater one is older.
pub(super) fn oldest_first(
    paths: &mut [PathBuf],
    begins: impl Fn(&Path) -> Option<String>,
) -> Vec<Vec<PathBuf>> {
    let key =
        |path: &Path, name: &str| -> Log { (path.parent().map(Path::to_owned), unpacked(name).to_owned()) };
    let name_of = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let there: HashSet<_> = paths.iter().filter_map(|p| Some(key(p, &name_of(p)?))).collect();
    let mut logs: BTreeMap<Log, Vec<(Age, usize)>> = BTreeMap::new();
    for (i, path) in paths.iter().enumerate() {
        let Some(name) = name_of(path) else { continue };
        let rotation = Rotation::of(&name).filter(|rotation| {
            let lower = rotation.log.to_ascii_lowercase();
            let usual =
                matches!(rotation.age, Age::Ago(_)) && LOG_ENDS.iter().any(|end| lower.ends_with(end));
            usual || there.contains(&key(path, rotation.log))
        });
        let inside = || {
            let (rotation, log) = Rotation::inside(&name)?;
            let log = key(path, &log);
            there.contains(&log).then_some((log, rotation.age))
        };
        let (log, age) = match rotation {
            Some(Rotation { log, age }) => (key(path, log), age),
            None => inside().unwrap_or_else(|| (key(path, &name), Age::Now)),
        };
        logs.entry(log).or_default().push((age, i));
    }
    let mut told = Vec::new();
    for mut files in logs.into_values().filter(|files| files.len() > 1) {
        let whole = files.iter().any(|(age, _)| *age == Age::Now);
        let mut places: Vec<usize> = files.iter().map(|(_, i)| *i).collect();
        places.sort_unstable();
        years_first(&mut files);
        files.sort();
        let numbered = files.iter().filter(|(age, _)| matches!(age, Age::Ago(_))).count();
        let stamps: Vec<Option<String>> =
            files.iter().map(|(_, i)| paths.get(*i).and_then(|path| begins(path))).collect();
        let upwards = || {
            let begins: Option<Vec<&String>> = stamps[..numbered].iter().map(Option::as_ref).collect();
            begins.is_some_and(|begins| begins.windows(2).all(|two| two[0] > two[1]))
        };
        // Names of files are written in many ways; where all of them tell when they begin, that counts.
        if stamps.iter().all(Option::is_some) {
            let mut ranked: Vec<_> = stamps.into_iter().zip(files).collect();
            ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
            files = ranked.into_iter().map(|(_, file)| file).collect();
        } else if numbered > 1
            && files[..numbered].iter().all(|(age, _)| matches!(age, Age::Ago(_)))
            && upwards()
        {
            files[..numbered].reverse();
        }
        let members: Vec<PathBuf> = files.iter().filter_map(|(_, i)| paths.get(*i).cloned()).collect();
        put(paths, &places, members.clone());
        // Numbers alone may be those of processes.
        if whole && files.iter().any(|(age, _)| *age != Age::Now) {
            told.push(members);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordered(names: &[&str]) -> (Vec<String>, usize) {
        let mut paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        by_number(&mut paths);
        let told = oldest_first(&mut paths, |_| None).len();
        (paths.iter().map(|p| p.display().to_string()).collect(), told)
    }

    #[test]
    fn numbers_in_names_are_numbers_and_rotated_files_are_oldest_first() {
        for (given, read, told) in [
            (&["0", "1", "10", "11", "2"][..], &["0", "1", "2", "10", "11"][..], 0),
            // Somebody's wish.
            (&["n2.log", "n10.log", "n1.log"], &["n2.log", "n10.log", "n1.log"], 0),
            (&["d/1/x", "d/10/x", "d/2/x"], &["d/1/x", "d/2/x", "d/10/x"], 0),
            (&["a.log", "a.log.1", "a.log.10", "a.log.2"], &["a.log.10", "a.log.2", "a.log.1", "a.log"], 1),
            (&["a.log.1.gz", "z", "a.log"], &["a.log.1.gz", "z", "a.log"], 1),
            (&["a.log", "a.log.1.gz", "b.log", "b.log.1"], &["a.log.1.gz", "a.log", "b.log.1", "b.log"], 2),
            (&["x/a.log", "y/a.log.1"], &["x/a.log", "y/a.log.1"], 0),
            (&["messages", "messages.1"], &["messages.1", "messages"], 1),
            (&["node.1", "node.2"], &["node.1", "node.2"], 0),
            (&["a.log.1", "a.log.2"], &["a.log.2", "a.log.1"], 0),
            (&["a.log.00", "a.log.01"], &["a.log.00", "a.log.01"], 0),
            (
                &["a.log", "a.log-20240501", "a.log-20240502.gz", "a.log.1"],
                &["a.log-20240501", "a.log-20240502.gz", "a.log.1", "a.log"],
                1,
            ),
            (
                &["a.log", "a.log.2024-05-01-9", "a.log.2024-05-01-10"],
                &["a.log.2024-05-01-9", "a.log.2024-05-01-10", "a.log"],
                1,
            ),
            (&["raft-1.log", "raft-2.log"], &["raft-1.log", "raft-2.log"], 0),
            (&["raft-1", "raft-1.2"], &["raft-1.2", "raft-1"], 1),
            (&["a.1.log", "a.10.log", "a.2.log", "a.log"], &["a.10.log", "a.2.log", "a.1.log", "a.log"], 1),
            (
                &["a.log", "a_2024-05-01.log", "a_2024-05-02.log"],
                &["a_2024-05-01.log", "a_2024-05-02.log", "a.log"],
                1,
            ),
            (&["a-1.log.gz", "a-2.log.gz", "a.log"], &["a-2.log.gz", "a-1.log.gz", "a.log"], 1),
            // Of processes.
            (&["a-1.log", "a-2.log"], &["a-1.log", "a-2.log"], 0),
            (&["a.log", "a.log.old"], &["a.log.old", "a.log"], 1),
            (&["a.log", "a.log.prev.gz"], &["a.log.prev.gz", "a.log"], 1),
            // Days or months first: one of them says which.
            (
                &["a.log", "a.log.01-02-2024", "a.log.31-01-2024"],
                &["a.log.31-01-2024", "a.log.01-02-2024", "a.log"],
                1,
            ),
            (
                &["a-01-02-2024-1.log", "a-12-31-2023-1.log", "a-12-31-2023-2.log", "a.log"],
                &["a-12-31-2023-1.log", "a-12-31-2023-2.log", "a-01-02-2024-1.log", "a.log"],
                1,
            ),
        ] {
            assert_eq!(ordered(given), (read.iter().map(|n| (*n).to_owned()).collect(), told), "{given:?}");
        }
    }

    #[test]
    fn numbers_that_count_up_are_told_by_stamps() {
        let begins = |path: &Path| {
            let at = ["a-1.log", "a-2.log", "a-10.log"].iter().position(|name| Path::new(name) == path)?;
            Some(format!("2024-05-01 00:0{at}"))
        };
        let mut paths = ["a-1.log", "a-10.log", "a-2.log", "a.log"].map(PathBuf::from);
        assert_eq!(oldest_first(&mut paths, begins).len(), 1);
        assert_eq!(paths, ["a-1.log", "a-2.log", "a-10.log", "a.log"].map(PathBuf::from));
        // Days before months, and a log that was there before its parts.
        for names in [["a.01-02-2024.log", "a.31-01-2024.log", "a.log"], ["a.log", "a.log.1", "a.log.2"]] {
            let order = if names[1] == "a.log.1" { names } else { [names[1], names[0], names[2]] };
            let begins = |path: &Path| {
                let at = order.iter().position(|name| Path::new(name) == path)?;
                Some(format!("2024-05-01 00:0{at}"))
            };
            let mut paths = names.map(PathBuf::from);
            assert_eq!(oldest_first(&mut paths, begins).len(), 1);
            assert_eq!(paths, order.map(PathBuf::from));
        }
        // Where one has no stamp the names decide.
        assert_eq!(oldest_first(&mut paths, |path| begins(path).filter(|at| !at.ends_with('2'))).len(), 1);
        assert_eq!(paths, ["a-10.log", "a-2.log", "a-1.log", "a.log"].map(PathBuf::from));
    }

    #[test]
    fn where_zero_is_the_newest_it_is_read_last() {
        let begins = |path: &Path| {
            let number: u32 = path.to_str()?.split('.').nth(1)?.parse().ok()?;
            (number < 7).then(|| format!("2024-05-01 00:0{}", 9 - number))
        };
        for (given, read) in [
            (&["a.0.log", "a.1.log", "a.2.log"][..], &["a.2.log", "a.1.log", "a.0.log"][..]),
            (&["a.0.log", "b.log", "a.1.log"], &["a.1.log", "b.log", "a.0.log"]),
            // Somebody's wish; no 0; one without a stamp; no log by name.
            (&["a.1.log", "a.0.log"], &["a.1.log", "a.0.log"]),
            (&["a.1.log", "a.2.log"], &["a.1.log", "a.2.log"]),
            (&["a.0.log", "a.7.log"], &["a.0.log", "a.7.log"]),
            (&["a.0.dat", "a.1.dat"], &["a.0.dat", "a.1.dat"]),
        ] {
            let mut paths: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
            newest_is_zero(&mut paths, begins);
            assert_eq!(paths, read.iter().map(PathBuf::from).collect::<Vec<_>>());
        }
        // Processes that began one after the other.
        let mut paths = ["a.0.log", "a.1.log"].map(PathBuf::from);
        newest_is_zero(&mut paths, |path| Some(path.display().to_string()));
        assert_eq!(paths, ["a.0.log", "a.1.log"].map(PathBuf::from));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(names in proptest::collection::vec("[ab]{0,1}[-.]{0,1}(log)?[-.]{0,1}[0-9]{0,7}(.gz)?", 0..12)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (mut read, _) = ordered(&names);
            let mut given: Vec<String> = names.iter().map(|n| PathBuf::from(n).display().to_string()).collect();
            read.sort();
            given.sort();
            prop_assert_eq!(read, given);
        }

        #[test]
        fn numbers_are_compared_as_numbers(a in 0..99_999_u32, b in 0..99_999_u32) {
            let name = |n: u32| PathBuf::from(format!("d{n}/log"));
            prop_assert_eq!(natural(&name(a), &name(b)), a.cmp(&b));
        }
    }
}
