//! Any bytes in the files of an execution, with the digests that belong to them, are an error or an answer: no panic, no endless work, and no
//! memory that the files do not account for.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use demi_common::sums::Digester;
use demi_lineage::export::{Selection, Trace};
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::query::{Predicate, Query, StateSelection};
use demi_lineage::{BuildOptions, LineageError, ViolationSpec, build};
use libfuzzer_sys::fuzz_target;

/// An execution whose rows stand in no order, and the files of it that are changed.
static WHOLE: LazyLock<(tempfile::TempDir, Vec<PathBuf>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let mix =
        Mix { seed: 3, actors: 3, events: 120, loss: 0.1, duplicate: 0.1, timer: 0.1, ..Mix::default() };
    let mut records: Vec<_> = Generator::new(&mix).map(|made| made.record).collect();
    records
        .iter_mut()
        .step_by(5)
        .for_each(|record| record.state = Some(serde_json::json!({"x": record.seq})));
    records.reverse();
    let file = folder.path().join("store.parquet");
    write_store_file(&file, records).expect("a file of rows");
    let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
    build(&[file.into()], &options, &folder.path().join("exec"), &mut |_| {}).expect("an execution");
    let inside = ["index", "rows", "."].map(|name| folder.path().join("exec").join(name));
    let all = inside.iter().flat_map(|folder| fs::read_dir(folder).expect("files"));
    let mut files: Vec<PathBuf> =
        all.map(|entry| entry.expect("a file").path()).filter(|path| path.is_file()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending != "sum"));
    files.sort();
    (folder, files)
});

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("files").flatten() {
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            // The fuzzer's own alarm interrupts what is no plain read or write.
            false => {
                fs::write(to.join(entry.file_name()), fs::read(entry.path()).expect("a file")).expect("a copy");
            }
        }
    }
}

/// Writes a file and the digests that belong to it: whoever sends a folder makes both.
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    let sums = path.with_extension("sum");
    if sums.is_file() {
        let stretch = if path.extension().is_some_and(|ending| ending == "bin") { 4096 } else { 256 << 10 };
        let mut summing = Digester::new(stretch);
        summing.put(bytes);
        fs::write(sums, summing.finish().to_bytes()).expect("digests");
    }
}

fn ask(exec: &Path) -> Result<(), LineageError> {
    let query = Query::open(exec, false)?;
    let events = query.index().header().events;
    for event in [0, 1, events / 2, events.saturating_sub(1)] {
        let _ = (
            query.past(event),
            query.future(event),
            query.order(0, event),
            query.index().path(0, event, false),
        );
    }
    let _ = query.stats();
    let _ = query.check(&Predicate::parse("x < 100").expect("a predicate"), StateSelection::All);
    let _ = Trace::load(exec, &Selection::default());
    Ok(())
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, edits)) = input.split_first() else { return };
    let (whole, files) = &*WHOLE;
    let folder = tempfile::tempdir().expect("a folder");
    copy(&whole.path().join("exec"), folder.path());
    let from = &files[usize::from(which) % files.len()];
    let path = folder.path().join(from.strip_prefix(whole.path().join("exec")).expect("a file of it"));
    let mut bytes = fs::read(&path).expect("a file");
    // A place, how many bytes there go, and what comes in their place.
    for edit in edits.chunks(8) {
        let [low, high, gone, ref new @ ..] = *edit else { break };
        let at = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() + 1);
        let end = (at + usize::from(gone % 9)).min(bytes.len());
        bytes.splice(at..end, new.iter().copied());
    }
    if path.ends_with("index/header.json")
        && let Ok(serde_json::Value::Object(mut header)) = serde_json::from_slice(&bytes)
    {
        // Without digests of its own, as earlier versions wrote it.
        header.remove("digest");
        header.insert("sealed".to_owned(), false.into());
        bytes = serde_json::to_vec(&header).expect("a header");
    }
    write(&path, &bytes);
    let _ = ask(folder.path());
});
