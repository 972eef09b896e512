//! Files of the order index, and of what says where rows are, with random damage: an error or the right answer, never another one, a panic or an endless search.

use std::path::{Path, PathBuf};

use demi_order::generate::{Generator, Mix, write_store_file};
use demi_order::query::{CutSpec, Looks, Predicate, Query};
use demi_order::{BuildOptions, LineageError, ViolationSpec, build};
use demi_schemas::EventRecord;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

fn executed(folder: &Path, clocks: bool) -> PathBuf {
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
    told += &format!("{:?} {:?}", query.stats()?, query.check(&Predicate::parse("x < 100")?, Looks::Order)?);
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
    let mut old: serde_json::Value = serde_json::from_slice(&std::fs::read(&header).unwrap()).unwrap();
    old.as_object_mut().unwrap().retain(|key, _| key != "sealed" && key != "digest");
    std::fs::write(&header, old.to_string()).unwrap();
    assert_eq!(ask(&exec, 5).unwrap(), answer);
}
