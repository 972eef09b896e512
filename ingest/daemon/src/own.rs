//! What the daemon writes itself, and must not read as a log.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::config::Config;
use demi_formats::read::names::real;

/// Names of files as they stand in a store.
const IN_STORE: [&str; 8] = [
    "events/_delta_log/00000000000000000000.json",
    "events/_delta_log/00000000000000000010.checkpoint.parquet",
    "events/system=s/date=2026-01-31/part-00000-0.zstd.parquet",
    "events/system=s/date=2026-01-31/0.parquet",
    "quarantine/system=s/0.parquet",
    "completeness/0.parquet",
    "orders/s/0/order.bin",
    "lock",
];
/// The same for a spool.
const IN_SPOOL: [&str; 4] = ["segment-0000000000000000.spool", "positions.json", "spool.json", "lock"];

/// The first file of the daemon's own that a source reads, with the name of the source; `logs` are files to which the daemon's log goes.
pub(super) fn read_by(config: &Config, logs: &[PathBuf]) -> Option<(String, PathBuf)> {
    let folders = [&config.store.dir, &config.spool.dir]
        .map(|dir| [std::path::absolute(dir).unwrap_or_default(), real(dir)]);
    let [store, spool] = &folders;
    let below = |dirs: &[PathBuf; 2], names: &[&str]| -> Vec<PathBuf> {
        dirs.iter().flat_map(|dir| names.iter().map(|name| dir.join(name))).collect()
    };
    let mut own = below(store, &IN_STORE);
    own.extend(below(spool, &IN_SPOOL));
    own.extend_from_slice(logs);
    for (name, source) in &config.sources {
        if let Some(path) = source.kind.source().would_read(&own) {
            return Some((name.clone(), path));
        }
        let found = source.kind.source().reads().into_iter().filter(|path| !path.is_dir()).find(|path| {
            let (path, file) = (real(path), place(path));
            // The folder itself is no file, also where it is not there yet.
            folders.iter().flatten().any(|dir| path != *dir && path.starts_with(dir))
                || logs.iter().any(|log| *log == path || file.is_some() && place(log) == file)
        });
        if let Some(path) = found {
            return Some((name.clone(), path));
        }
    }
    None
}

/// By what a file is known under all its names.
fn place(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The files to which standard output and standard error go, if they go to files.
pub(super) fn logs() -> Vec<PathBuf> {
    let file = |number: u8| {
        let path = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        path.is_file().then_some(path)
    };
    [1, 2].into_iter().filter_map(file).collect()
}

/// The bytes of the disk that a folder is on, or will be.
pub(super) fn disk_bytes(dir: &Path) -> Option<u64> {
    let dir = std::path::absolute(dir).ok()?;
    let there = dir.ancestors().find(|dir| dir.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    Some(disk.f_blocks.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    fn config(dir: &Path, files: &str) -> Config {
        let dir = dir.display();
        let text = format!(
            "[store]\ndir = \"{dir}/var/store\"\n[spool]\ndir = \"{dir}/var/spool\"\n\
             [sources.f]\ntype = \"files\"\nsystem = \"s\"\n{}\n",
            files.replace("DIR", &dir.to_string())
        );
        Config::parse(&text, |_| None).unwrap()
    }

    #[test]
    fn a_source_that_reads_what_the_daemon_writes_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let read = |files: &str| read_by(&config(dir.path(), files), &[]).is_some();
        for files in [
            "paths = [\"DIR/**/*\"]",
            "paths = [\"DIR/**/*.json\"]",
            "paths = [\"DIR/x.log\", \"DIR/var/*/*.spool\"]",
        ] {
            assert!(read(files), "{files}");
        }
        for files in [
            "paths = [\"DIR/*\"]",
            "paths = [\"DIR/**/*.log\"]",
            "paths = [\"DIR/**/*\"]\nexclude = [\"DIR/var/**\"]",
        ] {
            assert!(!read(files), "{files}");
        }
        // Under another name, and a file that is there.
        fs::create_dir_all(dir.path().join("var/store/odd")).unwrap();
        fs::write(dir.path().join("var/store/odd/x.log"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("var"), dir.path().join("other")).unwrap();
        assert!(read("paths = [\"DIR/other/**/*.log\"]"));
        // Its log.
        let log = dir.path().join("demi.log");
        fs::write(&log, "").unwrap();
        let config = config(dir.path(), "paths = [\"DIR/*.log\"]");
        assert!(read_by(&config, &[]).is_none());
        assert_eq!(read_by(&config, std::slice::from_ref(&log)), Some(("f".to_owned(), log)));
    }

    /// Whatever the link is called, wherever it stands in the pattern, and whether anything is there yet.
    #[test]
    fn a_link_to_what_the_daemon_writes_is_told() {
        use std::os::unix::fs::symlink;
        for there in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            fs::create_dir_all(at("in/sub")).unwrap();
            fs::create_dir_all(at("logs")).unwrap();
            fs::create_dir_all(at("other")).unwrap();
            if there {
                fs::create_dir_all(at("var/store/events/_delta_log")).unwrap();
                fs::create_dir_all(at("var/spool")).unwrap();
            }
            symlink(at("var/store"), at("in/st")).unwrap();
            symlink("../../var/spool", at("in/sub/sp")).unwrap();
            symlink("sub/sp", at("in/twice")).unwrap();
            symlink(at("var"), at("up")).unwrap();
            symlink(at("other"), at("in/other")).unwrap();
            let read = |files: &str| read_by(&config(dir.path(), files), &[]).is_some();
            for files in [
                "paths = [\"DIR/in/**/*\"]",
                "paths = [\"DIR/in/st/**/*.json\"]",
                "paths = [\"DIR/in/*/lock\"]",
                "paths = [\"DIR/in/sub/*/*.spool\"]",
                "paths = [\"DIR/in/twice/*.spool\"]",
                "paths = [\"DIR/in/sub/../twice/positions.json\"]",
                "paths = [\"DIR/up/*/*.spool\"]",
                "paths = [\"DIR/up/store/events/**/*\"]",
                "paths = [\"DIR/in/**/*.spool\"]\nexclude = [\"DIR/in/sub/**\"]",
            ] {
                assert!(read(files), "{there} {files}");
            }
            for files in [
                "paths = [\"DIR/in/*.log\"]",
                "paths = [\"DIR/in/**/*.log\"]",
                "paths = [\"DIR/in/other/*\"]",
                "paths = [\"DIR/in/*\"]",
                "paths = [\"DIR/in/*/*.spool\"]\nexclude = [\"DIR/in/twice/*\", \"DIR/in/sub/**\"]",
                "paths = [\"DIR/in/**/*\"]\nexclude = [\"DIR/in/st/**\", \"DIR/in/**/sp/**\", \"DIR/in/twice/**\"]",
            ] {
                assert!(!read(files), "{there} {files}");
            }
        }
        // The log, under another name or by a link.
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("demi.out");
        fs::write(&log, "").unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        let read = || read_by(&config(dir.path(), "paths = [\"DIR/in/*.log\"]"), std::slice::from_ref(&log));
        assert_eq!(read(), None);
        fs::hard_link(&log, dir.path().join("in/hard.log")).unwrap();
        assert!(read().is_some());
        fs::remove_file(dir.path().join("in/hard.log")).unwrap();
        symlink(&log, dir.path().join("in/soft.log")).unwrap();
        assert!(read().is_some());
    }

    #[test]
    fn a_disk_has_a_size_also_where_the_folder_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(disk_bytes(&dir.path().join("not/there")), disk_bytes(dir.path()));
        assert!(disk_bytes(dir.path()).unwrap() > 1 << 20);
    }
}
