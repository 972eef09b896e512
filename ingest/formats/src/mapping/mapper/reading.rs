//! Reading sources with a mapping: the one loop from bytes to units, for logs that are loaded, built from or only looked at.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::Unit;
use super::{HEAD, MOST_RECORD, Mapper};
use crate::ReadError;
use crate::container::Container;
use crate::read::decompress::RawReadError;
use crate::read::lines::{Block, KEPT_OF_OVERLONG, Line, LineReader, Next};
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

/// What is handed over of a source.
#[derive(Debug)]
pub enum Piece {
    /// What the mapping made of lines or of a part.
    Unit(Unit),
    /// Lines that are event records or nothing, whatever the mapper: whoever takes them reads each with
    /// [`Parser::line`](crate::read::parse::Parser::line), but for empty ones and those that are too long.
    Lines(Block),
}

/// Takes a piece of the source of that name, behind which so many bytes of it were read; says whether anybody wants more.
pub type Take<'a> = &'a mut dyn FnMut(&str, Piece, u64) -> bool;

impl Mapper {
    /// Reads a source to its end; `None` when nobody wants more. Lines longer than `limit` are rejected. Event records come in whole lines,
    /// for whoever takes them can read them on several cores.
    ///
    /// # Errors
    /// When it cannot be read. Packed data that is damaged ends the source.
    pub fn read(
        &mut self,
        source: Source,
        limit: usize,
        take: Take<'_>,
    ) -> Result<Option<ReadSource>, ReadError> {
        self.next_log = source.log().map(str::to_owned);
        let (name, stream) = source.or_decoded(self.encoding()).read()?;
        let blocks = self.takes_lines_as_they_are();
        let read =
            self.read_stream(&name, stream, limit, blocks, &mut |piece, read| take(&name, piece, read));
        match read {
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
            self.next_log = source.log().map(str::to_owned);
            let (name, stream) = source.or_decoded(self.encoding()).read()?;
            let read = self.read_units(&name, stream, &mut |unit| each(&name, &unit));
            let damage = match read {
                Ok(None) => return Ok(()),
                Ok(Some((_, damage))) => damage.map(|damage| damage.error),
                Err(error) => Some(error),
            };
            if let Some(source) = damage {
                return Err(ReadError::Read { path: name, source });
            }
        }
        Ok(())
    }

    /// Maps a whole source that is in memory.
    pub fn map_text(&mut self, name: &str, data: &[u8]) -> Vec<Unit> {
        let mut out = Vec::new();
        // Bytes in memory can be read.
        let _ = self.read_units(name, data, &mut |unit| {
            out.push(unit);
            true
        });
        out
    }

    /// Whether lines are event records whatever the mapper knows.
    fn takes_lines_as_they_are(&self) -> bool {
        let mapping = &self.mapping;
        self.container() == Container::Native
            && self.as_mapped()
            && mapping.delimiter.is_none()
            && mapping.label.is_none()
            && mapping.input.header.is_none()
            && mapping.input.wrapper.is_none()
            && mapping.skip.is_empty()
            && mapping.carry.is_empty()
    }

    fn read_units(
        &mut self,
        name: &str,
        stream: impl Read,
        take: &mut dyn FnMut(Unit) -> bool,
    ) -> io::Result<Option<(u64, Option<Damage>)>> {
        self.read_stream(name, stream, MOST_RECORD, false, &mut |piece, _| match piece {
            Piece::Unit(unit) => take(unit),
            Piece::Lines(_) => true,
        })
    }

    /// How many bytes a stream had and what was wrong with it; `None` when nobody wants more. With `blocks` lines are handed over as they are.
    fn read_stream(
        &mut self,
        name: &str,
        mut stream: impl Read,
        limit: usize,
        blocks: bool,
        take: TakePiece<'_>,
    ) -> io::Result<Option<(u64, Option<Damage>)>> {
        let mut head = Vec::new();
        let broken = stream.by_ref().take(HEAD as u64).read_to_end(&mut head).err();
        self.begin(name, &head);
        let rest = Rest { stream, broken };
        let stream = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(rest));
        let read = match self.reads_documents() {
            true => self.read_documents(stream, &mut |unit, read| take(Piece::Unit(unit), read)),
            false if blocks => self.read_blocks(stream, limit, take),
            false => self.read_lines(stream, limit, &mut |unit, read| take(Piece::Unit(unit), read)),
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
        Ok(units.into_iter().all(|unit| take(Piece::Unit(unit), read)).then_some((read, damage)))
    }

    /// Hands over whole lines. One that is longer than a block comes as a unit, and so does what a stream broke off in.
    fn read_blocks(&mut self, mut stream: impl BufRead, limit: usize, take: TakePiece<'_>) -> Option<Ended> {
        let (mut offset, mut lines, mut rest) = (0, 0, Vec::new());
        loop {
            let mut bytes = Vec::with_capacity(self.block);
            bytes.append(&mut rest);
            let more = self.block.saturating_sub(bytes.len()) as u64;
            let broken = stream.by_ref().take(more).read_to_end(&mut bytes).err();
            let ended = broken.is_none() && bytes.len() < self.block;
            let whole = match ended {
                true => bytes.len(),
                false => memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1),
            };
            rest = bytes.split_off(whole);
            if whole > 0 {
                let block = Block { bytes, offset, number: lines + 1 };
                offset += whole as u64;
                lines += memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
                if !take(Piece::Lines(block), offset) {
                    return None;
                }
            }
            if ended {
                return Some((offset, None));
            }
            if whole > 0 && broken.is_none() {
                continue;
            }
            let long = Cursor::new(std::mem::take(&mut rest)).chain(Rest { stream: &mut stream, broken });
            let mut reader = LineReader::new(long, limit, KEPT_OF_OVERLONG).behind(offset, lines);
            let (mut units, mut bytes) = (Vec::new(), Vec::new());
            let next = reader.next_line(&mut bytes);
            (offset, lines) = (reader.offset(), reader.lines());
            match next {
                Next::Line(line) => self.line(line, &bytes, &mut units),
                Next::End => return Some((offset, None)),
                Next::Failed { partial, error } => {
                    let line = partial.unwrap_or(Line::empty(offset, 0));
                    return Some((offset, Some((line, bytes, error))));
                }
            }
            if !units.into_iter().all(|unit| take(Piece::Unit(unit), offset)) {
                return None;
            }
        }
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

type TakePiece<'a> = &'a mut dyn FnMut(Piece, u64) -> bool;
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

impl<R: BufRead> BufRead for Rest<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.broken.take() {
            Some(error) => Err(error),
            None => self.stream.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.stream.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fate::Fate;
    use crate::mapping::Mapping;
    use crate::read::lines::Lines;

    /// A stream that breaks behind its bytes.
    struct Breaks<'a>(&'a [u8], bool);

    impl Read for Breaks<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into) {
                Ok(0) if self.1 => Err(io::Error::other("it broke")),
                read => read,
            }
        }
    }

    /// A line, the bytes kept of it, and why it is refused before it is looked at.
    type Seen = (Line, Vec<u8>, Option<String>);

    /// What is read of bytes, and what is said at their end.
    fn read(
        data: &[u8],
        breaks: bool,
        limit: usize,
        block: Option<usize>,
    ) -> (Vec<Seen>, Option<(u64, Option<String>)>) {
        let mut mapper = Mapper::new(&Mapping::named("native").unwrap()).unwrap();
        mapper.limit_records(limit);
        mapper.block = block.unwrap_or(1);
        let mut seen = Vec::new();
        let mut take = |piece: Piece, _: u64| {
            match piece {
                Piece::Unit(unit) => {
                    let why = match unit.fate {
                        Fate::Quarantined(why) if why.code() == "not_json" => None,
                        Fate::Quarantined(why) => Some(why.reason().to_owned()),
                        _ => None,
                    };
                    seen.push((unit.line, unit.raw, why));
                }
                Piece::Lines(Block { bytes, offset, number }) => {
                    for (line, range) in Lines::new(&bytes, offset, number, limit) {
                        let kept = &bytes[range];
                        let raw = line.text(&kept[..kept.len().min(limit + 1)]);
                        if line.overlong.is_some() {
                            let why = line.too_long(limit, raw.len());
                            seen.push((line, raw.to_vec(), Some(why)));
                        } else if !raw.trim_ascii().is_empty() {
                            seen.push((line, raw.to_vec(), None));
                        }
                    }
                }
            }
            true
        };
        let stream = Breaks(data, breaks);
        let read = mapper.read_stream("f", stream, limit, block.is_some(), &mut take).unwrap();
        (seen, read.map(|(bytes, damage)| (bytes, damage.map(|damage| damage.reason))))
    }

    proptest! {
        /// Cut into blocks of any size and into lines then, a stream is what it is line by line, also where it breaks.
        #[test]
        fn blocks_hold_the_lines_of_a_stream(
            data in prop_oneof![
                4 => proptest::collection::vec(prop_oneof![4 => Just(b'x'), 1 => Just(b'\n'), 1 => Just(b' ')], 0..300),
                1 => proptest::collection::vec(prop_oneof![20 => Just(b'x'), 1 => Just(b'\n')], 0..300),
            ],
            mark in any::<bool>(), breaks in any::<bool>(), limit in 3usize..60, block in 4usize..90,
        ) {
            let data = if mark { [&b"\xef\xbb\xbf"[..], &data].concat() } else { data };
            prop_assert_eq!(read(&data, breaks, limit, Some(block)), read(&data, breaks, limit, None));
        }
    }
}
