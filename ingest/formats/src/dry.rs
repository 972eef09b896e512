//! Applying a mapping to sources without storing anything.

use std::io::{BufReader, Cursor, Read};

use crate::ReadError;
use crate::mapping::{HEAD, Mapper, Unit, read_documents};
use crate::read::lines::KEPT_OF_OVERLONG;
use crate::read::lines::{LineReader, Next};
use crate::read::source::Sources;

/// Longest line that is read.
const LIMIT: usize = 16 << 20;

/// A dry run: what a mapping makes of each line.
pub struct Dry {
    sources: Sources,
    mapper: Mapper,
}

impl Dry {
    /// A run over the sources.
    #[must_use]
    pub fn new(sources: Sources, mapper: Mapper) -> Self {
        Dry { sources, mapper }
    }

    /// Gives each unit with the name of its source to `each`, until that says no.
    ///
    /// # Errors
    /// When a source cannot be read, or what is packed is damaged.
    pub fn run(mut self, mut each: impl FnMut(&str, &Unit) -> bool) -> Result<(), ReadError> {
        for source in self.sources.0 {
            let (name, mut stream) = source.or_decoded(self.mapper.encoding()).read()?;
            let failed = |source| ReadError::Read { path: name.clone(), source };
            let mut head = Vec::new();
            stream.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
            self.mapper.begin(&name, &head);
            let mut stream = BufReader::with_capacity(1 << 17, Cursor::new(head).chain(stream));
            if self.mapper.reads_documents() {
                let mut sink = |unit: Unit, _| each(&name, &unit);
                if !read_documents(&mut stream, &mut self.mapper, &mut 0, &mut sink).map_err(failed)? {
                    return Ok(());
                }
                let mut units = Vec::new();
                self.mapper.end(&mut units);
                if !units.iter().all(|unit| each(&name, unit)) {
                    return Ok(());
                }
                continue;
            }
            let mut reader = LineReader::new(stream, LIMIT, KEPT_OF_OVERLONG);
            let (mut units, mut bytes) = (Vec::new(), Vec::new());
            let mut end = false;
            while !end {
                bytes.clear();
                match reader.next_line(&mut bytes) {
                    Next::Line(line) => self.mapper.line(line, &bytes, &mut units),
                    Next::End => end = true,
                    Next::Failed { error, .. } => return Err(failed(error)),
                }
                if end {
                    self.mapper.end(&mut units);
                }
                for unit in units.drain(..) {
                    if !each(&name, &unit) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}
