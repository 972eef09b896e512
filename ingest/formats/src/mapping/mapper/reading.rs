//! Reading sources with a mapping: the one loop from bytes to units, for logs that are loaded, built from or only looked at.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::Unit;
use super::{HEAD, MOST_RECORD, Mapper};
use crate::ReadError;
use crate::read::decompress::RawReadError;
use crate::read::lines::{KEPT_OF_OVERLONG, Line, LineReader, Next};
use crate::read::source::{Source, Sources};

/// Bytes of a source that are read at a time.
const BUFFER: usize = 1 << 17;

/// A source that was read to its end.
#[derive(Debug)]
pub struct ReadSource {
    /// Its name.
    pub name: String,
    /// Bytes of it, unpacked.
    pub bytes: u64,
    /// Why it ends, if what was packed is damaged.
    pub damage: Option<Damage>,
}

/// What is wrong with packed data.
#[derive(Debug)]
pub struct Damage {
    /// Where and how, as a sentence.
    pub reason: String,
    error: io::Error,
}

/// Takes a unit of the source of that name, behind which so many bytes of it were read; says whether anybody wants more.
pub type Take<'a> = &'a mut dyn FnMut(&str, Unit, u64) -> bool;

impl Mapper {
    /// Reads a source to its end; `None` when nobody wants more. Lines longer than `limit` are rejected.
    ///
    /// # Errors
    /// When it cannot be read. Packed data that is damaged ends the source.
    pub fn read(
        &mut self,
        source: Source,
        limit: usize,
        take: Take<'_>,
    ) -> Result<Option<ReadSource>, ReadError> {
        let (name, stream) = source.or_decoded(self.encoding()).read()?;
        match self.read_stream(&name, stream, limit, take) {
            Ok(read) => Ok(read.map(|(bytes, damage)| ReadSource { name, bytes, damage })),
            Err(source) => Err(ReadError::Read { path: name, source }),
        }
    }

    /// Applies the mapping to sources and stores nothing: gives each unit with the name of its source to `each`, until that says no.
    ///
    /// # Errors
    /// When a source cannot be read, or what is packed is damaged.
    pub fn try_on(
        mut self,
        sources: Sources,
        mut each: impl FnMut(&str, &Unit) -> bool,
    ) -> Result<(), ReadError> {
        for source in sources.0 {
            match self.read(source, MOST_RECORD, &mut |name, unit, _| each(name, &unit))? {
                None => return Ok(()),
                Some(ReadSource { name, damage: Some(damage), .. }) => {
                    return Err(ReadError::Read { path: name, source: damage.error });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Maps a whole source that is in memory.
    pub fn map_text(&mut self, name: &str, data: &[u8]) -> Vec<Unit> {
        let mut out = Vec::new();
        // Bytes in memory can be read.
        let _ = self.read_stream(name, data, MOST_RECORD, &mut |_, unit, _| {
            out.push(unit);
            true
        });
        out
    }

    /// How many bytes a stream had and what was wrong with it; `None` when nobody wants more.
    fn read_stream(
        &mut self,
        name: &str,
        mut stream: impl Read,
        limit: usize,
        take: Take<'_>,
    ) -> io::Result<Option<(u64, Option<Damage>)>> {
        let mut head = Vec::new();
        let broken = stream.by_ref().take(HEAD as u64).read_to_end(&mut head).err();
        self.begin(name, &head);
        let rest = Rest { stream, broken };
        let stream = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(rest));
        let mut take = |unit, read| take(name, unit, read);
        let read = match self.reads_documents() {
            true => self.read_documents(stream, &mut take),
            false => self.read_lines(stream, limit, &mut take),
        };
        let Some((read, failed)) = read else { return Ok(None) };
        let (mut units, mut damage) = (Vec::new(), None);
        if let Some((line, bytes, error)) = failed {
            if error.get_ref().is_some_and(|error| error.is::<RawReadError>()) {
                return Err(error);
            }
            let place = line.offset + line.length;
            let reason =
                format!("the packed data is damaged or cut off after {place} unpacked bytes: {error}");
            self.broken(line, &bytes, reason.clone(), &mut units);
            damage = Some(Damage { reason, error });
        }
        self.end(&mut units);
        Ok(units.into_iter().all(|unit| take(unit, read)).then_some((read, damage)))
    }

    fn read_lines(&mut self, stream: impl BufRead, limit: usize, take: TakeUnit<'_>) -> Option<Ended> {
        let mut reader = LineReader::new(stream, limit, KEPT_OF_OVERLONG);
        let (mut units, mut bytes) = (Vec::new(), Vec::new());
        loop {
            bytes.clear();
            match reader.next_line(&mut bytes) {
                Next::Line(line) => self.line(line, &bytes, &mut units),
                Next::End => return Some((reader.offset(), None)),
                Next::Failed { partial, error } => {
                    let line = partial.unwrap_or(Line::empty(reader.offset(), 0));
                    return Some((reader.offset(), Some((line, bytes, error))));
                }
            }
            if !units.drain(..).all(|unit| take(unit, reader.offset())) {
                return None;
            }
        }
    }

    fn read_documents(&mut self, mut stream: impl BufRead, take: TakeUnit<'_>) -> Option<Ended> {
        let (mut read, mut more, mut failed) = (0, true, None);
        while more {
            let piece = match stream.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    failed = Some((Line::empty(read, 0), Vec::new(), error));
                    &[]
                }
                Ok(piece) => piece,
            };
            let length = piece.len();
            read += length as u64;
            let mut take = |unit| more = more && take(unit, read);
            if length == 0 {
                self.end_bytes(&mut take);
                break;
            }
            self.bytes(piece, &mut take);
            stream.consume(length);
        }
        more.then_some((read, failed))
    }
}

type TakeUnit<'a> = &'a mut dyn FnMut(Unit, u64) -> bool;

/// How many bytes were read, and where and why that ended early, with what was read of a line by then.
type Ended = (u64, Option<(Line, Vec<u8>, io::Error)>);

/// What comes behind the beginning of a stream: the error that ended it, once, or the rest.
struct Rest<R> {
    stream: R,
    broken: Option<io::Error>,
}

impl<R: Read> Read for Rest<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.broken.take().map_or_else(|| self.stream.read(into), Err)
    }
}
