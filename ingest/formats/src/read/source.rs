//! Which files and streams a load reads, from the paths a person gave.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use demi_common::owned;
use regex::bytes::Regex;

use super::order;
use crate::ReadError;
use crate::read::decompress::{packing, unpack};
use crate::read::encoding::Encoding;
use crate::read::names;

/// Bytes of a file in which its first stamp is looked for.
const BEGINNING: usize = 4096;

/// Ends of names taken from a folder, each also with a packing's end behind it.
///
/// GoVector names its files `NAME-Log.txt`.
const LOG_ENDS: [&str; 5] = [".jsonl", ".ndjson", ".json", ".log", "-log.txt"];

/// One file or stream of event records.
pub struct Source {
    /// What events say they came from: the path as given, or `-`.
    pub name: String,
    from: From,
    encoding: Option<Encoding>,
    /// The log of which it is a part, where that was rotated.
    log: Option<String>,
    /// Where the bytes that were read are counted, packed as they are.
    counted: Option<Arc<AtomicU64>>,
}

/// How much of all sources was read.
#[derive(Clone, Debug)]
pub struct Share {
    read: Arc<AtomicU64>,
    whole: Option<u64>,
}

impl Share {
    /// The part that was read, from 0 to 1, where it is known how much there is: a stream does not say, and a file that grows says less than it has.
    #[must_use]
    pub fn part(&self) -> Option<f64> {
        let (read, whole) = (self.read.load(Ordering::Relaxed), self.whole.filter(|whole| *whole > 0)?);
        Some((read as f64 / whole as f64).min(1.0))
    }
}

/// Counts what is read.
struct Counted(File, Arc<AtomicU64>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

enum From {
    File(PathBuf),
    Stream(Box<dyn Read + Send>),
}

impl Source {
    /// A file; its name in the store is `path` as it is.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Source { name: names::text(&path), from: From::File(path), encoding: None, log: None, counted: None }
    }

    /// A stream under a name of the caller's choice. Offsets count its unpacked bytes.
    #[must_use]
    pub fn stream(name: impl Into<String>, stream: Box<dyn Read + Send>) -> Self {
        Source { name: name.into(), from: From::Stream(stream), encoding: None, log: None, counted: None }
    }

    /// The log of which it is a part, where that was rotated: what its parts leave open goes on from one to the next.
    pub(crate) fn log(&self) -> Option<&str> {
        self.log.as_deref()
    }

    /// The source, decoded from that encoding unless it has one.
    pub fn or_decoded(mut self, encoding: Option<Encoding>) -> Self {
        self.encoding = self.encoding.or(encoding);
        self
    }

    /// Opens the source for reading: its name, and its bytes unpacked and decoded.
    pub fn read(self) -> Result<(String, Box<dyn BufRead + Send>), ReadError> {
        let encoding = self.encoding;
        let (name, stream) = self.open()?;
        let stream = unpack(&name, stream)?;
        let stream = match encoding {
            Some(encoding) => encoding.decode(stream),
            None => stream,
        };
        Ok((name, stream))
    }

    /// Opens the source, packed as it is.
    fn open(self) -> Result<(String, Box<dyn Read + Send>), ReadError> {
        match self.from {
            From::Stream(stream) => Ok((self.name, stream)),
            From::File(path) => match File::open(&path) {
                Ok(file) => match self.counted {
                    Some(count) => Ok((self.name, Box::new(Counted(file, count)))),
                    None => Ok((self.name, Box::new(file))),
                },
                Err(source) => Err(ReadError::Read { path: self.name, source }),
            },
        }
    }
}

/// The sources of a load, in the order in which they are read.
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// The sources, each decoded from that encoding.
    #[must_use]
    pub fn decoded(self, encoding: Option<Encoding>) -> Sources {
        Sources(self.0.into_iter().map(|source| source.or_decoded(encoding)).collect())
    }

    /// The sources, and how much of them was read at any time.
    #[must_use]
    pub fn counted(mut self) -> (Sources, Share) {
        let read = Arc::new(AtomicU64::new(0));
        let size = |source: &Source| match &source.from {
            From::Stream(_) => None,
            From::File(path) => fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len()),
        };
        let whole = self.0.iter().map(size).sum();
        self.0.iter_mut().for_each(|source| source.counted = Some(read.clone()));
        (self, Share { read, whole })
    }

    /// The sources that `paths` name: files, folders, glob patterns, and `-` for standard input.
    ///
    /// See [`Plan::of`].
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn plan(paths: &[String]) -> Result<Sources, ReadError> {
        Ok(Plan::of(paths)?.sources())
    }
}

/// Which files and streams are read, in which order, and which are not.
#[derive(Debug, Default)]
pub struct Plan {
    /// Paths in the order in which they are read; `-` is standard input.
    paths: Vec<PathBuf>,
    left_out: Vec<PathBuf>,
    /// Files that are not read, each with the one that says the same.
    copies: Vec<(PathBuf, PathBuf)>,
    rotated: Vec<Vec<PathBuf>>,
}

impl Plan {
    /// Finds the sources that `paths` name: files; folders, searched for log files to any depth; glob patterns;
    /// and `-` for standard input. What is named twice is read once.
    ///
    /// From folders the files are taken that end in `.jsonl`, `.ndjson`, `.json` `.log` or `-Log.txt`, with or without `.zst`
    /// or `.gz` behind, and what a rotation left of these (`a.log.1`, `a.log-20240501.gz`); hidden files, Delta tables, stores and results of this
    /// program are passed over. A file that is named itself is taken whatever its name.
    ///
    /// Files are read in the order of the paths, those of a folder or pattern in the order of their names. Numbers in names count as
    /// numbers, also where a shell has put the names into the order of their letters. The files of a log that was rotated are
    /// read oldest first, however they are named.
    ///
    /// # Errors
    /// When a path is not there, a folder or pattern holds no log file, a pattern cannot be read, a file cannot be
    /// read, or is packed in a format that is not supported.
    pub fn of(paths: &[String]) -> Result<Plan, ReadError> {
        let mut seen = HashSet::new();
        let mut plan = Plan::default();
        let mut left_out = Vec::new();
        for path in paths {
            if path == "-" {
                if seen.insert(PathBuf::from("-")) {
                    plan.paths.push(PathBuf::from("-"));
                }
                continue;
            }
            for file in expand(path, &mut left_out)? {
                // A pipe has no path of its own: `/dev/stdin`, `<(command)`.
                let real = match file.is_file() {
                    true => fs::canonicalize(&file).map_err(|source| read_error(&file, source))?,
                    false => file.clone(),
                };
                if seen.insert(real) {
                    sniff(&file)?;
                    plan.paths.push(file);
                }
            }
        }
        for path in left_out {
            // It may be named itself, or be a link to what is.
            if fs::canonicalize(&path).map_or(true, |real| seen.insert(real)) {
                plan.left_out.push(path);
            }
        }
        plan.leave_copies_out()?;
        order::by_number(&mut plan.paths);
        order::newest_is_zero(&mut plan.paths, first_stamp);
        plan.rotated = order::oldest_first(&mut plan.paths, first_stamp);
        Ok(plan)
    }

    /// Leaves out files that another one is too: a second name of one file, and a log that was packed and not deleted.
    fn leave_copies_out(&mut self) -> Result<(), ReadError> {
        let mut files: HashMap<(u64, u64), PathBuf> = HashMap::new();
        let mut named: HashMap<PathBuf, PathBuf> = HashMap::new();
        let mut read = Vec::with_capacity(self.paths.len());
        for path in std::mem::take(&mut self.paths) {
            if !path.is_file() {
                read.push(path);
                continue;
            }
            let bare = |path: &Path| {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                path.with_file_name(order::unpacked(&name))
            };
            let unpacked = bare(&path);
            let same = match files.get(&which(&path)?) {
                Some(other) => Some(other.clone()),
                None => match named.get(&unpacked) {
                    Some(other) if say_the_same(other, &path)? => Some(other.clone()),
                    _ => None,
                },
            };
            match same {
                // The one that is not packed is read faster.
                Some(other) if other != path && bare(&other) == path => {
                    read.iter_mut()
                        .filter(|known| **known == other)
                        .for_each(|known| known.clone_from(&path));
                    self.copies.push((other, path));
                }
                Some(other) => self.copies.push((path, other)),
                None => {
                    files.insert(which(&path)?, path.clone());
                    named.entry(unpacked).or_insert_with(|| path.clone());
                    read.push(path);
                }
            }
        }
        self.paths = read;
        Ok(())
    }

    /// What is read.
    #[must_use]
    pub fn sources(self) -> Sources {
        let mut logs = HashMap::new();
        for files in &self.rotated {
            let newest = files.last().map(|file| names::text(file));
            logs.extend(files.iter().map(|file| (file.clone(), newest.clone())));
        }
        let source = |path: PathBuf| match path == Path::new("-") {
            true => Source::stream("-", Box::new(io::stdin())),
            false => {
                let log = logs.get(&path).cloned().flatten();
                Source { log, ..Source::file(path) }
            }
        };
        Sources(self.paths.into_iter().map(source).collect())
    }

    /// Files in the folders that are not read, because their names are not those of logs; and links to folders.
    #[must_use]
    pub fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Files that are not read because they say what another one says, each with that one.
    #[must_use]
    pub fn copies(&self) -> &[(PathBuf, PathBuf)] {
        &self.copies
    }

    /// Logs that were rotated: the files of each, oldest first.
    #[must_use]
    pub fn rotated(&self) -> &[Vec<PathBuf>] {
        &self.rotated
    }
}

fn read_error(path: &Path, source: io::Error) -> ReadError {
    ReadError::Read { path: names::text(path), source }
}

/// Which file of the machine it is, however it is named.
fn which(path: &Path) -> Result<(u64, u64), ReadError> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(path).map_err(|source| read_error(path, source))?;
    Ok((about.dev(), about.ino()))
}

/// Whether two files have the same bytes, unpacked. What is damaged is the same as nothing.
fn say_the_same(one: &Path, other: &Path) -> Result<bool, ReadError> {
    let open = |path: &Path| -> Result<_, ReadError> {
        let file = File::open(path).map_err(|source| read_error(path, source))?;
        unpack(&names::text(path), Box::new(file))
    };
    let (Ok(mut one), Ok(mut other)) = (open(one), open(other)) else { return Ok(false) };
    loop {
        let (Ok(left), Ok(right)) = (one.fill_buf(), other.fill_buf()) else { return Ok(false) };
        let both = left.len().min(right.len());
        if both == 0 || left[..both] != right[..both] {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(both);
        other.consume(both);
    }
}

/// The files behind one path given.
fn expand(given: &str, left_out: &mut Vec<PathBuf>) -> Result<Vec<PathBuf>, ReadError> {
    let path = Path::new(given);
    let no_logs = || ReadError::NoLogs { path: given.to_owned() };
    let mut files = Vec::new();
    if path.is_dir() {
        walk(path, &mut files, left_out)?;
        return if files.is_empty() { Err(no_logs()) } else { Ok(files) };
    }
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    if !given.contains(['*', '?', '[']) {
        return Err(ReadError::NoSuchPath { path: given.to_owned() });
    }
    let mut found =
        names::find(given).map_err(|source| ReadError::Pattern { pattern: given.to_owned(), source })?;
    if let Some((folder, source)) = found.unreadable.into_iter().next() {
        return Err(read_error(&folder, source));
    }
    found.paths.sort_by(|a, b| order::natural(a, b));
    for entry in found.paths {
        if entry.is_dir() {
            walk(&entry, &mut files, left_out)?;
        } else {
            files.push(entry);
        }
    }
    if files.is_empty() { Err(no_logs()) } else { Ok(files) }
}

/// Adds the log files under `folder`, in the order of their names. Links to folders are not followed.
fn walk(folder: &Path, files: &mut Vec<PathBuf>, left_out: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|source| read_error(folder, source))?;
    entries.sort_by_cached_key(|entry| order::Natural::of(&entry.file_name().to_string_lossy()));
    // Tables, stores and results of this program are no logs, though files in them have such names.
    let own = |e: &fs::DirEntry| e.file_name() == "_delta_log" || e.file_name() == owned::MARKER;
    if entries.iter().any(own) || folder.join("events").join("_delta_log").is_dir() {
        return Ok(());
    }
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if name.starts_with('.') {
            continue;
        }
        let kind = entry.file_type().map_err(|source| read_error(&path, source))?;
        if kind.is_dir() {
            walk(&path, files, left_out)?;
        } else if is_log_name(&name) && path.is_file() {
            files.push(path);
        } else {
            left_out.push(path);
        }
    }
    Ok(())
}

fn is_log_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_log = |name: &str| LOG_ENDS.iter().any(|end| name.ends_with(end));
    is_log(order::unpacked(&name))
        || order::Rotation::of(&name).is_some_and(|rotation| is_log(rotation.log()))
}

/// A date with a time of day.
static STAMP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(\d{4})[-/]?(\d\d)[-/]?(\d\d)[T _-](\d\d):?(\d\d):?(\d\d)(?:[.,](\d+))?").ok()
});

/// The first date with a time of day in the beginning of a file, in a form whose text sorts as its times do.
fn first_stamp(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None; // a pipe: reading it here would lose its beginning
    }
    let stream = unpack(&names::text(path), Box::new(File::open(path).ok()?)).ok()?;
    let mut start = Vec::with_capacity(BEGINNING);
    // What is damaged further on may have begun well.
    let _ = stream.take(BEGINNING as u64).read_to_end(&mut start);
    let found = STAMP.as_ref()?.captures(&start)?;
    let parts =
        found.iter().skip(1).flatten().map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned());
    Some(parts.collect::<Vec<_>>().join(" "))
}

/// Refuses files that could only fill the quarantine with noise, before anything is loaded.
fn sniff(path: &Path) -> Result<(), ReadError> {
    if !path.is_file() {
        return Ok(()); // a pipe: reading it here would lose its beginning
    }
    let mut start = Vec::with_capacity(8);
    File::open(path).and_then(|f| f.take(8).read_to_end(&mut start)).map_err(|e| read_error(path, e))?;
    match packing(&start) {
        Ok(_) => Ok(()),
        Err(format) => Err(ReadError::Unsupported { path: names::text(path), format }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Result<Vec<String>, String> {
        let paths: Vec<String> = paths.iter().map(|p| (*p).to_owned()).collect();
        match Sources::plan(&paths) {
            Ok(sources) => Ok(sources.0.into_iter().map(|s| s.name).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn it_is_known_how_much_of_files_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a.log"), "x\n".repeat(500)).unwrap();
        fs::write(path("b.log"), "y\n".repeat(1500)).unwrap();
        let (sources, share) =
            Sources(vec![Source::file(path("a.log")), Source::file(path("b.log"))]).counted();
        assert_eq!(share.part(), Some(0.0));
        let parts = sources.0.into_iter().map(|source| {
            let (_, mut stream) = source.read().unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            share.part()
        });
        assert_eq!(parts.collect::<Vec<_>>(), [Some(0.25), Some(1.0)]);
        let stream = Source::stream("s", Box::new(io::empty()));
        let (_, share) = Sources(vec![Source::file(path("a.log")), stream]).counted();
        assert_eq!(share.part(), None);
    }

    #[test]
    fn folders_are_searched_in_order_and_files_are_taken_as_named() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        };
        let all = [
            "b.jsonl",
            "a.JSONL.zst",
            "sub/c.log.gz",
            "sub/.hidden.json",
            "_environment.jsonl",
            "notes.txt",
            "z-Log.txt",
            "store/_delta_log/0.json",
            "store/x.json",
            "st/events/_delta_log/0.json",
            "st/stamps/s.json",
            "exec/.demi-lineage.json",
            "exec/schedule.jsonl",
        ];
        all.iter().for_each(|n| put(n));
        let root = dir.path().to_str().unwrap();
        let strip = |got: Vec<String>| -> Vec<String> {
            got.into_iter().map(|n| n.strip_prefix(root).unwrap()[1..].to_owned()).collect()
        };
        let got = strip(names(&[root]).unwrap());
        assert_eq!(got, ["_environment.jsonl", "a.JSONL.zst", "b.jsonl", "sub/c.log.gz", "z-Log.txt"]);
        let notes = format!("{root}/notes.txt");
        let pattern = format!("{root}/*.js*");
        let got = strip(names(&[&notes, &pattern, root]).unwrap());
        assert_eq!(
            got,
            ["notes.txt", "_environment.jsonl", "b.jsonl", "a.JSONL.zst", "sub/c.log.gz", "z-Log.txt"]
        );
        assert_eq!(names(&["-", "-"]).unwrap(), ["-"]);
    }

    #[test]
    fn files_of_one_log_are_read_oldest_first_and_what_is_left_out_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap().to_owned();
        let all =
            ["a.log", "a.log.1", "a.log.2.gz", "a.log.10", "notes.txt", "n10/x.log", "n9/x.log", ".hidden"];
        for name in all {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        }
        let short = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|p| p.to_str().unwrap().strip_prefix(&root).unwrap()[1..].to_owned()).collect()
        };
        let plan = Plan::of(std::slice::from_ref(&root)).unwrap();
        let log = ["a.log.10", "a.log.2.gz", "a.log.1", "a.log"];
        assert_eq!(short(&plan.paths)[..4], log);
        assert_eq!(short(&plan.paths)[4..], ["n9/x.log", "n10/x.log"]);
        assert_eq!(short(plan.left_out()), ["notes.txt"]);
        assert_eq!(short(&plan.rotated()[0]), log);
        // As a shell gives them, with one that is named itself.
        let given =
            ["a.log", "a.log.1", "a.log.10", "a.log.2.gz", "notes.txt"].map(|n| format!("{root}/{n}"));
        let plan = Plan::of(&[&given[..], std::slice::from_ref(&root)].concat()).unwrap();
        assert_eq!(short(&plan.paths)[..5], [&log[..], &["notes.txt"]].concat());
        assert!(plan.left_out().is_empty());
        let plan = Plan::of(&[format!("{root}/*.log*")]).unwrap();
        assert_eq!(short(&plan.paths), log);
    }

    #[test]
    fn a_log_with_two_names_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap().to_owned();
        let put = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
        let packed = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        let long = "a line\n".repeat(100_000);
        put("a.log.1", long.as_bytes());
        put("a.log.1.zst", &packed(long.as_bytes()));
        put("b.log", b"one\n");
        put("b.log.zst", &packed(b"one\ntwo\n"));
        put("c.log", b"three\n");
        fs::hard_link(dir.path().join("c.log"), dir.path().join("d.log")).unwrap();
        put("e.log", b"three\n");
        let short = |path: &Path| path.to_str().unwrap().strip_prefix(&root).unwrap()[1..].to_owned();
        for paths in [vec![root.clone()], vec![format!("{root}/a.log.1.zst"), root.clone()]] {
            let plan = Plan::of(&paths).unwrap();
            let mut read: Vec<String> = plan.paths.iter().map(|path| short(path)).collect();
            read.sort();
            assert_eq!(
                read,
                ["a.log.1", "b.log", "b.log.zst", "c.log", "e.log"],
                "equal bytes under another name are no copy"
            );
            let mut copies: Vec<_> =
                plan.copies().iter().map(|(copy, of)| [short(copy), short(of)]).collect();
            copies.sort();
            assert_eq!(copies, [["a.log.1.zst", "a.log.1"], ["d.log", "c.log"]]);
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_str().unwrap();
        let missing = format!("{root}/nope.jsonl");
        assert!(names(&[&missing]).unwrap_err().contains("nope.jsonl: no such file"));
        assert!(names(&[root]).unwrap_err().contains("no log files here"));
        assert!(names(&[&format!("{root}/*.jsonl")]).unwrap_err().contains("*.jsonl: no log files"));
        assert!(names(&[&format!("{root}/***")]).unwrap_err().contains("not a valid pattern"));
        fs::write(dir.path().join("x.log"), b"PK\x03\x04....").unwrap();
        assert!(names(&[root]).unwrap_err().contains("zip archive"));
    }
}
