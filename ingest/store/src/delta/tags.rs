//! The digests of a data file, in the tags of what adds it to the table.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use deltalake_core::kernel::{Add, LogicalFileView};
use demi_common::sealed::{STRETCH, SealedFile};
use demi_common::sums::{Digester, Digests};

/// Name of the tag.
const TAG: &str = "demi.sums";

/// Notes the digests of the files that a commit is about to add, which were just written.
pub(super) fn seal(table: &Path, adds: &mut [Add]) -> io::Result<()> {
    for add in adds {
        let sums = of(&table.join(&add.path))?.to_text();
        add.tags.get_or_insert_with(HashMap::new).insert(TAG.to_owned(), Some(sums));
    }
    Ok(())
}

/// The digests of a file as it is.
fn of(path: &Path) -> io::Result<Digests> {
    let mut summing = Sink(Digester::new(STRETCH));
    io::copy(&mut File::open(path)?, &mut summing)?;
    Ok(summing.0.finish())
}

struct Sink(Digester);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file of a table, with the digests that the table keeps for it.
pub(crate) fn sealed(table: &Path, file: &LogicalFileView) -> SealedFile {
    SealedFile::new(table.join(file.path().as_ref()), sums(file))
}

/// The digests of a file; none where an earlier version added it.
fn sums(file: &LogicalFileView) -> Option<Digests> {
    // The one way to its tags; what should take its place does not give them.
    #[expect(deprecated, reason = "arrays of actions are not public")]
    let add = file.add_action();
    Digests::parse(add.tags?.remove(TAG)??.as_str())
}
