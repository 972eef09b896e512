//! Executions that are built by one thread and by several are the same, byte for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use demi_common::sealed::SealedFile;
use demi_lineage::generate::{Generator, Mix, write_store_file};
use demi_lineage::{BuildOptions, ViolationSpec, build};

/// The content of all files in a folder, by path.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let content = std::fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(folder).unwrap().to_owned(), content);
                }
            }
        }
    }
    found
}

#[test]
fn any_number_of_threads_builds_the_same() {
    // Several parts of the ids, several actors, and all that an execution may have.
    for (events, loss, environment, multicast) in [(90_000, 0.0, 0.0, 0.0), (70_000, 0.1, 0.05, 0.05)] {
        let mix = Mix {
            seed: 11,
            actors: 9,
            events,
            environment,
            loss,
            multicast,
            forward: 0.05,
            ..Mix::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("events.parquet");
        write_store_file(&file, Generator::new(&mix).map(|generated| generated.record)).unwrap();
        let files = [SealedFile::beside(&file).unwrap()];
        let options = BuildOptions { violation: ViolationSpec::None, ..BuildOptions::default() };
        let built = [1, 2, 5].map(|threads| {
            let out = dir.path().join(threads.to_string());
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| build(&files, &options, &out, &mut |_| {})).unwrap();
            contents(&out)
        });
        assert!(built[0].len() > 10, "{:?}", built[0].keys());
        for other in &built[1..] {
            assert!(built[0].keys().eq(other.keys()));
            for (path, content) in &built[0] {
                assert!(content == &other[path], "{}", path.display());
            }
        }
    }
}
