//! Where lines go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

/// Takes bytes; is told when a line has ended, so that it may begin a new file.
pub(crate) trait Sink: Write + Send {
    /// Called now and then, between lines.
    fn between_lines(&mut self) {}
}

/// Anything that takes bytes.
pub(crate) struct Plain<W>(pub(crate) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write + Send> Sink for Plain<W> {}

/// A file that is appended to, and made anew when it was renamed or deleted.
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
}

impl AppendFile {
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let file = append(&path)?;
        Ok(AppendFile { path, file })
    }

    /// Whether the name leads to another file, or to none.
    fn is_elsewhere(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let Ok(own) = self.file.metadata() else { return false };
            match fs::metadata(&self.path) {
                Ok(named) => (named.dev(), named.ino()) != (own.dev(), own.ino()),
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            }
        }
        #[cfg(not(unix))]
        {
            !self.path.exists()
        }
    }
}

/// Opens for appending; a line that a killed process left unfinished is ended, so that it spoils no other.
fn append(path: &std::path::Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink for AppendFile {
    fn between_lines(&mut self) {
        // Where no new file can be made, the old one is still there.
        if self.is_elsewhere()
            && let Ok(file) = append(&self.path)
        {
            self.file = file;
        }
    }
}
