//! Files that are complete or absent, also after a power cut.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Writes a file that takes the place of `path` once it is complete and on disk: `fill` writes to a temporary file
/// beside it, which is synced and renamed, and then the folder is synced. What is no regular file (`/dev/null`, a
/// pipe) is written to directly. Missing folders are made.
///
/// # Errors
/// What `fill` says, or the file system; the old file is left as it was.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return fill(&mut File::options().write(true).open(path)?);
    }
    let folder = folder_of(path);
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".demi-");
    // For whom any file that a program writes is readable, not for its owner alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(sync_folder(folder)?)
}

/// Replaces a file by these bytes, as [`replace`] does.
///
/// # Errors
/// What the file system says; the old file is left as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |file| io::Write::write_all(file, bytes))
}

/// The folder that a path is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs a folder: what was made, renamed or removed in it is so after a power cut too.
///
/// # Errors
/// What the file system says.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Files that are synced at a time: the system writes what several ask for together.
const AT_A_TIME: usize = 8;

/// Syncs everything in a folder, and the folder.
///
/// # Errors
/// What the file system says.
pub fn sync_tree(folder: &Path) -> io::Result<()> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    sync_all(&files)?;
    // What is deep first, so that a folder that is on the disk has all that is in it.
    folders.iter().rev().try_for_each(|folder| sync_folder(folder))
}

/// Syncs files, several at a time.
fn sync_all(files: &[PathBuf]) -> io::Result<()> {
    let sync = |some: &[PathBuf]| some.iter().try_for_each(|path| File::open(path)?.sync_all());
    std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(AT_A_TIME).max(1));
        let threads: Vec<_> = parts.map(|part| scope.spawn(move || sync(part))).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early"))));
        // All are waited for, whatever the first says.
        ended.fold(Ok(()), Result::and)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/file");
        write(&path, b"one").unwrap();
        let failed = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        if Path::new("/dev/full").exists() {
            assert!(write(Path::new("/dev/null"), b"x").is_ok());
            let error = write(Path::new("/dev/full"), b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        }
    }
}
