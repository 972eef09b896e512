//! What people bring: logs and executions are copied, so that the incident outlives them; a scenario is named where it lies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use demi_common::{durable, regular};
use demi_formats::read::decompress::unpack;

use crate::id::hex_of;
use crate::models::{Limits, ModelConfig, Models, Takes};
use crate::place::Place;
use crate::work::KEPT_MODEL;

/// What the names of folders in the making begin with.
const STAGE: &str = ".demi-new-";

/// Something that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", .path.display())]
pub struct NotKept {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// Why a log is not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotTaken {
    /// It is larger than it may be, as it came.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// It is larger than it may be once it is unpacked.
    #[error("it unpacks to more than {0} bytes")]
    UnpacksTooLarge(u64),
    /// It is empty, damaged, or packed in a way that is not read.
    #[error("it is no log: {0}")]
    NoLog(String),
    /// The system says no.
    #[error("it cannot be kept: {0}")]
    Io(#[from] io::Error),
}

impl From<NotKept> for NotTaken {
    fn from(error: NotKept) -> Self {
        NotTaken::Io(error.source)
    }
}

/// Unpacks a log to nowhere, and ends as soon as there is more than `most`. What a few bytes unpack to may be more than any disk holds.
///
/// # Errors
/// When it is too large, cannot be read, or is no log.
pub fn check_unpacked(path: &Path, most: u64) -> Result<(), NotTaken> {
    let mut left = vec![path.to_owned()];
    let mut bytes = 0;
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                left.push(entry?.path());
            }
            continue;
        }
        bytes += unpacked(&path, most - bytes).map_err(|error| match error {
            NotTaken::UnpacksTooLarge(_) => NotTaken::UnpacksTooLarge(most),
            other => other,
        })?;
    }
    Ok(())
}

fn unpacked(path: &Path, most: u64) -> Result<u64, NotTaken> {
    regular::check(path)?;
    let file = File::open(path)?;
    let no_log = |error: &dyn std::fmt::Display| NotTaken::NoLog(error.to_string());
    let mut reader = unpack("it", Box::new(file)).map_err(|error| no_log(&error))?;
    let mut bytes = 0;
    loop {
        let piece = reader.fill_buf().map_err(|error| no_log(&error))?.len();
        if piece == 0 {
            return Ok(bytes);
        }
        reader.consume(piece);
        bytes += piece as u64;
        if bytes > most {
            return Err(NotTaken::UnpacksTooLarge(most));
        }
    }
}

/// A log that comes in pieces. What is not kept is removed.
pub struct Incoming {
    place: Place,
    stage: tempfile::TempDir,
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
    most: u64,
}

/// The name of a log that came in pieces, in its folder.
const LOG: &str = "log";

impl Incoming {
    /// One of at most `most` bytes.
    ///
    /// # Errors
    /// When nothing can be written.
    pub fn begin(place: &Place, most: u64) -> Result<Self, NotTaken> {
        let uploads = place.uploads();
        fs::create_dir_all(&uploads)?;
        let stage = tempfile::Builder::new().prefix(STAGE).tempdir_in(&uploads)?;
        let file = File::create_new(stage.path().join(LOG))?;
        Ok(Incoming { place: place.clone(), stage, file, hasher: blake3::Hasher::new(), bytes: 0, most })
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// When it is one too many, or cannot be written.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), NotTaken> {
        self.bytes += piece.len() as u64;
        if self.bytes > self.most {
            return Err(NotTaken::TooLarge(self.most));
        }
        self.hasher.update(piece);
        Ok(self.file.write_all(piece)?)
    }

    /// Keeps the log, if it unpacks to at most `most` bytes and `judge` finds events in the file: its name below `uploads`, and the digest of its bytes.
    ///
    /// # Errors
    /// When it is too large, is no log, which `judge` says with a reason, or cannot be kept.
    pub fn keep(
        self,
        most: u64,
        judge: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<(String, String), NotTaken> {
        if self.bytes == 0 {
            return Err(NotTaken::NoLog("it is empty".to_owned()));
        }
        drop(self.file);
        let path = self.stage.path().join(LOG);
        check_unpacked(&path, most)?;
        judge(&path).map_err(NotTaken::NoLog)?;
        let digest = self.hasher.finalize().to_hex().to_string();
        let name = hex_of(&[LOG, &digest]);
        publish(self.stage, &self.place, &name)?;
        Ok((name, digest))
    }
}

fn of(path: &Path) -> impl FnOnce(io::Error) -> NotKept {
    let path = path.to_owned();
    move |source| NotKept { path, source }
}

/// Copies files and folders; the name below `uploads`, a digest of their content. What is there already stays.
///
/// # Errors
/// When something cannot be read or written, or is neither a file nor a folder.
pub fn keep(place: &Place, paths: &[PathBuf]) -> Result<String, NotKept> {
    let uploads = place.uploads();
    fs::create_dir_all(&uploads).map_err(of(&uploads))?;
    let stage = tempfile::Builder::new().prefix(STAGE).tempdir_in(&uploads).map_err(of(&uploads))?;
    // An execution is kept as the folder that it is.
    let whole = matches!(paths, [one] if one.is_dir());
    let mut digests: BTreeMap<String, String> = BTreeMap::new();
    for (at, path) in paths.iter().enumerate() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let to = match (whole, paths.len()) {
            (true, _) => stage.path().to_owned(),
            (false, 1) => stage.path().join(&name),
            // Two files of different folders may have one name.
            (false, _) => stage.path().join(format!("{at:04}")).join(&name),
        };
        copy(path, &to, stage.path(), &mut digests)?;
    }
    let parts: Vec<&String> = digests.iter().flat_map(|(name, digest)| [name, digest]).collect();
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    let name = hex_of(&parts);
    publish(stage, place, &name)?;
    Ok(name)
}

/// What was brought, as it was named: a log by itself is a log whatever its name is, and of a folder those files are that have a log's name.
///
/// # Errors
/// When the folder cannot be read.
pub fn brought(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let inside = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        Ok(paths)
    };
    let paths = inside(folder)?;
    if let [only] = paths.as_slice()
        && only.is_file()
    {
        return Ok(paths);
    }
    // Several files have a folder each.
    let numbered =
        paths.iter().enumerate().all(|(at, path)| path.is_dir() && path.ends_with(format!("{at:04}")));
    if !numbered || paths.is_empty() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut all = Vec::new();
    for path in paths {
        all.extend(inside(&path)?);
    }
    Ok(all)
}

/// Gives a folder in the making its name, unless one is there, and lets others have it.
fn publish(stage: tempfile::TempDir, place: &Place, name: &str) -> Result<(), NotKept> {
    let parent = place.uploads();
    let to = parent.join(name);
    if !to.is_dir() {
        durable::sync_tree(stage.path()).map_err(of(stage.path()))?;
        match fs::rename(stage.path(), &to) {
            // Somebody else brought the same.
            Err(_) if to.is_dir() => {}
            renamed => renamed.map_err(of(&to))?,
        }
        durable::sync_folder(&parent).map_err(of(&parent))?;
    }
    place.publish(&to).map_err(of(&to))
}

fn copy(from: &Path, to: &Path, base: &Path, digests: &mut BTreeMap<String, String>) -> Result<(), NotKept> {
    if from.is_dir() {
        fs::create_dir_all(to).map_err(of(to))?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(from).map_err(of(from))? {
            entries.push(entry.map_err(of(from))?.file_name());
        }
        entries.sort();
        return entries.iter().try_for_each(|name| copy(&from.join(name), &to.join(name), base, digests));
    }
    regular::check(from).map_err(of(from))?;
    let folder = durable::folder_of(to);
    fs::create_dir_all(folder).map_err(of(folder))?;
    let mut source = File::open(from).map_err(of(from))?;
    let mut target = File::create_new(to).map_err(of(to))?;
    let mut hasher = blake3::Hasher::new();
    let mut tee = Tee { file: &mut target, hasher: &mut hasher };
    io::copy(&mut source, &mut tee).map_err(of(to))?;
    let name = to.strip_prefix(base).unwrap_or(to).to_string_lossy().into_owned();
    digests.insert(name, hasher.finalize().to_hex().to_string());
    Ok(())
}

struct Tee<'a> {
    file: &'a mut File,
    hasher: &'a mut blake3::Hasher,
}

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Write::write(self.file, bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(self.file)
    }
}

/// Keeps where a scenario lies and what the work on it may cost; the name by which incidents name it.
///
/// # Errors
/// When the scenario cannot be read, or the file not be written.
pub fn keep_model(place: &Place, scenario: &Path, limits: Limits) -> Result<String, NotKept> {
    regular::check(scenario).map_err(of(scenario))?;
    let scenario = scenario.canonicalize().map_err(of(scenario))?;
    let content = fs::read(&scenario).map_err(of(&scenario))?;
    let name =
        scenario.file_stem().map_or_else(|| "scenario".to_owned(), |n| n.to_string_lossy().into_owned());
    let model = ModelConfig { takes: Takes::default(), scenario: scenario.clone(), program: None, limits };
    let models = Models { models: [(name, model)].into() };
    let other = |error: toml::ser::Error| NotKept { path: scenario.clone(), source: io::Error::other(error) };
    let text = toml::to_string(&models).map_err(other)?;
    let digest = hex_of(&[text.as_bytes(), &content]);
    let path = place.models().join(&digest).join(KEPT_MODEL);
    durable::write(&path, text.as_bytes()).map_err(of(&path))?;
    place.publish(&path).map_err(of(&path))?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_twice_is_kept_once_and_outlives_its_source() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(&dir.path().join("store"));
        let log = dir.path().join("a.jsonl");
        fs::write(&log, "one\n").unwrap();
        let first = keep(&place, std::slice::from_ref(&log)).unwrap();
        assert_eq!(keep(&place, std::slice::from_ref(&log)).unwrap(), first);
        fs::write(&log, "two\n").unwrap();
        let second = keep(&place, std::slice::from_ref(&log)).unwrap();
        assert_ne!(first, second);
        assert_eq!(fs::read_to_string(place.uploads().join(&first).join("a.jsonl")).unwrap(), "one\n");
        assert_eq!(fs::read_dir(place.uploads()).unwrap().count(), 2, "nothing is left behind");
        let missing = keep(&place, &[dir.path().join("none")]).unwrap_err();
        assert!(missing.to_string().contains("none"));
        let two = keep(&place, &[log.clone(), log]).unwrap();
        assert!(place.uploads().join(&two).join("0001/a.jsonl").is_file());
        // What is built is what was named.
        let of = |name: &str| -> Vec<String> {
            let folder = place.uploads().join(name);
            let inside = |path: &PathBuf| path.strip_prefix(&folder).unwrap().display().to_string();
            brought(&folder).unwrap().iter().map(inside).collect()
        };
        assert_eq!(
            (of(&first), of(&two)),
            (vec!["a.jsonl".to_owned()], vec!["0000/a.jsonl".to_owned(), "0001/a.jsonl".to_owned()])
        );
        let folder = dir.path().join("logs");
        for name in ["a.log", "b/c.log"] {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), "x\n").unwrap();
        }
        assert_eq!(of(&keep(&place, &[folder]).unwrap()), [""]);
    }

    /// Zeros that are packed to a thousandth, again and again: more than a disk holds in a file of some kilobytes.
    fn bomb(gib: usize) -> Vec<u8> {
        let frame = zstd::encode_all(&vec![0; 64 << 20][..], 3).unwrap();
        frame.repeat(16 * gib)
    }

    #[test]
    fn what_unpacks_to_more_than_it_may_is_refused_before_it_is_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path());
        let bomb = bomb(100);
        assert!(bomb.len() < 20 << 20, "{}", bomb.len());
        let most = 1 << 20;
        let mut incoming = Incoming::begin(&place, 64 << 20).unwrap();
        bomb.chunks(65536).for_each(|piece| incoming.take(piece).unwrap());
        assert!(
            matches!(incoming.keep(most, |_| Ok(())), Err(NotTaken::UnpacksTooLarge(bytes)) if bytes == most)
        );
        let mut incoming = Incoming::begin(&place, 1000).unwrap();
        assert!(matches!(incoming.take(&bomb), Err(NotTaken::TooLarge(1000))));
        drop(incoming);
        assert!(matches!(Incoming::begin(&place, 9).unwrap().keep(9, |_| Ok(())), Err(NotTaken::NoLog(_))));
        // What is damaged or packed otherwise is no log.
        for bytes in [&b"BZh9 and so on"[..], &bomb[..100]] {
            let mut incoming = Incoming::begin(&place, 1000).unwrap();
            incoming.take(bytes).unwrap();
            assert!(matches!(incoming.keep(1 << 30, |_| Ok(())), Err(NotTaken::NoLog(_))));
        }
        assert_eq!(fs::read_dir(place.uploads()).unwrap().count(), 0, "nothing is left behind");
        // A folder counts as a whole.
        let folder = dir.path().join("logs");
        fs::create_dir(&folder).unwrap();
        for name in ["a", "b"] {
            fs::write(folder.join(name), "x".repeat(600)).unwrap();
        }
        assert!(check_unpacked(&folder, 1200).is_ok());
        assert!(matches!(check_unpacked(&folder, 1199), Err(NotTaken::UnpacksTooLarge(1199))));
    }

    #[test]
    fn the_same_bytes_are_one_log() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path());
        let keep = |pieces: &[&[u8]]| {
            let mut incoming = Incoming::begin(&place, 100).unwrap();
            pieces.iter().for_each(|piece| incoming.take(piece).unwrap());
            incoming.keep(100, |_| Ok(())).unwrap()
        };
        let (name, digest) = keep(&[b"{}\n", b"{}\n"]);
        assert_eq!(keep(&[b"{}\n{}\n"]), (name.clone(), digest.clone()));
        assert_ne!(keep(&[b"{}\n"]).0, name);
        assert_eq!(digest, blake3::hash(b"{}\n{}\n").to_hex().to_string());
        assert_eq!(fs::read(place.uploads().join(name).join(LOG)).unwrap(), b"{}\n{}\n");
    }

    #[test]
    fn a_scenario_is_named_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::of(dir.path());
        let scenario = dir.path().join("raft.toml");
        fs::write(&scenario, "model = \"x\"\n").unwrap();
        let limits = Limits { budget: "5s".to_owned(), ..Limits::default() };
        let digest = keep_model(&place, &scenario, limits.clone()).unwrap();
        let models = Models::read(&place.models().join(&digest).join(KEPT_MODEL)).unwrap();
        assert_eq!(models.models["raft"].limits, limits);
        assert_eq!(models.models["raft"].scenario, scenario.canonicalize().unwrap());
    }
}
