//! Files that only their owner should know, or change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Every user of the machine may write, or read.
const WRITE: u32 = 0o002;
const READ: u32 = 0o004;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Something that others must not know: a token, a key.
    Secret,
    /// Something that others may know: a certificate.
    Public,
}

/// Reads a file in whose content the daemon trusts. One that others may read is warned of.
///
/// # Errors
/// When it cannot be read, or others may write it: then it is theirs.
pub fn read(path: &Path, holds: Holds) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let bytes = fs::read(path).map_err(unreadable)?;
    let mode = fs::metadata(path).map_err(unreadable)?.permissions().mode();
    // What is no file, such as a pipe, has no owner to speak of.
    let file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
    if file && mode & WRITE != 0 {
        return Err("can be written by every user of this machine: take that away (chmod o-w)".to_owned());
    }
    if file && mode & READ != 0 && holds == Holds::Secret {
        let path = path.display();
        tracing::warn!(%path, "a file of secrets can be read by every user of this machine: take that away (chmod o-r)");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use super::*;

    #[test]
    fn what_others_may_write_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, "secret").unwrap();
        for (mode, fine) in
            [(0o600, true), (0o640, true), (0o644, true), (0o666, false), (0o602, false), (0o622, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            for holds in [Holds::Secret, Holds::Public] {
                assert_eq!(read(&path, holds).is_ok(), fine, "{mode:o}");
            }
        }
        assert!(read(&dir.path().join("absent"), Holds::Secret).unwrap_err().starts_with("cannot be read"));
    }
}
