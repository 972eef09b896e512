//! Reading what is a file. A folder that somebody sent may hold a pipe in place of one: to open that takes until somebody writes to it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Refuses what is no file.
///
/// # Errors
/// What it is, or what the system says; of kind `NotFound` only where the name is not there at all.
pub fn check(path: &Path) -> io::Result<()> {
    let kind = match fs::metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
            return Err(io::Error::other("it is a link to something that is not there"));
        }
        Err(error) => return Err(error),
    };
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "folder",
        kind if kind.is_fifo() => "pipe",
        kind if kind.is_socket() => "socket",
        _ => "device",
    };
    Err(io::Error::other(format!("it is a {what} and not a file")))
}

/// Opens a file to read it.
///
/// # Errors
/// What is there instead, or what the system says.
pub fn open(path: &Path) -> io::Result<File> {
    check(path)?;
    File::open(path)
}

/// All of a file.
///
/// # Errors
/// What is there instead, or what the system says.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    check(path)?;
    fs::read(path)
}

/// All of a file as text.
///
/// # Errors
/// What is there instead, what the system says, or that it is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    check(path)?;
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_no_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("gone"), at("dangling")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        assert_eq!(read_to_string(&at("file")).unwrap(), "x");
        assert_eq!(read(&at("link")).unwrap(), b"x");
        assert_eq!(open(&at("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
        for (name, says) in [
            ("dangling", "it is a link to something that is not there"),
            ("socket", "it is a socket and not a file"),
            (".", "it is a folder and not a file"),
        ] {
            assert_eq!(read(&at(name)).unwrap_err().to_string(), says);
        }
        assert_eq!(open(Path::new("/dev/null")).unwrap_err().to_string(), "it is a device and not a file");
    }
}
