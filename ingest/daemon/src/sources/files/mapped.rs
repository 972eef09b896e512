//! Lines of files as a mapping makes events of them.
//!
//! What the mapping remembers of a file is kept in the file's position, what it remembers from file to file under a key of
//! its own. Both are in the frame of the lines that they come from, so after a crash the lines that follow become what they would
//! have become. A record of several lines is handed over when it is whole; the position stays before it until then.

use std::time::Duration;

use serde_json::Value;

use super::state::State;
use crate::batch::Item;
use crate::sources::SourceError;
use crate::sources::batches::{MOST_TOGETHER, append, folded};
use crate::sources::mapped::{Carrier, find, refuse};
use demi_formats::mapping::{HEAD, Mapper, Wrapper};
use demi_formats::read::lines::Lines;
use demi_formats::rotated_log;

/// Key of what is remembered from file to file, beside the positions of files.
pub(super) const SHARED: &str = "mapping";
/// Most bytes of that: it is written with each batch.
const MOST_SHARED: usize = 8 << 20;
/// How long the beginning of a file may take to be written, where it tells how the file is read.
const BEGINNING: Duration = Duration::from_secs(1);

/// Lines of a file, from where it was left.
pub(super) struct Stretch<'a> {
    pub state: &'a State,
    /// Bytes before them.
    pub before: &'a [u8],
    pub bytes: &'a [u8],
    /// Longest line.
    pub limit: usize,
    pub system: &'a str,
    /// For how long the file has not grown.
    pub quiet: Duration,
}

/// Items, the file's state behind their lines, and what is remembered from file to file; or why it cannot go on.
type Made = Result<(Vec<Item>, State, Value), String>;

/// The mapping of a source.
pub(super) struct Mapped {
    mapper: Mapper,
    /// What is remembered from file to file and durable.
    durable: Value,
    /// Whether files must be read one after the other.
    pub ordered: bool,
    /// Whether the beginning of a file tells how it is read.
    looks: bool,
    /// Whether files of equal content say the same: not where the file's name tells the actor.
    pub copies: bool,
}

impl Mapped {
    /// That of a source's `mapping`, if it has one.
    ///
    /// # Errors
    /// When there is none of that name, or it is not for files that go on.
    pub(super) fn of(mapping: Option<&str>, wrapper: Option<Wrapper>) -> Result<Option<Self>, SourceError> {
        let Some(name) = mapping.or(wrapper.map(|_| "native")) else { return Ok(None) };
        let mut mapping = find(name, Carrier::Files)?;
        mapping.input.wrapper = wrapper.or(mapping.input.wrapper);
        let mapper = Mapper::new(&mapping).map_err(refuse)?;
        let needs = mapping.needs().map_err(refuse)?;
        Ok(Some(Mapped {
            durable: mapper.shared(),
            ordered: needs.order.is_some(),
            looks: mapper.looks_at_the_beginning(),
            copies: !mapper.uses_the_name(),
            mapper,
        }))
    }

    /// Goes on with what an earlier process remembered.
    pub(super) fn go_on(&mut self, shared: Value) {
        match self.mapper.resume_shared(&shared) {
            Ok(()) => self.durable = shared,
            Err(error) => {
                tracing::error!(%error, "what the mapping remembered cannot be read; it begins anew");
            }
        }
    }

    /// The lines mapped last are durable, and this is remembered then; or they are not, and nothing of it is.
    pub(super) fn settle(&mut self, shared: Option<Value>) {
        match shared {
            Some(shared) => self.durable = shared,
            None => self.go_back(),
        }
    }

    fn go_back(&mut self) {
        let durable = self.durable.clone();
        self.go_on(durable);
    }

    /// Maps lines. With `finish` a record that may have more lines is taken as it is. `None`: nothing is whole yet.
    pub(super) fn map(&mut self, stretch: &Stretch<'_>, finish: bool) -> Option<Made> {
        let Stretch { state, bytes, limit, system, .. } = stretch;
        self.mapper.limit_records(*limit);
        if !self.begin(stretch, finish) {
            return None;
        }
        let (mut units, mut items, mut size) = (Vec::new(), Vec::new(), 0_usize);
        let (mut start, mut number) = (0, state.line);
        for (line, range) in Lines::new(bytes, state.offset, state.line, *limit) {
            let length = usize::try_from(line.length).unwrap_or(usize::MAX);
            if size > 0 && size.saturating_add(length) > MOST_TOGETHER {
                break;
            }
            start = range.start + length + usize::from(line.terminated);
            number = line.number + 1;
            self.mapper.line(line, &bytes[range], &mut units);
            size += units.drain(..).map(|unit| append(unit, system, &mut items)).sum::<usize>();
        }
        if finish && start == bytes.len() {
            self.mapper.flush(&mut units);
            units.into_iter().for_each(|unit| {
                append(unit, system, &mut items);
            });
        } else if self.mapper.in_header() {
            return None;
        }
        let (offset, line) = self.mapper.unfinished().unwrap_or((state.offset + start as u64, number));
        let taken = usize::try_from(offset.saturating_sub(state.offset)).unwrap_or(0).min(bytes.len());
        if taken == 0 {
            return None;
        }
        let shared = self.mapper.shared();
        if serde_json::to_vec(&shared).map_or(0, |json| json.len()) > MOST_SHARED {
            self.go_back();
            let reason = "the mapping remembers too much: more actors or more open messages than can be kept";
            return Some(Err(reason.to_owned()));
        }
        let mut next = state.after(stretch.before, &bytes[..taken], line - state.line);
        next.mapping = Some(self.mapper.checkpoint());
        Some(Ok((folded(items), next, shared)))
    }

    /// Goes on with the file, or begins it; says whether enough of it is there to begin.
    fn begin(&mut self, stretch: &Stretch<'_>, finish: bool) -> bool {
        let state = stretch.state;
        if let Some(saved) = &state.mapping {
            match self.mapper.resume(saved) {
                Ok(()) => return true,
                Err(error) => {
                    tracing::error!(path = state.path, %error, "what is remembered of this file cannot be read");
                }
            }
        }
        let head = &stretch.bytes[..stretch.bytes.len().min(HEAD)];
        if self.looks && !finish && head.len() < HEAD && stretch.quiet < BEGINNING {
            return false;
        }
        // A file that comes in the place of one that was rotated goes on from it.
        self.mapper.of_log(rotated_log(&state.path).unwrap_or(&state.path).to_owned());
        self.mapper.begin(&state.path, head);
        true
    }
}
