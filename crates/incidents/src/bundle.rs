//! An incident as one file that is given to somebody else: the execution, the shortest schedule with its proof, and the page.
//!
//! A bundle is a tar archive, packed by zstd, with one folder: `bundle.json` says what the others are, with a digest of each. It never names a program:
//! where the scenario of a model does, that stays behind, so that nobody's command runs because a bundle came. Whoever takes one in believes nothing
//! that it says of itself: size and class are read off the schedule, and a proof counts as not checked.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use demi_common::owned::{Kind, is_whole};
use demi_common::{durable, regular, stays_inside};
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, EntryType, Header};

use crate::class;
use crate::event::{Event, Findings, Input, Opened, Outcome, Output, Source};
use crate::fold::Incident;
use crate::id::{IncidentId, hex_of};
use crate::journal::{Journal, JournalError};
use crate::objects::Objects;
use crate::place::Place;
use crate::text::{NAME, cut};
use crate::uploads::{self, NotKept};
use crate::view;
use crate::work::{cause_of, take_result};

/// The format that is written and understood.
const FORMAT: u32 = 1;
/// The file that says what the others are.
const INDEX: &str = "bundle.json";
/// The folder with what `build` made, and that with what `minimize` made.
const EXECUTION: &str = "execution";
const RESULT: &str = "result";
/// The file of the scenario in a result.
const SCENARIO: &str = "scenario.toml";
/// The page of the result.
const PAGE: &str = "page.html";
/// Most files of a bundle.
const MOST_FILES: usize = 100_000;
/// Most bytes of the name of a file.
const MOST_NAME: u64 = 4096;
/// Most bytes of the file that says what the others are.
const MOST_INDEX: u64 = 64 << 20;
/// What the names of folders in the making begin with.
const STAGE: &str = ".demi-new-";

/// What a bundle says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    format: u32,
    /// The incident, as its own store names it.
    incident: IncidentId,
    system: String,
    #[serde(default)]
    invariant: String,
    #[serde(default)]
    holds: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    affected: Vec<String>,
    #[serde(default)]
    at: Vec<String>,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    severity: Option<String>,
    /// The name of the model that follows the execution; empty where there is none.
    #[serde(default)]
    model: String,
    /// BLAKE3 of each other file, by its name.
    files: BTreeMap<String, String>,
}

/// A bundle that was not made or not taken in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// There is nothing to give.
    #[error("there is no execution of {0} here: it was not built yet, or its files are gone")]
    Nothing(String),
    /// It is no bundle, or damaged.
    #[error("{0}")]
    NoBundle(String),
    /// It unpacks to too much.
    #[error("it unpacks to more than {0} bytes")]
    TooLarge(u64),
    /// Something cannot be kept.
    #[error(transparent)]
    NotKept(#[from] NotKept),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes an incident as a bundle. The same incident gives the same bytes.
///
/// # Errors
/// When there is no execution, or a file cannot be read or written.
pub fn write(incident: &Incident, place: &Place, out: impl Write) -> Result<(), BundleError> {
    let opened = incident.opened();
    let data = place.data(opened.id);
    let outputs = &incident.findings().outputs;
    place.bring(&data)?;
    if let Input::Execution { upload } = &opened.input {
        place.bring(&place.uploads().join(upload))?;
    }
    let folder = |prefix: &str| {
        let found =
            outputs.iter().rfind(|output| output.name.starts_with(prefix) && output.digest.is_empty());
        found.map(|output| data.join(&output.name)).filter(|path| path.is_dir())
    };
    let execution = match &opened.input {
        Input::Execution { upload } => Some(place.uploads().join(upload)).filter(|path| path.is_dir()),
        _ => folder("execution-"),
    };
    let execution = execution.ok_or_else(|| BundleError::Nothing(opened.id.short()))?;
    let result = folder("minimized-").or_else(|| folder("reduced-"));
    let page = view::file(incident, "page").map(|name| data.join(name)).filter(|page| page.is_file());
    let mut files: BTreeMap<String, Content> = BTreeMap::new();
    files_of(&execution, EXECUTION, &mut files)?;
    if let Some(result) = &result {
        files_of(result, RESULT, &mut files)?;
        let scenario = format!("{RESULT}/{SCENARIO}");
        if let Some(Content::File(path)) = files.get(&scenario) {
            let text = without_command(&fs::read_to_string(path)?)?;
            files.insert(scenario, Content::Text(text));
        }
    }
    if let Some(page) = page {
        files.insert(PAGE.to_owned(), Content::File(page));
    }
    let name = format!("demi-incident-{}", opened.id);
    files.insert("README.md".to_owned(), Content::Text(readme(incident, result.is_some())));
    let mut digests = BTreeMap::new();
    for (name, content) in &files {
        digests.insert(name.clone(), content.digest()?);
    }
    let index = Index {
        format: FORMAT,
        incident: opened.id,
        system: opened.system.clone(),
        invariant: opened.invariant.clone(),
        holds: opened.holds.clone(),
        title: opened.title.clone(),
        affected: opened.affected.clone(),
        at: opened.at.clone(),
        time: opened.time.clone(),
        version: opened.version.clone(),
        severity: opened.severity.clone(),
        model: incident.findings().model.clone(),
        files: digests,
    };
    let index = serde_json::to_string_pretty(&index).map_err(io::Error::other)? + "\n";
    let mut archive = Builder::new(zstd::Encoder::new(out, 0)?);
    // First of all, so that whoever reads knows what comes.
    append(&mut archive, &format!("{name}/{INDEX}"), &Content::Text(index))?;
    for (file, content) in &files {
        append(&mut archive, &format!("{name}/{file}"), content)?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// What a file of a bundle holds.
enum Content {
    File(PathBuf),
    Text(String),
}

impl Content {
    fn digest(&self) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        match self {
            Content::File(path) => drop(io::copy(&mut File::open(path)?, &mut hasher)?),
            Content::Text(text) => drop(hasher.update(text.as_bytes())),
        }
        Ok(hasher.finalize().to_hex().to_string())
    }
}

fn append(archive: &mut Builder<impl Write>, name: &str, content: &Content) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    // Nothing of the machine: who made it and when.
    header.set_mtime(0);
    match content {
        Content::Text(text) => {
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, name, text.as_bytes())
        }
        Content::File(path) => {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            header.set_size(size);
            archive.append_data(&mut header, name, file.take(size))
        }
    }
}

/// All files in a folder, by names that begin with `under`.
fn files_of(folder: &Path, under: &str, files: &mut BTreeMap<String, Content>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = format!("{under}/{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_of(&entry.path(), &name, files)?;
        } else if kind.is_file() {
            files.insert(name, Content::File(entry.path()));
        }
    }
    Ok(())
}

/// A scenario without the program that is its model.
fn without_command(text: &str) -> Result<String, BundleError> {
    let no = |error: &dyn std::fmt::Display| BundleError::NoBundle(format!("{SCENARIO}: {error}"));
    let mut scenario: toml::Table = toml::from_str(text).map_err(|error| no(&error))?;
    let Some(toml::Value::Table(model)) = scenario.get_mut("model") else { return Ok(text.to_owned()) };
    if [model.remove("command"), model.remove("socket")].iter().all(Option::is_none) {
        return Ok(text.to_owned());
    }
    let text = toml::to_string(&scenario).map_err(|error| no(&error))?;
    Ok(format!(
        "# The program that is the model stays with its owner: give its command as model.command.\n{text}"
    ))
}

fn readme(incident: &Incident, has_result: bool) -> String {
    let opened = incident.opened();
    let plain = |text: &str| cut(text, NAME).replace(['\n', '`', '<'], " ");
    let mut text = format!("# {}\n\n{}.\n\n", opened.id.short(), plain(&view::sentence(incident)));
    text.push_str("`execution/` is what led to the violation, as it was recorded.");
    if has_result {
        text.push_str(
            " `result/` is the shortest schedule that was found, with its proof where there is one, \
             and `page.html` shows it step by step.\n\n\
             To reproduce it, in this folder:\n\n\
             ```sh\n\
             demi-lineage replay result/schedule.jsonl --scenario result/scenario.toml --strict\n\
             demi-lineage verify result\n\
             demi-lineage minimize execution --scenario result/scenario.toml --out again\n\
             ```\n\n\
             Where the model is a program of somebody's, `result/scenario.toml` does not name it: write its command there as `model.command`.\n",
        );
    } else {
        text.push_str("\n\nNo model follows it here.\n");
    }
    text.push_str("\nTo keep it with other incidents: `demi-lineage incident import BUNDLE --store DIR`.\n");
    text
}

/// Takes a bundle in, as an incident of this store: its id, and whether it was not known. At most `most` bytes are unpacked.
///
/// # Errors
/// When it is no bundle, is damaged, too large, or cannot be kept.
pub fn import<O: Objects>(
    journal: &mut Journal<O>,
    place: &Place,
    bundle: &Path,
    most: u64,
) -> Result<(IncidentId, bool), BundleError> {
    regular::check(bundle)?;
    fs::create_dir_all(place.root())?;
    let stage = tempfile::Builder::new().prefix(STAGE).tempdir_in(place.root())?;
    let index = unpack(File::open(bundle)?, stage.path(), most)?;
    journal.follow()?;
    if journal.state().incidents().contains_key(&index.incident) {
        return Ok((index.incident, false));
    }
    let id = IncidentId::of(&["bundle", &index.incident.to_string()]);
    if journal.state().incidents().contains_key(&id) {
        return Ok((id, false));
    }
    let execution = stage.path().join(EXECUTION);
    if !is_whole(&execution, Kind::Execution) {
        return Err(BundleError::NoBundle("it has no whole execution".to_owned()));
    }
    let upload = uploads::keep(place, std::slice::from_ref(&execution))?;
    let mut opened = Opened::new(id, Source::Bundle { incident: index.incident }, &index.system);
    opened.input = Input::Execution { upload };
    (opened.invariant, opened.holds, opened.title) = (index.invariant, index.holds, index.title);
    (opened.affected, opened.at, opened.time) = (index.affected, index.at, index.time);
    (opened.version, opened.severity) = (index.version, index.severity);
    let opened = opened.bounded();
    let mut events = vec![Event::Opened(Box::new(opened))];
    if let Some(findings) = findings_of(&stage, place, id, &index.model)? {
        let by = format!("bundle of {}", index.incident.short());
        events.push(Event::Claimed { id, attempt: 1, worker: by });
        events.push(Event::Done {
            id,
            attempt: 1,
            outcome: Outcome::Minimized,
            findings: Box::new(findings),
        });
    }
    journal.commit(|state| match state.incidents().contains_key(&id) {
        true => Vec::new(),
        false => events.clone(),
    })?;
    Ok((id, true))
}

/// What the files of a result say, which are kept as those of an attempt are; nothing where there is no result.
fn findings_of(
    stage: &tempfile::TempDir,
    place: &Place,
    id: IncidentId,
    model: &str,
) -> Result<Option<Findings>, BundleError> {
    let result = stage.path().join(RESULT);
    if !result.is_dir() {
        return Ok(None);
    }
    if !is_whole(&result, Kind::Minimized) {
        return Err(BundleError::NoBundle("its result is not whole".to_owned()));
    }
    let scenario = regular::read_to_string(&result.join(SCENARIO))?;
    if without_command(&scenario)? != scenario {
        return Err(BundleError::NoBundle("its scenario names a program".to_owned()));
    }
    let mut findings = Findings { model: cut(model, NAME), ..Findings::default() };
    let needs = take_result(&result, &mut findings).map_err(BundleError::NoBundle)?;
    findings.cause = needs.map(cause_of).unwrap_or_default();
    let points = class::of_result(&result).map_err(|error| BundleError::NoBundle(error.to_string()))?;
    findings.keys = Some(class::keys(&points));
    if !findings.proven.is_empty() {
        let proven = std::mem::take(&mut findings.proven);
        findings.doubts.push(format!("it was brought, and its proof was not checked here: {proven}"));
    }
    let data = place.data(id);
    let schedule = fs::read(result.join("schedule.jsonl"))?;
    let key = hex_of(&[b"bundle", &schedule[..]]);
    let name = format!("minimized-{key}");
    fs::create_dir_all(&data)?;
    move_to(&result, &data.join(&name))?;
    findings.outputs.push(Output { name: name.clone(), digest: String::new() });
    findings.outputs.extend(crate::work::files_of(&data.join(&name)));
    if let Ok(bytes) = fs::read(stage.path().join(PAGE)) {
        let name = format!("report-{key}/{PAGE}");
        durable::write(&data.join(&name), &bytes)?;
        findings.outputs.push(Output { name, digest: hex_of(&[&bytes]) });
    }
    durable::sync_folder(&data)?;
    place.publish(&data)?;
    Ok(Some(findings.bounded()))
}

fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    durable::sync_tree(from)?;
    if to.exists() {
        // Of somebody who was killed before the journal knew.
        fs::remove_dir_all(to)?;
    }
    fs::rename(from, to)
}

/// Unpacks a bundle into an empty folder. Nothing is written outside of it, and each file is as the bundle's own list says.
fn unpack(bundle: impl Read, into: &Path, most: u64) -> Result<Index, BundleError> {
    let no = |why: &str| BundleError::NoBundle(why.to_owned());
    let damaged = |error: io::Error| BundleError::NoBundle(format!("it is no bundle, or damaged: {error}"));
    // One byte more than is allowed says that there are more.
    let mut archive = Archive::new(zstd::Decoder::new(bundle).map_err(damaged)?.take(most.saturating_add(1)));
    let mut index: Option<Index> = None;
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let (mut top, mut bytes) = (String::new(), 0_u64);
    // A name that is too long for its header stands in an entry of its own, which is read as a whole.
    let mut long: Option<Vec<u8>> = None;
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(_) if bytes >= most => return Err(BundleError::TooLarge(most)),
            Err(error) => return Err(damaged(error)),
        };
        bytes = bytes.saturating_add(entry.size()).saturating_add(512);
        if bytes > most {
            return Err(BundleError::TooLarge(most));
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::GNULongName {
            if long.is_some() || entry.size() > MOST_NAME {
                return Err(no("a name in it is too long"));
            }
            let mut name = Vec::new();
            entry.read_to_end(&mut name).map_err(damaged)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            long = Some(name);
            continue;
        }
        let name = long.take();
        if kind == EntryType::Directory {
            continue;
        }
        if kind != EntryType::Regular {
            return Err(no("it holds something that is no file"));
        }
        let path = String::from_utf8(name.unwrap_or_else(|| entry.path_bytes().into_owned()));
        let path = path.map_err(|_| no("a name in it is no text"))?;
        let Some((folder, name)) = path.split_once('/') else {
            return Err(no("a file in it is in no folder"));
        };
        if !stays_inside(Path::new(&path)) || name.is_empty() || path.contains('\0') {
            return Err(no("a name in it leads elsewhere"));
        }
        match &index {
            None if name == INDEX && entry.size() <= MOST_INDEX => {
                let mut text = Vec::new();
                entry.read_to_end(&mut text).map_err(damaged)?;
                let read: Index = serde_json::from_slice(&text)
                    .map_err(|error| BundleError::NoBundle(format!("{INDEX}: {error}")))?;
                if read.format != FORMAT {
                    return Err(BundleError::NoBundle(format!(
                        "its format is {}, and this program understands {FORMAT}",
                        read.format
                    )));
                }
                folder.clone_into(&mut top);
                index = Some(read);
            }
            None => return Err(no("it does not begin with a bundle.json")),
            Some(index) => {
                let listed = index.files.get(name).filter(|_| folder == top);
                let Some(digest) = listed else { return Err(no("a file in it is not in its list")) };
                if found.len() >= MOST_FILES || found.contains_key(name) {
                    return Err(no("it holds a file twice, or too many"));
                }
                let to = into.join(name);
                if let Some(parent) = to.parent() {
                    fs::create_dir_all(parent)?;
                }
                let mut file = File::create_new(&to)?;
                let mut hasher = blake3::Hasher::new();
                let mut buffer = vec![0; 128 << 10];
                loop {
                    let read = entry.read(&mut buffer).map_err(damaged)?;
                    if read == 0 {
                        break;
                    }
                    hasher.update(&buffer[..read]);
                    file.write_all(&buffer[..read])?;
                }
                let read = hasher.finalize().to_hex().to_string();
                if read != *digest {
                    return Err(BundleError::NoBundle(format!("it is damaged: {}", cut(name, NAME))));
                }
                found.insert(name.to_owned(), read);
            }
        }
    }
    let index = index.ok_or_else(|| no("it is empty"))?;
    match index.files.keys().find(|name| !found.contains_key(*name)) {
        Some(missing) => Err(BundleError::NoBundle(format!("it lacks {}", cut(missing, NAME)))),
        None => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Builder::new(zstd::Encoder::new(Vec::new(), 0).unwrap());
        for (name, content) in files {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            // The library refuses such names where it writes them.
            let bytes = name.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            header.set_cksum();
            archive.append(&header, *content).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    fn index(files: &[(&str, &[u8])]) -> Vec<u8> {
        let digests: BTreeMap<&str, String> =
            files.iter().map(|(name, content)| (*name, blake3::hash(content).to_hex().to_string())).collect();
        let id = IncidentId::of(&["x"]);
        serde_json::to_vec(&serde_json::json!({"format": 1, "incident": id, "system": "s", "files": digests}))
            .unwrap()
    }

    #[test]
    fn names_are_long_but_not_endless() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let mut archive = Builder::new(zstd::Encoder::new(Vec::new(), 0).unwrap());
            let long = format!("{name}/x");
            let inner = index(&[("x", b"1")]);
            for (name, content) in [("bundle.json", &inner[..]), ("x", b"1")] {
                let mut header = Header::new_gnu();
                header.set_size(content.len() as u64);
                archive.append_data(&mut header, long.replace('x', name), content).unwrap();
            }
            archive.into_inner().unwrap().finish().unwrap()
        };
        let into = |name: &str| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        unpack(&of(&"a".repeat(200))[..], &into("long"), 1 << 20).unwrap();
        assert_eq!(fs::read(dir.path().join("long/x")).unwrap(), b"1");
        let endless = unpack(&of(&"a".repeat(5000))[..], &into("endless"), 1 << 20).unwrap_err();
        assert!(endless.to_string().contains("a name in it is too long"), "{endless}");
    }

    #[test]
    fn what_is_listed_is_unpacked_and_nothing_else_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        let into = |name: &str| {
            let folder = dir.path().join("in").join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let one: (&str, &[u8]) = ("execution/a", b"one");
        let listed = index(&[one]);
        let whole = packed(&[("top/bundle.json", &listed), ("top/execution/a", b"one")]);
        let folder = into("whole");
        let read = unpack(&whole[..], &folder, 1 << 20).unwrap();
        assert_eq!(
            (read.system.as_str(), fs::read(folder.join("execution/a")).unwrap()),
            ("s", b"one".to_vec())
        );
        let wicked = index(&[("../../evil", b"one"), ("/evil", b"one")]);
        let cases: [(&str, Vec<u8>); 9] = [
            ("damaged", packed(&[("top/bundle.json", &listed), ("top/execution/a", b"two")])),
            ("not in its list", packed(&[("top/bundle.json", &listed), ("top/b", b"one")])),
            ("not in its list", packed(&[("top/bundle.json", &listed), ("other/execution/a", b"one")])),
            ("leads elsewhere", packed(&[("top/bundle.json", &wicked), ("top/../../evil", b"one")])),
            ("leads elsewhere", packed(&[("top/bundle.json", &wicked), ("/top/evil", b"one")])),
            ("lacks", packed(&[("top/bundle.json", &listed)])),
            ("does not begin", packed(&[("top/execution/a", b"one"), ("top/bundle.json", &listed)])),
            (
                "twice",
                packed(&[
                    ("top/bundle.json", &listed),
                    ("top/execution/a", b"one"),
                    ("top/execution/a", b"one"),
                ]),
            ),
            ("it is empty", packed(&[])),
        ];
        for (at, (says, bytes)) in cases.iter().enumerate() {
            let error = unpack(&bytes[..], &into(&at.to_string()), 1 << 20).unwrap_err().to_string();
            assert!(error.contains(says), "{at}: {error}");
        }
        assert!(!dir.path().join("evil").exists() && !dir.path().join("in/evil").exists());
        // However it is cut, it is refused, and so is what unpacks to too much.
        for end in 0..whole.len() {
            assert!(unpack(&whole[..end], &into(&format!("cut{end}")), 1 << 20).is_err(), "cut at {end}");
        }
        let zeros = vec![0; 4 << 20];
        let large = packed(&[("top/bundle.json", &index(&[("z", &zeros)])), ("top/z", &zeros)]);
        assert!(large.len() < 4096, "{}", large.len());
        let refused = unpack(&large[..], &into("large"), 1 << 20).unwrap_err();
        assert!(matches!(refused, BundleError::TooLarge(_)), "{refused}");
    }

    #[test]
    fn a_scenario_loses_its_program_and_nothing_else() {
        let plain = "model = \"raft\"\nseed = 3\n";
        assert_eq!(without_command(plain).unwrap(), plain);
        let text = "seed = 3\n[model]\ncommand = [\"sh\", \"evil\"]\ntimeout_seconds = 4\n";
        let told = without_command(text).unwrap();
        assert!(
            !told.contains("evil") && told.contains("timeout_seconds = 4") && told.contains("seed = 3"),
            "{told}"
        );
        assert!(!without_command("[model]\nsocket = \"/evil\"\n").unwrap().contains("evil"));
    }
}
