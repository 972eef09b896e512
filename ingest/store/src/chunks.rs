//! The reading side of a load: sources to chunks of rows, in order, on threads of its own.
//!
//! One thread reads and maps. Lines that are event records are parsed on several, in blocks, and so are the records of mappings made rows. Chunks are handed
//! over in the order of the source whatever order they are made in: what is sent for each is a place where it will appear.

use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::StoreError;
use crate::load::LoadOptions;
use demi_formats::mapping::{Mapper, Piece, Unit};
use demi_formats::read::block::{ParsedBlock, ParsedLine};
use demi_formats::read::lines::{Block, Line};
use demi_formats::read::parse::Parser;
use demi_formats::read::source::Sources;
use demi_formats::{Events, Fate};
use demi_schemas::EventRecord;

/// Units handed over together, and the bytes of them after which they are.
const CHUNK_UNITS: usize = 2048;
const CHUNK_BYTES: usize = 1 << 20;
/// Most threads that parse: more than the rest can take in.
const MOST_PARSERS: usize = 8;

/// Consecutive lines of one execution in one source.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Name of the execution, where the source holds several.
    pub(crate) execution: Option<String>,
    /// Name of the source.
    pub(crate) source: String,
    /// The lines, and what becomes of each.
    pub(crate) block: ParsedBlock,
    /// How many lines it covers, empty ones left out, and how many of them are left out.
    pub(crate) lines: u64,
    pub(crate) skipped: u64,
    /// What is odd about the events.
    pub(crate) warnings: Vec<String>,
    /// Bytes of the unpacked stream covered.
    pub(crate) bytes: u64,
    /// Whether the source ends here.
    pub(crate) end: bool,
    /// Why it ends, if what was packed is damaged.
    pub(crate) damage: Option<String>,
}

/// What the reading side sends: where the next chunk will appear.
pub(crate) type Message = Result<Receiver<Chunk>, StoreError>;

/// Lines that a mapping read.
#[derive(Default)]
struct MappedLines {
    /// Their bytes.
    raw: Vec<u8>,
    lines: Vec<Mapped>,
}

impl MappedLines {
    /// Makes rows of the records.
    fn parse(self, parser: &mut Parser) -> ParsedBlock {
        let mut entries = Vec::with_capacity(self.lines.len());
        for Mapped { line, raw, fate } in self.lines {
            let mut add =
                |fate| entries.push(ParsedLine::Other { line: line.clone(), raw: raw.clone(), fate });
            match fate {
                Fate::LeftOut(why) => add(Fate::LeftOut(why)),
                Fate::Quarantined(why) => add(Fate::Quarantined(why)),
                Fate::Row(records) => records.into_iter().for_each(|record| add(parser.record(record))),
            }
        }
        ParsedBlock::of(self.raw, entries)
    }
}

/// What a mapping made of a line: the records, or why there is none.
struct Mapped {
    line: Line,
    /// Where its bytes are in the chunk.
    raw: Range<usize>,
    fate: Fate<Vec<EventRecord>>,
}

/// What a chunk is made of.
enum Work {
    Lines(Block),
    Mapped(MappedLines),
}

/// A chunk without lines, and what they are made of.
struct Job {
    work: Work,
    chunk: Chunk,
    to: SyncSender<Chunk>,
}

/// How many threads parse.
pub(crate) fn parsers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST_PARSERS)
}

/// Reads the lines of chunks until no more come.
fn parse_jobs(queue: &Mutex<Receiver<Job>>, options: &LoadOptions) {
    let parser_of = |system: &str| Parser::new(system).redacted(options.redact.clone());
    let mut parser = parser_of(&options.system);
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { work, mut chunk, to }) = job else { return };
        let system = system_of(&options.system, chunk.execution.as_deref());
        if parser.system() != system {
            parser = parser_of(&system);
        }
        match work {
            Work::Lines(block) => {
                chunk.block = ParsedBlock::read(block, true, &mut parser, options.max_line_bytes);
                chunk.lines += chunk.block.entries().len() as u64;
            }
            Work::Mapped(lines) => chunk.block = lines.parse(&mut parser),
        }
        // Nobody listens any more when the load failed.
        let _ = to.send(chunk);
    }
}

/// The name of an execution's system.
pub(crate) fn system_of(base: &str, execution: Option<&str>) -> String {
    execution.map_or_else(|| base.to_owned(), |e| format!("{base}/{e}"))
}

/// Reads every source and sends what it finds, until the end or until nobody listens.
pub(crate) fn read_sources(
    sources: Sources,
    mut mapper: Mapper,
    options: &LoadOptions,
    to: &SyncSender<Message>,
) {
    mapper.limit_records(options.max_line_bytes);
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        // When it ends, `jobs` is dropped and the parsers end too.
        let jobs = jobs;
        for _ in 0..parsers() {
            scope.spawn(|| parse_jobs(&queue, options));
        }
        for source in sources.0 {
            let mut chunks = Chunks::new(options, to, &jobs);
            let mut take = |name: &str, piece: Piece, read: u64| match piece {
                Piece::Unit(unit) => chunks.add(name, unit, read),
                Piece::Lines(block) => chunks.add_block(name, block, read),
            };
            let listened = match mapper.read(source, options.max_line_bytes, &mut take) {
                Ok(None) => false,
                Ok(Some(read)) => {
                    chunks.close(&read.name, read.bytes, read.damage.map(|damage| damage.reason))
                }
                Err(error) => {
                    let _ = to.send(Err(error.into()));
                    false
                }
            };
            if !listened {
                return;
            }
        }
    });
}

/// Gathers units of one execution and sends them.
struct Chunks<'a> {
    options: &'a LoadOptions,
    /// What is gathered.
    next: Option<(Chunk, MappedLines)>,
    /// Skipped lines that no execution has yet.
    skipped: u64,
    /// Execution of the units sent last.
    last: Option<String>,
    /// Bytes of the source that were told.
    told: u64,
    to: &'a SyncSender<Message>,
    jobs: &'a Sender<Job>,
}

impl<'a> Chunks<'a> {
    fn new(options: &'a LoadOptions, to: &'a SyncSender<Message>, jobs: &'a Sender<Job>) -> Self {
        Chunks { options, next: None, skipped: 0, last: None, told: 0, to, jobs }
    }

    /// Takes a unit; says whether anybody still listens.
    fn add(&mut self, source: &str, unit: Unit, read: u64) -> bool {
        if let Fate::LeftOut(_) = unit.fate {
            // It belongs to no execution in particular and opens none.
            self.skipped += unit.lines;
            return true;
        }
        let full = self.next.as_ref().is_some_and(|(next, mapped)| {
            let (units, bytes) = (mapped.lines.len(), mapped.raw.len());
            next.execution != unit.execution || units >= CHUNK_UNITS || bytes >= CHUNK_BYTES
        });
        if full && !self.send(read, false, None) {
            return false;
        }
        let new = || (fresh(source, unit.execution), MappedLines::default());
        let (next, mapped) = self.next.get_or_insert_with(new);
        next.lines += unit.lines;
        let start = mapped.raw.len();
        mapped.raw.extend_from_slice(&unit.raw);
        let (line, raw) = (unit.line, start..mapped.raw.len());
        let fate = match unit.fate {
            Fate::LeftOut(why) => Fate::LeftOut(why),
            Fate::Quarantined(why) => Fate::Quarantined(why),
            Fate::Row(Events { records, warnings }) => {
                let system = system_of(&self.options.system, next.execution.as_deref());
                let shown = |warning: String| match &self.options.redact {
                    Some(redact) => redact.text(&system, &warning).into_owned(),
                    None => warning,
                };
                let place = |warning| format!("{source}:{}: {}", line.number, shown(warning));
                next.warnings.extend(warnings.into_iter().map(place));
                Fate::Row(records)
            }
        };
        mapped.lines.push(Mapped { line, raw, fate });
        true
    }

    /// Takes lines that are event records; says whether anybody still listens.
    fn add_block(&mut self, source: &str, block: Block, read: u64) -> bool {
        self.send(block.offset, false, None) && self.hand_out(fresh(source, None), Work::Lines(block), read)
    }

    fn send(&mut self, read: u64, end: bool, damage: Option<String>) -> bool {
        let Some((mut next, lines)) = self.next.take() else { return true };
        (next.end, next.damage) = (end, damage);
        self.hand_out(next, Work::Mapped(lines), read)
    }

    /// Hands out a chunk behind which so many bytes of the source were read.
    fn hand_out(&mut self, mut chunk: Chunk, work: Work, read: u64) -> bool {
        let skipped = std::mem::take(&mut self.skipped);
        chunk.skipped += skipped;
        chunk.lines += skipped;
        self.last.clone_from(&chunk.execution);
        chunk.bytes = read.saturating_sub(std::mem::replace(&mut self.told, read));
        let (to, place) = sync_channel(1);
        self.to.send(Ok(place)).is_ok() && self.jobs.send(Job { work, chunk, to }).is_ok()
    }

    /// Sends what is left of the source; says whether anybody still listens.
    fn close(mut self, source: &str, read: u64, damage: Option<String>) -> bool {
        let last = self.last.take();
        self.next.get_or_insert_with(|| (fresh(source, last), MappedLines::default()));
        self.send(read, true, damage)
    }
}

fn fresh(source: &str, execution: Option<String>) -> Chunk {
    Chunk { execution, source: source.to_owned(), ..Chunk::default() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Cursor;

    use demi_formats::mapping::Mapping;
    use demi_formats::read::source::Source;
    use proptest::prelude::*;

    use super::*;
    use crate::{Gathered, scan};

    /// All that is told of a log that is read with a mapping: its events, its quarantine, and the counts.
    fn read(mapping: &str, log: &[u8], limit: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mapper = Mapper::new(&Mapping::parse(mapping, "test").unwrap()).unwrap();
        let sources = Sources(vec![Source::stream("f", Box::new(Cursor::new(log.to_vec())))]);
        let options = LoadOptions { max_line_bytes: limit, ..LoadOptions::new("s") };
        let (gathered, report) =
            Gathered::read(folder.path(), sources, &options, Some(mapper), |_| {}).unwrap();
        let mut told = format!("{:?} {}\n", report.summary, report.bytes);
        let quarantine = gathered.quarantined("s").unwrap();
        let _ = writeln!(told, "{quarantine:?}");
        for file in gathered.event_files("s") {
            let each = |batch: &arrow_array::RecordBatch| {
                let _ = writeln!(told, "{batch:?}");
                Ok(())
            };
            scan::whole(file, each).unwrap();
        }
        told
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A log says the same whether its lines are parsed in blocks or one after the other.
        #[test]
        fn blocks_of_lines_become_what_the_lines_become(
            lines in proptest::collection::vec((0usize..12, 0u64..9, 0u8..3), 0..60),
            mark in any::<bool>(), ends in any::<bool>(), bad in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
        ) {
            let mut log = String::from(if mark { "\u{feff}" } else { "" });
            for (kind, seq, actor) in lines {
                let end = match kind {
                    0 => String::new(),
                    1 => "no record".to_owned(),
                    2 => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"send"}}"#),
                    3 => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"local","source":"x","offset":{seq}}}"#),
                    4 => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"local","payload":"{}"}}"#, "long ".repeat(40)),
                    5 => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"state","state":{{"b":[1,null],"a":"\n"}},"z":1.50}}"#),
                    6 => format!(r#"{{"actor":"{actor}","seq":170000000000000000{seq},"kind":"local"}}"#),
                    7 => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"local","time":"2024-05-1{seq}T00:00:00Z"}}"#),
                    _ => format!(r#"{{"actor":"{actor}","seq":{seq},"kind":"receive","from":"b","msg_id":"\u0041{kind}"}}"#),
                };
                log.push_str(&end);
                log.push('\n');
            }
            let mut log = log.into_bytes();
            if ends {
                log.pop();
            }
            if let (Some(at), false) = (bad, log.is_empty()) {
                let at = at.index(log.len());
                log[at] = 0xff;
            }
            let native = "name = \"n\"\ndescription = \"d\"\n[input]\ncontainer = \"native\"\n";
            let by_line = format!("{native}skip = [\"^nothing is like this$\"]\n");
            prop_assert_eq!(read(native, &log, 150), read(&by_line, &log, 150));
        }
    }
}
