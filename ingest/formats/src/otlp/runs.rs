//! What a request told: events, and refusals, of which equal ones in a row are one.

use std::fmt::Display;

use demi_schemas::EventRecord;

use crate::fate::Rejection;

/// One thing that a request told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// An event.
    Event(Box<EventRecord>),
    /// Elements that are no events.
    Refused(Refused),
}

/// Elements in a row that are no events, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where the first one stands.
    pub first: String,
    /// Where the last one stands.
    pub last: String,
    /// How many there are.
    pub count: u64,
    /// The rule that was broken.
    pub why: Rejection,
    /// What was sent, of equal ones once; empty where it would be too much.
    pub raw: Vec<u8>,
}

impl Refused {
    /// What is wrong, and where.
    #[must_use]
    pub fn rejection(&self) -> Rejection {
        let Refused { first, last, count, why, .. } = self;
        why.clone().reworded(|reason| match count {
            0 | 1 if first.is_empty() => reason.to_owned(),
            0 | 1 => format!("{first}: {reason}"),
            _ => format!("{first} to {last}, {count} in a row: {reason}"),
        })
    }
}

/// Bytes of what was refused that are kept of any request, and of the largest.
const KEPT: (usize, usize) = (64 << 10, 4 << 20);

/// Puts equal refusals together.
#[derive(Debug)]
pub(crate) struct Runs<P> {
    now: Option<Run<P>>,
    /// Bytes of what was refused that may yet be kept. What is written to the quarantine is larger than what came; without a bound, many
    /// small elements fill a disk.
    left: usize,
}

#[derive(Debug)]
struct Run<P> {
    first: P,
    last: P,
    count: u64,
    why: Rejection,
    raw: Vec<u8>,
}

impl<P: Clone + Display> Runs<P> {
    /// None yet, of a request of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Runs { now: None, left: bytes.saturating_mul(4).clamp(KEPT.0, KEPT.1) }
    }

    /// Whether what was refused is kept still, where it has about so many bytes.
    #[cfg(feature = "otlp")]
    pub(crate) fn keeps(&self, bytes: usize) -> bool {
        self.left >= bytes.max(1)
    }

    /// Takes an event; says whether somebody listens.
    pub(crate) fn event(&mut self, record: Box<EventRecord>, each: &mut dyn FnMut(Told) -> bool) -> bool {
        self.end(each) && each(Told::Event(record))
    }

    /// Takes an element that is refused as the one before.
    pub(crate) fn again(&mut self, place: P) {
        if let Some(run) = &mut self.now {
            run.count += 1;
            run.last = place;
        }
    }

    /// Takes an element that is refused; says whether somebody listens.
    pub(crate) fn refuse(
        &mut self,
        place: P,
        why: Rejection,
        mut raw: Vec<u8>,
        each: &mut dyn FnMut(Told) -> bool,
    ) -> bool {
        if raw.len() > self.left {
            // What comes next is not even made.
            (self.left, raw) = (0, Vec::new());
        }
        match &mut self.now {
            Some(run) if run.why == why && run.raw == raw => {
                self.again(place);
                true
            }
            _ => {
                let listened = self.end(each);
                self.left -= raw.len();
                self.now = Some(Run { first: place.clone(), last: place, count: 1, why, raw });
                listened
            }
        }
    }

    /// Gives what is at hand; says whether somebody listens.
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(Told) -> bool) -> bool {
        let Some(Run { first, last, count, why, raw }) = self.now.take() else { return true };
        let (first, last) = (first.to_string(), last.to_string());
        each(Told::Refused(Refused { first, last, count, why, raw }))
    }
}
