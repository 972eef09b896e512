//! What the daemon writes itself, and must not read as a log.

use std::fs;
use std::path::{Path, PathBuf};

use super::config::Config;

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

/// A path as it is, where the part of it that is there is followed through links.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut below = Vec::new();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut at = absolute.as_path();
    loop {
        if let Ok(there) = fs::canonicalize(at) {
            return below.iter().rev().fold(there, |path, name| path.join(name));
        }
        let (Some(above), Some(name)) = (at.parent(), at.file_name()) else { return absolute };
        below.push(name.to_owned());
        at = above;
    }
}

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
        if let Some(path) = own.iter().find(|path| source.kind.would_read(path)) {
            return Some((name.clone(), path.clone()));
        }
        let found = source.kind.reads().into_iter().find(|path| {
            let path = real(path);
            folders.iter().flatten().any(|dir| path.starts_with(dir)) || logs.contains(&path)
        });
        if let Some(path) = found {
            return Some((name.clone(), path));
        }
    }
    None
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

    #[test]
    fn a_disk_has_a_size_also_where_the_folder_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(disk_bytes(&dir.path().join("not/there")), disk_bytes(dir.path()));
        assert!(disk_bytes(dir.path()).unwrap() > 1 << 20);
    }
}
