//! Stamps that run backwards: events that are stamped earlier than the event before them in their actor's log.
//!
//! The order of an actor's events is that of their sequence numbers, whatever their stamps say. Where a log has no numbers they are counted as its lines
//! stand, so a log that was turned round, or whose files were read in the wrong order, gives a wrong order. Its stamps tell, and so
//! they are looked at, although nothing is ordered by them.
//!
//! What counts is that a stamp *must* be earlier: equal stamps are no step back, and a stamp of whole seconds stands for all of its second. How small a
//! step is does not matter; the largest is told, so that a clock that was set is not taken for a log that was turned round.
//! Events that came in another order than that of their numbers are looked at in the store, when all are there.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use demi_common::sealed::SealedFile;
use demi_schemas::EventRecord;
use demi_schemas::event::is_clock_seq;
use demi_schemas::summary::BackwardStamps;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::StoreError;
use crate::scan::scan;
use demi_formats::time::{Stamp, difference};

/// Most events that are looked at in the store, because they came in another order.
const MOST_SCANNED: usize = 20_000_000;

/// Where an event stood.
#[derive(Clone, Copy)]
struct Place<'a> {
    source: &'a str,
    line: u64,
}

/// What is known of one incarnation.
#[derive(Default)]
struct Watched {
    /// Sequence number of the last event.
    seq: u64,
    /// The latest stamp since the last step back.
    latest: Option<Stamp>,
    /// The first stamp, and where it stands.
    first: Option<(Stamp, String, u64)>,
    /// What was found, one for each source, and the largest step of each.
    found: Vec<(BackwardStamps, i128)>,
    /// Whether events came in another order than that of their numbers.
    shuffled: bool,
    /// Events that were found since [`Stamps::news`] was asked.
    fresh: u64,
    /// The file and the stamp of the last line, where events are numbered by their stamps.
    last_line: Option<(String, Stamp)>,
}

/// Events that are numbered by their stamps and stand behind later ones of their log in one file.
#[derive(Debug)]
struct Behind {
    events: u64,
    /// The first of them: its actor, file, line and stamp, and the stamp before it.
    first: (String, String, u64, [String; 2]),
}

impl Watched {
    /// Takes the event that comes next by its number.
    fn next(&mut self, actor: &str, incarnation: u32, stamp: Stamp, place: Place<'_>) {
        let Some(latest) = self.latest else {
            self.latest = Some(stamp);
            self.first = Some((stamp, place.source.to_owned(), place.line));
            return;
        };
        let Some(step) = stamp.is_before(latest) else {
            self.latest = Some(latest.later(stamp));
            return;
        };
        self.latest = Some(stamp);
        self.fresh += 1;
        if let Some((found, most)) = self.found.last_mut().filter(|(found, _)| found.source == place.source) {
            found.events += 1;
            if step > *most {
                *most = step;
                found.most = difference(step, stamp);
            }
            return;
        }
        let found = BackwardStamps {
            actor: actor.to_owned(),
            incarnation,
            events: 1,
            source: place.source.to_owned(),
            line: place.line,
            time: stamp.shown(),
            before: latest.shown(),
            most: difference(step, stamp),
        };
        self.found.push((found, step));
    }
}

/// Actors with the number of an incarnation.
pub type Incarnations = BTreeSet<(String, u32)>;

/// Watches the stamps of events that are loaded.
#[derive(Default)]
pub struct Stamps {
    of: HashMap<String, Vec<(u32, Watched)>, FxBuildHasher>,
    behind: Option<Behind>,
}

impl Stamps {
    /// Takes an event, wherever it goes.
    pub fn take(&mut self, record: &EventRecord, source: &str, line: u64) {
        let Some(stamp) = record.time.as_ref().and_then(Stamp::read) else { return };
        // Spans stand where they end, and are numbered by when they begin.
        if is_clock_seq(record.seq) && stamp.tells(record.seq) && !record.attrs.contains_key("span_id") {
            self.line((&record.actor, record.incarnation), stamp, Place { source, line });
        }
        self.take_stamp((&record.actor, record.incarnation, record.seq), stamp, source, line);
    }

    /// Takes the stamp of an event: its actor, incarnation and sequence number.
    pub fn take_stamp(
        &mut self,
        (actor, incarnation, seq): (&str, u32, u64),
        stamp: Stamp,
        source: &str,
        line: u64,
    ) {
        if is_clock_seq(seq) && stamp.tells(seq) {
            // Its place in the order is that of its stamp, in whatever order events come.
            return;
        }
        let watched = self.watched(actor, incarnation);
        if seq <= watched.seq {
            // The same event again says nothing new.
            watched.shuffled |= seq < watched.seq;
            return;
        }
        watched.seq = seq;
        if !watched.shuffled {
            watched.next(actor, incarnation, stamp, Place { source, line });
        }
    }

    fn watched(&mut self, actor: &str, incarnation: u32) -> &mut Watched {
        let incarnations = self.of.entry_ref(actor).or_default();
        let at = match incarnations.iter().rposition(|(i, _)| *i == incarnation) {
            Some(at) => at,
            None => {
                incarnations.push((incarnation, Watched::default()));
                incarnations.len() - 1
            }
        };
        &mut incarnations[at].1
    }

    /// Takes a line whose event is numbered by its stamp.
    fn line(&mut self, (actor, incarnation): (&str, u32), stamp: Stamp, place: Place<'_>) {
        let last = &mut self.watched(actor, incarnation).last_line;
        let Some((_, before)) = last.as_mut().filter(|(source, _)| source == place.source) else {
            *last = Some((place.source.to_owned(), stamp));
            return;
        };
        let before = std::mem::replace(before, stamp);
        if stamp.is_before(before).is_none() {
            return;
        }
        let first = || {
            let shown = [stamp.shown(), before.shown()];
            Behind { events: 0, first: (actor.to_owned(), place.source.to_owned(), place.line, shown) }
        };
        self.behind.get_or_insert_with(first).events += 1;
    }

    /// A sentence about events that stand behind later ones of their log, though they are numbered by their stamps; nothing where there are none.
    pub fn behind(&self) -> Option<String> {
        let Behind { events, first: (actor, source, line, [time, before]) } = self.behind.as_ref()?;
        let what = if *events == 1 { "1 event stands".to_owned() } else { format!("{events} events stand") };
        Some(format!(
            "{what} behind later ones of the same log, but the order goes by stamps, which are the numbers here: the first is {time} of {actor} behind \
             {before} ({source}:{line}). If a clock was set back, the lines are in the true order: leave `seq` out of the mapping"
        ))
    }

    /// What was found of incarnations of which something was found since this was asked last, and how many events these are. Of events that
    /// came in another order than that of their numbers nothing is known.
    pub fn news(&mut self) -> (Vec<BackwardStamps>, u64) {
        let (mut found, mut events) = (Vec::new(), 0);
        let incarnations = self.of.values_mut().flatten().map(|(_, watched)| watched);
        for watched in incarnations.filter(|watched| watched.fresh > 0 && !watched.shuffled) {
            events += std::mem::take(&mut watched.fresh);
            found.extend(watched.found.iter().map(|(found, _)| found.clone()));
        }
        sort(&mut found);
        (found, events)
    }

    /// What was found of a system whose events are all in `files` now, and the incarnations that were looked at there as a whole.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn finish(
        self,
        files: impl FnOnce() -> Result<Vec<SealedFile>, StoreError>,
    ) -> Result<(Vec<BackwardStamps>, Incarnations), StoreError> {
        let (mut found, mut shuffled) = (Vec::new(), BTreeSet::new());
        for (actor, mut incarnations) in self.of {
            incarnations.sort_by_key(|(incarnation, _)| *incarnation);
            for lives in incarnations.windows(2) {
                found.extend(begins_before(&actor, &lives[0].1, &lives[1]));
            }
            for (incarnation, watched) in incarnations {
                match watched.shuffled {
                    true => drop(shuffled.insert((actor.clone(), incarnation))),
                    false => found.extend(watched.found.into_iter().map(|(found, _)| found)),
                }
            }
        }
        if !shuffled.is_empty() {
            found.append(&mut in_files(&files()?, &shuffled)?);
        }
        sort(&mut found);
        Ok((found, shuffled))
    }
}

/// The step back from one incarnation to the next, where that begins before the other ends: then they may be processes beside each other, or their
/// numbers begin again.
fn begins_before(
    actor: &str,
    before: &Watched,
    (incarnation, next): &(u32, Watched),
) -> Option<BackwardStamps> {
    let (latest, (stamp, source, line)) = (before.latest?, next.first.as_ref()?);
    let step = stamp.is_before(latest).filter(|_| !before.shuffled && !next.shuffled)?;
    Some(BackwardStamps {
        actor: actor.to_owned(),
        incarnation: *incarnation,
        events: 1,
        source: source.clone(),
        line: *line,
        time: stamp.shown(),
        before: latest.shown(),
        most: difference(step, *stamp),
    })
}

/// Puts what was found into the order of actors, incarnations and places.
pub fn sort(found: &mut [BackwardStamps]) {
    found.sort_by(|a, b| {
        let key = |f: &BackwardStamps| (f.actor.clone(), f.incarnation, f.source.clone(), f.line);
        key(a).cmp(&key(b))
    });
}

/// An event in the store: its sequence number, its stamp, the number of its source, its line.
type Stamped = (u64, Stamp, usize, u64);

/// Looks at the events of some incarnations in files.
fn in_files(
    files: &[SealedFile],
    which: &BTreeSet<(String, u32)>,
) -> Result<Vec<BackwardStamps>, StoreError> {
    let columns = [
        ("actor", DataType::Utf8),
        ("time", DataType::Utf8),
        ("source", DataType::Utf8),
        ("incarnation", DataType::Int32),
        ("seq", DataType::Int64),
        ("line", DataType::Int64),
    ];
    let mut sources: Vec<String> = Vec::new();
    let mut events: BTreeMap<(String, u32), Vec<Stamped>> = BTreeMap::new();
    let mut count = 0;
    scan(files, &columns, |batch| {
        let text = |i: usize| batch.column(i).as_string::<i32>();
        let long = |i: usize| batch.column(i).as_primitive::<Int64Type>();
        let mut key = (String::new(), 0);
        for row in 0..batch.num_rows() {
            let incarnation = batch.column(3).as_primitive::<Int32Type>().value(row) as u32;
            if key.0 != text(0).value(row) || key.1 != incarnation {
                key = (text(0).value(row).to_owned(), incarnation);
            }
            if count >= MOST_SCANNED || !which.contains(&key) || !text(1).is_valid(row) {
                continue;
            }
            let Some(stamp) = Stamp::of_text(text(1).value(row)) else { continue };
            let source = text(2).value(row);
            if sources.last().is_none_or(|last| last != source) {
                sources.push(source.to_owned());
            }
            let line = if long(5).is_valid(row) { long(5).value(row) as u64 } else { 0 };
            let event = (long(4).value(row) as u64, stamp, sources.len() - 1, line);
            match events.get_mut(&key) {
                Some(events) => events.push(event),
                None => drop(events.insert(key.clone(), vec![event])),
            }
            count += 1;
        }
        Ok(())
    })?;
    let mut all = Vec::new();
    for ((actor, incarnation), mut events) in events {
        events.sort_by_key(|(seq, ..)| *seq);
        let mut watched = Watched::default();
        for (_, stamp, source, line) in events {
            let source = sources.get(source).map_or("", String::as_str);
            watched.next(&actor, incarnation, stamp, Place { source, line });
        }
        all.extend(watched.found.into_iter().map(|(found, _)| found));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_behind_later_ones_of_their_log_are_told_where_stamps_are_numbers() {
        let told = |lines: &[(&str, &str, &str)], attrs: &str| {
            let mut stamps = Stamps::default();
            for (number, (actor, source, time)) in (1..).zip(lines) {
                let time = format!("2024-05-01T12:00:{time}Z");
                let seq = demi_formats::time::utc_nanos(&time.as_str().into()).unwrap();
                let record = format!(
                    "{{\"actor\":\"{actor}\",\"seq\":{seq},\"kind\":\"local\",\"time\":\"{time}\"{attrs}}}"
                );
                stamps.take(&EventRecord::parse(record.as_bytes()).unwrap(), source, number);
            }
            stamps.behind()
        };
        let back = [("a", "x", "10"), ("b", "x", "03"), ("a", "x", "05"), ("a", "x", "06"), ("b", "x", "04")];
        let text = told(&back, "").unwrap();
        assert!(text.starts_with("1 event stands") && text.contains("x:3"), "{text}");
        assert_eq!(told(&back, ",\"span_id\":\"1\""), None);
        // Files of one log may be read in any order, and so may logs in one file.
        assert_eq!(told(&[("a", "x", "10"), ("a", "y", "05"), ("b", "y", "01"), ("b", "y", "01")], ""), None);
    }

    #[test]
    fn incarnations_beside_each_other_run_backwards() {
        let found = |lives: [(u32, &str, &str); 2]| {
            let mut stamps = Stamps::default();
            for (incarnation, from, to) in lives {
                for (seq, time) in [(1, from), (2, to)] {
                    let stamp = Stamp::of_text(&format!("2024-05-01T12:00:{time}Z")).unwrap();
                    stamps.take_stamp(("w", incarnation, seq), stamp, "w.log", seq);
                }
            }
            stamps.finish(|| Ok(Vec::new())).unwrap().0
        };
        assert!(found([(1, "00", "10"), (2, "10", "20")]).is_empty());
        let beside = found([(7, "00", "10"), (9, "03", "20")]);
        assert_eq!((beside.len(), beside[0].incarnation, beside[0].events), (1, 9, 1));
        assert!(beside[0].most.contains('7'), "{}", beside[0].most);
        // The number of a process began again.
        assert_eq!(found([(31999, "00", "01"), (301, "30", "40")])[0].incarnation, 31999);
    }
}
