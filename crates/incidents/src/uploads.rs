//! What people bring: logs and executions are copied, so that the incident outlives them; a scenario is named where it lies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use demi_common::{durable, regular};

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
    publish(stage, &uploads, &name)?;
    Ok(name)
}

/// Gives a folder in the making its name, unless one is there.
fn publish(stage: tempfile::TempDir, parent: &Path, name: &str) -> Result<(), NotKept> {
    let to = parent.join(name);
    if to.is_dir() {
        return Ok(());
    }
    durable::sync_tree(stage.path()).map_err(of(stage.path()))?;
    match fs::rename(stage.path(), &to) {
        // Somebody else brought the same.
        Err(_) if to.is_dir() => {}
        renamed => renamed.map_err(of(&to))?,
    }
    durable::sync_folder(parent).map_err(of(parent))
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

impl io::Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::Write::write(self.file, bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(self.file)
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
        assert!(place.uploads().join(two).join("0001/a.jsonl").is_file());
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
