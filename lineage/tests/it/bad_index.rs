//! Files of the order index, and of what says where rows are, with random damage: an error or the right answer, never another one, a panic or an endless search.

use std::path::{Path, PathBuf};

use demi_common::sealed::STRETCH;
use demi_lineage::export::{Selection, Trace};
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{CutSpec, Predicate, Query, StateSelection};
use demi_lineage::{BuildOptions, LineageError, ViolationSpec, build};
use demi_schemas::EventRecord;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

fn executed(folder: &Path, clocks: bool) -> PathBuf {
    executed_in(folder, clocks, false)
}

/// An execution whose rows stand in the order of their events, or in any order.
fn executed_in(folder: &Path, clocks: bool, shuffled: bool) -> PathBuf {
    let mix = Mix {
        seed: 11,
        actors: 4,
        events: if clocks { 9000 } else { 500 },
        loss: 0.05,
        duplicate: 0.05,
        restart: 0.02,
        timer: 0.1,
        environment: 0.05,
        thread: 0.05,
        ..Mix::default()
    };
    let mut records: Vec<EventRecord> = Generator::new(&mix).map(|g| g.record).collect();
    for record in records.iter_mut().step_by(7) {
        record.state = Some(json!({"x": record.seq}));
    }
    match shuffled {
        true => records.reverse(),
        false => records.sort_by_key(|record| (record.actor.clone(), record.incarnation, record.seq)),
    }
    std::fs::create_dir_all(folder).unwrap();
    let (file, exec) = (folder.join("store.parquet"), folder.join("exec"));
    write_store_file(&file, records).unwrap();
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &exec, &mut |_| {}).unwrap();
    exec
}

/// Asks everything, the same questions for the same numbers; the first error ends it.
fn ask(exec: &Path, seed: u64) -> Result<String, LineageError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let query = Query::open(exec, random.random_bool(0.5))?;
    let events = query.index().header().events;
    let mut told = String::new();
    for _ in 0..4 {
        let (a, b) = (random.random_range(0..events), random.random_range(0..events));
        let (a, b) = (a.min(499), b.min(499));
        let mut cut = CutSpec::default();
        cut.add(&query, &query.index().name(a)?.to_string())?;
        told += &format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?}\n",
            query.order(a, b)?,
            query.past(a)?,
            query.future(b)?,
            query.index().path(a, b, false)?,
            query.concurrent_set(a)?,
            query.state_of(&CutSpec::default(), &[a, b])?,
            query.cut(&cut)?,
        );
    }
    told += &format!(
        "{:?} {:?}",
        query.stats()?,
        query.check(&Predicate::parse("x < 100")?, StateSelection::Order)?
    );
    Ok(told)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

#[test]
fn damage_is_an_error_or_changes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let (mut refused, mut answered) = (0, 0);
    for clocks in [false, true] {
        let whole = executed(&dir.path().join(if clocks { "long" } else { "short" }), clocks);
        for round in 0..if clocks { 60 } else { 700 } {
            let exec = dir.path().join("damaged");
            std::fs::remove_dir_all(&exec).ok();
            copy(&whole, &exec);
            let mut files: Vec<PathBuf> = ["index", "rows"]
                .iter()
                .flat_map(|folder| std::fs::read_dir(exec.join(folder)).unwrap())
                .map(|entry| entry.unwrap().path())
                // The records have the digests that the store has, and here there is none.
                .filter(|path| path.extension().is_none_or(|ending| ending != "parquet"))
                .collect();
            files.sort();
            let file = &files[round % files.len()];
            let mut bytes = std::fs::read(file).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let at = random.random_range(0..bytes.len());
            match random.random_range(0..6) {
                0 => bytes.truncate(at),
                1 => bytes.push(0),
                2 => bytes[at..].iter_mut().take(64).for_each(|b| *b = 0),
                3 => bytes[at] ^= 1 << random.random_range(0..8),
                _ => {
                    for _ in 0..random.random_range(1..6) {
                        let at = random.random_range(0..bytes.len());
                        bytes[at] = random.random();
                    }
                }
            }
            std::fs::write(file, &bytes).unwrap();
            match ask(&exec, round as u64) {
                Ok(answer) => {
                    assert!(answer == ask(&whole, round as u64).unwrap(), "{} round {round}", file.display());
                    answered += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    println!("{refused} refused, {answered} answered as before");
    assert!(refused > 250, "{refused} of {}", refused + answered);
}

/// Indexes that were written before there were digests are read.
#[test]
fn an_index_without_digests_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let exec = executed(dir.path(), true);
    let answer = ask(&exec, 5).unwrap();
    let index = exec.join("index");
    for entry in std::fs::read_dir(&index).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "sum") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert!(ask(&exec, 5).is_err(), "digests that are said to be there are missing");
    let header = index.join("header.json");
    let mut old: Value = serde_json::from_slice(&std::fs::read(&header).unwrap()).unwrap();
    old.as_object_mut().unwrap().retain(|key, _| key != "sealed" && key != "digest");
    std::fs::write(&header, old.to_string()).unwrap();
    assert_eq!(ask(&exec, 5).unwrap(), answer);
}

/// Writes a file of an execution and the digests that belong to it: whoever sends a folder makes both.
fn write_sealed(file: &Path, bytes: &[u8]) {
    let stretch = if file.extension().is_some_and(|ending| ending == "bin") { 4096 } else { STRETCH };
    std::fs::write(file, bytes).unwrap();
    let sums = file.with_extension("sum");
    if sums.is_file() {
        let mut summing = demi_common::sums::Digester::new(stretch);
        summing.put(bytes);
        std::fs::write(sums, summing.finish().to_bytes()).unwrap();
    }
}

/// Writes the header of an index with the digest that belongs to it.
fn write_header(file: &Path, mut header: Value) {
    header.as_object_mut().unwrap().remove("digest");
    let digest = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(header.to_string().as_bytes()));
    header["digest"] = digest.into();
    std::fs::write(file, header.to_string()).unwrap();
}

/// The places of all numbers in a JSON value.
fn numbers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, one)| numbers(one, format!("{at}/{i}"), found))
        }
        Value::Object(all) => all.iter().for_each(|(key, one)| numbers(one, format!("{at}/{key}"), found)),
        _ => {}
    }
}

/// No number that somebody wrote into an execution decides how much memory is taken, or how long an answer takes.
#[test]
fn numbers_that_somebody_made_up_are_refused_or_change_nothing_of_size() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // What would take all memory ends the process instead.
    let most = Rlimit { current: Some(12 << 30), maximum: getrlimit(Resource::As).maximum };
    setrlimit(Resource::As, most).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for shuffled in [false, true] {
        let whole = executed_in(&dir.path().join(format!("{shuffled}")), false, shuffled);
        for name in ["rows/files.json", "index/header.json"] {
            let text: Value = serde_json::from_slice(&std::fs::read(whole.join(name)).unwrap()).unwrap();
            let mut places = Vec::new();
            numbers(&text, String::new(), &mut places);
            assert!(places.len() > 1, "{places:?}");
            for place in places {
                let was = text.pointer(&place).unwrap().as_u64().unwrap();
                for value in [
                    0,
                    was + 1,
                    was * 2 + 1,
                    1 << 16,
                    4_000_000_000,
                    u64::from(u32::MAX) - 1,
                    u64::from(u32::MAX),
                ] {
                    let exec = dir.path().join("made-up");
                    std::fs::remove_dir_all(&exec).ok();
                    copy(&whole, &exec);
                    let mut changed = text.clone();
                    *changed.pointer_mut(&place).unwrap() = value.into();
                    match name {
                        "index/header.json" => write_header(&exec.join(name), changed),
                        _ => demi_common::sealed::write(&exec.join(name), changed.to_string().as_bytes())
                            .unwrap(),
                    }
                    let began = std::time::Instant::now();
                    let answer = ask(&exec, 1).map_err(|error| error.to_string()).and_then(|_| {
                        Trace::load(&exec, &Selection::default()).map_err(|error| error.to_string())
                    });
                    let seconds = began.elapsed().as_secs();
                    assert!(seconds < 20, "{name}{place} = {value}: {seconds} s, {:?}", answer.err());
                }
            }
        }
    }
}

/// Whoever makes the digests, too, gets an error or another answer, and no panic.
#[test]
fn damage_with_its_digests_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(17);
    let whole = executed(&dir.path().join("whole"), false);
    let is_data =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "bin" || ending == "parquet");
    for round in 0..900_u64 {
        let exec = dir.path().join("damaged");
        std::fs::remove_dir_all(&exec).ok();
        copy(&whole, &exec);
        let files =
            ["index", "rows", "."].iter().flat_map(|folder| std::fs::read_dir(exec.join(folder)).unwrap());
        let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).filter(is_data).collect();
        files.sort();
        let file = &files[round as usize % files.len()];
        let mut bytes = std::fs::read(file).unwrap();
        if random.random_bool(0.3) {
            // What comes behind is somewhere else.
            bytes.insert(random.random_range(0..=bytes.len()), random.random());
        }
        for _ in 0..random.random_range(0..40) {
            if bytes.is_empty() {
                break;
            }
            let at = random.random_range(0..bytes.len());
            let extreme = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
            bytes[at..]
                .iter_mut()
                .take([1, 4, 8][random.random_range(0..3)])
                .for_each(|byte| *byte = extreme);
        }
        write_sealed(file, &bytes);
        let began = std::time::Instant::now();
        let _ = (ask(&exec, round), Trace::load(&exec, &Selection::default()));
        assert!(began.elapsed().as_secs() < 20, "{} in round {round}", file.display());
    }
}

/// A pipe in place of a file is told: to open it would take until somebody writes to it.
#[test]
fn a_pipe_in_place_of_a_file_is_told_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let whole = executed(&dir.path().join("whole"), false);
    let exec = dir.path().join("exec");
    copy(&whole, &exec);
    let folders = [exec.clone(), exec.join("index"), exec.join("rows")];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut told = 0;
    for file in &files {
        let aside = dir.path().join("aside");
        std::fs::rename(file, &aside).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
        if let Err(error) = ask(&exec, 1) {
            let causes =
                std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let text: Vec<String> = causes.map(ToString::to_string).collect();
            let name = file.file_stem().unwrap().to_string_lossy();
            assert!(text.join(": ").contains(&*name), "{}: {text:?}", file.display());
            told += 1;
        }
        let selection = Selection { past: Some("nobody/1".to_owned()), ..Selection::default() };
        assert!(Trace::load(&exec, &selection).is_err());
        std::fs::remove_file(file).unwrap();
        std::fs::rename(&aside, file).unwrap();
    }
    assert!(told >= 10, "{told} of {}", files.len());
}
