//! Files that are complete or absent, also after a power cut.

use std::fs::File;
use std::io;
use std::path::Path;

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

/// Syncs everything in a folder, and the folder.
///
/// # Errors
/// What the file system says.
pub fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => sync_tree(&entry.path())?,
            kind if kind.is_file() => File::open(entry.path())?.sync_all()?,
            _ => {}
        }
    }
    sync_folder(folder)
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
